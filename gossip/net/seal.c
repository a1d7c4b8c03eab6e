/*
 * Sealing and opening; the rules are in seal.h.
 */
#include "gossip/net/seal.h"

#include "gossip/net/bytes.h"
#include "gossip/net/seal_sender.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

#include <string.h>

enum {
    VERSION_SEALED = 0xa1,
    VERSION_NOTICE = 0xa2,

    CHALLENGE_BYTES = 16, /* nonce, generation, salt */
    CHALLENGE_GAP_MS = 20,
    ECHO_RANGE = 4096, /* a notice repeats one of so many last counters */

    RECENT_MAX = 32,    /* datagrams kept to be sent again */
    RECENT_MS = 1000,   /* for so long */
    ANSWERS_PER_S = 50, /* notices, and answers to challenges, each */
};

_Static_assert((int)SEAL_OVERHEAD <= (int)GOSSIP_SEAL_MAX, "the core leaves room for the seal");

enum kind {
    KIND_DATA = 0,
    KIND_PROOF, /* data that begins with the nonce of a challenge */
    KIND_CHALLENGE,
    KIND_COUNT
};

struct header {
    enum kind kind;
    uint32_t key_id;
    uint64_t receiver;
    uint64_t sender;
    uint32_t generation;
    uint32_t salt;
    uint64_t counter;
};

/* Sent lately; to_id and at_ms as of then. */
struct recent {
    struct addr to;
    uint64_t to_id;
    uint64_t at_ms;
    bool used; /* holds one that was not sent again yet */
    size_t len;
    uint8_t plain[SEAL_PLAIN_MAX];
};

/* So many events a second. */
struct bucket {
    uint64_t second;
    uint32_t count;
};

struct seal {
    struct seal_config config;
    struct aead *aead; /* own packets */
    uint32_t salt;
    uint64_t counter; /* of the next datagram */
    struct sender_table senders;
    struct recent recent[RECENT_MAX];
    size_t recent_next;
    struct bucket notices;
    struct bucket answers;
    struct seal_counters counters;
};

static const char *const result_names[SEAL_RESULT_COUNT] = {
    [SEAL_OK] = "ok",
    [SEAL_CONTROL] = "control",
    [SEAL_NOTICE] = "notice",
    [SEAL_MALFORMED] = "malformed",
    [SEAL_VERSION] = "version",
    [SEAL_UNKNOWN_KEY] = "unknown_key",
    [SEAL_MISADDRESSED] = "misaddressed",
    [SEAL_SELF] = "own_identity",
    [SEAL_BROKEN] = "broken_seal",
    [SEAL_REPLAY] = "replay",
    [SEAL_UNPROVEN] = "unproven",
};

const char *seal_result_name(enum seal_result result)
{
    return (unsigned)result < SEAL_RESULT_COUNT ? result_names[result] : "?";
}

static bool bucket_take(struct bucket *bucket, uint64_t now_ms)
{
    if (bucket->second != now_ms / 1000) {
        *bucket = (struct bucket){.second = now_ms / 1000};
    }
    if (bucket->count >= ANSWERS_PER_S) {
        return false;
    }
    bucket->count++;
    return true;
}

/* ---- life ---- */

static struct aead *packet_aead(const struct seal *seal, const struct cluster_key *key,
                                uint64_t sender, uint32_t generation)
{
    uint8_t bytes[AEAD_KEY_BYTES];
    cluster_key_packet(key, seal->config.crypto, sender, generation, bytes);
    struct aead *aead = aead_new(seal->config.crypto, bytes);
    crypto_wipe(bytes, sizeof(bytes));
    return aead;
}

struct seal *seal_new(const struct seal_config *config)
{
    ASSERT(config->self_id != 0 && config->senders_max > 0);
    struct seal *seal = mem_new(sizeof(*seal));
    seal->config = *config;
    seal->senders.count_max = config->senders_max;
    seal->aead = packet_aead(seal, &config->keys->keys[0], config->self_id, config->generation);
    rng_secret(&seal->salt, sizeof(seal->salt));
    /* 2^20 a millisecond: a clock that goes forward never lets two starts meet. */
    seal->counter = (config->wall_ms << 20) + 1;
    return seal;
}

