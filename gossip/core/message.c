/*
 * Upper bounds of encoded sizes (protobuf wire form of proto/gossip.proto).
 *
 * A field costs one tag byte (all numbers are below 16) and its payload; bytes and nested messages
 * have their length in front. Fields that the codec leaves out when they are zero are counted all
 * the same: a byte too much is room unused, one too few would be a datagram that does not leave.
 */
#include "gossip/core/message.h"

#include <string.h>

enum {
    TAG = 1,
    FIX64 = TAG + 8,
    BOOL = TAG + 1,
    IP_MAX = 16,
};

static size_t varint(uint64_t value)
{
    return TAG + (70 - (size_t)__builtin_clzll(value | 1)) / 7; /* 7 bits a byte */
}

/* Something with its length in front. */
static size_t nested(size_t len)
{
    return varint(len) + len;
}

static size_t origin_size(struct origin origin)
{
    return nested(FIX64 + varint(origin.generation));
}

static size_t dot_size(const struct dot *dot)
{
    return nested(FIX64 + varint(dot->origin.generation) + varint(dot->seq));
}

static size_t address_size(void)
{
    return nested(nested(IP_MAX) + varint(UINT16_MAX));
}

size_t msg_fact_size(const struct gossip_fact *fact)
{
    return nested(2 * FIX64 + varint(fact->generation) + varint(fact->incarnation) +
                  varint(MEMBER_LEFT) + BOOL + address_size() +
                  nested(strnlen(fact->name, GOSSIP_NAME_MAX)) +
                  nested(strnlen(fact->version, GOSSIP_VERSION_MAX)));
}

static size_t summary_size(void)
{
    /* Numbers change between measuring and sending: the longest ones. */
    return nested(3 * FIX64 + 5 * varint(UINT64_MAX) + varint(UINT32_MAX) + varint(UINT8_MAX) +
                  2 * (size_t)BOOL);
}

size_t msg_row_size(const struct row *row)
{
    size_t size = varint(row->kind) + nested(row->id_len) + 2 * (size_t)FIX64 + varint(row->flags) +
                  dot_size(&row->dot) + nested(row->value_len);
    for (uint32_t i = 0; i < row->vector_len; i++) {
        size += dot_size(&row->vector[i]);
    }
    return nested(size);
}

static size_t rows_size(const struct gossip_part *part)
{
    size_t size = origin_size(part->origin) + varint(part->first_seq) + varint(part->last_seq);
    for (size_t i = 0; i < part->row_count; i++) {
        size += msg_row_size(part->rows[i]);
    }
    return size;
}

static size_t open_size(const struct gossip_part *part)
{
    size_t size = varint(part->credit) + BOOL;
    for (size_t i = 0; i < part->frontier_count; i++) {
        size += dot_size(&part->frontier[i]);
    }
    return size;
}

/* What stands in the part beside its kind. */
static size_t content_size(const struct gossip_part *part)
{
    switch (part->kind) {
    case PART_PROBE:
    case PART_REPLY:
    case PART_RELAY:
    case PART_MISS:
    case PART_JOIN:
    case PART_GRANT:
        return nested(2 * FIX64 + varint(part->generation) + address_size());
    case PART_FACT:
        return msg_fact_size(part->fact);
    case PART_CHANGE_SET:
    case PART_ROWS:
        return nested(rows_size(part));
    case PART_SYNC_OPEN:
        return nested(open_size(part));
    case PART_MARK:
        return nested(FIX64 + varint(part->origin.generation) + varint(part->last_seq));
    case PART_CREDIT:
        return nested(varint(part->credit));
    case PART_AUDIT:
    case PART_BUCKETS:
        return nested(nested(part->hash_count * 8) + nested(part->bucket_count * 5));
    case PART_END:
    case PART_DONE:
    case PART_UNSET:
    case PART_KIND_COUNT:
        break;
    }
    return 0;
}

size_t msg_part_size(const struct gossip_part *part)
{
    return nested(varint(PART_KIND_COUNT) + content_size(part));
}

size_t msg_size(const struct gossip_msg *msg)
{
    size_t size = msg->sender != NULL ? msg_fact_size(msg->sender) : 0;
    size += msg->summary != NULL ? summary_size() : 0;
    for (size_t i = 0; i < msg->part_count; i++) {
        size += msg_part_size(&msg->parts[i]);
    }
    return size;
}
