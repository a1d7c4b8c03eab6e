/*
 * Reason phrases, error responses, dates.
 */
#include "node/http/status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char STATUS_CONTINUE[25 + 1] = "HTTP/1.1 100 Continue\r\n\r\n";

struct row {
    int status;
    const char *reason;
    const char *detail; /* for the reader of an error page; NULL: none */
};

/* In ascending order. */
static const struct row rows[] = {
    {100, "Continue", NULL},
    {101, "Switching Protocols", NULL},
    {103, "Early Hints", NULL},
    {200, "OK", NULL},
    {201, "Created", NULL},
    {202, "Accepted", NULL},
    {203, "Non-Authoritative Information", NULL},
    {204, "No Content", NULL},
    {205, "Reset Content", NULL},
    {206, "Partial Content", NULL},
    {300, "Multiple Choices", NULL},
    {301, "Moved Permanently", NULL},
    {302, "Found", NULL},
    {303, "See Other", NULL},
    {304, "Not Modified", NULL},
    {307, "Temporary Redirect", NULL},
    {308, "Permanent Redirect", NULL},
    {400, "Bad Request", "The request is malformed or could be read in more than one way."},
    {401, "Unauthorized", NULL},
    {403, "Forbidden", NULL},
    {404, "Not Found", "No route serves this host and path."},
    {405, "Method Not Allowed", "This method is not served here."},
    {406, "Not Acceptable", NULL},
    {408, "Request Timeout", "The request did not arrive in time."},
    {409, "Conflict", NULL},
    {410, "Gone", NULL},
    {411, "Length Required", NULL},
    {412, "Precondition Failed", NULL},
    {413, "Content Too Large", "The request's body is larger than is taken here."},
    {414, "URI Too Long", "The request's target is longer than is taken here."},
    {415, "Unsupported Media Type", NULL},
    {416, "Range Not Satisfiable", NULL},
    {417, "Expectation Failed", "The request expects what is not offered here."},
    {421, "Misdirected Request", "This host is not served on this connection."},
    {422, "Unprocessable Content", NULL},
    {426, "Upgrade Required", NULL},
    {428, "Precondition Required", NULL},
    {429, "Too Many Requests", "More requests came than are allowed. Try again later."},
    {431, "Request Header Fields Too Large", "The request's header is larger than is taken here."},
    {500, "Internal Server Error", "The request could not be handled."},
    {501, "Not Implemented", "The request needs what is not offered here."},
    {502, "Bad Gateway", "The server behind this address gave no valid response."},
    {503, "Service Unavailable", "No server is available for this request. Try again later."},
    {504, "Gateway Timeout", "The server behind this address did not respond in time."},
    {505, "HTTP Version Not Supported", "HTTP/1.0 and HTTP/1.1 are spoken here."},
    {507, "Insufficient Storage", NULL},
    {508, "Loop Detected", NULL},
};

static const struct row *find_row(int status)
{
    size_t low = 0, high = ARRAY_LEN(rows);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (rows[mid].status == status) {
            return &rows[mid];
        }
        if (rows[mid].status < status) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

const char *status_reason(int status)
{
    static const char *const classes[] = {"Informational", "Success", "Redirection", "Client Error",
                                          "Server Error"};
    const struct row *row = find_row(status);
    if (row != NULL) {
        return row->reason;
    }
    return status >= 100 && status < 600 ? classes[status / 100 - 1] : "Unknown";
}

/* Text that cannot end the element it stands in. */
static void put_escaped(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            (void)buf_puts(out, "&lt;");
            break;
        case '>':
            (void)buf_puts(out, "&gt;");
            break;
        case '&':
            (void)buf_puts(out, "&amp;");
            break;
        case '"':
            (void)buf_puts(out, "&quot;");
            break;
        default:
            (void)buf_putc(out, *text);
        }
    }
}

static void put_page(struct buf *out, const struct status_answer *answer)
{
    const struct row *row = find_row(answer->status);
    const char *detail = answer->detail;
    if (detail == NULL) {
        detail = row != NULL && row->detail != NULL ? row->detail : "";
    }
    const char *reason = status_reason(answer->status);
    (void)buf_printf(out,
                     "<!DOCTYPE html>\n<html lang=\"en\"><head><title>%d %s</title></head>\n"
                     "<body><h1>%d %s</h1><p>",
                     answer->status, reason, answer->status, reason);
    put_escaped(out, detail);
    (void)buf_puts(out, "</p></body></html>\n");
}

static void put_head(struct buf *out, const struct status_answer *answer)
{
    (void)buf_printf(out, "HTTP/1.1 %d %s\r\n", answer->status, status_reason(answer->status));
    if (answer->date != NULL) {
        (void)buf_printf(out, "Date: %s\r\n", answer->date);
    }
}

/* The lines that the caller gave, how it ends, and the empty line. */
static void put_end(struct buf *out, const struct status_answer *answer)
{
    static const char *const ends[] = {
        [STATUS_END_CLOSE] = "Connection: close\r\n",
        [STATUS_END_KEEP] = "",
        [STATUS_END_KEEP_ALIVE] = "Connection: keep-alive\r\n",
    };
    (void)buf_puts(out, answer->extra != NULL ? answer->extra : "");
    (void)buf_puts(out, answer->lines != NULL ? answer->lines : "");
    (void)buf_puts(out, ends[answer->end]);
    (void)buf_puts(out, "\r\n");
}

static int settle(struct buf *out, size_t begin)
{
    if (!out->full) {
        return RC_OK;
    }
    out->len = begin;
    if (out->data != NULL) {
        out->data[begin] = '\0';
    }
    return RC_FULL;
}

int status_put_bare(struct buf *out, const struct status_answer *answer)
{
    size_t begin = out->len;
    put_head(out, answer);
    if (answer->status != 204) {
        (void)buf_puts(out, "Content-Length: 0\r\n");
    }
    put_end(out, answer);
    return settle(out, begin);
}

int status_put_answer(struct buf *out, const struct status_answer *answer)
{
    enum { PAGE_MAX = 4096 };
    struct buf page;
    buf_init(&page, PAGE_MAX);
    const char *body = answer->body;
    size_t body_len = answer->body_len;
    if (body == NULL) {
        put_page(&page, answer);
        if (page.full) { /* a detail that is no line: do without it */
            buf_reset(&page);
            struct status_answer plain = *answer;
            plain.detail = "";
            put_page(&page, &plain);
        }
        body = page.data;
        body_len = page.len;
    }
    bool has_type = answer->body != NULL && answer->content_type != NULL;
    size_t begin = out->len;
    put_head(out, answer);
    (void)buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                     has_type ? answer->content_type : "text/html; charset=utf-8", body_len);
    if (answer->status >= 400) {
        (void)buf_puts(out, "Cache-Control: no-store\r\n");
    }
    put_end(out, answer);
    if (!answer->is_head) {
        (void)buf_put(out, body, body_len);
    }
    buf_deinit(&page);
    return settle(out, begin);
}

const char *http_date_text(struct http_date *cache, uint64_t wall_ms)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    uint64_t second = wall_ms / 1000;
    if (second == cache->second && cache->text[0] != '\0') {
        return cache->text;
    }
    time_t when = (time_t)second;
    struct tm tm = {0};
    (void)gmtime_r(&when, &tm); /* fails only for years that do not fit an int */
    (void)snprintf(cache->text, sizeof(cache->text), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                   days[tm.tm_wday % 7], tm.tm_mday % 100, months[tm.tm_mon % 12],
                   (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
    cache->second = second;
    return cache->text;
}
