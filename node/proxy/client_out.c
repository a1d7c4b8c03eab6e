/*
 * HTTP/1 to clients: heads, bodies, answers of our own, and what follows a response.
 */
#include "node/http/status.h"
#include "node/proxy/client_int.h"
#include "node/proxy/proxy_int.h"

#include <sys/socket.h>

static struct client *of_side(struct client_side *side)
{
    return CONTAINER_OF(side, struct client, side);
}

static struct worker *worker_of(const struct client *client)
{
    return client->sock.worker;
}

/* The response is out or will be; end the connection when it is. */
static void close_soon(struct client *client, bool linger)
{
    client->state = CLIENT_LINGER;
    client->closing_soon = true;
    client->linger = linger;
    client_arm(client);
    sock_end(&client->sock);
    if (linger && client->sock.late) {
        sock_start(&client->sock);
    }
    if (client->held || client->stuffed) {
        client->held = client->stuffed = false;
        client_update_reading(client);
    }
    sock_want_drain(&client->sock);
}

void client_close_when_sent(struct client *client)
{
    close_soon(client, false);
}

void client_all_sent(struct client *client)
{
    client->closing_soon = false;
    if (client->sock.late && sock_has_input(&client->sock)) {
        /* Nothing was read since the request, and more came behind it. */
        client->linger = true;
        sock_start(&client->sock);
    }
    if (!client->linger || client->eof) {
        client_close(client);
        return;
    }
    /* Unread input would make the kernel reset the connection, and the answer be lost. */
    sock_finish(&client->sock);
    worker_deadline(worker_of(client), &client->timer, CLIENT_LINGER_MS);
}

/* The response is complete: the next request, or the end. */
static void response_done(struct client *client)
{
    struct worker *worker = worker_of(client);
    if (client->state == CLIENT_TUNNEL) {
        close_soon(client, false);
        return;
    }
    bool last = client->eof && client->in.len == 0;
    if (!client->request_done || !client->keep || last || worker->stopping) {
        close_soon(client, !client->request_done || client->in.len != 0);
        return;
    }
    client->state = CLIENT_IDLE;
    if (client->sock.late) {
        sock_start(&client->sock);
    }
    client->held = false;
    client->stuffed = false;
    client_update_reading(client);
    worker_deadline(worker, &client->timer, client->keepalive_ms);
    if (client->in.len == 0) {
        client_end_work(client);
    }
    client_resume_soon(client);
}

static void write_head(struct client *client, const struct h1_head *head, const char *bytes,
                       const struct h1_out *how)
{
    struct worker *worker = worker_of(client);
    /* Where it will be sent from, when it fits there. */
    size_t bound = (size_t)head->len + how->extra_len + H1_WRITE_ROOM;
    char *room = sock_room(&client->sock, bound);
    if (LIKELY(room != NULL)) {
        struct buf out = {.data = room, .size = bound, .cap_bytes = bound - 1};
        if (h1_write_response(&out, head, bytes, how) == RC_OK) {
            sock_staged(&client->sock, out.len);
            return;
        }
    }
    buf_reset(&worker->head_out);
    if (h1_write_response(&worker->head_out, head, bytes, how) != RC_OK) {
        return; /* cannot be: it has room for the largest head and what is added */
    }
    sock_write(&client->sock, worker->head_out.data, worker->head_out.len);
}

static void side_interim(struct client_side *side, const struct h1_head *head, const char *bytes)
{
    struct client *client = of_side(side);
    if (client->http10) {
        return; /* RFC 9110 15.2 */
    }
    write_head(client, head, bytes, &(const struct h1_out){0});
    client_touch(client);
}

/* How the body goes out, whatever it came in. */
static enum h1_framing out_framing(const struct client *client, const struct h1_head *head)
{
    switch (head->framing) {
    case H1_BODY_NONE:
    case H1_BODY_LENGTH:
        return head->framing;
    case H1_BODY_CHUNKED:
    case H1_BODY_UNTIL_CLOSE:
        return client->http10 ? H1_BODY_UNTIL_CLOSE : H1_BODY_CHUNKED;
    }
    UNREACHABLE("framing");
}

