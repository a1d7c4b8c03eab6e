/*
 * Upper bounds of encoded sizes (protobuf wire form of proto/gossip.proto).
 *
 * A field costs one tag byte (numbers below 16) and its payload; a nested message adds a length of
 * at most LEN_MAX bytes. Counted generously: a byte too much is room unused, one too few would be
 * a datagram that does not leave.
 */
#include "gossip/core/message.h"

#include <string.h>

enum {
    TAG = 1,
    FIX64 = TAG + 8,
    VAR32 = TAG + 5,
    VAR64 = TAG + 10,
    BOOL = TAG + 1,
    LEN_MAX = 4, /* varint length of a nested message: below 256 MiB */
    NESTED = TAG + LEN_MAX,
    DOT_BODY = FIX64 + VAR32 + VAR64,
    DOT = TAG + 1 + DOT_BODY,
    ORIGIN = TAG + 1 + FIX64 + VAR32,
    ADDRESS = TAG + 1 + (TAG + 1 + 16) + VAR32,
    SUMMARY = NESTED + 3 * FIX64 + 5 * VAR64 + 2 * VAR32 + 2 * BOOL,
};

size_t msg_fact_size(const struct gossip_fact *fact)
{
    return NESTED + 2 * FIX64 + VAR64 + 2 * VAR32 + BOOL + ADDRESS + 2 * (TAG + 1) +
           strnlen(fact->name, GOSSIP_NAME_MAX) + strnlen(fact->version, GOSSIP_VERSION_MAX);
}

size_t msg_row_size(const struct row *row)
{
    return (size_t)(3 * NESTED + 2 * FIX64 + 2 * VAR32 + DOT) + row->id_len + row->value_len +
           (size_t)row->vector_len * DOT;
}

size_t msg_part_size(const struct gossip_part *part)
{
    size_t size = NESTED + VAR32 + NESTED; /* the part, its kind, the one message inside */
    switch (part->kind) {
    case PART_PROBE:
    case PART_REPLY:
    case PART_RELAY:
    case PART_MISS:
    case PART_JOIN:
    case PART_GRANT:
        size += 2 * FIX64 + ADDRESS + VAR32;
        break;
    case PART_FACT:
        size += msg_fact_size(part->fact);
        break;
    case PART_CHANGE_SET:
    case PART_ROWS:
        size += ORIGIN + 2 * VAR64;
        for (size_t i = 0; i < part->row_count; i++) {
            size += msg_row_size(part->rows[i]);
        }
        break;
    case PART_SYNC_OPEN:
        size += part->frontier_count * DOT + VAR32 + BOOL;
        break;
    case PART_AUDIT:
    case PART_BUCKETS:
        size += 2 * NESTED + part->hash_count * 8 + part->bucket_count * 5;
        break;
    case PART_MARK:
    case PART_CREDIT:
    case PART_END:
    case PART_DONE:
    case PART_UNSET:
    case PART_KIND_COUNT:
        size += DOT_BODY;
        break;
    }
    return size;
}

size_t msg_size(const struct gossip_msg *msg)
{
    size_t size = 0;
    if (msg->sender != NULL) {
        size += msg_fact_size(msg->sender);
    }
    if (msg->summary != NULL) {
        size += SUMMARY;
    }
    for (size_t i = 0; i < msg->part_count; i++) {
        size += msg_part_size(&msg->parts[i]);
    }
    return size;
}
