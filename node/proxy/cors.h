/*
 * Cross-origin resource sharing, answered in place of the endpoint (WHATWG Fetch 3.2).
 *
 * A preflight gets its answer here. Other responses get the fields of this policy, and those that
 * the endpoint sent are taken out, so that there is one policy. An origin that is not allowed gets
 * no field but Vary: the browser refuses then. Immutable, any thread.
 */
#ifndef SKEIN_NODE_PROXY_CORS_H
#define SKEIN_NODE_PROXY_CORS_H

#include "node/base/buf.h"
#include "node/http/h1_head.h"
#include "node/proxy/proxy_policy.h"

struct cors;

/* RC_INVALID: texts that cannot be written, or credentials for every origin. */
MUST_CHECK int cors_new(const struct proxy_cors *from, struct cors **ret_cors,
                        struct err_info *err);
void cors_free(struct cors *cors); /* NULL is accepted */

/* OPTIONS with Origin and Access-Control-Request-Method. */
bool cors_is_preflight(const struct h1_head *request, const char *bytes);

/* Append the lines of the answer to a preflight, or of the response to any other request. */
void cors_put_preflight(const struct cors *cors, const struct h1_head *request, const char *bytes,
                        struct buf *lines);
void cors_put(const struct cors *cors, const struct h1_head *request, const char *bytes,
              struct buf *lines);

/* Mark the endpoint's own fields to go, and take out those that edits made. */
void cors_drop(struct h1_head *response, const char *bytes, struct buf *lines);

#endif
