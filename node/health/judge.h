/*
 * Judges the response to a check from its bytes, as they come, split anywhere.
 *
 * Says its word as soon as it is certain: with the head when only the status counts, with the text
 * found or 64 kB of body looked through when a body is asked for. Holds at most one head of 16 kB
 * and, for a body, 64 kB. Pure. Thread: the owner's.
 */
#ifndef SKEIN_NODE_HEALTH_JUDGE_H
#define SKEIN_NODE_HEALTH_JUDGE_H

#include "node/base/buf.h"
#include "node/health/check_spec.h"
#include "node/http/h1_body.h"
#include "node/http/h1_head.h"

enum {
    JUDGE_HEAD_BYTES_MAX = 16 * 1024,
    JUDGE_FIELDS_MAX = 128,
    JUDGE_INTERIM_MAX = 8, /* 1xx responses before the final one */
    LOOK_TEXT_MAX = 320,
};

/* How one look at an endpoint ended. */
enum look_result {
    LOOK_PENDING = 0, /* not yet */
    LOOK_GOOD,
    LOOK_CONNECT, /* refused, unreachable */
    LOOK_TIMEOUT,
    LOOK_CLOSED,   /* closed or reset before the response was complete */
    LOOK_STATUS,   /* none that is wanted */
    LOOK_BODY,     /* the text is not there */
    LOOK_PROTOCOL, /* no HTTP/1 response */
    LOOK_TLS,      /* no handshake, or a certificate that is not trusted */
    LOOK_LOCAL,    /* this node's own trouble: says nothing of the endpoint */
    LOOK_RESULT_COUNT,
};

/* "good", "connect", ... for metric labels. Static. */
const char *look_result_label(enum look_result result);

struct judge {
    const struct check_spec *spec; /* borrowed */
    bool in_body;
    uint32_t interims;
    struct h1_scan scan;
    struct buf head;     /* bytes of a head that is not complete */
    struct h1_body body; /* with in_body */
    struct buf text;     /* of the body, decoded */
};

/* spec is of type CHECK_HTTP. */
void judge_init(struct judge *judge, const struct check_spec *spec);
void judge_deinit(struct judge *judge);

/* The next bytes. LOOK_PENDING: come back with more. why: set with every other result. After one
 * that is not LOOK_PENDING only judge_deinit is legal. */
enum look_result judge_feed(struct judge *judge, const char *bytes, size_t len,
                            char why[LOOK_TEXT_MAX]);

/* The connection has ended; never LOOK_PENDING. */
enum look_result judge_end(struct judge *judge, char why[LOOK_TEXT_MAX]);

#endif
