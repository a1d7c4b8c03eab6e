/*
 * The records that go from workers to the writer of the access log: one fixed part, then items,
 * each an access_item head, a name (of captures) and a value. Made by workers (access_record.c),
 * put into a ring (access_log.c), turned into text by the writer (access_format.c).
 *
 * A record is at most ACCESS_RECORD_MAX bytes, whatever clients and objects hold: values are cut to
 * the limits below, and items that find no room are left out.
 */
#ifndef SKEIN_NODE_PROXY_ACCESS_RECORD_H
#define SKEIN_NODE_PROXY_ACCESS_RECORD_H

#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/base/timesrc.h"

enum {
    ACCESS_RECORD_MAX = 10240,
    ACCESS_DRAFT_MAX = 8192, /* items that clients and endpoints size */
    ACCESS_METHOD_MAX = 32,
    ACCESS_HOST_MAX = 255,
    ACCESS_TARGET_MAX = 2048,
    ACCESS_AGENT_MAX = 256,
    ACCESS_REFERER_MAX = 512,
    ACCESS_ID_MAX = 128,
    ACCESS_CAUSE_MAX = 320,
    ACCESS_NAME_MAX = 512, /* of routes and backends */
};

enum access_kind {
    ACCESS_HTTP = 0,
    ACCESS_HTTP_EMPTY, /* a connection that asked for nothing */
    ACCESS_TCP,
};

/* Who ended it is enum exchange_end; this is when. */
enum access_phase {
    ACCESS_PHASE_NONE = 0,
    ACCESS_PHASE_HEAD,     /* the request head had not been read */
    ACCESS_PHASE_ROUTE,    /* read; no endpoint was asked for */
    ACCESS_PHASE_QUEUE,    /* no endpoint had been found */
    ACCESS_PHASE_CONNECT,  /* to an endpoint */
    ACCESS_PHASE_REQUEST,  /* being sent */
    ACCESS_PHASE_WAIT,     /* sent; no response head had come */
    ACCESS_PHASE_RESPONSE, /* being relayed */
    ACCESS_PHASE_TUNNEL,   /* bytes both ways */
    ACCESS_PHASE_COUNT,
};

enum access_item_id {
    ACCESS_ITEM_NONE = 0,
    ACCESS_ITEM_METHOD,
    ACCESS_ITEM_HOST,
    ACCESS_ITEM_TARGET,
    ACCESS_ITEM_AGENT,
    ACCESS_ITEM_REFERER,
    ACCESS_ITEM_REQUEST_ID,
    ACCESS_ITEM_STICKY,
    ACCESS_ITEM_LISTENER,
    ACCESS_ITEM_ROUTE,
    ACCESS_ITEM_BACKEND,
    ACCESS_ITEM_ENDPOINT,
    ACCESS_ITEM_CAUSE,        /* why TLS with the endpoint failed */
    ACCESS_ITEM_SINGLE_COUNT, /* the rest have names and may repeat */
    ACCESS_ITEM_REQUEST_FIELD = ACCESS_ITEM_SINGLE_COUNT,
    ACCESS_ITEM_RESPONSE_FIELD,
    ACCESS_ITEM_COOKIE,
};

struct access_item {
    uint8_t id;
    uint8_t name_len;
    uint16_t len; /* of the value, behind the name */
};

#define ACCESS_TIME_NONE UINT64_MAX /* it did not get that far */

struct access_record {
    uint32_t size; /* all of it, a multiple of 8; 0: go on at the ring's start */
    uint32_t items_len;
    uint64_t wall_ms;  /* when it ended */
    uint64_t wait_us;  /* first byte of the request to its whole head */
    uint64_t queue_us; /* to the endpoint that answered: queue, failed tries */
    uint64_t connect_us;
    uint64_t first_us; /* connected to the response head */
    uint64_t total_us; /* first byte to the end */
    uint64_t bytes_in;
    uint64_t bytes_out;
    struct addr client;
    uint16_t status;
    uint16_t reason;
    uint16_t retries;
    uint8_t kind;  /* access_kind */
    uint8_t end;   /* exchange_end */
    uint8_t phase; /* access_phase */
    uint8_t minor; /* HTTP/1.minor */
    bool reused;   /* a kept connection to the endpoint */
};

/* The items behind the fixed part: give *at as 0, then as it was left. NULL: no more. */
const struct access_item *access_item_next(const char *items, size_t len, size_t *at);

static inline const char *access_item_name(const struct access_item *item)
{
    return (const char *)(item + 1);
}

static inline const char *access_item_value(const struct access_item *item)
{
    return (const char *)(item + 1) + item->name_len;
}

/* A run of items that grows in place. bytes: aligned for access_item. */
struct access_items {
    char *bytes;
    size_t len;
    size_t size;
};

struct access_text {
    const char *at;
    size_t len;
};

/* Append; what finds no room is cut or left out. name: at most 255 bytes, value 65535. */
void access_item_put_named(struct access_items *items, enum access_item_id id,
                           const struct access_text *name, const struct access_text *value);
/* The same without a name, cut to max; nothing when len is 0. */
void access_item_put(struct access_items *items, enum access_item_id id, const char *value,
                     size_t len, size_t max);

/* ---- access_format.c ---- */

struct access_style {
    const char *node;
    size_t node_len;
    bool combined;
    /* The last second as text; zeroed before the first use. */
    uint64_t second;
    uint64_t common_second;
    char time[TIME_TEXT_MAX];
    char common_time[64];
};

/* One line with its line break, appended to out. The bytes of record are trusted, what clients sent
 * is not: it cannot end a line or a field of it. */
void access_format(struct buf *out, const struct access_record *record, const char *items,
                   struct access_style *style);

/* "client.response", or "" when both sides are done. out: at least 32 bytes. */
const char *access_end_text(const struct access_record *record, char *out, size_t size);

#endif
