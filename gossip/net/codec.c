/*
 * Core messages to protobuf and back; see codec.h.
 *
 * Both directions build protobuf-c's structs in a bump arena: encoding then packs them, decoding
 * lets protobuf-c unpack into the arena, whose cap is what bounds a hostile message. The schema has
 * no recursion, so depth is bounded by construction.
 */
#include "gossip/net/codec.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "proto/gossip.pb-c.h"

#include <string.h>

enum {
    BLOCK_SIZE = 32 << 10,
    KEEP_BYTES = 256 << 10,  /* memory that stays with a scratch between messages */
    DECODE_BASE = 64 << 10,  /* cap of a decode: this ... */
    DECODE_PER_BYTE = 32,    /* ... and this per byte of input (empty submessages cost most) */
    ENCODE_CAP = 256 << 20,  /* our own messages: no real limit */
    MSG_LEN_MAX = 256 << 20, /* protobuf-c's lengths are unsigned ints in places */
};

struct codec_block {
    struct codec_block *next;
    size_t size;
    size_t used;
    _Alignas(16) uint8_t bytes[];
};

/* ---- arena ---- */

void codec_scratch_init(struct codec_scratch *scratch)
{
    *scratch = (struct codec_scratch){0};
}

/* Keep the oldest blocks up to KEEP_BYTES: a rare huge message must not hold its memory. */
static void scratch_reset(struct codec_scratch *scratch, size_t keep_bytes)
{
    size_t kept = 0;
    struct codec_block **link = &scratch->blocks;
    while (*link != NULL) {
        struct codec_block *block = *link;
        if (kept + block->size > keep_bytes) {
            *link = block->next;
            mem_free(block);
        } else {
            kept += block->size;
            block->used = 0;
            link = &block->next;
        }
    }
    scratch->used_bytes = 0;
}

void codec_scratch_deinit(struct codec_scratch *scratch)
{
    scratch_reset(scratch, 0);
}

/* Zeroed, or NULL at the cap. */
static void *scratch_alloc(struct codec_scratch *scratch, size_t count, size_t size)
{
    size_t len = 0;
    if (__builtin_mul_overflow(count, size, &len) || len > scratch->cap_bytes) {
        return NULL;
    }
    len = (MAX(len, (size_t)1) + 15) & ~(size_t)15;
    if (len > scratch->cap_bytes - scratch->used_bytes) {
        return NULL;
    }
    struct codec_block *block = scratch->blocks;
    while (block != NULL && len > block->size - block->used) {
        block = block->next;
    }
    if (block == NULL) {
        size_t block_size = MAX(len, (size_t)BLOCK_SIZE);
        block = try_mem(sizeof(*block) + block_size);
        if (block == NULL) {
            return NULL;
        }
        block->size = block_size;
        block->next = scratch->blocks;
        scratch->blocks = block;
    }
    void *at = block->bytes + block->used;
    block->used += len;
    scratch->used_bytes += len;
    return memset(at, 0, len);
}

static void *unpack_alloc(void *arg, size_t size)
{
    return scratch_alloc(arg, 1, size);
}

static void unpack_free(void *arg, void *ptr)
{
    (void)arg; /* the arena goes as a whole */
    (void)ptr;
}

/* ---- encode ---- */

/* Encoding's allocations cannot fail but for the machine's memory, which ends the process. */
static void *need(struct codec_scratch *scratch, size_t count, size_t size)
{
    void *at = scratch_alloc(scratch, count, size);
    ASSERT(at != NULL);
    return at;
}

#define NEW(scratch, Type, init)                                                                   \
    Type *message = need(scratch, 1, sizeof(Type));                                                \
    init(message)

#define SET(field, val)                                                                            \
    do {                                                                                           \
        message->has_##field = 1;                                                                  \
        message->field = (val);                                                                    \
    } while (0)

/* Zero is the default of every optional field: not sent. */
#define SET_NONZERO(field, val)                                                                    \
    do {                                                                                           \
        message->field = (val);                                                                    \
        message->has_##field = message->field != 0;                                                \
    } while (0)

