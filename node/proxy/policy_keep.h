/*
 * What variables stand for, in requests and later in their responses.
 *
 * When a response comes, the head of its request is gone. Values of the request that templates of
 * the response mention are therefore written down when the request is routed, in the order of the
 * policy's keeps; a template's part says by its slot which one it is.
 */
#ifndef SKEIN_NODE_PROXY_POLICY_KEEP_H
#define SKEIN_NODE_PROXY_POLICY_KEEP_H

#include "node/proxy/exchange.h"
#include "node/proxy/policy.h"

enum { POLICY_KEEPS_MAX = 256 };

/* Collect from the templates, and number their parts. RC_INVALID: too many. */
MUST_CHECK int policy_keeps_init(struct policy_keeps *keeps, struct h1_edits *edits,
                                 struct err_info *err);
void policy_keeps_deinit(struct policy_keeps *keeps);

/* Values of the request that is being routed, as a template_source_fn. */
struct request_source {
    const struct exchange *exchange;
    const struct exchange_request *request;
    struct buf *scratch;
    char text[ADDR_TEXT_MAX];
};
struct template_value request_value(void *ctx, const struct template_part *part);

/* Values of a response and of what was kept of its request. */
struct response_source {
    const struct exchange *exchange;
    const struct h1_head *head;
    const char *bytes;
    const char *kept; /* where the keeps of this policy begin */
    size_t kept_len;
    struct buf *scratch;
    char text[ADDR_TEXT_MAX];
};
struct template_value response_value(void *ctx, const struct template_part *part);

/* Append the values of the keeps. out->full tells that they did not fit. */
void policy_keep(const struct policy_keeps *keeps, struct request_source *source, struct buf *out);
/* Bytes that they take. */
size_t policy_kept_len(const struct policy_keeps *keeps, const char *kept, size_t len);

#endif
