/*
 * HTTP/1.0 and HTTP/1.1 message heads: strict parsing into spans.
 *
 * The caller holds the bytes of a head in one piece; what is parsed are offsets into them, so
 * nothing is copied and nothing is allocated. A head that two recipients could read in two ways is
 * refused with a reason, and the reason with the status to answer: bare CR or LF, control bytes,
 * folded lines, white space before a colon, names that are no token, several or invalid Host
 * fields, Content-Length that is not one number, Transfer-Encoding other than a single "chunked",
 * both of them at once, targets of the wrong form, and versions other than 1.0 and 1.1.
 *
 * Thread: any; all state is in the arguments. Blocks and allocates: never.
 * Source: RFC 9110, RFC 9112. Tests hold every head that is taken against llhttp's reading.
 */
#ifndef SKEIN_NODE_HTTP_H1_HEAD_H
#define SKEIN_NODE_HTTP_H1_HEAD_H

#include "node/base/defs.h"
#include "node/base/errors.h"
#include "node/http/uri.h"

enum {
    H1_HEAD_BYTES_MAX = 65535, /* spans are 16 bits wide; larger limits count as a little less */
    H1_FIELDS_MAX = 1024,      /* no limit above this is needed */
};

/* A run of bytes of the head that the caller holds. len 0: absent or empty. */
struct h1_span {
    uint16_t off;
    uint16_t len;
};

/* Field names that somebody asks for; all others are H1_OTHER. Below 64, so that a set is a mask.
 */
enum h1_name {
    H1_OTHER = 0,
    H1_ACCEPT,
    H1_ACCEPT_ENCODING,
    H1_ALT_SVC,
    H1_AUTHORIZATION,
    H1_CONNECTION,
    H1_CONTENT_ENCODING,
    H1_CONTENT_LENGTH,
    H1_CONTENT_TYPE,
    H1_COOKIE,
    H1_DATE,
    H1_EXPECT,
    H1_FORWARDED,
    H1_HOST,
    H1_HTTP2_SETTINGS,
    H1_IF_MATCH,
    H1_IF_NONE_MATCH,
    H1_KEEP_ALIVE,
    H1_LOCATION,
    H1_MAX_FORWARDS,
    H1_ORIGIN,
    H1_PROXY,
    H1_PROXY_AUTHENTICATE,
    H1_PROXY_AUTHORIZATION,
    H1_PROXY_CONNECTION,
    H1_RETRY_AFTER,
    H1_SERVER,
    H1_SET_COOKIE,
    H1_STRICT_TRANSPORT_SECURITY,
    H1_TE,
    H1_TRAILER,
    H1_TRANSFER_ENCODING,
    H1_UPGRADE,
    H1_USER_AGENT,
    H1_VIA,
    H1_X_FORWARDED_FOR,
    H1_X_FORWARDED_HOST,
    H1_X_FORWARDED_PORT,
    H1_X_FORWARDED_PROTO,
    H1_X_REQUEST_ID,
    H1_NAME_COUNT,
};

#define H1_BIT(name) (UINT64_C(1) << (name))

/* One field line. The line itself goes from name.off to the next field's name.off. */
struct h1_field {
    struct h1_span name;
    struct h1_span value; /* without white space around it */
    uint8_t id;           /* enum h1_name */
    bool hop;             /* for this connection only: h1_write leaves it out */
    bool drop;            /* false after parsing; set by a caller who wants it left out */
    bool special;         /* private: its value says something to the parser */
};

enum h1_method {
    H1_METHOD_OTHER = 0, /* any other token; passes as it came */
    H1_GET,
    H1_HEAD,
    H1_POST,
    H1_PUT,
    H1_DELETE,
    H1_OPTIONS,
    H1_PATCH,
    H1_CONNECT, /* parsed; the caller answers 405 or 501 */
    H1_TRACE,
};

/* RFC 9112 3.2 */
enum h1_form {
    H1_FORM_ORIGIN = 0, /* "/path?query" */
    H1_FORM_ABSOLUTE,   /* "http://host/path?query": agrees with Host */
    H1_FORM_AUTHORITY,  /* "host:port", only with CONNECT */
    H1_FORM_ASTERISK,   /* "*", only with OPTIONS */
};

