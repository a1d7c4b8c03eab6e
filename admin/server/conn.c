/*
 * Connections: bytes to requests, one at a time, and the pace of answers. States: server.h.
 *
 * A refusal that needs no body (404, 405, 413, 415 ...) is answered before the body came; then the
 * connection ends by lingering, so that a client that is still sending sees the answer rather than
 * a reset.
 */
#include "admin/server/server.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

enum { PUMP_ROUNDS = 8 };

static void conn_process(struct conn *conn);

static uint64_t now_ms(const struct conn *conn)
{
    return uv_now(conn->admin->loop);
}

static void enter(struct conn *conn, enum conn_state state)
{
    conn->state = state;
    conn->since_ms = now_ms(conn);
}

/* ---- requests ---- */

/*
 * A browser on this machine can be made to send requests to a loopback port. Pages of other origins
 * are told apart by Origin; domain names that a hostile resolver points here by Host: on TCP a name
 * with a dot in it is served only if it is an address or ends in ".localhost".
 */
static bool host_is_local(const struct h1_head *head)
{
    static const char ending[] = ".localhost";
    const char *name = head->host_name;
    size_t len = head->host_name_len;
    struct in_addr in4;
    if (name[0] == '[' || memchr(name, '.', len) == NULL || inet_pton(AF_INET, name, &in4) == 1) {
        return true;
    }
    size_t skip = sizeof(ending) - 1;
    return len > skip && strcmp(name + len - skip, ending) == 0;
}

static bool origin_is_ours(const struct h1_head *head, const char *bytes, bool tls)
{
    const struct h1_field *origin = h1_find(head, H1_ORIGIN);
    if (origin == NULL) {
        return true;
    }
    const char *scheme = tls ? "https://" : "http://";
    size_t skip = strlen(scheme);
    return origin->value.len == head->host.len + skip &&
           strncasecmp(bytes + origin->value.off, scheme, skip) == 0 &&
           strncasecmp(bytes + origin->value.off + skip, bytes + head->host.off, head->host.len) ==
               0;
}

/* Answer what can be refused by the head alone. True: it was. */
static bool refuse_by_head(struct conn *conn, const struct h1_head *head, const char *bytes)
{
    struct call *call = conn->call;
    struct err_info err = {0};
    if (!stream_is_unix(conn->stream) && !conn->tls && !host_is_local(head)) {
        call_answer_problem(
            call, 403, NULL, NULL,
            "Host: this API is reached by address or as localhost, not by a domain name");
        return true;
    }
    if (!origin_is_ours(head, bytes, conn->tls)) {
        call_answer_problem(call, 403, NULL, NULL,
                            "Origin: requests of web pages from elsewhere are not served");
        return true;
    }
    int rc = route_find(call->method, bytes + head->path.off, head->path.len, &call->match, &err);
    if (guard_refuses(call, head, bytes)) {
        return true; /* who is not known is not told either what exists */
    }
    if (rc == RC_UNSUPPORTED) {
        char allow[ROUTE_ALLOW_MAX + 16];
        (void)snprintf(allow, sizeof(allow), "Allow: %s\r\n", call->match.allow);
        call_answer_problem(call, 405, allow, NULL, err.text);
        return true;
    }
    if (rc != RC_OK) {
        call_answer_problem(call, rc == RC_NOT_FOUND ? 404 : 400, NULL, NULL, err.text);
        return true;
    }
    if (head->expect_other) {
        call_answer_problem(call, 417, NULL, NULL, "Expect: only 100-continue is known");
        return true;
    }
    if (head->framing == H1_BODY_LENGTH && head->content_length > call->body.cap_bytes) {
        (void)err_set(&err, RC_TOO_BIG, "a body of %llu bytes; at most %zu are accepted",
                      (unsigned long long)head->content_length, call->body.cap_bytes);
        call_answer_problem(call, 413, NULL, NULL, err.text);
        return true;
    }
    return !call_check_query(call, bytes + head->query.off, head->query.len);
}