#define SET_BYTES(field, ptr, length)                                                              \
    do {                                                                                           \
        message->has_##field = (length) != 0;                                                      \
        message->field.len = (length);                                                             \
        message->field.data = unconst(ptr);                                                        \
    } while (0)

static Skein__Gossip__Address *put_address(struct codec_scratch *scratch, const struct addr *addr)
{
    if (addr->sa.sa_family != AF_INET && addr->sa.sa_family != AF_INET6) {
        return NULL;
    }
    NEW(scratch, Skein__Gossip__Address, skein__gossip__address__init);
    if (addr->sa.sa_family == AF_INET) {
        SET_BYTES(ip, &addr->in4.sin_addr, sizeof(addr->in4.sin_addr));
    } else {
        SET_BYTES(ip, &addr->in6.sin6_addr, sizeof(addr->in6.sin6_addr));
    }
    SET(port, addr_port(addr));
    return message;
}

static Skein__Gossip__Origin *put_origin(struct codec_scratch *scratch, struct origin origin)
{
    NEW(scratch, Skein__Gossip__Origin, skein__gossip__origin__init);
    SET(node, origin.node);
    SET(generation, origin.generation);
    return message;
}

static Skein__Gossip__Dot *put_dot(struct codec_scratch *scratch, const struct dot *dot)
{
    NEW(scratch, Skein__Gossip__Dot, skein__gossip__dot__init);
    SET(node, dot->origin.node);
    SET(generation, dot->origin.generation);
    SET(seq, dot->seq);
    return message;
}

static Skein__Gossip__Fact *put_fact(struct codec_scratch *scratch, const struct gossip_fact *fact)
{
    NEW(scratch, Skein__Gossip__Fact, skein__gossip__fact__init);
    SET(id, fact->id);
    SET(generation, fact->generation);
    SET_NONZERO(incarnation, fact->incarnation);
    SET_NONZERO(state, (uint32_t)fact->state);
    SET_NONZERO(forget, fact->forget);
    SET_NONZERO(accuser, fact->accuser);
    message->address = put_address(scratch, &fact->addr);
    SET_BYTES(name, fact->name, strnlen(fact->name, sizeof(fact->name) - 1));
    SET_BYTES(version, fact->version, strnlen(fact->version, sizeof(fact->version) - 1));
    return message;
}

static Skein__Gossip__Summary *put_summary(struct codec_scratch *scratch,
                                           const struct gossip_summary *summary)
{
    NEW(scratch, Skein__Gossip__Summary, skein__gossip__summary__init);
    SET(frontier_hash, summary->frontier_hash);
    SET(audit_root, summary->audit_root);
    SET(member_hash, summary->member_hash);
    SET_NONZERO(row_count, summary->row_count);
    SET_NONZERO(revision, summary->revision);
    SET(wall_ms, summary->wall_ms);
    SET_NONZERO(acked_seq, summary->acked_seq);
    SET_NONZERO(known_seq, summary->known_seq);
    SET_NONZERO(acked_generation, summary->acked_generation);
    SET_NONZERO(health, summary->health);
    SET_NONZERO(ready, summary->ready);
    SET_NONZERO(pull, summary->pull);
    return message;
}

static Skein__Gossip__Row *put_row(struct codec_scratch *scratch, const struct row *row)
{
    NEW(scratch, Skein__Gossip__Row, skein__gossip__row__init);
    SET(kind, row->kind);
    SET_BYTES(id, row->id, row->id_len);
    SET(hlc, row->hlc);
    SET_NONZERO(created_hlc, row->created_hlc);
    SET_NONZERO(flags, row->flags);
    message->dot = put_dot(scratch, &row->dot);
    message->vector = need(scratch, row->vector_len, sizeof(Skein__Gossip__Dot *));
    for (uint32_t i = 0; i < row->vector_len; i++) {
        const struct dot *dot = &row->vector[i];
        /* The reader puts the row's own write back. */
        if (dot->seq != row->dot.seq || origin_compare(dot->origin, row->dot.origin) != 0) {
            message->vector[message->n_vector++] = put_dot(scratch, dot);
        }
    }
    SET_BYTES(value, row->value, row->value_len);
    return message;
}

