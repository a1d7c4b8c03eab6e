/*
 * What a listener needs of a stream that it is about to accept. For node/net only.
 */
#ifndef SKEIN_NODE_NET_STREAM_ACCEPT_H
#define SKEIN_NODE_NET_STREAM_ACCEPT_H

#include "node/net/stream.h"

/*
 * A stream without connection, owner or reading, for uv_accept on stream_handle. on_gone(arg) is
 * called when its memory is about to go, after on_closed.
 */
struct stream *stream_new_accept(uv_loop_t *loop, bool is_unix, void (*on_gone)(void *arg),
                                 void *arg);
uv_stream_t *stream_handle(struct stream *stream);

/* uv_accept succeeded: options of a connected socket. */
void stream_accepted(struct stream *stream);

/* It has an owner, or is closing. */
bool stream_is_taken(const struct stream *stream);

#endif