static void dispatch(struct conn *conn)
{
    struct call *call = conn->call;
    call->body_unread = false;
    enter(conn, CONN_ANSWER);
    stream_pause(conn->stream);
    call->match.route->handler(call);
}

/* conn->in begins with a whole head. */
static void take_head(struct conn *conn, const struct h1_head *head)
{
    conn->call = call_new(conn, head, conn->in.data);
    conn->call->body_unread = head->framing != H1_BODY_NONE &&
                              !(head->framing == H1_BODY_LENGTH && head->content_length == 0);
    enter(conn, CONN_BODY);
    if (refuse_by_head(conn, head, conn->in.data)) {
        return; /* the connection may be in any state by now */
    }
    struct h1_body_limits limits = {.body_bytes = conn->call->body.cap_bytes};
    h1_body_init(&conn->body, head->framing, head->content_length, &limits, NULL);
    bool expects = head->expect_continue && conn->in.len == head->len;
    if (expects && conn->call->body_unread &&
        wire_write(conn, STATUS_CONTINUE, STATUS_CONTINUE_LEN) != RC_OK) {
        stream_close(conn->stream, STREAM_LOCAL, NULL);
    }
}

static void refuse_head(struct conn *conn, const struct h1_head *head)
{
    struct h1_head nothing = *head; /* what was parsed of a refused head is not to be used */
    nothing.field_count = 0;
    nothing.present = 0;
    nothing.method = (struct h1_span){0};
    nothing.method_id = H1_METHOD_OTHER;
    conn->call = call_new(conn, &nothing, conn->in.data);
    conn->call->keep_alive = false;
    conn->call->body_unread = true;
    enter(conn, CONN_BODY);
    call_answer_problem(conn->call, h1_fault_status(head->fault), NULL, NULL,
                        h1_fault_text(head->fault));
}

/* ---- bytes ---- */

/* False: more bytes are needed. */
static bool process_head(struct conn *conn)
{
    struct admin *admin = conn->admin;
    struct h1_limits limits = {.head_bytes = ADMIN_HEAD_BYTES_MAX,
                               .field_count = ADMIN_FIELDS_MAX,
                               .target_bytes = ADMIN_TARGET_BYTES_MAX};
    if (conn->in.len == 0) {
        return false;
    }
    h1_head_init(&admin->head, admin->fields, ADMIN_FIELDS_MAX);
    int rc = h1_parse_request(&conn->scan, conn->in.data, conn->in.len, &limits, &admin->head);
    if (rc == RC_AGAIN) {
        return false;
    }
    conn->scan = (struct h1_scan){0};
    if (rc != RC_OK) {
        refuse_head(conn, &admin->head);
        return true;
    }
    size_t len = admin->head.len;
    take_head(conn, &admin->head);
    buf_drop(&conn->in, len);
    return true;
}

static void body_failed(struct conn *conn, int rc)
{
    conn->call->body_unread = true; /* nothing behind it can be trusted */
    if (rc == RC_TOO_BIG) {
        char text[128];
        (void)snprintf(text, sizeof(text),
                       "the body is larger than the %zu bytes that are accepted",
                       conn->call->body.cap_bytes);
        call_answer_problem(conn->call, 413, NULL, NULL, text);
    } else {
        call_answer_problem(conn->call, h1_fault_status(conn->body.fault), NULL, NULL,
                            h1_fault_text(conn->body.fault));
    }
}

static bool process_body(struct conn *conn)
{
    size_t used = 0;
    while (used < conn->in.len && !h1_body_done(&conn->body)) {
        struct h1_piece piece;
        int rc = h1_body_next(&conn->body, conn->in.data + used, conn->in.len - used, &piece);
        if (rc == RC_OK && piece.data_len > 0) {
            rc = buf_put(&conn->call->body, piece.data, piece.data_len) == 0 ? RC_OK : RC_TOO_BIG;
        }
        if (rc != RC_OK) {
            buf_reset(&conn->in);
            body_failed(conn, rc);
            return true;
        }
        used += piece.used;
    }
    buf_drop(&conn->in, used);
    if (!h1_body_done(&conn->body)) {
        return false;
    }
    dispatch(conn);
    return true;
}