static void side_head(struct client_side *side, const struct h1_head *head, const char *bytes,
                      const char *lines, size_t lines_len)
{
    struct client *client = of_side(side);
    struct worker *worker = worker_of(client);
    struct h1_out how = {.extra = lines, .extra_len = lines_len};
    if ((head->present & H1_BIT(H1_DATE)) == 0) {
        how.date = worker_date(worker);
    }
    if (head->upgrade) {
        how.connection = H1_CONNECTION_UPGRADE;
        client->keep = false;
        client->state = CLIENT_TUNNEL;
    } else {
        how.framing = out_framing(client, head);
        how.content_length = head->content_length;
        if (how.framing == H1_BODY_UNTIL_CLOSE || !client->request_done || worker->draining ||
            (client->eof && client->in.len == 0)) {
            client->keep = false;
        }
        how.connection = !client->keep    ? H1_CONNECTION_CLOSE
                         : client->http10 ? H1_CONNECTION_KEEP_ALIVE
                                          : H1_CONNECTION_SILENT;
        client->chunked = how.framing == H1_BODY_CHUNKED;
        client->until_close = how.framing == H1_BODY_UNTIL_CLOSE;
    }
    write_head(client, head, bytes, &how);
    client_touch(client);
    if (client->state == CLIENT_TUNNEL) {
        client_arm(client);
        sock_start(&client->sock);
        if (client->in.len != 0) {
            client_resume_soon(client); /* what was sent ahead */
        } else if (client->eof) {
            exchange_client_finished(client->side.exchange);
        }
    }
}

static void side_data(struct client_side *side, const char *bytes, size_t len)
{
    struct client *client = of_side(side);
    client_touch(client);
    if (!client->chunked) {
        sock_write(&client->sock, bytes, len);
        return;
    }
    char head[H1_CHUNK_HEAD_MAX];
    sock_write(&client->sock, head, h1_chunk_head(head, len));
    sock_write(&client->sock, bytes, len);
    sock_write(&client->sock, "\r\n", 2);
}

static void side_end(struct client_side *side, const char *trailers, size_t len)
{
    struct client *client = of_side(side);
    if (client->chunked && client->state == CLIENT_BUSY) {
        sock_write(&client->sock, "0\r\n", 3);
        sock_write(&client->sock, trailers, len);
        sock_write(&client->sock, "\r\n", 2);
    }
    response_done(client);
}

enum reason client_fault_reason(enum h1_fault fault)
{
    static const uint8_t reasons[H1_FAULT_COUNT] = {
        [H1_FAULT_TARGET] = REASON_BAD_PATH,
        [H1_FAULT_VERSION] = REASON_BAD_VERSION,
        [H1_FAULT_HOST] = REASON_BAD_HOST,
        [H1_FAULT_LENGTH] = REASON_BAD_FRAMING,
        [H1_FAULT_CODING] = REASON_BAD_FRAMING,
        [H1_FAULT_CODING_UNKNOWN] = REASON_NOT_IMPLEMENTED,
        [H1_FAULT_LENGTH_AND_CODING] = REASON_BAD_FRAMING,
        [H1_FAULT_HEAD_TOO_BIG] = REASON_HEADERS_TOO_BIG,
        [H1_FAULT_FIELDS_TOO_MANY] = REASON_HEADERS_TOO_BIG,
        [H1_FAULT_TARGET_TOO_LONG] = REASON_URI_TOO_LONG,
        [H1_FAULT_CHUNK_SIZE] = REASON_BAD_FRAMING,
        [H1_FAULT_CHUNK_LINE] = REASON_BAD_FRAMING,
        [H1_FAULT_CHUNK_DATA] = REASON_BAD_FRAMING,
        [H1_FAULT_CHUNK_OVERHEAD] = REASON_BAD_FRAMING,
        [H1_FAULT_TRAILER] = REASON_BAD_FRAMING,
        [H1_FAULT_TRAILER_TOO_BIG] = REASON_HEADERS_TOO_BIG,
        [H1_FAULT_BODY_TOO_BIG] = REASON_BODY_TOO_BIG,
    };
    return reasons[fault] != REASON_NONE ? (enum reason)reasons[fault] : REASON_BAD_REQUEST;
}

#define METHODS "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH"

