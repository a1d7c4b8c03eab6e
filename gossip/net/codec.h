/*
 * Core messages to bytes and back (proto/gossip.proto).
 *
 * Decoding trusts nothing: every count, length and enum is checked, memory comes from a scratch
 * with a cap that grows with the input, never with what the input claims. Unknown fields and parts
 * of a kind that this version does not know are skipped, so that newer nodes can say more. Thread:
 * a scratch belongs to one thread; otherwise pure.
 */
#ifndef SKEIN_GOSSIP_NET_CODEC_H
#define SKEIN_GOSSIP_NET_CODEC_H

#include "gossip/core/message.h"
#include "node/base/buf.h"

/* Memory of one decoded message; reused by the next one. */
struct codec_scratch {
    struct codec_block *blocks; /* private */
    size_t used_bytes;          /* of all blocks */
    size_t cap_bytes;           /* for the message at hand */
};

void codec_scratch_init(struct codec_scratch *scratch);
void codec_scratch_deinit(struct codec_scratch *scratch);

/*
 * Append the encoded form to out. 0, or RC_FULL: it does not fit out's cap (out is unchanged, its
 * `full` set). msg is borrowed. Messages that the core makes always fit their limits.
 */
MUST_CHECK int codec_encode(const struct gossip_msg *msg, struct buf *out);

/*
 * Decode len bytes (a datagram, or one stream message up to GOSSIP_STREAM_MSG_MAX).
 *
 * *ret_msg points into scratch and is valid until the next decode with it, or its deinit; `bytes`
 * may be reused at once. RC_PEER: malformed or above a limit; *ret_msg is untouched.
 */
MUST_CHECK int codec_decode(const uint8_t *bytes, size_t len, struct codec_scratch *scratch,
                            struct gossip_msg *ret_msg);

#endif