void seal_free(struct seal *seal)
{
    if (seal == NULL) {
        return;
    }
    aead_free(seal->aead);
    sender_table_deinit(&seal->senders);
    crypto_wipe(seal->recent, sizeof(seal->recent));
    mem_free(seal);
}

void seal_set_generation(struct seal *seal, uint32_t generation)
{
    if (seal->config.generation == generation) {
        return;
    }
    seal->config.generation = generation;
    aead_free(seal->aead);
    seal->aead = packet_aead(seal, &seal->config.keys->keys[0], seal->config.self_id, generation);
}

const struct seal_counters *seal_counters(const struct seal *seal)
{
    return &seal->counters;
}

/* ---- the header ---- */

static void header_encode(const struct header *header, uint8_t out[SEAL_HEADER_BYTES])
{
    out[0] = VERSION_SEALED;
    out[1] = (uint8_t)header->kind;
    put_be32(out + 2, header->key_id);
    put_be64(out + 6, header->receiver);
    put_be64(out + 14, header->sender);
    put_be32(out + 22, header->generation);
    put_be32(out + 26, header->salt);
    put_be64(out + 30, header->counter);
}

static void header_decode(const uint8_t in[SEAL_HEADER_BYTES], struct header *header)
{
    header->kind = (enum kind)in[1];
    header->key_id = get_be32(in + 2);
    header->receiver = get_be64(in + 6);
    header->sender = get_be64(in + 14);
    header->generation = get_be32(in + 22);
    header->salt = get_be32(in + 26);
    header->counter = get_be64(in + 30);
}

/* Nonce and authenticated bytes of a datagram; aad must outlive the frame. */
static void make_frame(const uint8_t *header, const struct cluster_key *key,
                       uint8_t aad[SEAL_HEADER_BYTES + 8], struct aead_frame *frame)
{
    memcpy(aad, header, SEAL_HEADER_BYTES);
    put_be64(aad + SEAL_HEADER_BYTES, key->cluster_id);
    *frame = (struct aead_frame){.aad = aad, .aad_len = SEAL_HEADER_BYTES + 8};
    memcpy(frame->nonce, header + 26, AEAD_NONCE_BYTES); /* salt and counter */
}

/* ---- sending ---- */

static void emit_sealed(struct seal *seal, enum kind kind, const struct addr *to, uint64_t to_id,
                        const uint8_t *plain, size_t len)
{
    const struct cluster_key *key = &seal->config.keys->keys[0];
    struct header header = {.kind = kind,
                            .key_id = key->id,
                            .receiver = to_id,
                            .sender = seal->config.self_id,
                            .generation = seal->config.generation,
                            .salt = seal->salt,
                            .counter = seal->counter++};
    uint8_t out[GOSSIP_DATAGRAM_MAX];
    ASSERT(SEAL_HEADER_BYTES + len + AEAD_TAG_BYTES <= sizeof(out));
    header_encode(&header, out);
    uint8_t aad[SEAL_HEADER_BYTES + 8];
    struct aead_frame frame;
    make_frame(out, key, aad, &frame);
    aead_seal(seal->aead, &frame, plain, len, out + SEAL_HEADER_BYTES);
    seal->config.emit(seal->config.ctx, to, out, SEAL_HEADER_BYTES + len + AEAD_TAG_BYTES);
}

void seal_send(struct seal *seal, const struct addr *to, uint64_t to_id, const uint8_t *plain,
               size_t len, uint64_t now_ms)
{
    ASSERT(len <= SEAL_PLAIN_MAX);
    struct recent *recent = &seal->recent[seal->recent_next];
    seal->recent_next = (seal->recent_next + 1) % RECENT_MAX;
    recent->to = *to;
    recent->to_id = to_id;
    recent->at_ms = now_ms;
    recent->used = true;
    recent->len = len;
    memcpy(recent->plain, plain, len);
    emit_sealed(seal, KIND_DATA, to, to_id, plain, len);
}

static void emit_proof(struct seal *seal, const struct addr *to, uint64_t to_id, uint64_t nonce,
                       const struct recent *recent)
{
    uint8_t plain[SEAL_PROOF_BYTES + SEAL_PLAIN_MAX];
    size_t len = recent != NULL ? recent->len : 0;
    put_be64(plain, nonce);
    if (len > 0) {
        memcpy(plain + SEAL_PROOF_BYTES, recent->plain, len);
    }
    emit_sealed(seal, KIND_PROOF, to, to_id, plain, SEAL_PROOF_BYTES + len);
    seal->counters.proofs++;
}

