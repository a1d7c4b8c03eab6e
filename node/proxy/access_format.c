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

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    END_TEXT_MAX = 32,
    ESCAPE_MAX = 6, /* bytes that one byte becomes at most; the head of an item pays for its key */
    FIXED_BYTES = 1024 /* of a line without its items and the node's name */
};

/* Where text is put: there is room for the longest line (access_format). */
struct pen {
    char *at;
};

static inline void put(struct pen *pen, const char *text, size_t len)
{
    if (len != 0) {
        memcpy(pen->at, text, len);
        pen->at += len;
    }
}

static inline void put_text(struct pen *pen, const char *text)
{
    put(pen, text, strlen(text));
}

static inline void put_byte(struct pen *pen, char byte)
{
    *pen->at++ = byte;
}

static void put_number(struct pen *pen, uint64_t value)
{
    char digits[20];
    size_t i = sizeof(digits);
    do {
        digits[--i] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    put(pen, digits + i, sizeof(digits) - i);
}

static void put_hex(struct pen *pen, unsigned byte)
{
    static const char digits[] = "0123456789abcdef";
    put_byte(pen, digits[byte >> 4]);
    put_byte(pen, digits[byte & 15]);
}

/* "10.0.0.1"; most clients have such an address. */
static void put_ip(struct pen *pen, const struct addr *addr)
{
    if (addr->sa.sa_family != AF_INET) {
        char text[ADDR_TEXT_MAX];
        put_text(pen, addr_format_ip(addr, text));
        return;
    }
    const uint8_t *bytes = (const uint8_t *)&addr->in4.sin_addr;
    for (size_t i = 0; i < 4; i++) {
        put_number(pen, bytes[i]);
        if (i < 3) {
            put_byte(pen, '.');
        }
    }
}

/* With its port, when that is known. */
static void put_client(struct pen *pen, const struct addr *addr)
{
    if (addr->sa.sa_family != AF_INET && addr_port(addr) != 0) {
        char text[ADDR_TEXT_MAX];
        put_text(pen, addr_format(addr, text));
        return;
    }
    put_ip(pen, addr);
    if (addr_port(addr) != 0) {
        put_byte(pen, ':');
        put_number(pen, addr_port(addr));
    }
}

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

static void put_json_escape(struct pen *pen, unsigned high, unsigned low)
{
    put(pen, "\\u", 2);
    put_hex(pen, high);
    put_hex(pen, low);
}

/* One character that is not plain ASCII; returns how many bytes it took. */
static size_t put_json_special(struct pen *pen, const unsigned char *at, size_t len)
{
    if (at[0] == '"' || at[0] == '\\') {
        put_byte(pen, '\\');
        put_byte(pen, (char)at[0]);
        return 1;
    }
    if (at[0] < 0x20 || at[0] == 0x7f) {
        put_json_escape(pen, 0, at[0]);
        return 1;
    }
    size_t n = utf8_len(at, len);
    if (n == 0) {
        put_json_escape(pen, 0xff, 0xfd);
        return 1;
    }
    if (at[0] == 0xc2 && at[1] < 0xa0) {
        put_json_escape(pen, 0, at[1]);
    } else if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) {
        put_json_escape(pen, 0x20, at[2] - 0x80U); /* line ends to some readers */
    } else {
        put(pen, (const char *)at, n);
    }
    return n;
}

static void put_json_text(struct pen *pen, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    put_byte(pen, '"');
    for (size_t i = 0; i < len;) {
        if (LIKELY(at[i] >= 0x20 && at[i] < 0x7f && at[i] != '"' && at[i] != '\\')) {
            put_byte(pen, text[i++]);
        } else {
            i += put_json_special(pen, at + i, len - i);
        }
    }
    put_byte(pen, '"');
}

static void put_json_items(struct pen *pen, const char *items, size_t len)
{
    static const char *const keys[ACCESS_ITEM_SINGLE_COUNT] = {
        [ACCESS_ITEM_METHOD] = ",\"method\":",     [ACCESS_ITEM_HOST] = ",\"host\":",
        [ACCESS_ITEM_TARGET] = ",\"path\":",       [ACCESS_ITEM_AGENT] = ",\"userAgent\":",
        [ACCESS_ITEM_REFERER] = ",\"referer\":",   [ACCESS_ITEM_REQUEST_ID] = ",\"requestId\":",
        [ACCESS_ITEM_STICKY] = ",\"sticky\":",     [ACCESS_ITEM_LISTENER] = ",\"listener\":",
        [ACCESS_ITEM_ROUTE] = ",\"route\":",       [ACCESS_ITEM_BACKEND] = ",\"backend\":",
        [ACCESS_ITEM_ENDPOINT] = ",\"endpoint\":", [ACCESS_ITEM_CAUSE] = ",\"cause\":",
    };
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, len, &at)) != NULL;) {
        if (item->id < ACCESS_ITEM_SINGLE_COUNT && keys[item->id] != NULL) {
            put_text(pen, keys[item->id]);
            put_json_text(pen, access_item_value(item), item->len);
        }
    }
}

