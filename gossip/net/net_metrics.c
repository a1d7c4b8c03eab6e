/*
 * Counters of core and driver as Prometheus text.
 */
#include "gossip/net/net_impl.h"

#include <inttypes.h>
#include <stdio.h>

static void put_help(struct buf *out, const char *name, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    put_help(out, name, "counter", help);
    (void)buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void put_core(const struct gossip_net *net, struct buf *out)
{
    const struct gossip_counter *counters = NULL;
    size_t count = gossip_counters(net->core, &counters);
    for (size_t i = 0; i < count; i++) {
        char name[128];
        char help[128];
        (void)snprintf(name, sizeof(name), "skein_gossip_%s_total", counters[i].name);
        (void)snprintf(help, sizeof(help), "Counted by the core as %s.", counters[i].name);
        put_counter(out, name, help, counters[i].value);
    }
}

static void put_dropped(const struct gossip_net *net, struct buf *out)
{
    static const char name[] = "skein_gossip_datagrams_dropped_total";
    const struct net_counters *counters = &net->counters;
    put_help(out, name, "counter", "Incoming datagrams that did not reach the core.");
    for (int i = SEAL_OK + 1; i < SEAL_RESULT_COUNT; i++) {
        if (i != SEAL_CONTROL) {
            (void)buf_printf(out, "%s{reason=\"%s\"} %" PRIu64 "\n", name,
                             seal_result_name((enum seal_result)i), counters->dropped[i]);
        }
    }
    (void)buf_printf(out, "%s{reason=\"undecodable\"} %" PRIu64 "\n", name, counters->malformed);
    (void)buf_printf(out, "%s{reason=\"test\"} %" PRIu64 "\n", name, counters->dropped_for_test);
    uint64_t too_big = net->dgram != NULL ? dgram_counters(net->dgram)->received_too_big : 0;
    (void)buf_printf(out, "%s{reason=\"too_big\"} %" PRIu64 "\n", name, too_big);
}

static void put_streams(const struct gossip_net *net, struct buf *out)
{
    static const char *const directions[2] = {"out", "in"};
    static const char opened[] = "skein_gossip_streams_total";
    static const char ended[] = "skein_gossip_streams_ended_total";
    const struct net_counters *counters = &net->counters;
    put_help(out, opened, "counter", "Peer streams begun.");
    (void)buf_printf(out, "%s{direction=\"out\"} %" PRIu64 "\n", opened, counters->channels_out);
    (void)buf_printf(out, "%s{direction=\"in\"} %" PRIu64 "\n", opened, counters->channels_in);
    put_help(out, ended, "counter", "Peer streams that ended other than by this node's will.");
    for (int dir = 0; dir < 2; dir++) {
        for (int i = CHANNEL_CLOSED + 1; i < CHANNEL_END_COUNT; i++) {
            (void)buf_printf(out, "%s{direction=\"%s\",reason=\"%s\"} %" PRIu64 "\n", ended,
                             directions[dir], channel_end_name((enum channel_end)i),
                             counters->ends[dir][i]);
        }
    }
    put_counter(out, "skein_gossip_streams_refused_total", "Peer streams refused at the limit.",
                counters->channels_in_refused);
    put_help(out, "skein_gossip_streams", "gauge", "Peer streams now open or ending.");
    (void)buf_printf(out, "skein_gossip_streams %u\n", (unsigned)HASH_COUNT(net->links));
}

void gossip_net_metrics(const struct gossip_net *net, struct buf *out)
{
    put_core(net, out);
    put_dropped(net, out);
    put_streams(net, out);
    const struct seal_counters *seal = seal_counters(net->seal);
    put_counter(out, "skein_gossip_challenges_sent_total",
                "New starts of peers that were asked to prove themselves.", seal->challenges);
    put_counter(out, "skein_gossip_proofs_sent_total", "Answers to such challenges.", seal->proofs);
    put_counter(out, "skein_gossip_notices_sent_total",
                "Peers told that their cluster key is another.", seal->notices);
    put_counter(out, "skein_gossip_unencodable_total", "Messages that did not fit their bound.",
                net->counters.unencodable);
    if (net->dgram != NULL) {
        put_counter(out, "skein_gossip_send_failures_total",
                    "Datagrams that the system did not take.",
                    dgram_counters(net->dgram)->send_dropped);
    }
}