/* Go on as far as bytes and the pace of the other side allow. */
static void conn_process(struct conn *conn)
{
    if (conn->processing) {
        return;
    }
    conn->processing = true;
    bool more = true;
    while (more && stream_is_open(conn->stream)) {
        if (conn->state == CONN_HEAD) {
            more = !stream_is_congested(conn->stream) && process_head(conn);
        } else {
            more = conn->state == CONN_BODY && process_body(conn);
        }
    }
    conn->processing = false;
    if (conn->ended && (conn->state == CONN_HEAD || conn->state == CONN_BODY)) {
        /* Nothing more can come: what stands there is incomplete. */
        enter(conn, CONN_CLOSING);
        wire_finish(conn, ADMIN_LINGER_MS);
    }
}

void conn_data(struct conn *conn, const uint8_t *bytes, size_t len)
{
    if (conn->state == CONN_STREAM || conn->state == CONN_CLOSING) {
        return; /* one request at a time; after a long answer the connection ends */
    }
    if (conn->state == CONN_BODY || (conn->state == CONN_HEAD && conn->in.len == 0)) {
        conn->since_ms = now_ms(conn);
    }
    if (buf_put(&conn->in, bytes, len) != 0) {
        stream_close(conn->stream, STREAM_LOCAL, "sends without waiting for answers");
        return;
    }
    conn_process(conn);
}

static void on_data(void *owner, const uint8_t *bytes, size_t len)
{
    wire_data(owner, bytes, len);
}

void conn_ended(struct conn *conn)
{
    conn->ended = true;
    if (conn->state == CONN_STREAM) {
        stream_close(conn->stream, STREAM_EOF, NULL);
    } else if (conn->state != CONN_ANSWER) {
        conn_process(conn);
    } /* else the answer is still to be sent; conn_answered ends it */
}

static void on_eof(void *owner)
{
    conn_ended(owner);
}

static void on_drained(void *owner)
{
    struct conn *conn = owner;
    if (conn->state == CONN_STREAM) {
        conn_pump(conn);
    } else {
        conn_process(conn);
    }
}

static void on_closed(void *owner, enum stream_reason reason, const char *text)
{
    struct conn *conn = owner;
    struct admin *admin = conn->admin;
    (void)reason; /* clients come and go */
    (void)text;
    if (conn->call != NULL) {
        call_detach(conn->call);
    }
    buf_deinit(&conn->in);
    wire_close(conn);
    DL_DELETE(admin->conns, conn);
    admin->conn_count--;
    mem_free(conn);
    admin_check_closed(admin);
}

static const struct stream_ops conn_ops = {
    .on_data = on_data,
    .on_eof = on_eof,
    .on_drained = on_drained,
    .on_closed = on_closed,
    .write_cap_bytes = ADMIN_ANSWER_BYTES_MAX + (1 << 20),
    .write_high_bytes = 4 * ADMIN_PART_BYTES,
    .write_low_bytes = ADMIN_PART_BYTES,
};

void conn_accept(void *owner, struct stream *stream)
{
    struct admin *admin = owner;
    if (admin->stopping) {
        stream_abandon(stream);
        return;
    }
    struct conn *conn = mem_new(sizeof(*conn));
    conn->admin = admin;
    conn->stream = stream;
    if (!wire_open(conn)) {
        stream_abandon(stream);
        mem_free(conn);
        return;
    }
    buf_init(&conn->in, ADMIN_INPUT_BYTES_MAX);
    enter(conn, CONN_HEAD);
    conn->accepted_ms = conn->since_ms;
    DL_APPEND(admin->conns, conn);
    admin->conn_count++;
    admin->count.connections++;
    stream_adopt(stream, &conn_ops, conn);
}

/* ---- answers ---- */

