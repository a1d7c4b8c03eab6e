/*
 * What client.c (input, time, end) and client_out.c (output) share. Nobody else includes it.
 */
#ifndef SKEIN_NODE_PROXY_CLIENT_INT_H
#define SKEIN_NODE_PROXY_CLIENT_INT_H

#include "node/proxy/client.h"

enum {
    CLIENT_PIPELINE_BYTES = 16384, /* kept behind the request under way; more is left unread */
    CLIENT_TRAILER_BYTES_MAX = 8192,
    CLIENT_LINGER_MS = 2000,
    CLIENT_LINGER_BYTES = 1 << 20,
};

extern const struct client_ops client_side_ops;

/* It goes on: the time limit for what it is doing begins anew. The entry in the wheel stays where
 * it is and is asked again when it fires. */
static inline void client_touch(struct client *client)
{
    client->progress_ms = worker_now(client->sock.worker);
}

/* The same, and the entry is put where the limit says: when what it is doing changes. */
void client_arm(struct client *client);

/* It is idle: no work is under way. */
void client_end_work(struct client *client);
/* Idempotent; there is no exchange any more. */
void client_close(struct client *client);
/* Take up what is kept in `in` when this event is over. */
void client_resume_soon(struct client *client);
void client_update_reading(struct client *client);

/* Which answer a malformed request gets. */
enum reason client_fault_reason(enum h1_fault fault);

/* Write an answer of our own and go on, linger or close. */
void client_put_answer(struct client *client, const struct exchange_answer *what);
/* End the connection when all that waits is sent. */
void client_close_when_sent(struct client *client);
/* closing_soon, and nothing waits any more. */
void client_all_sent(struct client *client);

#endif
