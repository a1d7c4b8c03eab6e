/*
 * Private to node/http: the forwarded fields written at a cursor, for h1_write.
 */
#ifndef SKEIN_NODE_HTTP_FORWARDED_INT_H
#define SKEIN_NODE_HTTP_FORWARDED_INT_H

#include "node/http/forwarded.h"

/* An upper bound of what fwd_write writes. */
size_t fwd_room(const struct fwd_peer *peer, const struct h1_head *head);

/* Write the lines at `at`, where fwd_room bytes are free; returns the end. */
char *fwd_write(char *at, const struct fwd_peer *peer, enum fwd_policy policy,
                const struct h1_head *head, const char *bytes);

#endif
