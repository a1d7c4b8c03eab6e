/*
 * TLS targets of the proxy_driver, by name:
 *
 *   target NAME [ca=FILE] [name=HOST] [verify=full|ca|none] [cert=FILE key=FILE] [profile=NUMBER]
 */
#ifndef SKEIN_TESTS_SUPPORT_DRIVER_TARGET_H
#define SKEIN_TESTS_SUPPORT_DRIVER_TARGET_H

#include "node/base/errors.h"
#include "node/tls/tls_policy.h"

/* words[0] is "target". Make it, or make it anew. */
MUST_CHECK int driver_target_make(char **words, size_t count, struct err_info *err);

/* NULL: there is none of this name. Borrowed. */
struct tls_target *driver_target_find(const char *name);

void driver_targets_free(void);

#endif