/* The lines that an answer has by itself. */
static const char *lines_of(enum reason reason, uint16_t status)
{
    if (status == 405 || reason == REASON_OPTIONS) {
        return "Allow: " METHODS "\r\n";
    }
    return status == 503 && reason != REASON_ROUTE_FULL ? "Retry-After: 1\r\n" : NULL;
}

/* Settings may have a page for an answer that no exchange gives. */
static void find_page(struct worker *worker, struct status_answer *answer)
{
    const struct policy_base *base = worker_settings(worker)->base;
    const struct policy_page *page =
        base != NULL ? policy_page(&base->pages, (unsigned)answer->status) : NULL;
    if (page != NULL && answer->body == NULL) {
        answer->body = page->body;
        answer->body_len = page->body_len;
        answer->content_type = page->content_type;
    }
}

void client_put_answer(struct client *client, const struct exchange_answer *what)
{
    struct worker *worker = worker_of(client);
    const struct reason_row *row = reason_row(what->reason);
    bool keep = client->keep && client->request_done && !worker->draining;
    struct status_answer answer = {
        .status = what->status != 0 ? what->status : row->status,
        .end = !keep            ? STATUS_END_CLOSE
               : client->http10 ? STATUS_END_KEEP_ALIVE
                                : STATUS_END_KEEP,
        .is_head = client->is_head,
        .date = worker_date(worker),
        .extra = lines_of(what->reason, row->status),
        .lines = what->lines,
        .detail = row->text,
        .body = what->body,
        .body_len = what->body_len,
        .content_type = what->content_type,
    };
    find_page(worker, &answer);
    client->keep = keep;
    struct buf *out = &worker->head_out;
    buf_reset(out);
    int rc = answer.status < 300 ? status_put_bare(out, &answer) : status_put_answer(out, &answer);
    if (rc == RC_OK) { /* there is room for the largest page and all lines */
        sock_write(&client->sock, out->data, out->len);
    }
    response_done(client);
}

static void side_answer(struct client_side *side, const struct exchange_answer *answer)
{
    struct client *client = of_side(side);
    /* A request without body is complete, though nobody was told so yet. */
    client->request_done = client->request_done || h1_body_done(&client->work->body);
    if (answer->reason == REASON_CONNECT_METHOD) {
        client->keep = false; /* what follows is meant for somebody else */
    }
    client_put_answer(client, answer);
}

static void side_cut(struct client_side *side)
{
    struct client *client = of_side(side);
    sock_push(&client->sock);
    if (client->until_close && client->state == CLIENT_BUSY) {
        /* A FIN would look like a complete body. */
        const struct linger reset = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(client->sock.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    client_close(client);
}

static void side_hold(struct client_side *side, bool hold)
{
    struct client *client = of_side(side);
    client->held = hold;
    if (!hold) {
        client_touch(client);
    }
    client_update_reading(client);
}

static void side_finish(struct client_side *side)
{
    struct client *client = of_side(side);
    client->want_finish = true;
    client->tunnel_ms = MIN(client->tunnel_ms, side->exchange->timeouts.server_fin_ms);
    client_arm(client);
    sock_want_drain(&client->sock);
}

static void side_local(const struct client_side *side, struct addr *ret_local)
{
    const struct client *client = CONTAINER_OF(unconst(side), struct client, side);
    struct addr local = {0};
    socklen_t len = sizeof(local);
    if (client->local != NULL) {
        local = *client->local;
    } else if (getsockname(client->sock.fd, &local.sa, &len) != 0) {
        local = (struct addr){0};
    }
    *ret_local = local;
}

static struct sock *side_raw(struct client_side *side)
{
    struct client *client = of_side(side);
    client_touch(client);
    bool is_raw = client->state == CLIENT_BUSY && !client->chunked && !client->sock.write_dead &&
                  client->sock.tls == NULL;
    return is_raw ? &client->sock : NULL;
}

const struct client_ops client_side_ops = {
    .local = side_local,
    .interim = side_interim,
    .head = side_head,
    .data = side_data,
    .end = side_end,
    .answer = side_answer,
    .cut = side_cut,
    .hold = side_hold,
    .finish = side_finish,
    .raw = side_raw,
};
