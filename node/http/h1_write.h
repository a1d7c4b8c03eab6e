/*
 * Outgoing heads, built in one run of memory from a parsed head.
 *
 * Kept field lines are copied as they came, in runs; everything that says how this connection is
 * used (Connection and what it lists, Keep-Alive, Proxy-Connection, TE, Upgrade, Trailer, framing)
 * is left out and written anew from parsed state, so that what goes out has one reading whatever
 * came in. "Proxy" is never forwarded (CVE-2016-5385), nor is "Expect" when the caller dealt with
 * it.
 *
 * Thread: any. Blocks: never. Allocates: growth of the caller's buffer only.
 */
#ifndef SKEIN_NODE_HTTP_H1_WRITE_H
#define SKEIN_NODE_HTTP_H1_WRITE_H

#include "node/base/buf.h"
#include "node/http/forwarded.h"
#include "node/http/h1_head.h"

/* What the Connection field says. */
enum h1_connection {
    H1_CONNECTION_SILENT = 0, /* no field: HTTP/1.1 keeps the connection */
    H1_CONNECTION_CLOSE,
    H1_CONNECTION_KEEP_ALIVE, /* for an HTTP/1.0 client that asked for it */
    H1_CONNECTION_UPGRADE,    /* "Connection: upgrade", and the Upgrade field is kept */
};

/* How to write. All zero is a sound start: framing none, Connection silent. */
struct h1_out {
    enum h1_framing framing; /* UNTIL_CLOSE: no framing field; set connection to CLOSE with it */
    uint64_t content_length; /* with H1_BODY_LENGTH */
    enum h1_connection connection;
    uint64_t drop;     /* H1_BIT set of further names to leave out */
    const char *extra; /* whole lines ("A: b\r\n") to add; NULL: none. Trusted text. */
    size_t extra_len;

    /* requests */
    const char *target; /* NULL: path and query as they came, in origin form */
    size_t target_len;
    const struct fwd_peer *peer; /* NULL: as FWD_NEVER */
    enum fwd_policy policy;
    bool te_trailers; /* ask for trailers: "TE: trailers" */

    /* responses */
    const char *date; /* IMF-fixdate, added when the head has no Date; NULL: none */
};

/*
 * Append the request head for the endpoint, always HTTP/1.1, always with the Host that came (or the
 * target's authority). bytes are those that head was parsed from.
 * RC_FULL: an upper bound of the result (2 * head->len + extra_len + target_len + 1 KiB is always
 * enough) does not fit out's cap; out is as it was, its `full` flag set. RC_INVALID: the head has
 * no host, or is a CONNECT.
 */
MUST_CHECK int h1_write_request(struct buf *out, const struct h1_head *head, const char *bytes,
                                const struct h1_out *how);

/* What h1_write_response may need besides the incoming head and what is to be added. */
enum { H1_WRITE_ROOM = 320 };

/*
 * Append the response head for the client, always HTTP/1.1. Responses without body by their nature
 * (HEAD, 304) keep the Content-Length that was announced when how->framing is NONE; 1xx and 204
 * have no framing field at all. RC_FULL as above.
 */
MUST_CHECK int h1_write_response(struct buf *out, const struct h1_head *head, const char *bytes,
                                 const struct h1_out *how);

/*
 * Heads of one's own: a start line, fields, the end. Errors show in out->full. h1_put_field drops
 * fields whose name or value cannot be written soundly (and returns RC_INVALID).
 */
void h1_put_status(struct buf *out, int status);
int h1_put_field(struct buf *out, const char *name, const char *value);
void h1_put_length(struct buf *out, uint64_t content_length);
void h1_put_end(struct buf *out);

#endif
