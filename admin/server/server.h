/*
 * What the files of this unit share: the server, its connections, one request in progress.
 *
 *   admin --- conns: struct conn, one per stream, freed by the stream's on_closed
 *                       |
 *                     call: one request; freed when it is answered and no operation of the node
 *                           still refers to it. A call outlives its connection while a write is in
 *                           flight; then conn is NULL and its answer goes nowhere.
 *
 * Connection:  HEAD --head--> BODY --whole--> ANSWER --answered--> HEAD
 *              HEAD --bad head, 404, 405, 413, 415--> CLOSING
 *              ANSWER --first part of a long answer--> STREAM --last part--> HEAD
 *              any --408, "close", error--> CLOSING --on_closed--> freed
 * Reading is paused in ANSWER; in STREAM what comes is dropped, so that the end of it is seen.
 *
 * Thread: the control thread's loop.
 */
#ifndef SKEIN_ADMIN_SERVER_SERVER_H
#define SKEIN_ADMIN_SERVER_SERVER_H

#include "admin/server/access.h"
#include "admin/server/admin.h"
#include "admin/server/audit.h"
#include "admin/server/count.h"
#include "admin/server/problem.h"
#include "admin/server/query.h"
#include "admin/server/route.h"
#include "admin/server/show.h"
#include "admin/server/throttle.h"
#include "admin/server/watch_ring.h"
#include "node/http/h1_body.h"
#include "node/http/h1_head.h"
#include "node/http/status.h"
#include "node/net/listener.h"
#include "node/net/stream.h"

enum {
    ADMIN_CONNECTIONS_MAX = 256,         /* per listener; more wait in the kernel */
    ADMIN_HEAD_BYTES_MAX = 32 * 1024,    /* 431 */
    ADMIN_TARGET_BYTES_MAX = 8 * 1024,   /* 414 */
    ADMIN_FIELDS_MAX = 128,              /* 431 */
    ADMIN_INPUT_BYTES_MAX = 1024 * 1024, /* a head and what came behind it */
    ADMIN_BODY_BYTES_DEFAULT = 8 << 20,
    ADMIN_ANSWER_BYTES_MAX = 64 << 20, /* one answer in one piece; longer ones are streamed */
    ADMIN_PART_BYTES = 64 * 1024,      /* a part of a streamed answer, about */
    ADMIN_WATCHERS_MAX = 64,
    ADMIN_PATH_SHOWN = 512, /* bytes of a path in the audit trail */

    ADMIN_TICK_MS = 1000,
    ADMIN_HEAD_MS = 10 * 1000,     /* whole head from its first byte: 408 */
    ADMIN_BODY_MS = 30 * 1000,     /* no byte of the body: 408 */
    ADMIN_IDLE_MS = 75 * 1000,     /* between requests */
    ADMIN_HANDSHAKE_MS = 5 * 1000, /* whole TLS handshake */
    ADMIN_FRESH_MS = 20 * 1000,    /* from the connection to a first good credential */
    ADMIN_STALL_MS = 30 * 1000,    /* answer not taken */
    ADMIN_LINGER_MS = 5 * 1000,    /* for the other side to read the last answer */
    ADMIN_STOP_MS = 3 * 1000,      /* for answers in progress when the server stops */
    ADMIN_HEARTBEAT_MS = 15 * 1000,
};

enum conn_state { CONN_HEAD = 0, CONN_BODY, CONN_ANSWER, CONN_STREAM, CONN_CLOSING };

struct conn {
    struct admin *admin;
    struct stream *stream;
    enum conn_state state;
    bool processing; /* conn_process is on the stack */
    bool ended;      /* the other side ended its side */
    struct buf in;   /* received, not consumed */
    struct h1_scan scan;
    struct h1_body body;
    struct call *call; /* in BODY, ANSWER and STREAM */

    bool tls;                  /* then a credential is asked for */
    bool begun;                /* a byte has come */
    bool handshaken;           /* the engine is past its handshake */
    bool known;                /* a credential was good once */
    struct tls_engine *engine; /* NULL: plain */
    uint64_t accepted_ms;

    uint64_t since_ms;  /* when the state began, or the first byte of a head or the last of a body
                           came */
    size_t queued;      /* unwritten bytes at the last tick */
    uint64_t queued_ms; /* since when they did not become fewer */
    struct conn *prev, *next;
};

enum part { PART_MORE = 0, PART_LAST, PART_ABORT };

/* One request. Text is copied; "" or NULL when absent. */
struct call {
    struct admin *admin;
    struct conn *conn; /* NULL: the client went away */
    char method[16];
    struct route_match match;
    struct query query;
    struct buf body;
    char *content_type; /* NULL: absent */
    char *accept;
    char *if_match;
    char *if_none_match;
    bool is_head;
    bool keep_alive;
    bool http10;
    bool body_unread; /* answered before the body came */
    bool pretty;
    uint64_t started_ns;
    unsigned pending; /* operations of the node that will call back with this call */

