/*
 * Access log records as JSON lines or in the combined format of web servers; see access_record.h.
 *
 * Every value that a client, an endpoint or an object chose goes through one of two escapes. JSON:
 * sound UTF-8 passes, control bytes become \u00XX (those of the C1 range too, which terminals
 * obey), bytes that are no UTF-8 become U+FFFD. Combined: all but printable ASCII becomes \xHH, and
 * quotes and backslashes get a backslash; numbers, names of our own and addresses need none.
 */
#include "node/base/timesrc.h"
#include "node/proxy/access_record.h"
#include "node/proxy/exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { END_TEXT_MAX = 32 };

static const char *const phase_names[ACCESS_PHASE_COUNT] = {
    [ACCESS_PHASE_NONE] = "",           [ACCESS_PHASE_HEAD] = "head",
    [ACCESS_PHASE_ROUTE] = "route",     [ACCESS_PHASE_QUEUE] = "queue",
    [ACCESS_PHASE_CONNECT] = "connect", [ACCESS_PHASE_REQUEST] = "request",
    [ACCESS_PHASE_WAIT] = "wait",       [ACCESS_PHASE_RESPONSE] = "response",
    [ACCESS_PHASE_TUNNEL] = "tunnel",
};

static const char *const end_names[] = {
    [EXCHANGE_END_NONE] = "",
    [EXCHANGE_END_CLIENT] = "client",
    [EXCHANGE_END_ENDPOINT] = "endpoint",
    [EXCHANGE_END_PROXY] = "proxy",
    [EXCHANGE_END_TIME] = "time",
    [EXCHANGE_END_RESOURCE] = "resource",
};

const char *access_end_text(const struct access_record *record, char *out, size_t size)
{
    out[0] = '\0';
    if (record->end != EXCHANGE_END_NONE && record->end < ARRAY_LEN(end_names) &&
        record->phase < ACCESS_PHASE_COUNT) {
        (void)snprintf(out, size, "%s.%s", end_names[record->end], phase_names[record->phase]);
    }
    return out;
}

/* ---- JSON ---- */

/* Bytes of the sound UTF-8 sequence at the front of text (RFC 3629), 0: there is none. */
static size_t utf8_len(const unsigned char *text, size_t len)
{
    static const struct {
        unsigned char lead_min, lead_max, second_min, second_max;
        uint8_t len;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (text[0] < rows[i].lead_min || text[0] > rows[i].lead_max) {
            continue;
        }
        if (rows[i].len > len || text[1] < rows[i].second_min || text[1] > rows[i].second_max) {
            return 0;
        }
        for (size_t j = 2; j < rows[i].len; j++) {
            if (text[j] < 0x80 || text[j] > 0xbf) {
                return 0;
            }
        }
        return rows[i].len;
    }
    return 0;
}

/* One character that is not plain ASCII; returns how many bytes it took. */
static size_t put_json_special(struct buf *out, const unsigned char *at, size_t len)
{
    if (at[0] == '"' || at[0] == '\\') {
        (void)buf_putc(out, '\\');
        (void)buf_putc(out, (char)at[0]);
        return 1;
    }
    if (at[0] < 0x20 || at[0] == 0x7f) {
        (void)buf_printf(out, "\\u%04x", at[0]);
        return 1;
    }
    size_t n = utf8_len(at, len);
    if (n == 0) {
        (void)buf_puts(out, "\\ufffd");
        return 1;
    }
    if (at[0] == 0xc2 && at[1] < 0xa0) {
        (void)buf_printf(out, "\\u%04x", at[1]);
    } else if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) {
        (void)buf_printf(out, "\\u20%02x", at[2] - 0x80U); /* line ends to some readers */
    } else {
        (void)buf_put(out, at, n);
    }
    return n;
}

static void put_json_text(struct buf *out, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    (void)buf_putc(out, '"');
    for (size_t i = 0; i < len;) {
        size_t plain = i;
        while (plain < len && at[plain] >= 0x20 && at[plain] < 0x7f && at[plain] != '"' &&
               at[plain] != '\\') {
            plain++;
        }
        (void)buf_put(out, at + i, plain - i);
        i = plain;
        if (i < len) {
            i += put_json_special(out, at + i, len - i);
        }
    }
    (void)buf_putc(out, '"');
}

static void put_json_pair(struct buf *out, const char *key, const char *text, size_t len)
{
    (void)buf_printf(out, ",\"%s\":", key);
    put_json_text(out, text, len);
}

