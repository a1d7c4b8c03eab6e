/*
 * Suspicion timers.
 *
 * A suspicion starts long and shrinks with every independent accuser: one slow node cannot have
 * another declared dead quickly, several can. Source: Lifeguard (arXiv 1707.00788) IV-B,
 * clustering notes 1.1.
 */
#include "gossip/core/core.h"

#include <math.h>

/* Confirmations after which the timer is at its minimum. */
static uint32_t confirmations_wanted(const struct gossip_settings *settings, size_t up)
{
    uint32_t wanted = settings->suspicion_mult > 2 ? settings->suspicion_mult - 2 : 0;
    wanted = MIN(wanted, (uint32_t)CONFIRM_MAX - 1);
    /* In a tiny cluster there is nobody who could confirm. */
    return up < 2 + (size_t)wanted ? 0 : wanted;
}

uint32_t suspect_timeout_ms(const struct gossip_settings *settings, size_t up, uint32_t confirmed)
{
    double scale = up > 10 ? log10((double)up) : 1.0;
    double min = settings->suspicion_mult * scale * settings->probe_interval_ms;
    uint32_t wanted = confirmations_wanted(settings, up);
    if (wanted == 0) {
        return (uint32_t)min;
    }
    double max = min * settings->suspicion_max_mult;
    double part = log(confirmed + 1.0) / log(wanted + 1.0);
    return (uint32_t)fmax(min, max - (max - min) * part);
}

static void set_deadline(struct gossip *core, struct member *member)
{
    /* The first accuser is the suspicion itself, not a confirmation. */
    uint32_t confirmed = member->accuser_count > 0 ? member->accuser_count - 1 : 0;
    member->suspect_deadline_ms =
        member->suspect_since_ms +
        suspect_timeout_ms(&core->settings, member_up_count(core), confirmed);
    core_wake(core, member->suspect_deadline_ms);
}

void suspect_begin(struct gossip *core, struct member *member, uint64_t accuser)
{
    core_count(core, COUNT_suspicions);
    member_set_state(core, member, MEMBER_SUSPECT,
                     accuser == core->self->pub.id ? "it does not answer" : "told by a peer");
    member->accuser = accuser;
    member->suspect_since_ms = core->now.mono_ms;
    member->accusers[0] = accuser;
    member->accuser_count = 1;
    set_deadline(core, member);
}

bool suspect_confirm(struct gossip *core, struct member *member, uint64_t accuser)
{
    for (uint32_t i = 0; i < member->accuser_count; i++) {
        if (member->accusers[i] == accuser) {
            return false;
        }
    }
    if (member->accuser_count > confirmations_wanted(&core->settings, member_up_count(core)) ||
        member->accuser_count >= CONFIRM_MAX) {
        return false;
    }
    member->accusers[member->accuser_count++] = accuser;
    member->accuser = accuser; /* what we pass on: others should hear of this accuser too */
    set_deadline(core, member);
    return true;
}
