/*
 * Message bodies on HTTP/1 connections: an incremental decoder for all framings, and the canonical
 * chunk writer.
 *
 * The decoder takes bytes as they arrive, split anywhere, and gives back spans of them; it never
 * copies data. Chunk sizes, line ends, extensions and trailers are checked to the byte: what a lax
 * recipient could read in another way is a fault (RFC 9112 7.1). Chunk extensions are dropped.
 *
 * Thread: the owner's. Blocks: never. Allocates: only into the trailer buffer that a caller gives.
 */
#ifndef SKEIN_NODE_HTTP_H1_BODY_H
#define SKEIN_NODE_HTTP_H1_BODY_H

#include "node/base/buf.h"
#include "node/http/h1_head.h"

struct h1_body_limits {
    uint64_t body_bytes; /* decoded data; 0: unlimited */
    uint32_t
        overhead_bytes; /* chunk extensions, of one line and beyond those of fair size; 0: 4096 */
    uint32_t trailer_bytes; /* trailer section; 0: 8192 */
    uint32_t trailer_count; /* trailer fields; 0: 64 */
};

struct h1_body {
    uint8_t framing; /* enum h1_framing */
    uint8_t fault;   /* enum h1_fault: why it was refused */

    /* private */
    uint8_t state;
    uint8_t digits;    /* of the chunk size in progress, leading zeros included */
    uint32_t overhead; /* extension bytes that the data does not pay for */

    uint64_t received; /* public: data bytes given out so far */

    uint64_t remaining; /* of the length, or of the chunk */
    uint64_t body_max;
    struct buf *trailers; /* borrowed; NULL drops them */
    uint32_t line_off;    /* where the trailer line in progress begins in *trailers */
    uint32_t overhead_max;
    uint32_t trailer_bytes_left;
    uint32_t trailers_left;
};

/* What one call made of the bytes. */
struct h1_piece {
    size_t used;      /* bytes consumed from the front */
    const char *data; /* body data among them: points into the input */
    size_t data_len;  /* may be 0 */
};

/*
 * Begin a body. limits may be NULL: the defaults. trailers: NULL drops trailer fields after
 * checking them; else the sound ones that may be forwarded are appended as whole lines ("Name:
 * value\r\n"), and when its cap is reached the fault is H1_FAULT_TRAILER_TOO_BIG. Fields that would
 * change framing, routing or authorisation are dropped in any case (RFC 9110 6.5.1).
 */
void h1_body_init(struct h1_body *body, enum h1_framing framing, uint64_t content_length,
                  const struct h1_body_limits *limits, struct buf *trailers);

/*
 * Take the next piece. Call again with the rest while piece->used < len and the body is not done;
 * bytes behind the end of the body are never consumed.
 *
 * 0           piece is set; used may be > 0 with data_len 0
 * RC_INVALID  malformed, body->fault says how; sticky. Close both sides without a clean end.
 * RC_TOO_BIG  above a limit; sticky
 */
MUST_CHECK int h1_body_next(struct h1_body *body, const char *bytes, size_t len,
                            struct h1_piece *ret_piece);

/* The connection ended. 0 when the body is complete (with H1_BODY_UNTIL_CLOSE: now), else
 * RC_CLOSED: it was cut short, and the other side must be able to see that. */
MUST_CHECK int h1_body_end(struct h1_body *body);

/* True when the last byte of the body (and of its trailers) was consumed. */
bool h1_body_done(const struct h1_body *body);

/* Data bytes that may be taken without looking at framing: what is left of the length or of the
 * chunk in progress; UINT64_MAX for H1_BODY_UNTIL_CLOSE. */
uint64_t h1_body_run(const struct h1_body *body);

/* The caller moved `len` (<= h1_body_run) data bytes itself, for instance by splice(2). */
void h1_body_skip(struct h1_body *body, uint64_t len);

enum { H1_CHUNK_HEAD_MAX = 18 }; /* 16 hex digits and CRLF */

/* "1f40\r\n" into out, not NUL-terminated; returns its length. size > 0. Data and "\r\n" follow. */
size_t h1_chunk_head(char out[H1_CHUNK_HEAD_MAX], uint64_t size);

/* A whole chunk; nothing when len is 0 (that would end the body). RC_FULL. */
MUST_CHECK int h1_chunk_put(struct buf *out, const char *data, size_t len);

/* The last chunk, trailer lines (whole lines as h1_body collects them; may be NULL), the end.
 * RC_FULL. */
MUST_CHECK int h1_chunk_end(struct buf *out, const char *trailers, size_t len);

#endif