static Skein__Gossip__Row **put_rows(struct codec_scratch *scratch, const struct gossip_part *part)
{
    Skein__Gossip__Row **rows = need(scratch, part->row_count, sizeof(*rows));
    for (size_t i = 0; i < part->row_count; i++) {
        rows[i] = put_row(scratch, part->rows[i]);
    }
    return rows;
}

static Skein__Gossip__Probe *put_probe(struct codec_scratch *scratch,
                                       const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__Probe, skein__gossip__probe__init);
    SET(nonce, part->nonce);
    SET_NONZERO(id, part->id);
    SET_NONZERO(generation, part->generation);
    message->address = put_address(scratch, &part->addr);
    return message;
}

static Skein__Gossip__ChangeSet *put_change_set(struct codec_scratch *scratch,
                                                const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__ChangeSet, skein__gossip__change_set__init);
    message->origin = put_origin(scratch, part->origin);
    SET(first_seq, part->first_seq);
    SET(last_seq, part->last_seq);
    message->rows = put_rows(scratch, part);
    message->n_rows = part->row_count;
    return message;
}

static Skein__Gossip__RowChunk *put_row_chunk(struct codec_scratch *scratch,
                                              const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__RowChunk, skein__gossip__row_chunk__init);
    message->origin = put_origin(scratch, part->origin);
    message->rows = put_rows(scratch, part);
    message->n_rows = part->row_count;
    return message;
}

static Skein__Gossip__SyncOpen *put_sync_open(struct codec_scratch *scratch,
                                              const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__SyncOpen, skein__gossip__sync_open__init);
    message->n_frontier = part->frontier_count;
    message->frontier = need(scratch, part->frontier_count, sizeof(*message->frontier));
    for (size_t i = 0; i < part->frontier_count; i++) {
        message->frontier[i] = put_dot(scratch, &part->frontier[i]);
    }
    SET(credit, part->credit);
    SET_NONZERO(audit, part->audit);
    return message;
}

static Skein__Gossip__Control *put_control(struct codec_scratch *scratch,
                                           const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__Control, skein__gossip__control__init);
    SET(credit, part->credit);
    return message;
}

static Skein__Gossip__Audit *put_audit(struct codec_scratch *scratch,
                                       const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__Audit, skein__gossip__audit__init);
    message->n_hashes = part->hash_count;
    message->hashes = unconst(part->hashes);
    message->n_buckets = part->bucket_count;
    message->buckets = unconst(part->buckets);
    return message;
}

static Skein__Gossip__Part *put_part(struct codec_scratch *scratch, const struct gossip_part *part)
{
    NEW(scratch, Skein__Gossip__Part, skein__gossip__part__init);
    SET(kind, (uint32_t)part->kind);
    switch (part->kind) {
    case PART_PROBE:
    case PART_REPLY:
    case PART_RELAY:
    case PART_MISS:
    case PART_JOIN:
    case PART_GRANT:
        message->probe = put_probe(scratch, part);
        break;
    case PART_FACT:
        message->fact = put_fact(scratch, part->fact);
        break;
    case PART_CHANGE_SET:
        message->change_set = put_change_set(scratch, part);
        break;
    case PART_SYNC_OPEN:
        message->sync_open = put_sync_open(scratch, part);
        break;
    case PART_ROWS:
        message->row_chunk = put_row_chunk(scratch, part);
        break;
    case PART_MARK:
        message->mark = put_dot(scratch, &(struct dot){part->origin, part->last_seq});
        break;
    case PART_CREDIT:
        message->control = put_control(scratch, part);
        break;
    case PART_AUDIT:
    case PART_BUCKETS:
        message->audit = put_audit(scratch, part);
        break;
    case PART_END:
    case PART_DONE:
        break;
    case PART_UNSET:
    case PART_KIND_COUNT:
        UNREACHABLE("a message part without a kind");
    }
    return message;
}