/* What was captured of one kind, as an object; nothing when there is none. */
static void put_json_captures(struct pen *pen, const char *key, enum access_item_id id,
                              const char *items, size_t len)
{
    bool any = false;
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, len, &at)) != NULL;) {
        if (item->id != id) {
            continue;
        }
        put_text(pen, any ? "," : key);
        any = true;
        put_json_text(pen, access_item_name(item), item->name_len);
        put_byte(pen, ':');
        put_json_text(pen, access_item_value(item), item->len);
    }
    if (any) {
        put_byte(pen, '}');
    }
}

static void put_pair(struct pen *pen, const char *key, uint64_t value)
{
    put_text(pen, key);
    put_number(pen, value);
}

/* RFC 3339; what is the same for a second is kept. */
static void put_json_time(struct pen *pen, uint64_t wall_ms, struct access_style *style)
{
    if (wall_ms / 1000 != style->second || style->time[0] == '\0') {
        style->second = wall_ms / 1000;
        (void)time_format_wall(wall_ms / 1000 * 1000, style->time); /* 2026-01-31T10:00:00.000Z */
    }
    unsigned ms = (unsigned)(wall_ms % 1000);
    size_t len = strlen(style->time);
    put(pen, style->time, len - 4);
    put_byte(pen, (char)('0' + ms / 100));
    put_byte(pen, (char)('0' + ms / 10 % 10));
    put_byte(pen, (char)('0' + ms % 10));
    put_byte(pen, 'Z');
}

static void put_json_timers(struct pen *pen, const struct access_record *record)
{
    const struct {
        const char *key;
        uint64_t us;
    } timers[] = {{",\"waitUs\":", record->wait_us},
                  {",\"queueUs\":", record->queue_us},
                  {",\"connectUs\":", record->connect_us},
                  {",\"firstByteUs\":", record->first_us},
                  {",\"totalUs\":", record->total_us}};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        if (timers[i].us != ACCESS_TIME_NONE) {
            put_pair(pen, timers[i].key, timers[i].us);
        }
    }
}

static void format_json(struct pen *pen, const struct access_record *record, const char *items,
                        struct access_style *style)
{
    static const char *const kinds[] = {[ACCESS_HTTP] = "\",\"kind\":\"http\",\"node\":",
                                        [ACCESS_HTTP_EMPTY] = "\",\"kind\":\"empty\",\"node\":",
                                        [ACCESS_TCP] = "\",\"kind\":\"tcp\",\"node\":"};
    put_text(pen, "{\"time\":\"");
    put_json_time(pen, record->wall_ms, style);
    put_text(pen, kinds[record->kind]);
    put_json_text(pen, style->node, style->node_len);
    put_text(pen, ",\"client\":\"");
    put_client(pen, &record->client);
    put_byte(pen, '"');
    put_json_items(pen, items, record->items_len);
    if (record->kind == ACCESS_HTTP) {
        put_pair(pen, ",\"version\":\"1.", record->minor);
        put_pair(pen, "\",\"status\":", record->status);
    }
    put_pair(pen, ",\"bytesIn\":", record->bytes_in);
    put_pair(pen, ",\"bytesOut\":", record->bytes_out);
    put_json_timers(pen, record);
    put_text(pen, record->reused ? ",\"reused\":true" : ",\"reused\":false");
    put_pair(pen, ",\"retries\":", record->retries);
    if (record->end != EXCHANGE_END_NONE) {
        char end[END_TEXT_MAX];
        put_text(pen, ",\"end\":\"");
        put_text(pen, access_end_text(record, end, sizeof(end)));
        put_byte(pen, '"');
    }
    if (record->reason != REASON_NONE && record->reason < REASON_COUNT) {
        put_text(pen, ",\"reason\":\"");
        put_text(pen, reason_row((enum reason)record->reason)->label);
        put_byte(pen, '"');
    }
    put_json_captures(pen, ",\"requestHeaders\":{", ACCESS_ITEM_REQUEST_FIELD, items,
                      record->items_len);
    put_json_captures(pen, ",\"responseHeaders\":{", ACCESS_ITEM_RESPONSE_FIELD, items,
                      record->items_len);
    put_json_captures(pen, ",\"cookies\":{", ACCESS_ITEM_COOKIE, items, record->items_len);
    put_text(pen, "}\n");
}

/* ---- combined ---- */

static void put_plain_text(struct pen *pen, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            put_byte(pen, '\\');
            put_byte(pen, text[i]);
        } else if (c < 0x20 || c >= 0x7f) {
            put(pen, "\\x", 2);
            put_hex(pen, c);
        } else {
            put_byte(pen, text[i]);
        }
    }
}

/* The value of the item with this id, or "-". */
static void put_plain_item(struct pen *pen, const struct access_record *record, const char *items,
                           enum access_item_id id)
{
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, record->items_len, &at)) != NULL;) {
        if (item->id == id) {
            put_plain_text(pen, access_item_value(item), item->len);
            return;
        }
    }
    put_byte(pen, '-');
}