/* Prove ourselves to the node that asked, with what it dropped when it asked. */
static void answer_challenge(struct seal *seal, const struct addr *from, uint64_t from_id,
                             const uint8_t plain[CHALLENGE_BYTES], uint64_t now_ms)
{
    uint64_t nonce = get_be64(plain);
    if (get_be32(plain + 8) != seal->config.generation || get_be32(plain + 12) != seal->salt ||
        !bucket_take(&seal->answers, now_ms)) {
        return; /* for an earlier start of ours, or too many */
    }
    bool sent = false;
    for (size_t i = 0; i < RECENT_MAX; i++) {
        struct recent *recent = &seal->recent[(seal->recent_next + i) % RECENT_MAX];
        if (recent->used && now_ms - recent->at_ms <= RECENT_MS &&
            (recent->to_id == from_id || addr_compare(&recent->to, from) == 0)) {
            recent->used = false;
            sent = true;
            emit_proof(seal, from, from_id, nonce, recent);
        }
    }
    if (!sent) {
        emit_proof(seal, from, from_id, nonce, NULL);
    }
}

static void challenge(struct seal *seal, struct sender *sender, const struct header *header,
                      const struct addr *from, uint64_t now_ms)
{
    if (sender->challenge != 0 && now_ms - sender->challenged_ms < CHALLENGE_GAP_MS) {
        return; /* one question for a burst; the answer brings all of it again */
    }
    while (sender->challenge == 0) {
        sender->challenge = rng_secret_u64();
    }
    sender->challenged_ms = now_ms;
    uint8_t plain[CHALLENGE_BYTES];
    put_be64(plain, sender->challenge);
    put_be32(plain + 8, header->generation);
    put_be32(plain + 12, header->salt);
    emit_sealed(seal, KIND_CHALLENGE, from, sender->id, plain, sizeof(plain));
    seal->counters.challenges++;
}

/* Always shorter than what it answers. */
static void notice(struct seal *seal, const struct addr *to, const uint8_t *header, uint64_t now_ms)
{
    if (!bucket_take(&seal->notices, now_ms)) {
        return;
    }
    uint8_t out[SEAL_NOTICE_BYTES];
    out[0] = VERSION_NOTICE;
    put_be32(out + 1, seal->config.keys->keys[0].id);
    memcpy(out + 5, header + 2, 4);   /* key id that was used */
    memcpy(out + 9, header + 26, 12); /* salt and counter: who did not see the datagram cannot */
    seal->config.emit(seal->config.ctx, to, out, sizeof(out));
    seal->counters.notices++;
}

/* ---- opening ---- */

static enum seal_result open_notice(const struct seal *seal, const uint8_t *bytes, size_t len,
                                    struct seal_opened *ret)
{
    if (len != SEAL_NOTICE_BYTES ||
        cluster_key_find(seal->config.keys, get_be32(bytes + 5)) == NULL ||
        get_be32(bytes + 9) != seal->salt) {
        return SEAL_MALFORMED;
    }
    uint64_t echo = get_be64(bytes + 13);
    if (echo >= seal->counter || seal->counter - echo > ECHO_RANGE) {
        return SEAL_MALFORMED;
    }
    ret->key_id = get_be32(bytes + 1);
    return SEAL_NOTICE;
}

/* Decrypt in place. The sender's entry, made now if its seal is good for the first time; NULL: it
 * is not. */
static struct sender *authenticate(struct seal *seal, const struct header *header, uint8_t *bytes,
                                   size_t len, uint64_t now_ms)
{
    const struct cluster_key *key = cluster_key_find(seal->config.keys, header->key_id);
    struct sender *sender = sender_find(&seal->senders, header->sender);
    bool cached = sender != NULL && sender->aead != NULL && sender->aead_key == key &&
                  sender->aead_generation == header->generation;
    struct aead *aead =
        cached ? sender->aead : packet_aead(seal, key, header->sender, header->generation);
    uint8_t aad[SEAL_HEADER_BYTES + 8];
    struct aead_frame frame;
    make_frame(bytes, key, aad, &frame);
    uint8_t *body = bytes + SEAL_HEADER_BYTES;
    if (aead_open(aead, &frame, body, len - SEAL_HEADER_BYTES, body) != RC_OK) {
        if (!cached) {
            aead_free(aead);
        }
        return NULL;
    }
    if (sender == NULL) {
        sender = sender_add(&seal->senders, header->sender, now_ms);
    }
    if (!cached) {
        aead_free(sender->aead);
        sender->aead = aead;
        sender->aead_key = key;
        sender->aead_generation = header->generation;
    }
    return sender;
}

