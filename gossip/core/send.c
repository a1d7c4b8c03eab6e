/*
 * Datagrams: who we are, a summary of what we hold, and as many parts as fit.
 *
 * Every datagram carries the same head, so that any contact at all keeps both sides informed of
 * liveness, readiness, clocks and what the other lacks.
 */
#include "gossip/core/core.h"
#include "node/base/check.h"

#include <string.h>

void fact_from_member(const struct member *member, struct gossip_fact *ret_fact)
{
    const struct gossip_member *pub = &member->pub;
    *ret_fact = (struct gossip_fact){
        .id = pub->id,
        .generation = pub->generation,
        .incarnation = pub->incarnation,
        .state = pub->state,
        .accuser = pub->state == MEMBER_ALIVE || pub->state == MEMBER_LEFT ? 0 : member->accuser,
        .addr = pub->addr,
    };
    memcpy(ret_fact->name, pub->name, sizeof(ret_fact->name));
    memcpy(ret_fact->version, pub->version, sizeof(ret_fact->version));
}

void summary_make(struct gossip *core, const struct member *to, struct gossip_summary *ret_summary)
{
    *ret_summary = (struct gossip_summary){
        .frontier_hash = core->kv.frontier_hash,
        .audit_root = core->kv.audit_root,
        .member_hash = member_table_hash(core),
        .row_count = core->kv.live_rows,
        .revision = core->kv.revision,
        .wall_ms = core->now.wall_ms,
        .health = (uint8_t)core->health,
        .ready = core->self->pub.ready,
    };
    if (to != NULL) {
        struct origin origin = {to->pub.id, to->pub.generation};
        const struct kv_origin *held = kv_find_origin(&core->kv, origin);
        uint64_t largest = held != NULL ? seqmap_max(&held->writes) : 0;
        ret_summary->acked_generation = origin.generation;
        ret_summary->acked_seq = held != NULL ? held->frontier : 0;
        ret_summary->known_seq = largest > ret_summary->acked_seq ? largest : 0;
    }
}

void bundle_init(struct gossip *core, struct bundle *bundle)
{
    static const struct gossip_summary summary = {0};
    bundle->part_count = 0;
    bundle->fact_count = 0;
    bundle->pull = false;
    fact_from_member(core->self, &bundle->sender);
    bundle->size = msg_size(&(struct gossip_msg){.sender = &bundle->sender, .summary = &summary});
}

bool bundle_add(struct bundle *bundle, const struct gossip_part *part)
{
    size_t size = msg_part_size(part);
    if (bundle->part_count == BUNDLE_PARTS_MAX || bundle->size + size > DATAGRAM_ROOM) {
        return false;
    }
    bundle->parts[bundle->part_count++] = *part;
    bundle->size += size;
    return true;
}

bool bundle_add_fact(struct bundle *bundle, const struct gossip_fact *fact)
{
    struct gossip_fact *copy = &bundle->facts[bundle->fact_count];
    *copy = *fact;
    if (!bundle_add(bundle, &(struct gossip_part){.kind = PART_FACT, .fact = copy})) {
        return false;
    }
    bundle->fact_count++;
    return true;
}

void bundle_send(struct gossip *core, struct bundle *bundle, const struct addr *addr,
                 const struct member *to)
{
    struct gossip_summary summary;
    summary_make(core, to, &summary);
    summary.pull = bundle->pull;
    struct gossip_msg msg = {
        .sender = &bundle->sender,
        .summary = &summary,
        .parts = bundle->parts,
        .part_count = bundle->part_count,
    };
    ASSERT(msg_size(&msg) <= DATAGRAM_ROOM);
    core_count(core, COUNT_datagrams_sent);
    core->ops->send(core->ctx, addr, to != NULL ? to->pub.id : 0, &msg);
}

void send_part(struct gossip *core, const struct member *to, const struct addr *addr,
               const struct gossip_part *part)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    if (part != NULL) {
        bool fits = bundle_add(&bundle, part);
        ASSERT(fits);
    }
    bundle_send(core, &bundle, addr != NULL ? addr : &to->pub.addr, to);
}

void send_summary(struct gossip *core, const struct member *to, bool pull)
{
    struct bundle bundle;
    bundle_init(core, &bundle);
    bundle.pull = pull;
    bundle_send(core, &bundle, &to->pub.addr, to);
}