static void put_json_items(struct buf *out, const char *items, size_t len)
{
    static const char *const keys[ACCESS_ITEM_SINGLE_COUNT] = {
        [ACCESS_ITEM_METHOD] = "method",     [ACCESS_ITEM_HOST] = "host",
        [ACCESS_ITEM_TARGET] = "path",       [ACCESS_ITEM_AGENT] = "userAgent",
        [ACCESS_ITEM_REFERER] = "referer",   [ACCESS_ITEM_REQUEST_ID] = "requestId",
        [ACCESS_ITEM_STICKY] = "sticky",     [ACCESS_ITEM_LISTENER] = "listener",
        [ACCESS_ITEM_ROUTE] = "route",       [ACCESS_ITEM_BACKEND] = "backend",
        [ACCESS_ITEM_ENDPOINT] = "endpoint",
    };
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, len, &at)) != NULL;) {
        if (item->id < ACCESS_ITEM_SINGLE_COUNT && keys[item->id] != NULL) {
            put_json_pair(out, keys[item->id], access_item_value(item), item->len);
        }
    }
}

/* What was captured of one kind, as an object; nothing when there is none. */
static void put_json_captures(struct buf *out, const char *key, enum access_item_id id,
                              const char *items, size_t len)
{
    bool any = false;
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, len, &at)) != NULL;) {
        if (item->id != id) {
            continue;
        }
        if (any) {
            (void)buf_putc(out, ',');
        } else {
            (void)buf_printf(out, ",\"%s\":{", key);
        }
        any = true;
        put_json_text(out, access_item_name(item), item->name_len);
        (void)buf_putc(out, ':');
        put_json_text(out, access_item_value(item), item->len);
    }
    if (any) {
        (void)buf_putc(out, '}');
    }
}

/* "10.0.0.1:80"; without a port when it is not known. */
static const char *client_text(const struct access_record *record, char out[ADDR_TEXT_MAX])
{
    return addr_port(&record->client) != 0 ? addr_format(&record->client, out)
                                           : addr_format_ip(&record->client, out);
}

static void format_json(struct buf *out, const struct access_record *record, const char *items,
                        const char *node)
{
    static const char *const kinds[] = {
        [ACCESS_HTTP] = "http", [ACCESS_HTTP_EMPTY] = "empty", [ACCESS_TCP] = "tcp"};
    char text[ADDR_TEXT_MAX];
    char time[TIME_TEXT_MAX];
    char end[END_TEXT_MAX];
    (void)buf_printf(out, "{\"time\":\"%s\",\"kind\":\"%s\"",
                     time_format_wall(record->wall_ms, time), kinds[record->kind]);
    put_json_pair(out, "node", node, strlen(node));
    (void)client_text(record, text);
    put_json_pair(out, "client", text, strlen(text));
    put_json_items(out, items, record->items_len);
    if (record->kind == ACCESS_HTTP) {
        (void)buf_printf(out, ",\"version\":\"1.%u\",\"status\":%u", record->minor, record->status);
    }
    (void)buf_printf(out, ",\"bytesIn\":%" PRIu64 ",\"bytesOut\":%" PRIu64, record->bytes_in,
                     record->bytes_out);
    const struct {
        const char *key;
        uint64_t us;
    } timers[] = {{"waitUs", record->wait_us},
                  {"queueUs", record->queue_us},
                  {"connectUs", record->connect_us},
                  {"firstByteUs", record->first_us},
                  {"totalUs", record->total_us}};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        if (timers[i].us != ACCESS_TIME_NONE) {
            (void)buf_printf(out, ",\"%s\":%" PRIu64, timers[i].key, timers[i].us);
        }
    }
    (void)buf_printf(out, ",\"reused\":%s,\"retries\":%u", record->reused ? "true" : "false",
                     record->retries);
    if (record->end != EXCHANGE_END_NONE) {
        (void)buf_printf(out, ",\"end\":\"%s\"", access_end_text(record, end, sizeof(end)));
    }
    if (record->reason != REASON_NONE && record->reason < REASON_COUNT) {
        (void)buf_printf(out, ",\"reason\":\"%s\"", reason_row((enum reason)record->reason)->label);
    }
    put_json_captures(out, "requestHeaders", ACCESS_ITEM_REQUEST_FIELD, items, record->items_len);
    put_json_captures(out, "responseHeaders", ACCESS_ITEM_RESPONSE_FIELD, items, record->items_len);
    put_json_captures(out, "cookies", ACCESS_ITEM_COOKIE, items, record->items_len);
    (void)buf_puts(out, "}\n");
}

/* ---- combined ---- */

static void put_plain_text(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            (void)buf_putc(out, '\\');
            (void)buf_putc(out, (char)c);
        } else if (c < 0x20 || c >= 0x7f) {
            (void)buf_printf(out, "\\x%02x", c);
        } else {
            (void)buf_putc(out, (char)c);
        }
    }
}