/* A good seal: is it new? */
static enum seal_result judge(struct sender *sender, const struct header *header,
                              const uint8_t *plain, size_t len)
{
    if (sender_is_current(sender, header->generation, header->salt)) {
        return replay_accept(&sender->replay, header->counter) ? SEAL_OK : SEAL_REPLAY;
    }
    if (header->kind != KIND_PROOF || len < SEAL_PROOF_BYTES || sender->challenge == 0 ||
        get_be64(plain) != sender->challenge) {
        return SEAL_UNPROVEN;
    }
    sender->challenge = 0;
    sender->proven = true;
    sender->generation = header->generation;
    sender->salt = header->salt;
    replay_begin(&sender->replay, header->counter);
    return SEAL_OK;
}

static enum seal_result open_sealed(struct seal *seal, const struct addr *from, uint8_t *bytes,
                                    size_t len, uint64_t now_ms, struct seal_opened *ret)
{
    struct header header;
    header_decode(bytes, &header);
    ret->from_id = header.sender;
    ret->key_id = header.key_id;
    if (bytes[1] >= KIND_COUNT || header.sender == 0) {
        return SEAL_MALFORMED;
    }
    if (cluster_key_find(seal->config.keys, header.key_id) == NULL) {
        notice(seal, from, bytes, now_ms);
        return SEAL_UNKNOWN_KEY;
    }
    if (header.receiver != seal->config.self_id && header.receiver != 0) {
        return SEAL_MISADDRESSED;
    }
    if (header.sender == seal->config.self_id) {
        return SEAL_SELF;
    }
    struct sender *sender = authenticate(seal, &header, bytes, len, now_ms);
    if (sender == NULL) {
        return SEAL_BROKEN;
    }
    const uint8_t *plain = bytes + SEAL_HEADER_BYTES;
    size_t plain_len = len - SEAL_HEADER_BYTES - AEAD_TAG_BYTES;
    if (header.kind == KIND_CHALLENGE) {
        if (plain_len != CHALLENGE_BYTES || header.receiver == 0) {
            return SEAL_MALFORMED;
        }
        answer_challenge(seal, from, header.sender, plain, now_ms);
        return SEAL_CONTROL;
    }
    enum seal_result result = judge(sender, &header, plain, plain_len);
    if (result == SEAL_UNPROVEN) {
        challenge(seal, sender, &header, from, now_ms);
    }
    if (result != SEAL_OK) {
        return result;
    }
    sender->heard_ms = now_ms;
    size_t skip = header.kind == KIND_PROOF ? MIN((size_t)SEAL_PROOF_BYTES, plain_len) : 0;
    ret->plain = plain + skip;
    ret->len = plain_len - skip;
    return ret->len > 0 ? SEAL_OK : SEAL_CONTROL;
}

enum seal_result seal_open(struct seal *seal, const struct addr *from, uint8_t *bytes, size_t len,
                           uint64_t now_ms, struct seal_opened *ret)
{
    *ret = (struct seal_opened){0};
    if (len == 0) {
        return SEAL_MALFORMED;
    }
    if (bytes[0] == VERSION_NOTICE) {
        return open_notice(seal, bytes, len, ret);
    }
    if (bytes[0] != VERSION_SEALED) {
        /* The versions to come count on from the first; anything else is noise. */
        return bytes[0] > VERSION_NOTICE && bytes[0] <= 0xaf ? SEAL_VERSION : SEAL_MALFORMED;
    }
    if (len < SEAL_HEADER_BYTES + AEAD_TAG_BYTES || len > GOSSIP_DATAGRAM_MAX) {
        return SEAL_MALFORMED;
    }
    return open_sealed(seal, from, bytes, len, now_ms, ret);
}
