/*
 * Label selectors: "tier=gold,zone!=a,canary,!old,team in (x,y),env notin (dev)".
 *
 * All requirements must hold. As in Kubernetes, "!=" and "notin" also match objects without the
 * label. Thread: pure; a parsed selector is immutable.
 */
#ifndef SKEIN_PROTO_SELECTOR_H
#define SKEIN_PROTO_SELECTOR_H

#include "node/base/defs.h"
#include "node/base/errors.h"
#include "proto/objects.pb-c.h"

enum {
    SELECTOR_BYTES_MAX = 4096,
    SELECTOR_TERMS_MAX = 64,
    SELECTOR_VALUES_MAX = 64, /* of one in (...) */
};

struct selector;

/* "" or blanks select everything. RC_INVALID with a text that shows the place. */
MUST_CHECK int selector_parse(const char *text, struct selector **ret_selector,
                              struct err_info *err);
void selector_free(struct selector *selector); /* NULL is accepted */

bool selector_matches(const struct selector *selector, Skein__Pair *const *labels, size_t count);

/* The value of a label, or NULL. */
const char *labels_find(Skein__Pair *const *labels, size_t count, const char *key);

#endif
