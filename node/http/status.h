/*
 * Status codes in words, well-formed error responses, and the Date field.
 * Pure, any thread; only http_date keeps state, in its caller's structure.
 */
#ifndef SKEIN_NODE_HTTP_STATUS_H
#define SKEIN_NODE_HTTP_STATUS_H

#include "node/base/buf.h"
#include "node/base/defs.h"
#include "node/base/errors.h"

/* RFC 9110 15; never NULL: an unknown code gets its class ("Server Error"). Static storage. */
const char *status_reason(int status);

/* How an error response ends the exchange. */
enum status_end {
    STATUS_END_CLOSE = 0,  /* "Connection: close" */
    STATUS_END_KEEP,       /* HTTP/1.1: nothing is said */
    STATUS_END_KEEP_ALIVE, /* "Connection: keep-alive", for HTTP/1.0 */
};

struct status_answer {
    int status; /* 300 to 599; 200 to 299 for status_put_bare */
    enum status_end end;
    bool is_head;       /* answer to HEAD: Content-Length as for GET, no body */
    const char *date;   /* IMF-fixdate; NULL: no Date field */
    const char *extra;  /* whole lines, "Retry-After: 1\r\n"; NULL: none. Trusted text. */
    const char *lines;  /* further ones, behind extra; NULL: none */
    const char *detail; /* one line for the reader of the page, escaped here; NULL: a default */
    const char *body;   /* instead of the page; NULL: the page */
    size_t body_len;
    const char *content_type; /* of body; NULL: text/html */
};

/* Append a whole response with a small HTML page, or with the body that is given. RC_FULL: out is
 * as it was. */
MUST_CHECK int status_put_answer(struct buf *out, const struct status_answer *answer);

/* The same for a status of success without a body (204 has no Content-Length either). */
MUST_CHECK int status_put_bare(struct buf *out, const struct status_answer *answer);

/* The interim response, whole: "HTTP/1.1 100 Continue\r\n\r\n". */
extern const char STATUS_CONTINUE[25 + 1];
enum { STATUS_CONTINUE_LEN = 25 };

enum { HTTP_DATE_LEN = 29 }; /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* Zero before first use. */
struct http_date {
    uint64_t second;
    char text[HTTP_DATE_LEN + 1];
};

/* IMF-fixdate of this time (ms since 1970), formatted anew only when the second changed. Valid
 * until the next call with the same cache. */
const char *http_date_text(struct http_date *cache, uint64_t wall_ms);

#endif
