/*
 * Streams: who is at the other end, what for, and for how long silence is borne.
 *
 * A stream is a fallback probe or a session (sync.c, audit.c). The opener's first part says which.
 * Every stream has a deadline that each message moves; the number of inbound ones is capped.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"
#include "node/base/mem.h"

struct stream *stream_find(const struct gossip *core, uint64_t no)
{
    struct stream *stream = NULL;
    HASH_FIND(hh, core->streams, &no, sizeof(no), stream);
    return stream;
}

static struct stream *stream_add(struct gossip *core, uint64_t no, uint64_t peer, bool inbound)
{
    struct stream *stream = mem_new(sizeof(*stream));
    stream->no = no;
    stream->peer = peer;
    stream->inbound = inbound;
    stream->deadline_ms = core->now.mono_ms + STREAM_WAIT_MS;
    HASH_ADD(hh, core->streams, no, sizeof(stream->no), stream);
    core->streams_in += inbound ? 1 : 0;
    core_wake(core, stream->deadline_ms);
    return stream;
}

struct stream *stream_start(struct gossip *core, struct member *peer, enum stream_use use,
                            uint64_t deadline_ms)
{
    if (HASH_COUNT(core->streams) >= 2 * STREAMS_MAX) {
        return NULL;
    }
    core->last_stream += 2;
    struct stream *stream = stream_add(core, core->last_stream - 1, peer->pub.id, false);
    stream->use = use;
    stream->deadline_ms = deadline_ms;
    core_wake(core, deadline_ms);
    core->ops->stream_open(core->ctx, stream->no, &peer->pub.addr, peer->pub.id);
    return stream;
}

void stream_end(struct gossip *core, struct stream *stream, bool tell)
{
    if (stream->use == STREAM_SYNC || stream->use == STREAM_AUDIT) {
        sync_cut(core, stream);
    }
    if (core->probe.stream == stream->no) {
        core->probe.stream = 0;
    }
    core->streams_in -= stream->inbound ? 1 : 0;
    HASH_DEL(core->streams, stream);
    if (tell) {
        core->ops->stream_close(core->ctx, stream->no);
    }
    MEM_FREE(stream->ranges);
    MEM_FREE(stream->entries);
    mem_free(stream);
}

void stream_deinit(struct gossip *core)
{
    struct stream *stream = NULL;
    struct stream *next = NULL;
    HASH_ITER (hh, core->streams, stream, next) {
        HASH_DEL(core->streams, stream);
        MEM_FREE(stream->ranges);
        MEM_FREE(stream->entries);
        mem_free(stream);
    }
}

/* The first message of either side, and the last one of a session, say who we are and what we hold.
 */
void stream_parts(struct gossip *core, struct stream *stream, const struct gossip_part *parts,
                  size_t count)
{
    struct gossip_fact sender;
    struct gossip_summary summary;
    struct gossip_msg msg = {.parts = parts, .part_count = count};
    if (!stream->open_sent || parts[count - 1].kind == PART_END) {
        fact_from_member(core->self, &sender);
        summary_make(core, member_find(core, stream->peer), &summary);
        msg.sender = &sender;
        msg.summary = &summary;
        stream->open_sent = true;
    }
    core->ops->stream_send(core->ctx, stream->no, &msg);
}

void stream_tick(struct gossip *core)
{
    struct stream *stream = NULL;
    struct stream *next = NULL;
    HASH_ITER (hh, core->streams, stream, next) {
        if (core->now.mono_ms >= stream->deadline_ms) {
            stream_end(core, stream, true);
        } else {
            core_wake(core, stream->deadline_ms);
        }
    }
}

/* ---- events ---- */

void gossip_stream_opened(struct gossip *core, uint64_t no, uint64_t peer_id, bool inbound,
                          struct gossip_now now)
{
    core->now = now;
    clock_event(core);
    struct stream *stream = stream_find(core, no);
    if (inbound) {
        ASSERT(stream == NULL && no % 2 == 0);
        if (core->streams_in >= STREAMS_MAX || peer_id == core->self->pub.id) {
            core->ops->stream_close(core->ctx, no);
        } else {
            (void)stream_add(core, no, peer_id, true); /* known by its number from now on */
        }
    } else if (stream != NULL) {
        if (stream->peer != peer_id) {
            stream_end(core, stream, true); /* another identity answers at that address */
        } else if (stream->use == STREAM_PROBE) {
            probe_stream_opened(core, stream);
        } else {
            sync_opened(core, stream);
        }
    }
    core_finish(core);
}

static void on_part(struct gossip *core, struct stream *stream, struct member *from,
                    const struct gossip_part *part)
{
    switch (part->kind) {
    case PART_PROBE:
        if (stream->inbound && part->id == core->self->pub.id) {
            stream->use = stream->use == STREAM_UNKNOWN ? STREAM_PROBE : stream->use;
            struct gossip_part reply = {.kind = PART_REPLY, .nonce = part->nonce};
            stream_parts(core, stream, &reply, 1);
        }
        break;
    case PART_REPLY:
        probe_stream_replied(core, stream, part->nonce);
        break;
    case PART_FACT:
        member_hear(core, part->fact, HEARD_STREAM, from, NULL);
        break;
    case PART_SYNC_OPEN:
    case PART_ROWS:
    case PART_MARK:
    case PART_CREDIT:
    case PART_END:
    case PART_DONE:
    case PART_AUDIT:
    case PART_BUCKETS:
        sync_part(core, stream, part);
        break;
    case PART_UNSET:
    case PART_RELAY:
    case PART_MISS:
    case PART_JOIN:
    case PART_GRANT:
    case PART_CHANGE_SET:
    case PART_KIND_COUNT:
        break; /* not on streams */
    }
}

void gossip_stream_msg(struct gossip *core, uint64_t no, const struct gossip_msg *msg,
                       struct gossip_now now)
{
    core->now = now;
    clock_event(core);
    struct stream *stream = stream_find(core, no);
    if (stream == NULL) {
        return; /* closed by us, and this was on its way */
    }
    uint64_t peer = stream->peer;
    stream->deadline_ms = core->now.mono_ms + STREAM_WAIT_MS;
    bool honest = msg->sender == NULL || msg->sender->id == peer;
    if (honest && msg->sender != NULL) {
        member_hear(core, msg->sender, HEARD_DIRECT, NULL, NULL);
    }
    if (!honest || member_find(core, peer) == NULL) {
        stream_end(core, stream, true);
    } else {
        if (msg->summary != NULL) {
            core_summary(core, member_find(core, peer), msg->summary);
        }
        /* A part may end the stream or (forget) the member: both are found anew each time. */
        for (size_t i = 0; i < msg->part_count; i++) {
            stream = stream_find(core, no);
            struct member *from = member_find(core, peer);
            if (stream == NULL || from == NULL) {
                break;
            }
            on_part(core, stream, from, &msg->parts[i]);
        }
    }
    core_finish(core);
}

void gossip_stream_closed(struct gossip *core, uint64_t no, struct gossip_now now)
{
    core->now = now;
    clock_event(core);
    struct stream *stream = stream_find(core, no);
    if (stream != NULL) {
        stream_end(core, stream, false);
        core_finish(core);
    }
}
