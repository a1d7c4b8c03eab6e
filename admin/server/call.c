/*
 * One request's life and its answer.
 *
 * Every answer passes through here, so that heads are uniform, counted once and always framed.
 */
#include "admin/server/server.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/http/h1_write.h"
#include "node/tls/crypto.h"
#include "proto/json.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_OUT_MAX = 4096 };

static char *copy_fields(const struct h1_head *head, const char *bytes, enum h1_name name)
{
    /* Several lines of one field are one list (RFC 9110 5.3). */
    char *text = NULL;
    for (const struct h1_field *field = h1_find(head, name); field != NULL;
         field = h1_find_next(head, field)) {
        char *joined = mem_printf("%s%s%.*s", text != NULL ? text : "", text != NULL ? ", " : "",
                                  (int)field->value.len, bytes + field->value.off);
        mem_free(text);
        text = joined;
    }
    return text;
}

struct call *call_new(struct conn *conn, const struct h1_head *head, const char *bytes)
{
    struct admin *admin = conn->admin;
    struct call *call = mem_new(sizeof(*call));
    call->admin = admin;
    call->conn = conn;
    (void)snprintf(call->method, sizeof(call->method), "%.*s", (int)head->method.len,
                   bytes + head->method.off);
    call->path =
        mem_strndup(bytes + head->path.off, MIN(head->path.len, (uint32_t)ADMIN_PATH_SHOWN));
    call->content_type = copy_fields(head, bytes, H1_CONTENT_TYPE);
    call->accept = copy_fields(head, bytes, H1_ACCEPT);
    call->if_match = copy_fields(head, bytes, H1_IF_MATCH);
    call->if_none_match = copy_fields(head, bytes, H1_IF_NONE_MATCH);
    call->is_head = head->method_id == H1_HEAD;
    call->http10 = head->minor == 0;
    call->keep_alive = head->keep_alive && head->minor > 0;
    call->started_ns = time_mono_ns();
    buf_init(&call->body, admin->body_bytes_max);
    admin->call_count++;
    return call;
}

static void call_free(struct call *call)
{
    struct admin *admin = call->admin;
    if (call->release != NULL) {
        call->release(call->state);
    }
    query_deinit(&call->query);
    buf_deinit(&call->body);
    if (call->held.len > 0) {
        crypto_wipe(call->held.data, call->held.len); /* may hold a new token's secret */
    }
    buf_deinit(&call->held);
    json_decref(call->changes);
    mem_free(call->path);
    mem_free(call->content_type);
    mem_free(call->accept);
    mem_free(call->if_match);
    mem_free(call->if_none_match);
    mem_free(call);
    admin->call_count--;
    admin_check_closed(admin);
}

void call_detach(struct call *call)
{
    call->conn = NULL;
    if (call->pending == 0) {
        call_free(call);
    }
}

void call_hold(struct call *call)
{
    call->pending++;
}

void call_release(struct call *call)
{
    ASSERT(call->pending > 0);
    call->pending--;
    if (call->pending == 0 && call->conn == NULL) {
        call_free(call);
    }
}

bool call_check_query(struct call *call, const char *query, size_t len)
{
    struct err_info err = {0};
    int rc = query_parse(query, len, &call->query, &err);
    if (rc == RC_OK) {
        rc = query_check(&call->query, call->match.route->params, &err);
    }
    if (rc == RC_OK) {
        rc = query_bool(&call->query, "pretty", &call->pretty, &err);
    }
    if (rc != RC_OK) {
        call_answer_problem(call, 400, NULL, NULL, err.text);
    }
    return rc == RC_OK;
}

/* ---- heads ---- */

static bool call_keeps(const struct call *call)
{
    return call->keep_alive && !call->body_unread && !call->admin->stopping && !call->conn->ended;
}

static void put_head(struct call *call, int status, const char *content_type, const char *fields,
                     bool keep, struct buf *out)
{
    h1_put_status(out, status);
    (void)buf_printf(out, "Date: %s\r\n", http_date_text(&call->admin->date, time_wall_ms()));
    if (content_type != NULL) {
        (void)buf_printf(out, "Content-Type: %s\r\n", content_type);
    }
    (void)buf_puts(out, "Cache-Control: no-store\r\n");
    if (fields != NULL) {
        (void)buf_puts(out, fields);
    }
    if (!keep) {
        (void)buf_puts(out, "Connection: close\r\n");
    }
}

/* The answer is given: the call ends with it. */
static void call_done(struct call *call, bool keep)
{
    struct conn *conn = call->conn;
    conn->call = NULL;
    call_detach(call);
    conn_answered(conn, keep);
}

/* Takes what out holds. */
static void send_answer(struct call *call, struct buf *out, bool keep)
{
    int rc = out->full ? RC_FULL : wire_write(call->conn, out->data, out->len);
    buf_deinit(out);
    if (rc != RC_OK) { /* RC_CLOSED is told by on_closed; a full queue ends what cannot be sent */
        stream_close(call->conn->stream, STREAM_LOCAL, "answer too large");
        keep = false;
    }
    call_done(call, keep);
}

/* The record is in the file, or is lost, which is counted and told there. */
static void on_recorded(void *arg, int rc)
{
    struct call *call = arg;
    (void)rc;
    if (call->conn != NULL) {
        send_answer(call, &call->held, call->held_keep && call_keeps(call));
    }
    call_release(call);
}

