/*
 * The beginning of TCP connections: access lists, limits, the choice of a backend; see tcp.h.
 */
#include "node/proxy/access_log.h"
#include "node/proxy/affinity.h"
#include "node/proxy/policy.h"
#include "node/proxy/proxy_int.h"
#include "node/proxy/tcp.h"

/* One more at once; false: there is no place for it. */
static bool take_place(struct tcp *tcp, size_t idx, struct limiter *limiter,
                       const struct limit *limit, uint64_t key)
{
    tcp->places[idx] = limiter_enter(limiter, limit, key);
    return tcp->places[idx] != NULL;
}

/* The rule's rate, and how many it has at once. */
static bool within_limits(struct tcp *tcp, const struct policy *policy)
{
    struct limiter *limiter = policy->limiter;
    if (policy->rate != NULL) {
        const struct limit *limit = &policy->rate->limit;
        uint64_t key = policy->rate->key == PROXY_RATE_CLIENT
                           ? limiter_key_addr(limiter, limit, &tcp->peer)
                           : limiter_key_all(limiter, limit);
        uint64_t wait_ns;
        if (limit->interval_ns != 0 && !limiter_take(limiter, limit, key, uv_hrtime(), &wait_ns)) {
            return false;
        }
        if (limit->at_once != 0 && !take_place(tcp, TCP_PLACE_KEY, limiter, limit, key)) {
            return false;
        }
    }
    const struct limit *all = &policy->at_once;
    return all->at_once == 0 ||
           take_place(tcp, TCP_PLACE_ROUTE, limiter, all, limiter_key_all(limiter, all));
}

/* Do access lists and limits let it in? */
static bool tcp_admit(struct tcp *tcp, const struct policy *policy, const struct policy_base *base)
{
    struct stats *stats = &tcp->worker->stats;
    if (policy != NULL && !policy_allows(policy, &tcp->peer)) {
        stat_add(stats, STAT_TCP_DENIED, 1);
        tcp->failure = REASON_DENIED;
        return false;
    }
    if (!policy_client_place(base, &tcp->peer, &tcp->places[TCP_PLACE_CLIENT])) {
        stat_add(stats, STAT_CLIENT_LIMITED, 1);
        tcp->failure = REASON_TOO_MANY;
        return false;
    }
    if (policy != NULL && !within_limits(tcp, policy)) {
        stat_add(stats, STAT_TCP_LIMITED, 1);
        tcp->failure = REASON_RATE_LIMITED;
        return false;
    }
    return true;
}

/* One by weight; if that has nobody to ask, another one that has. NULL: the rule has none. */
static struct backend *draw_backend(const struct rule *rule, struct rng *rng)
{
    struct backend *backend = rule_draw(rule, rng);
    for (uint32_t i = 0; backend != NULL && backend_endpoints(backend)->usable_count == 0; i++) {
        if (i == rule->target_count) {
            return backend; /* they are all alike */
        }
        bool weighs = rule->targets[i].weight_end != (i == 0 ? 0 : rule->targets[i - 1].weight_end);
        backend = weighs ? rule->targets[i].backend : backend;
    }
    return backend;
}

static uint32_t or_default(uint32_t own, uint32_t standard)
{
    return own != 0 ? own : standard;
}

static void take_timeouts(struct tcp *tcp, const struct proxy_timeouts *own,
                          const struct proxy_timeouts *standard)
{
    tcp->timeouts = (struct proxy_timeouts){
        .connect_ms = or_default(own->connect_ms, standard->connect_ms),
        .tunnel_ms = or_default(own->tunnel_ms, standard->tunnel_ms),
        .queue_ms = or_default(own->queue_ms, standard->queue_ms),
        .client_fin_ms = or_default(own->client_fin_ms, standard->client_fin_ms),
        .server_fin_ms = or_default(own->server_fin_ms, standard->server_fin_ms),
    };
}

/* Its rule is known. */
static struct tcp *begin(struct worker *worker, const struct tcp_origin *origin,
                         struct tcp_rule *rule)
{
    struct tcp *tcp = tcp_new(worker, origin->acceptor, origin->fd);
    tcp->rule = rule;
    tcp_rule_ref(tcp->rule);
    tcp->peer = *origin->peer;
    if (origin->local != NULL) {
        tcp->local = *origin->local;
    }
    return tcp;
}

static void serve(struct tcp *tcp)
{
    struct worker *worker = tcp->worker;
    const struct settings *settings = worker_settings(worker);
    const struct proxy_defaults *defaults = &settings->defaults;
    tcp->logged = access_log_wants(worker) && !tcp->rule->log_off;
    tcp->start_ns = tcp->logged ? uv_hrtime() : 0;
    stat_add(&worker->stats, STAT_TCP_ACCEPTED, 1);
    const struct rule *rule = tcp_rule_of(tcp->rule);
    if ((rule->policy != NULL || settings->base != NULL) &&
        !tcp_admit(tcp, rule->policy, settings->base)) {
        tcp_end(tcp, EXCHANGE_END_PROXY);
        return;
    }
    take_timeouts(tcp, &rule->timeouts, &defaults->timeouts);
    tcp->retries_left = MIN(tcp->rule->retries_set ? tcp->rule->retries : defaults->retries_max,
                            (uint32_t)EXCHANGE_TRIED_MAX - 1);
    tcp->backend = draw_backend(rule, &worker->rng);
    if (tcp->backend == NULL) {
        tcp_fail(tcp, REASON_NO_ENDPOINT);
        return;
    }
    if (backend_endpoints(tcp->backend)->policy.balance == BALANCE_HASH) {
        tcp->hash = affinity_client_key(&tcp->peer);
    }
    retry_count_request(&tcp_slot(tcp)->budget, worker_now(worker));
    tcp_try(tcp);
}

void tcp_accept(struct worker *worker, const struct acceptor *acceptor, int fd,
                const struct addr *peer, const struct addr *local)
{
    worker_online(worker);
    const struct tcp_origin origin = {.acceptor = acceptor, .fd = fd, .peer = peer, .local = local};
    serve(begin(worker, &origin, atomic_load_explicit(&acceptor->tcp->rule, memory_order_seq_cst)));
}

void tcp_accept_through(struct worker *worker, const struct tcp_origin *origin,
                        struct tcp_rule *rule, const char *bytes, size_t len)
{
    struct tcp *tcp = begin(worker, origin, rule);
    if (origin->watched) {
        tcp->client.watched = true;
        tcp_poll_change(&worker->tcp_poll, origin->fd, &tcp->client.item, false);
    }
    tcp_flow_keep(tcp, bytes, len);
    serve(tcp);
}