void conn_answered(struct conn *conn, bool keep)
{
    if (!stream_is_open(conn->stream)) {
        enter(conn, CONN_CLOSING);
        return;
    }
    if (!keep) {
        enter(conn, CONN_CLOSING);
        wire_finish(conn, ADMIN_LINGER_MS);
        return;
    }
    enter(conn, CONN_HEAD);
    stream_resume(conn->stream);
    conn_process(conn); /* a request may be waiting; within conn_process its loop takes it */
}

void conn_pump(struct conn *conn)
{
    struct call *call = conn->call;
    struct buf part;
    buf_init(&part, ADMIN_ANSWER_BYTES_MAX);
    enum part what = PART_MORE;
    int rc = RC_OK;
    bool silent = false;
    for (int round = 0; round < PUMP_ROUNDS && what == PART_MORE && rc == RC_OK && !silent;
         round++) {
        if (stream_is_congested(conn->stream)) {
            break; /* on_drained goes on */
        }
        buf_reset(&part);
        what = call->produce(call, &part);
        silent = what == PART_MORE && part.len == 0;
        rc = part.full || what == PART_ABORT ? RC_FULL
             : silent                        ? RC_OK
                                             : call_write_part(call, &part, what == PART_LAST);
    }
    buf_deinit(&part);
    if (rc != RC_OK) {
        /* Without its end the answer is seen to be cut. */
        stream_close(conn->stream, STREAM_LOCAL, "answer cut short");
    } else if (what == PART_LAST) {
        conn->call = NULL;
        call_detach(call);
        conn_answered(conn, false);
    } else if (!silent && !stream_is_congested(conn->stream)) {
        admin_kick(conn->admin);
    }
}

void conn_close_when_idle(struct conn *conn)
{
    if (conn->state == CONN_STREAM || (conn->state == CONN_HEAD && conn->in.len == 0)) {
        stream_close(conn->stream, STREAM_SHUTDOWN, NULL);
    }
}

static void answer_timeout(struct conn *conn, const char *text)
{
    if (conn->call == NULL) {
        struct h1_head nothing = {.minor = 1};
        conn->call = call_new(conn, &nothing, "");
    }
    conn->call->keep_alive = false;
    conn->call->body_unread = true;
    call_answer_problem(conn->call, 408, NULL, NULL, text);
}

void conn_tick(struct conn *conn, uint64_t now)
{
    if (!stream_is_open(conn->stream)) {
        return; /* on_closed is on its way */
    }
    size_t queued = stream_queued(conn->stream);
    if (queued == 0 || conn->queued == 0 || queued < conn->queued) {
        conn->queued_ms = now;
    }
    conn->queued = queued;
    uint64_t waited = now - MIN(now, conn->since_ms);
    uint64_t age = now - MIN(now, conn->accepted_ms);
    if (conn->tls && age > (conn->handshaken ? ADMIN_FRESH_MS : ADMIN_HANDSHAKE_MS) &&
        !conn->known && conn->state != CONN_CLOSING) {
        conn->admin->count.handshakes_failed += !conn->handshaken;
        stream_close(conn->stream, STREAM_DEADLINE, NULL);
        return;
    }
    if (queued > 0 && now - conn->queued_ms > ADMIN_STALL_MS) {
        conn->admin->count.watchers_dropped += conn->call != NULL && conn->call->is_watch;
        stream_close(conn->stream, STREAM_DEADLINE, NULL);
    } else if (conn->state == CONN_HEAD && conn->in.len == 0 && waited > ADMIN_IDLE_MS) {
        stream_close(conn->stream, STREAM_DEADLINE, NULL);
    } else if (conn->state == CONN_HEAD && conn->in.len > 0 && waited > ADMIN_HEAD_MS &&
               queued == 0) {
        answer_timeout(conn, "the request's head did not come in time");
    } else if (conn->state == CONN_BODY && waited > ADMIN_BODY_MS) {
        answer_timeout(conn, "the request's body did not come in time");
    } else if (conn->state == CONN_STREAM && !guard_still_good(conn->call)) {
        stream_close(conn->stream, STREAM_LOCAL, "its token was revoked or has expired");
    } else if (conn->state == CONN_STREAM) {
        conn_pump(conn); /* heartbeats */
    }
}