static void put_quoted_item(struct pen *pen, const struct access_record *record, const char *items,
                            enum access_item_id id)
{
    put(pen, " \"", 2);
    put_plain_item(pen, record, items, id);
    put_byte(pen, '"');
}

static void put_captures(struct pen *pen, const struct access_record *record, const char *items)
{
    static const char *const prefixes[] = {[ACCESS_ITEM_REQUEST_FIELD] = " \"",
                                           [ACCESS_ITEM_RESPONSE_FIELD] = " \"<",
                                           [ACCESS_ITEM_COOKIE] = " \"cookie:"};
    const struct access_item *item;
    for (size_t at = 0; (item = access_item_next(items, record->items_len, &at)) != NULL;) {
        if (item->id < ACCESS_ITEM_SINGLE_COUNT || item->id >= ARRAY_LEN(prefixes)) {
            continue;
        }
        put_text(pen, prefixes[item->id]);
        put_plain_text(pen, access_item_name(item), item->name_len);
        put_byte(pen, '=');
        put_plain_text(pen, access_item_value(item), item->len);
        put_byte(pen, '"');
    }
}

static void put_timers(struct pen *pen, const struct access_record *record)
{
    const uint64_t timers[] = {record->wait_us, record->queue_us, record->connect_us,
                               record->first_us, record->total_us};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        put_byte(pen, i == 0 ? ' ' : '/');
        if (timers[i] == ACCESS_TIME_NONE) {
            put(pen, "-1", 2);
        } else {
            put_number(pen, timers[i]);
        }
    }
}

static void put_request_line(struct pen *pen, const struct access_record *record, const char *items)
{
    if (record->kind == ACCESS_TCP) {
        put_text(pen, "\"TCP ");
        put_plain_item(pen, record, items, ACCESS_ITEM_LISTENER);
    } else {
        put_byte(pen, '"');
        char *method = pen->at;
        put_plain_item(pen, record, items, ACCESS_ITEM_METHOD);
        if (method[0] != '-') { /* else there was none that could be read */
            put_byte(pen, ' ');
            put_plain_item(pen, record, items, ACCESS_ITEM_TARGET);
            put_pair(pen, " HTTP/1.", record->minor);
        }
    }
    put_byte(pen, '"');
}

/* [31/Jan/2026:10:00:00 +0000], whatever the locale; what is the same for a second is kept. */
static void put_common_time(struct pen *pen, uint64_t wall_ms, struct access_style *style)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (wall_ms / 1000 != style->common_second || style->common_time[0] == '\0') {
        time_t seconds = (time_t)(wall_ms / 1000);
        struct tm tm;
        (void)gmtime_r(&seconds, &tm);
        style->common_second = wall_ms / 1000;
        (void)snprintf(style->common_time, sizeof(style->common_time),
                       "[%02d/%.3s/%d:%02d:%02d:%02d +0000]", tm.tm_mday, &months[3 * tm.tm_mon],
                       tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    }
    put_text(pen, style->common_time);
}

static void format_combined(struct pen *pen, const struct access_record *record, const char *items,
                            struct access_style *style)
{
    char end[END_TEXT_MAX];
    put_ip(pen, &record->client);
    put_text(pen, " - - ");
    put_common_time(pen, record->wall_ms, style);
    put_byte(pen, ' ');
    put_request_line(pen, record, items);
    put_pair(pen, " ", record->status);
    put_pair(pen, " ", record->bytes_out);
    put_quoted_item(pen, record, items, ACCESS_ITEM_REFERER);
    put_quoted_item(pen, record, items, ACCESS_ITEM_AGENT);
    put_quoted_item(pen, record, items, ACCESS_ITEM_HOST);
    put_quoted_item(pen, record, items, ACCESS_ITEM_ROUTE);
    put_quoted_item(pen, record, items, ACCESS_ITEM_BACKEND);
    put_quoted_item(pen, record, items, ACCESS_ITEM_ENDPOINT);
    put_timers(pen, record);
    put_pair(pen, " ", record->retries);
    put_byte(pen, ' ');
    (void)access_end_text(record, end, sizeof(end));
    put_text(pen, end[0] != '\0' ? end : "-");
    put_quoted_item(pen, record, items, ACCESS_ITEM_REQUEST_ID);
    put_captures(pen, record, items);
    put_byte(pen, '\n');
}

void access_format(struct buf *out, const struct access_record *record, const char *items,
                   struct access_style *style)
{
    size_t most = FIXED_BYTES + ESCAPE_MAX * (style->node_len + record->items_len);
    struct pen pen = {.at = buf_reserve(out, most)};
    if (pen.at == NULL) {
        return; /* out->full tells */
    }
    if (style->combined) {
        format_combined(&pen, record, items, style);
    } else {
        format_json(&pen, record, items, style);
    }
    buf_grow(out, (size_t)(pen.at - (out->data + out->len)));
}
