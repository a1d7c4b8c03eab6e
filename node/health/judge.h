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
    PROBE_TEXT_MAX = 160,
};

/* How one look at an endpoint ended. */
enum probe_result {
    PROBE_PENDING = 0, /* not yet */
    PROBE_GOOD,
    PROBE_CONNECT, /* refused, unreachable */
    PROBE_TIMEOUT,
    PROBE_CLOSED,   /* closed or reset before the response was complete */
    PROBE_STATUS,   /* none that is wanted */
    PROBE_BODY,     /* the text is not there */
    PROBE_PROTOCOL, /* no HTTP/1 response */
    PROBE_LOCAL,    /* this node's own trouble: says nothing of the endpoint */
    PROBE_RESULT_COUNT,
};

/* "good", "connect", ... for metric labels. Static. */
const char *probe_result_label(enum probe_result result);

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

/* The next bytes. PROBE_PENDING: come back with more. why: set with every other result. After one
 * that is not PROBE_PENDING only judge_deinit is legal. */
enum probe_result judge_feed(struct judge *judge, const char *bytes, size_t len,
                             char why[PROBE_TEXT_MAX]);

/* The connection has ended; never PROBE_PENDING. */
enum probe_result judge_end(struct judge *judge, char why[PROBE_TEXT_MAX]);

#endif
