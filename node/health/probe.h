/*
 * One look at one endpoint: a connection of its own, at most one request, one result.
 *
 * A probe is heap-allocated and frees itself when its handle is closed. It calls `done` at most
 * once, from the loop, never from within a call of its owner, and never after probe_cancel. Bounds
 * on time are the owner's business.
 * Thread: the loop's. Blocks: never.
 */
#ifndef SKEIN_NODE_HEALTH_PROBE_H
#define SKEIN_NODE_HEALTH_PROBE_H

#include "node/base/addr.h"
#include "node/health/judge.h"

#include <uv.h>

enum { PROBE_READ_BYTES = 16 * 1024 };

struct probe;

/* The last call; the probe is dead to its owner. why: "" with PROBE_GOOD; borrowed. */
typedef void (*probe_done_fn)(void *arg, enum probe_result result, const char *why);

/*
 * Begin. host is what the request calls the endpoint, unless the check names a host; copied.
 * PROBE_PENDING: done will be called, unless it is cancelled. Every other result is final and there
 * is no probe (*ret_probe is NULL): why says what was wrong.
 */
MUST_CHECK enum probe_result probe_start(uv_loop_t *loop, const struct check_spec *spec,
                                         const struct addr *addr, const char *host,
                                         probe_done_fn done, void *arg, struct probe **ret_probe,
                                         char why[PROBE_TEXT_MAX]);

/* Is the connection there? Else it is being made. */
bool probe_is_connected(const struct probe *probe);

/* End it without a word. */
void probe_cancel(struct probe *probe);

#endif
