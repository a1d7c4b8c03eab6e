/*
 * One look at one endpoint: a connection of its own, by TLS if the check says so, at most one
 * request, one result.
 *
 * A look is heap-allocated and frees itself when its handle is closed. It calls `done` at most
 * once, from the loop, never from within a call of its owner, and never after look_cancel. Bounds
 * on time are the owner's business. TLS sessions are not resumed: each look verifies the
 * certificate that the endpoint has now.
 * Thread: the loop's. Blocks: never.
 */
#ifndef SKEIN_NODE_HEALTH_LOOK_H
#define SKEIN_NODE_HEALTH_LOOK_H

#include "node/base/addr.h"
#include "node/health/judge.h"
#include "node/tls/tls_lib.h"

#include <uv.h>

enum { LOOK_READ_BYTES = 16 * 1024 };

struct look;

/* The last call; the look is dead to its owner. why: "" with LOOK_GOOD; borrowed. */
typedef void (*look_done_fn)(void *arg, enum look_result result, const char *why);

/* Borrowed for the call. */
struct look_ask {
    uv_loop_t *loop;
    const struct check_spec *spec;
    const struct addr *addr;
    const char *host;    /* what the request calls the endpoint, unless the check names a host */
    struct tls_lib *tls; /* of this thread, when the check wants TLS; outlives the look */
    look_done_fn done;
    void *arg;
};

/*
 * Begin. LOOK_PENDING: done will be called, unless it is cancelled. Every other result is final and
 * there is no look (*ret_look is NULL): why says what was wrong.
 */
MUST_CHECK enum look_result look_start(const struct look_ask *ask, struct look **ret_look,
                                       char why[LOOK_TEXT_MAX]);

/* What it waits for: "connect", "TLS handshake", "response". Static. */
const char *look_waits_for(const struct look *look);

/* End it without a word. */
void look_cancel(struct look *look);

#endif