static const struct access_item *find_item(const struct access_record *record, const char *items,
                                           enum access_item_id id)
{
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, record->items_len, &at)) != NULL;) {
        if (item->id == id) {
            return item;
        }
    }
    return NULL;
}

/* The item's value, or "-". */
static void put_plain_item(struct buf *out, const struct access_record *record, const char *items,
                           enum access_item_id id)
{
    const struct access_item *item = find_item(record, items, id);
    if (item == NULL) {
        (void)buf_putc(out, '-');
    } else {
        put_plain_text(out, access_item_value(item), item->len);
    }
}

static void put_quoted_item(struct buf *out, const struct access_record *record, const char *items,
                            enum access_item_id id)
{
    (void)buf_puts(out, " \"");
    put_plain_item(out, record, items, id);
    (void)buf_putc(out, '"');
}

static void put_captures(struct buf *out, const struct access_record *record, const char *items)
{
    static const char *const prefixes[] = {[ACCESS_ITEM_REQUEST_FIELD] = "",
                                           [ACCESS_ITEM_RESPONSE_FIELD] = "<",
                                           [ACCESS_ITEM_COOKIE] = "cookie:"};
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, record->items_len, &at)) != NULL;) {
        if (item->id < ACCESS_ITEM_SINGLE_COUNT || item->id >= ARRAY_LEN(prefixes)) {
            continue;
        }
        (void)buf_printf(out, " \"%s", prefixes[item->id]);
        put_plain_text(out, access_item_name(item), item->name_len);
        (void)buf_putc(out, '=');
        put_plain_text(out, access_item_value(item), item->len);
        (void)buf_putc(out, '"');
    }
}

static void put_timers(struct buf *out, const struct access_record *record)
{
    const uint64_t timers[] = {record->wait_us, record->queue_us, record->connect_us,
                               record->first_us, record->total_us};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        (void)buf_putc(out, i == 0 ? ' ' : '/');
        if (timers[i] == ACCESS_TIME_NONE) {
            (void)buf_puts(out, "-1");
        } else {
            (void)buf_printf(out, "%" PRIu64, timers[i]);
        }
    }
}

static void put_request_line(struct buf *out, const struct access_record *record, const char *items)
{
    if (record->kind == ACCESS_TCP) {
        (void)buf_puts(out, "\"TCP ");
        put_plain_item(out, record, items, ACCESS_ITEM_LISTENER);
        (void)buf_putc(out, '"');
    } else if (find_item(record, items, ACCESS_ITEM_METHOD) == NULL) {
        (void)buf_puts(out, "\"-\""); /* there was none that could be read */
    } else {
        (void)buf_putc(out, '"');
        put_plain_item(out, record, items, ACCESS_ITEM_METHOD);
        (void)buf_putc(out, ' ');
        put_plain_item(out, record, items, ACCESS_ITEM_TARGET);
        (void)buf_printf(out, " HTTP/1.%u\"", record->minor);
    }
}

static void format_combined(struct buf *out, const struct access_record *record, const char *items)
{
    char text[ADDR_TEXT_MAX];
    char time[64];
    char end[END_TEXT_MAX];
    time_t seconds = (time_t)(record->wall_ms / 1000);
    struct tm tm;
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec"; /* whatever the locale */
    (void)gmtime_r(&seconds, &tm);
    (void)snprintf(time, sizeof(time), "%02d/%.3s/%d:%02d:%02d:%02d +0000", tm.tm_mday,
                   &months[3 * tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    (void)buf_printf(out, "%s - - [%s] ", addr_format_ip(&record->client, text), time);
    put_request_line(out, record, items);
    (void)buf_printf(out, " %u %" PRIu64, record->status, record->bytes_out);
    put_quoted_item(out, record, items, ACCESS_ITEM_REFERER);
    put_quoted_item(out, record, items, ACCESS_ITEM_AGENT);
    put_quoted_item(out, record, items, ACCESS_ITEM_HOST);
    put_quoted_item(out, record, items, ACCESS_ITEM_ROUTE);
    put_quoted_item(out, record, items, ACCESS_ITEM_BACKEND);
    put_quoted_item(out, record, items, ACCESS_ITEM_ENDPOINT);
    put_timers(out, record);
    (void)access_end_text(record, end, sizeof(end));
    (void)buf_printf(out, " %u %s", record->retries, end[0] != '\0' ? end : "-");
    put_quoted_item(out, record, items, ACCESS_ITEM_REQUEST_ID);
    put_captures(out, record, items);
    (void)buf_putc(out, '\n');
}

void access_format(struct buf *out, const struct access_record *record, const char *items,
                   const struct access_style *style)
{
    if (style->combined) {
        format_combined(out, record, items);
    } else {
        format_json(out, record, items, style->node);
    }
}