enum h1_framing {
    H1_BODY_NONE = 0,
    H1_BODY_LENGTH, /* content_length bytes, which may be 0 */
    H1_BODY_CHUNKED,
    H1_BODY_UNTIL_CLOSE, /* responses only */
};

/* Why a message was refused; h1_fault_status and h1_fault_text say it in public. */
enum h1_fault {
    H1_FAULT_NONE = 0,
    H1_FAULT_CONTROL_BYTE, /* NUL, bare CR, bare LF or another control byte */
    H1_FAULT_START_LINE,   /* no request or status line */
    H1_FAULT_METHOD,       /* no token */
    H1_FAULT_TARGET,       /* bytes or form that no target has */
    H1_FAULT_VERSION,      /* not HTTP/1.0 or HTTP/1.1: 505 */
    H1_FAULT_FIELD_NAME,   /* no token, white space before the colon, no colon */
    H1_FAULT_FOLD,         /* a folded line */
    H1_FAULT_HOST,   /* absent in 1.1, several, empty, invalid, or another than the target's */
    H1_FAULT_LENGTH, /* Content-Length is not one decimal number below 2^63 */
    H1_FAULT_CODING, /* Transfer-Encoding does not end in a single chunked, or in HTTP/1.0 */
    H1_FAULT_CODING_UNKNOWN, /* a coding besides chunked: 501 */
    H1_FAULT_LENGTH_AND_CODING,
    H1_FAULT_CONNECTION,      /* malformed Connection, TE, Upgrade or Expect list */
    H1_FAULT_STATUS,          /* no status of three digits from 100 on */
    H1_FAULT_HEAD_TOO_BIG,    /* 431 */
    H1_FAULT_FIELDS_TOO_MANY, /* 431 */
    H1_FAULT_TARGET_TOO_LONG, /* 414 */
    H1_FAULT_CHUNK_SIZE,      /* no hexadecimal number, or above 2^60 */
    H1_FAULT_CHUNK_LINE,      /* not ended by CRLF, or a bad extension */
    H1_FAULT_CHUNK_DATA,      /* chunk data not followed by CRLF */
    H1_FAULT_CHUNK_OVERHEAD,  /* more extension bytes than the limit */
    H1_FAULT_TRAILER,         /* malformed trailer field */
    H1_FAULT_TRAILER_TOO_BIG, /* 431 */
    H1_FAULT_BODY_TOO_BIG,    /* 413 */
    H1_FAULT_COUNT,
};

/* The status for a request with this fault (400, 413, 414, 431, 501, 505); a response that has any
 * is answered with 502. Static text without a full stop. */
int h1_fault_status(enum h1_fault fault);
const char *h1_fault_text(enum h1_fault fault);
/* A word for metric labels: "control_byte". */
const char *h1_fault_label(enum h1_fault fault);

struct h1_limits {
    uint32_t head_bytes;   /* start line to empty line; 431, for a response 502 */
    uint32_t field_count;  /* 431 */
    uint32_t target_bytes; /* 414 */
};

/* How far an incomplete head was looked at. All zero before the first byte of a head. */
struct h1_scan {
    uint32_t pos;        /* bytes that are known to be sound */
    uint32_t line;       /* where the line in progress begins */
    uint32_t start;      /* where the start line begins (RFC 9112 2.2: empty lines before it) */
    uint32_t start_end;  /* where its CRLF is; 0 while it is incomplete */
    uint32_t fields;     /* complete field lines */
    bool start_is_sound; /* judged ahead of the fields, which have not arrived */
};

/*
 * A parsed head. `fields` and `fields_cap` belong to the caller and are set before parsing; a
 * worker keeps one head with one array for each side, since a head is only needed until it is
 * rewritten.
 */
struct h1_head {
    struct h1_field *fields;
    uint32_t fields_cap;