int codec_encode(const struct gossip_msg *msg, struct buf *out)
{
    struct codec_scratch scratch;
    codec_scratch_init(&scratch);
    scratch.cap_bytes = ENCODE_CAP;

    Skein__Gossip__Message message = SKEIN__GOSSIP__MESSAGE__INIT;
    if (msg->sender != NULL) {
        message.sender = put_fact(&scratch, msg->sender);
    }
    if (msg->summary != NULL) {
        message.summary = put_summary(&scratch, msg->summary);
    }
    message.n_parts = msg->part_count;
    message.parts = need(&scratch, msg->part_count, sizeof(*message.parts));
    for (size_t i = 0; i < msg->part_count; i++) {
        message.parts[i] = put_part(&scratch, &msg->parts[i]);
    }
    size_t len = skein__gossip__message__get_packed_size(&message);
    char *room = buf_reserve(out, len);
    if (room != NULL) {
        size_t packed = skein__gossip__message__pack(&message, (uint8_t *)room);
        ASSERT(packed == len);
        buf_grow(out, len);
    }
    codec_scratch_deinit(&scratch);
    return room != NULL ? RC_OK : RC_FULL;
}

/* ---- decode ---- */

static int get_address(const Skein__Gossip__Address *wire, struct addr *ret_addr)
{
    struct addr addr = {0};
    if (wire == NULL) {
        *ret_addr = addr;
        return RC_OK;
    }
    if (wire->port > UINT16_MAX) {
        return RC_PEER;
    }
    if (wire->ip.len == sizeof(addr.in4.sin_addr)) {
        addr.in4.sin_family = AF_INET;
        memcpy(&addr.in4.sin_addr, wire->ip.data, wire->ip.len);
    } else if (wire->ip.len == sizeof(addr.in6.sin6_addr)) {
        addr.in6.sin6_family = AF_INET6;
        memcpy(&addr.in6.sin6_addr, wire->ip.data, wire->ip.len);
    } else {
        return RC_PEER;
    }
    addr_set_port(&addr, (uint16_t)wire->port);
    *ret_addr = addr;
    return RC_OK;
}

/* Printable bytes only (UTF-8 included): names go into logs and tables. */
static int get_text(const ProtobufCBinaryData *wire, char *out, size_t size)
{
    if (wire->len >= size) {
        return RC_PEER;
    }
    for (size_t i = 0; i < wire->len; i++) {
        if (wire->data[i] < 0x20 || wire->data[i] == 0x7f) {
            return RC_PEER;
        }
    }
    if (wire->len != 0) {
        memcpy(out, wire->data, wire->len);
    }
    out[wire->len] = '\0';
    return RC_OK;
}

static int get_fact(struct codec_scratch *scratch, const Skein__Gossip__Fact *wire,
                    const struct gossip_fact **ret_fact)
{
    struct gossip_fact *fact = scratch_alloc(scratch, 1, sizeof(*fact));
    if (fact == NULL || wire == NULL || wire->id == 0 || wire->generation == 0 ||
        wire->state > MEMBER_LEFT || get_address(wire->address, &fact->addr) != RC_OK ||
        get_text(&wire->name, fact->name, sizeof(fact->name)) != RC_OK ||
        get_text(&wire->version, fact->version, sizeof(fact->version)) != RC_OK) {
        return RC_PEER;
    }
    fact->id = wire->id;
    fact->generation = wire->generation;
    fact->incarnation = wire->incarnation;
    fact->state = (enum member_state)wire->state;
    fact->forget = wire->forget != 0;
    fact->accuser = wire->accuser;
    *ret_fact = fact;
    return RC_OK;
}

static struct dot get_dot(const Skein__Gossip__Dot *wire)
{
    return (struct dot){{wire->node, wire->generation}, wire->seq};
}