/* Nothing is read meanwhile; the connection is in ANSWER, also when the body has not come. */
static void hold_answer(struct call *call, char *record, struct buf *out, bool keep)
{
    call->held = *out;
    call->held_keep = keep;
    call->conn->state = CONN_ANSWER;
    stream_pause(call->conn->stream);
    call_hold(call);
    audit_append(call->admin->audit, record, on_recorded, call);
}

void call_answer(struct call *call, int status, const char *content_type, const char *fields,
                 const char *body, size_t len)
{
    count_answer(&call->admin->count, call->method, status, time_mono_ns() - call->started_ns);
    char *record = audit_record(call, status);
    if (call->conn == NULL) {
        if (record != NULL) {
            audit_append(call->admin->audit, record, NULL, NULL);
        }
        return; /* released by who holds it */
    }
    bool keep = call_keeps(call);
    struct buf out;
    buf_init(&out, HEAD_OUT_MAX + len);
    put_head(call, status, content_type, fields, keep, &out);
    bool unknown = call->is_head && call->produce != NULL && len == 0;
    if (status != 304 && status != 204 && !unknown) {
        h1_put_length(&out, len);
    }
    h1_put_end(&out);
    if (!call->is_head && status != 304 && status != 204 && len > 0) {
        (void)buf_put(&out, body, len);
    }
    if (record != NULL) {
        hold_answer(call, record, &out, keep);
        return;
    }
    send_answer(call, &out, keep);
}

char *call_json_text(const struct call *call, const json_t *json, size_t *ret_len)
{
    char *text = json_text(json, call->pretty ? 2 : 0);
    size_t len = strlen(text);
    text = mem_grow(text, len + 2, 1);
    text[len] = '\n'; /* for terminals */
    text[len + 1] = '\0';
    *ret_len = len + 1;
    return text;
}

void call_answer_json(struct call *call, int status, const char *fields, json_t *json)
{
    size_t len;
    char *text = call_json_text(call, json, &len);
    json_decref(json);
    const char *type = status >= 400 ? "application/problem+json" : "application/json";
    if (len > ADMIN_ANSWER_BYTES_MAX) {
        call_answer_problem(call, 500, NULL, NULL, "the answer is too large");
    } else {
        call_answer(call, status, type, fields, text, len);
    }
    mem_free(text);
}

void call_answer_problem(struct call *call, int status, const char *fields, struct problem *problem,
                         const char *detail)
{
    struct problem none = {0};
    json_t *json = problem_to_json(problem != NULL ? problem : &none, status, detail);
    call_answer_json(call, status, fields, json);
}

void call_answer_error(struct call *call, int rc, const struct err_info *err)
{
    int status = problem_status(rc);
    const char *text = err->text[0] != '\0' ? err->text : rc_text(rc);
    call_answer_problem(call, status, status == 503 ? "Retry-After: 1\r\n" : NULL, NULL, text);
}

/* ---- streamed answers ---- */

int call_write_part(struct call *call, const struct buf *part, bool last)
{
    struct buf out;
    buf_init(&out, part->len + 2 * H1_CHUNK_HEAD_MAX + 8);
    int rc = RC_OK;
    if (call->http10) {
        rc = buf_put(&out, part->data, part->len);
    } else {
        rc = h1_chunk_put(&out, part->data, part->len);
        if (rc == RC_OK && last) {
            rc = h1_chunk_end(&out, NULL, 0);
        }
    }
    if (rc == RC_OK && out.len > 0) {
        rc = wire_write(call->conn, out.data, out.len);
    }
    buf_deinit(&out);
    return rc;
}

/* Start with as much as is at hand; what fits into one piece is sent with its length. */
void call_answer_stream(struct call *call, const char *content_type,
                        enum part (*produce)(struct call *call, struct buf *out), void *state,
                        void (*release)(void *state))
{
    call->produce = produce;
    call->state = state;
    call->release = release;
    struct buf first;
    buf_init(&first, ADMIN_ANSWER_BYTES_MAX);
    enum part part = PART_MORE;
    for (size_t before = SIZE_MAX; part == PART_MORE && first.len != before;) {
        before = first.len;
        part = first.len < ADMIN_PART_BYTES ? produce(call, &first) : PART_MORE;
    }
    if (part == PART_LAST && !first.full) {
        call_answer(call, 200, content_type, NULL, first.data, first.len);
    } else if (part == PART_ABORT || first.full) {
        call_answer_problem(call, 500, NULL, NULL, "the answer is too large");
    } else if (call->is_head) {
        call_answer(call, 200, content_type, NULL, NULL, 0);
    } else {
        count_answer(&call->admin->count, call->method, 200, time_mono_ns() - call->started_ns);
        struct conn *conn = call->conn;
        struct buf head;
        buf_init(&head, HEAD_OUT_MAX);
        put_head(call, 200, content_type, NULL, false, &head);
        (void)buf_puts(&head, call->http10 ? "" : "Transfer-Encoding: chunked\r\n");
        h1_put_end(&head);
        conn->state = CONN_STREAM;
        int rc = wire_write(conn, head.data, head.len);
        if (rc == RC_OK) {
            rc = call_write_part(call, &first, false);
        }
        buf_deinit(&head);
        if (rc != RC_OK) {
            stream_close(conn->stream, STREAM_LOCAL, "answer too large");
        } else {
            stream_resume(conn->stream); /* to see the other side's end */
            admin_kick(conn->admin);
        }
    }
    buf_deinit(&first);
}
