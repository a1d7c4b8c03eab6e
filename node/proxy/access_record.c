/*
 * Items of access log records; see access_record.h. Pure.
 */
#include "node/proxy/access_record.h"

#include <string.h>

const struct access_item *access_item_next(const char *items, size_t len, size_t *at)
{
    if (*at + sizeof(struct access_item) > len) {
        return NULL;
    }
    const struct access_item *item = (const struct access_item *)(const void *)(items + *at);
    size_t size = sizeof(*item) + item->name_len + item->len;
    *at += (size + 3) / 4 * 4; /* heads are aligned */
    return item;
}

void access_item_put_named(struct access_items *items, enum access_item_id id,
                           const struct access_text *name, const struct access_text *value)
{
    size_t head = sizeof(struct access_item) + name->len;
    if (items->len + head + 4 > items->size) {
        return;
    }
    size_t len = MIN(value->len, items->size - items->len - head - 3);
    const struct access_item item = {
        .id = (uint8_t)id,
        .name_len = (uint8_t)name->len,
        .len = (uint16_t)len,
    };
    char *at = items->bytes + items->len;
    memcpy(at, &item, sizeof(item));
    at += sizeof(item);
    if (name->len != 0) {
        memcpy(at, name->at, name->len);
        at += name->len;
    }
    if (len != 0) {
        memcpy(at, value->at, len);
    }
    items->len += (head + len + 3) / 4 * 4;
}

void access_item_put(struct access_items *items, enum access_item_id id, const char *value,
                     size_t len, size_t max)
{
    if (len != 0) {
        access_item_put_named(items, id, &(const struct access_text){0},
                              &(const struct access_text){value, MIN(len, max)});
    }
}