static int get_vector(struct codec_scratch *scratch, const Skein__Gossip__Row *wire,
                      struct row *row)
{
    if (wire->n_vector > ROW_VECTOR_MAX) {
        return RC_PEER;
    }
    struct dot *vector = scratch_alloc(scratch, wire->n_vector + 1, sizeof(*vector));
    if (vector == NULL) {
        return RC_PEER;
    }
    bool own = false;
    for (size_t i = 0; i < wire->n_vector; i++) {
        vector[i] = get_dot(wire->vector[i]);
        own = own || origin_compare(vector[i].origin, row->dot.origin) == 0;
    }
    row->vector_len = (uint32_t)wire->n_vector;
    if (!own) {
        vector[row->vector_len++] = row->dot;
    }
    row->vector = vector;
    return RC_OK;
}

static int get_row(struct codec_scratch *scratch, const Skein__Gossip__Row *wire,
                   const struct row **ret_row)
{
    struct row *row = scratch_alloc(scratch, 1, sizeof(*row));
    if (row == NULL || wire->dot == NULL || wire->kind > UINT16_MAX || wire->id.len > ROW_ID_MAX ||
        wire->value.len > ROW_VALUE_MAX) {
        return RC_PEER;
    }
    *row = (struct row){
        .kind = (uint16_t)wire->kind,
        .id_len = (uint16_t)wire->id.len,
        .value_len = (uint32_t)wire->value.len,
        .flags = wire->flags,
        .hlc = wire->hlc,
        .created_hlc = wire->created_hlc,
        .dot = get_dot(wire->dot),
        .id = (const char *)wire->id.data,
        .value = wire->value.len != 0 ? wire->value.data : NULL,
    };
    if (get_vector(scratch, wire, row) != RC_OK || row_check(row, NULL) != RC_OK) {
        return RC_PEER;
    }
    *ret_row = row;
    return RC_OK;
}

static int get_rows(struct codec_scratch *scratch, Skein__Gossip__Row *const *wire, size_t count,
                    const Skein__Gossip__Origin *origin, struct gossip_part *part)
{
    if (count > MSG_ROWS_MAX || origin == NULL || origin->node == 0 || origin->generation == 0) {
        return RC_PEER;
    }
    const struct row **rows = scratch_alloc(scratch, count, sizeof(*rows));
    if (rows == NULL) {
        return RC_PEER;
    }
    for (size_t i = 0; i < count; i++) {
        if (get_row(scratch, wire[i], &rows[i]) != RC_OK) {
            return RC_PEER;
        }
    }
    part->origin = (struct origin){origin->node, origin->generation};
    part->rows = rows;
    part->row_count = count;
    return RC_OK;
}

static int get_sync_open(struct codec_scratch *scratch, const Skein__Gossip__SyncOpen *wire,
                         struct gossip_part *part)
{
    if (wire == NULL || wire->n_frontier > MSG_FRONTIER_MAX) {
        return RC_PEER;
    }
    struct dot *frontier = scratch_alloc(scratch, wire->n_frontier, sizeof(*frontier));
    if (frontier == NULL) {
        return RC_PEER;
    }
    for (size_t i = 0; i < wire->n_frontier; i++) {
        frontier[i] = get_dot(wire->frontier[i]);
    }
    part->frontier = frontier;
    part->frontier_count = wire->n_frontier;
    part->credit = wire->credit;
    part->audit = wire->audit != 0;
    return RC_OK;
}

static int get_probe(const Skein__Gossip__Probe *wire, struct gossip_part *part)
{
    if (wire == NULL) {
        return RC_PEER;
    }
    part->nonce = wire->nonce;
    part->id = wire->id;
    part->generation = wire->generation;
    return get_address(wire->address, &part->addr);
}

static int get_audit(const Skein__Gossip__Audit *wire, struct gossip_part *part)
{
    if (wire == NULL || wire->n_hashes > MSG_BUCKETS || wire->n_buckets > MSG_BUCKETS) {
        return RC_PEER;
    }
    part->hashes = wire->hashes;
    part->hash_count = wire->n_hashes;
    part->buckets = wire->buckets;
    part->bucket_count = wire->n_buckets;
    return RC_OK;
}

