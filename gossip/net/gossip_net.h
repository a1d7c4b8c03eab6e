/*
 * The gossip core on a real network: sealed UDP datagrams, TLS 1.3 streams, one timer.
 *
 * Life: gossip_net_new, load what the disk holds through gossip_net_core, gossip_net_start, ...,
 * (gossip_leave on the core, some seconds), gossip_net_stop, its callback, gossip_net_free.
 *
 * The driver fills send, stream_* and schedule of the core's ops; persist, written, applied and
 * event are the caller's, called with the caller's ctx under the core's rules (no call back into
 * the core but for reading). The caller answers persist with gossip_persisted on gossip_net_core,
 * and may call every other function of the core from the loop's thread.
 *
 * Thread: the loop's, always. Nothing blocks.
 */
#ifndef SKEIN_GOSSIP_NET_GOSSIP_NET_H
#define SKEIN_GOSSIP_NET_GOSSIP_NET_H

#include "gossip/core/gossip.h"
#include "node/base/buf.h"
#include "node/tls/key_file.h"

#include <uv.h>

struct gossip_net;

struct gossip_net_config {
    struct addr bind;            /* UDP and TCP; the port must not be 0 */
    struct gossip_self self;     /* self.addr is what others are told (advertise) */
    const struct key_ring *keys; /* copied; the first seals, all open */
    struct gossip_settings settings;
    const struct addr *join; /* copied */
    size_t join_count;
    uint64_t seed; /* of the core's random choices */
};

/* Both clocks, taken together, as the core wants them. */
struct gossip_now gossip_net_now(void);

/*
 * Make the core and its driver; no socket yet. app_ops and app_ctx are borrowed until
 * gossip_net_free; only persist, written, applied and event of it are read.
 *
 * RC_INVALID      an address that others cannot reach (any address, port 0); err says which
 * RC_UNSUPPORTED  the installed OpenSSL lacks something
 */
MUST_CHECK int gossip_net_new(uv_loop_t *loop, const struct gossip_net_config *config,
                              const struct gossip_ops *app_ops, void *app_ctx,
                              struct gossip_net **ret_net, struct err_info *err);

/* Valid until gossip_net_free. */
struct gossip *gossip_net_core(struct gossip_net *net);

/* Bind UDP and TCP and start the core. RC_BUSY: port in use, RC_IO: refused otherwise; err names
 * the address, and the only legal call is gossip_net_free. */
MUST_CHECK int gossip_net_start(struct gossip_net *net, struct err_info *err);

/* Close sockets and streams; no op is called from here on. closed(arg) comes from the loop when
 * nothing is left on it. Only after a start that succeeded. */
void gossip_net_stop(struct gossip_net *net, void (*closed)(void *arg), void *arg);

/* After closed, or when it never started. Frees the core too. NULL is accepted. */
void gossip_net_free(struct gossip_net *net);

/* Identifier of the key in use, 8 hex digits: equal on all nodes of a cluster, safe to show. */
const char *gossip_net_key_id(const struct gossip_net *net);

/* Prometheus text of the core's and the driver's counters, appended. */
void gossip_net_metrics(const struct gossip_net *net, struct buf *out);

#endif