    uint32_t field_count;
    uint32_t len;            /* bytes of the head, the empty line (and any before it) included */
    enum h1_fault fault;     /* why it was refused */
    uint64_t present;        /* H1_BIT of each known name that occurs */
    enum h1_framing framing; /* how the body that follows is delimited */
    uint64_t content_length; /* with H1_BODY_LENGTH; for a HEAD or 304 response: as announced */
    bool length_announced;   /* a (sound) Content-Length is there */
    uint8_t minor;           /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;         /* this side allows another message on the connection */
    bool close_option;       /* "Connection: close" stands there */

    /* requests */
    enum h1_method method_id;
    enum h1_form form;
    struct h1_span method;
    struct h1_span target; /* as it came */
    struct h1_span path;   /* of the target, "" for "http://host"; "*" for the asterisk form */
    struct h1_span query;  /* behind the '?', without it; see has_query */
    bool has_query;
    struct h1_span authority;         /* of an absolute or authority form */
    struct h1_span host;              /* the Host field's value, else authority; port included */
    char host_name[URI_HOST_MAX + 1]; /* canonical form of host: lower-case, no port, NUL */
    uint16_t host_name_len;           /* 0: HTTP/1.0 without Host, or asterisk form without one */
    bool expect_continue; /* HTTP/1.1 only; in 1.0 an expectation is ignored (RFC 9110 10.1.1) */
    bool expect_other;    /* an expectation that nobody knows: 417 is allowed */
    bool te_trailers;     /* the client takes trailers */

    /*
     * Request: asks for an upgrade (1.1, Connection: upgrade, an Upgrade field, not h2c, no body).
     * Response: 101 with Connection: upgrade and an Upgrade field.
     */
    bool upgrade;

    /* responses */
    uint16_t status;
    struct h1_span reason;
};

/* Ready for parsing; the array is borrowed for as long as the head is used. */
void h1_head_init(struct h1_head *head, struct h1_field *fields, uint32_t fields_cap);

/*
 * Parse the request head at the beginning of bytes[0..len).
 *
 * scan     all zero for a new head, then untouched between calls; bytes that were there stay as
 * they were (they may have moved as a whole). The work of many calls is linear in len. limits
 * field_count above head->fields_cap counts as fields_cap
 *
 * 0           head is filled; its spans hold while the bytes stay; the body begins at head->len
 * RC_AGAIN    incomplete, and sound as far as it goes: come back with more bytes
 * RC_INVALID  refused: head->fault says why
 * RC_TOO_BIG  above a limit: head->fault says which
 * After a refusal the connection is of no further use: answer h1_fault_status() and close.
 */
MUST_CHECK int h1_parse_request(struct h1_scan *scan, const char *bytes, size_t len,
                                const struct h1_limits *limits, struct h1_head *head);

/*
 * The same for a response to a request of this method. Interim responses (status 1xx but 101) are
 * heads like all others, without body; the final response's head follows at head->len.
 */
MUST_CHECK int h1_parse_response(struct h1_scan *scan, const char *bytes, size_t len,
                                 enum h1_method method, const struct h1_limits *limits,
                                 struct h1_head *head);

/* The first field of that name, NULL when there is none. */
const struct h1_field *h1_find(const struct h1_head *head, enum h1_name id);
/* The next one of the same name behind `field`. */
const struct h1_field *h1_find_next(const struct h1_head *head, const struct h1_field *field);
/* The first field of any name (lower-case, `len` bytes), NULL when there is none. */
const struct h1_field *h1_find_named(const struct h1_head *head, const char *bytes,
                                     const char *name, size_t len);

/* True if a comma-separated list has this token (given in lower-case); case does not matter. */
bool h1_list_has(const char *list, size_t len, const char *token);

/* Which known name this is, in any case. */
enum h1_name h1_name_id(const char *name, size_t len);

/* True if every byte is a token byte (RFC 9110 5.6.2) and there is one. */
bool h1_is_token(const char *text, size_t len);
/* True if no byte is a control byte other than tab (RFC 9110 5.5, obs-text allowed). */
bool h1_is_field_value(const char *text, size_t len);

#endif