static int get_part(struct codec_scratch *scratch, const Skein__Gossip__Part *wire,
                    struct gossip_part *part)
{
    *part = (struct gossip_part){.kind = (enum gossip_part_kind)wire->kind};
    switch (part->kind) {
    case PART_PROBE:
    case PART_REPLY:
    case PART_RELAY:
    case PART_MISS:
    case PART_JOIN:
    case PART_GRANT:
        return get_probe(wire->probe, part);
    case PART_FACT:
        return get_fact(scratch, wire->fact, &part->fact);
    case PART_CHANGE_SET:
        if (wire->change_set == NULL) {
            return RC_PEER;
        }
        part->first_seq = wire->change_set->first_seq;
        part->last_seq = wire->change_set->last_seq;
        return get_rows(scratch, wire->change_set->rows, wire->change_set->n_rows,
                        wire->change_set->origin, part);
    case PART_SYNC_OPEN:
        return get_sync_open(scratch, wire->sync_open, part);
    case PART_ROWS:
        return wire->row_chunk == NULL
                   ? RC_PEER
                   : get_rows(scratch, wire->row_chunk->rows, wire->row_chunk->n_rows,
                              wire->row_chunk->origin, part);
    case PART_MARK:
        if (wire->mark == NULL) {
            return RC_PEER;
        }
        part->origin = get_dot(wire->mark).origin;
        part->last_seq = wire->mark->seq;
        return part->origin.node != 0 && part->origin.generation != 0 ? RC_OK : RC_PEER;
    case PART_CREDIT:
        part->credit = wire->control != NULL ? wire->control->credit : 0;
        return RC_OK;
    case PART_AUDIT:
    case PART_BUCKETS:
        return get_audit(wire->audit, part);
    case PART_END:
    case PART_DONE:
        return RC_OK;
    case PART_UNSET:
    case PART_KIND_COUNT:
        break;
    }
    return RC_UNSUPPORTED; /* a newer node's; skipped */
}

int codec_decode(const uint8_t *bytes, size_t len, struct codec_scratch *scratch,
                 struct gossip_msg *ret_msg)
{
    scratch_reset(scratch, KEEP_BYTES);
    if (len > MSG_LEN_MAX) {
        return RC_PEER;
    }
    scratch->cap_bytes = DECODE_BASE + len * DECODE_PER_BYTE;
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, scratch};
    const Skein__Gossip__Message *wire = skein__gossip__message__unpack(&allocator, len, bytes);
    if (wire == NULL || wire->n_parts > MSG_PARTS_MAX) {
        return RC_PEER;
    }
    struct gossip_msg msg = {0};
    if (wire->sender != NULL && get_fact(scratch, wire->sender, &msg.sender) != RC_OK) {
        return RC_PEER;
    }
    struct gossip_part *parts = scratch_alloc(scratch, wire->n_parts, sizeof(*parts));
    struct gossip_summary *summary = scratch_alloc(scratch, 1, sizeof(*summary));
    if (parts == NULL || summary == NULL) {
        return RC_PEER;
    }
    for (size_t i = 0; i < wire->n_parts; i++) {
        int rc = get_part(scratch, wire->parts[i], &parts[msg.part_count]);
        if (rc == RC_OK) {
            msg.part_count++;
        } else if (rc != RC_UNSUPPORTED) {
            return RC_PEER;
        }
    }
    msg.parts = parts;
    if (wire->summary != NULL) {
        const Skein__Gossip__Summary *from = wire->summary;
        *summary = (struct gossip_summary){
            .frontier_hash = from->frontier_hash,
            .audit_root = from->audit_root,
            .member_hash = from->member_hash,
            .row_count = from->row_count,
            .revision = from->revision,
            .wall_ms = from->wall_ms,
            .acked_seq = from->acked_seq,
            .known_seq = from->known_seq,
            .acked_generation = from->acked_generation,
            .health = (uint8_t)MIN(from->health, 8U),
            .ready = from->ready != 0,
            .pull = from->pull != 0,
        };
        msg.summary = summary;
    }
    *ret_msg = msg;
    return RC_OK;
}
