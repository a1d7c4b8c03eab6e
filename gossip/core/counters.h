/*
 * The core's counters: one line each feeds the enum, the table and its names. Private to
 * gossip/core and its tests; names are shown by /metrics and stay.
 */
#ifndef SKEIN_GOSSIP_CORE_COUNTERS_H
#define SKEIN_GOSSIP_CORE_COUNTERS_H

#define CORE_COUNTERS(X)                                                                           \
    X(datagrams_sent)                                                                              \
    X(datagrams_received)                                                                          \
    X(datagrams_refused)                                                                           \
    X(probes_sent)                                                                                 \
    X(probes_failed)                                                                               \
    X(probes_relayed)                                                                              \
    X(probes_by_stream)                                                                            \
    X(suspicions)                                                                                  \
    X(deaths)                                                                                      \
    X(refutations)                                                                                 \
    X(rumours_sent)                                                                                \
    X(rumours_received)                                                                            \
    X(rumours_dropped)                                                                             \
    X(rumours_resent)                                                                              \
    X(rows_received)                                                                               \
    X(rows_applied)                                                                                \
    X(rows_refused)                                                                                \
    X(syncs_started)                                                                               \
    X(syncs_accepted)                                                                              \
    X(syncs_refused)                                                                               \
    X(syncs_completed)                                                                             \
    X(syncs_cut)                                                                                   \
    X(chunks_sent)                                                                                 \
    X(audits_started)                                                                              \
    X(audit_repairs)                                                                               \
    X(writes_accepted)                                                                             \
    X(writes_refused)                                                                              \
    X(writes_failed)                                                                               \
    X(batches_failed)                                                                              \
    X(generations_begun)

enum core_counter {
#define X(name) COUNT_##name,
    CORE_COUNTERS(X)
#undef X
        COUNTERS_COUNT,
};

#endif