    struct who who;
    char *path;          /* as it came, cut to ADMIN_PATH_SHOWN */
    bool bad_credential; /* one was shown that is not known, or has expired */
    bool unrecorded;     /* a dry run: nothing to record */
    json_t *changes;     /* what it changed, for the audit trail; NULL: nothing */
    struct buf held;     /* the answer while its record is being written */
    bool held_keep;      /* what becomes of the connection then */

    /* A streamed answer: appends its next part; the state is released with the call. */
    enum part (*produce)(struct call *call, struct buf *out);
    void (*release)(void *state);
    void *state;
    bool is_watch;
};

/* Records of what was refused or failed: so many a second, so that nobody can push the others out
 * of the trail. */
struct audit_gate {
    uint64_t second;
    uint32_t count;
    uint32_t left_out;
};

struct admin {
    uv_loop_t *loop;
    struct view view;
    size_t body_bytes_max;
    struct listener *unix_listener;
    struct listener *tcp_listener;
    struct admin_tls tls;    /* referenced; for connections to come */
    struct tls_lib *tls_lib; /* NULL: plain TCP */
    struct buf cipher;       /* output of all engines, empty between calls */
    struct audit *audit;     /* NULL: none */
    struct throttle throttle;
    struct audit_gate gate;
    struct addr listen_addr;
    struct conn *conns;
    size_t conn_count;
    size_t call_count;
    size_t watchers;
    struct watch_ring ring;
    struct count count;
    struct h1_head head; /* scratch of the head that is parsed at the moment */
    struct h1_field fields[ADMIN_FIELDS_MAX];
    struct http_date date;
    uv_timer_t tick;
    uv_timer_t kick; /* fires in the next turn of the loop: streams have more to say */
    unsigned handles;
    bool stopping;
    uint64_t stop_ms;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* ---- server.c ---- */

/* Let every stream go on in the next turn of the loop. */
void admin_kick(struct admin *admin);

/* Something was freed: end the server if it was the last thing. */
void admin_check_closed(struct admin *admin);

/* ---- wire.c: bytes, plain or TLS ---- */

MUST_CHECK int wire_set_tls(struct admin *admin, const struct admin_tls *tls, struct err_info *err);
void wire_deinit(struct admin *admin);

/* False: there can be no TLS; close the stream. */
bool wire_open(struct conn *conn);
void wire_close(struct conn *conn);
/* As stream_write, but after an error the connection is of no use. */
MUST_CHECK int wire_write(struct conn *conn, const void *bytes, size_t len);
void wire_finish(struct conn *conn, uint64_t linger_ms);
void wire_data(struct conn *conn, const uint8_t *bytes, size_t len);

/* ---- guard.c: who asks, and whether it may ---- */

/* Fill call->who; 401, 403 or 429 when there is no credential that will do. True: answered. */
bool guard_refuses(struct call *call, const struct h1_head *head, const char *bytes);

/* Whether the token of a long answer is still there and has not expired. */
bool guard_still_good(const struct call *call);

/* ---- audit_record.c ---- */

/* The record of an answered call (mem_free), or NULL when it is none for the trail. */
char *audit_record(struct call *call, int status);

/* ---- conn.c ---- */

void conn_data(struct conn *conn, const uint8_t *bytes, size_t len); /* plain bytes came */
void conn_ended(struct conn *conn);                                  /* the other side is done */

void conn_accept(void *owner, struct stream *stream); /* owner: struct admin */
void conn_tick(struct conn *conn, uint64_t now_ms);
void conn_pump(struct conn *conn); /* more of a streamed answer */
void conn_close_when_idle(struct conn *conn);

/* The answer to conn->call was written whole, or its last part was. */
void conn_answered(struct conn *conn, bool keep);

/* ---- call.c ---- */

/* From conn.c: a head was parsed (bytes hold it). Never NULL. */
struct call *call_new(struct conn *conn, const struct h1_head *head, const char *bytes);

/* The connection is gone. */
void call_detach(struct call *call);

/* An operation of the node is under way, and has called back. The second may free the call. */
void call_hold(struct call *call);
void call_release(struct call *call);

/* Answers: exactly one per call. What is not there (fields, body) is NULL. */
void call_answer(struct call *call, int status, const char *content_type, const char *fields,
                 const char *body, size_t len);
void call_answer_json(struct call *call, int status, const char *fields, json_t *json); /* takes */
void call_answer_problem(struct call *call, int status, const char *fields, struct problem *problem,
                         const char *detail);
void call_answer_error(struct call *call, int rc, const struct err_info *err);

/* An answer of unknown length, in parts from produce. state is released with the call. */
void call_answer_stream(struct call *call, const char *content_type,
                        enum part (*produce)(struct call *call, struct buf *out), void *state,
                        void (*release)(void *state));

/* Write a part of a streamed answer, or its end. For conn_pump. */
int call_write_part(struct call *call, const struct buf *part, bool last);

/* JSON text of the request's taste (?pretty). mem_free. */
char *call_json_text(const struct call *call, const json_t *json, size_t *ret_len);

/* Set by conn.c before the handler runs; answers 400 and gives false when the query is bad. */
bool call_check_query(struct call *call, const char *query, size_t len);

#endif
