/* unit: gossip_net */
/*
 * Datagrams as a stranger, or a member gone wrong, may send them.
 *
 * The first byte chooses. Odd: the rest goes to seal_open as it is. Even: the rest is sealed as a
 * member would, so that what comes out reaches the decoder; mutations of the sealed form follow
 * from the first byte's other bits. Nothing may crash, and what was not sealed may not open.
 */
#include "gossip/net/codec.h"
#include "gossip/net/seal.h"
#include "node/base/check.h"

#include <string.h>

struct wire {
    size_t count;
    size_t len;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};

static void keep_last(void *ctx, const struct addr *to, const uint8_t *bytes, size_t len)
{
    (void)to;
    struct wire *wire = ctx;
    ASSERT(len <= sizeof(wire->bytes));
    wire->count++;
    wire->len = len;
    memcpy(wire->bytes, bytes, len);
}

struct node {
    struct seal *seal;
    struct wire out;
};

static struct addr home;
static struct crypto *crypto;
static struct cluster_keys keys;
static struct codec_scratch scratch;

static void set_up(void)
{
    if (crypto != NULL) {
        return;
    }
    ASSERT(addr_parse("10.0.0.1:7946", &home, NULL) == RC_OK);
    ASSERT(crypto_new(&crypto, NULL) == RC_OK);
    struct key_ring ring = {.count = 1};
    memset(ring.keys[0], 7, sizeof(ring.keys[0]));
    cluster_keys_init(&keys, crypto, &ring);
    codec_scratch_init(&scratch);
}

static void start(struct node *node, uint64_t id)
{
    struct seal_config config = {.crypto = crypto,
                                 .keys = &keys,
                                 .self_id = id,
                                 .generation = 1,
                                 .wall_ms = 1,
                                 .senders_max = 4,
                                 .emit = keep_last,
                                 .ctx = &node->out};
    node->seal = seal_new(&config);
}

/* Carry the last datagram of `from` to `to`. */
static enum seal_result carry(struct node *from, struct node *to, struct seal_opened *ret)
{
    static uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    memcpy(bytes, from->out.bytes, from->out.len);
    enum seal_result result = seal_open(to->seal, &home, bytes, from->out.len, 1000, ret);
    if (result == SEAL_OK) {
        struct gossip_msg msg;
        int rc = codec_decode(ret->plain, ret->len, &scratch, &msg);
        (void)rc; /* malformed is fine */
    }
    return result;
}

/* As a member: first contact, challenge, proof; what comes out is what went in. */
static void sealed(struct node *a, struct node *b, const uint8_t *data, size_t len)
{
    struct seal_opened opened;
    seal_send(a->seal, &home, 2, data, len, 1000);
    ASSERT(carry(a, b, &opened) == SEAL_UNPROVEN);
    ASSERT(carry(b, a, &opened) == SEAL_CONTROL);
    enum seal_result result = carry(a, b, &opened);
    ASSERT(result == (len > 0 ? SEAL_OK : SEAL_CONTROL));
    ASSERT(len == 0 || (opened.len == len && opened.from_id == 1));
    ASSERT(carry(a, b, &opened) == SEAL_REPLAY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    set_up();
    if (size == 0 || size > GOSSIP_DATAGRAM_MAX) {
        return 0;
    }
    uint8_t mode = data[0];
    data++;
    size--;
    struct node a = {0};
    struct node b = {0};
    start(&a, 1);
    start(&b, 2);
    struct seal_opened opened;
    if (mode % 2 == 1) {
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
        memcpy(bytes, data, size);
        enum seal_result result = seal_open(b.seal, &home, bytes, size, 1000, &opened);
        ASSERT(result != SEAL_OK && result != SEAL_CONTROL);
        ASSERT(b.out.count == 0 || b.out.len < size); /* an answer is shorter than the question */
    } else if (size <= SEAL_PLAIN_MAX) {
        sealed(&a, &b, data, size);
        seal_send(a.seal, &home, mode & 2 ? 2 : 0, data, size, 1000);
        if (mode & 4 && size >= 2) { /* change one byte of the sealed form */
            size_t at = (size_t)(data[0] << 8 | data[1]) % a.out.len;
            a.out.bytes[at] ^= (uint8_t)(mode | 1);
            enum seal_result result = carry(&a, &b, &opened);
            ASSERT(result != SEAL_OK && result != SEAL_CONTROL);
        } else {
            enum seal_result result = carry(&a, &b, &opened);
            ASSERT(result == (size > 0 ? SEAL_OK : SEAL_CONTROL));
        }
    }
    seal_free(a.seal);
    seal_free(b.seal);
    return 0;
}
