/*
 * Start, run and end a libuv loop, and prove at the end that nothing was left on it.
 *
 * Thread: a loop belongs to the thread that runs it; nothing here may be called from another.
 * Source: libuv 1.44 and later.
 */
#ifndef SKEIN_NODE_NET_LOOP_H
#define SKEIN_NODE_NET_LOOP_H

#include "node/base/defs.h"
#include "node/base/errors.h"

#include <uv.h>

/* Initialise the caller's loop. Aborts when the kernel gives no file descriptor for it. */
void loop_init(uv_loop_t *loop);

/* Run until no handle or request is active, or uv_stop was called. */
void loop_run(uv_loop_t *loop);

/*
 * Run until done(arg) says true, asked after every turn. False when the loop became empty or
 * timeout_ms passed first. For tests and for orderly ends; owns one timer while it runs.
 */
bool loop_run_until(uv_loop_t *loop, bool (*done)(void *arg), void *arg, uint64_t timeout_ms);

/*
 * End the loop: let close callbacks that are under way finish, then close it. A handle that nobody
 * closed is a bug of its owner: the leftovers are named on stderr and the process aborts.
 */
void loop_close_clean(uv_loop_t *loop);

/* The RC_* code for a libuv error (negative number); RC_OK for 0 and above. Pure. */
int rc_from_uv(int uv_code);

#endif
