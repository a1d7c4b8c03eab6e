/*
 * Listening TCP and unix sockets of the control loop; every accepted connection is a stream.
 *
 * At streams_max open streams the listener stops accepting and goes on when one has closed: what
 * waits meanwhile stays in the kernel's queue. (The data plane has listeners of its own.)
 * Thread: the loop's.
 */
#ifndef SKEIN_NODE_NET_LISTENER_H
#define SKEIN_NODE_NET_LISTENER_H

#include "node/base/addr.h"
#include "node/base/errors.h"
#include "node/net/stream.h"

#include <uv.h>

struct listener;

struct listener_config {
    uint32_t streams_max; /* accepted and not yet closed; 0: 256 */
    uint32_t backlog;     /* 0: 128 */

    /* A new stream: call stream_adopt or stream_abandon before returning. */
    void (*on_accept)(void *owner, struct stream *stream);
    void *owner;
};

/*
 * RC_BUSY  the address is in use; the text names it
 * RC_IO    the kernel refused otherwise (no permission, no such address); the text says why
 */
MUST_CHECK int listener_open_tcp(uv_loop_t *loop, const struct addr *bind,
                                 const struct listener_config *config,
                                 struct listener **ret_listener, struct err_info *err);

/*
 * A unix socket at path with exactly this file mode (0: 0660). A socket file on which nobody
 * answers is replaced; one that is in use, or a file that is no socket, is left alone: RC_BUSY.
 * RC_INVALID: path too long for a socket. The file is removed by listener_close.
 */
MUST_CHECK int listener_open_unix(uv_loop_t *loop, const char *path, unsigned mode,
                                  const struct listener_config *config,
                                  struct listener **ret_listener, struct err_info *err);

/* The address in use (the real port when 0 was asked for); unset for unix sockets. */
void listener_addr(const struct listener *listener, struct addr *ret_addr);

/* Accepted streams that are not closed yet. */
uint32_t listener_streams(const struct listener *listener);

/*
 * Stop listening; streams live on. on_closed (may be NULL) is called from the loop once; the
 * pointer is dead for the caller from this call on. NULL is accepted when on_closed is NULL.
 */
void listener_close(struct listener *listener, void (*on_closed)(void *owner), void *owner);

#endif
