/*
 * OpenSSL's per-thread error queue as result codes and text.
 */
#ifndef SKEIN_NODE_TLS_TLS_ERR_H
#define SKEIN_NODE_TLS_TLS_ERR_H

#include "node/base/defs.h"
#include "node/base/errors.h"

/* Empty the calling thread's queue. Call before an operation whose failure is to be explained. */
void tls_err_clear(void);

/* Put the oldest queued error's text ("tlsv13 alert ...") into err and empty the queue; returns rc.
 */
int tls_err_take(struct err_info *err, int rc, const char *what);

#endif
