/*
 * TLS towards endpoints: who wants it, its beginning, and what became of it.
 *
 * Bytes are encrypted by the socket; here is what differs for who uses the connection. A handshake
 * that fails counts like a connect that fails, since nothing of a request was understood by anybody
 * who could act on it, and its cause goes to the log, the counters and the access log.
 */
#include "node/base/log.h"
#include "node/proxy/sock_tls.h"
#include "node/proxy/upstream_int.h"
#include "node/proxy/utls.h"

#include <stdio.h>

enum {
    CAUSE_MAX = 320,
    LOG_BURST = 5, /* lines a second and worker */
};

struct tls_target *upstream_target(const struct exchange *exchange)
{
    struct tls_target *target = exchange->rule->target;
    return target != NULL ? target : backend_endpoints(exchange->backend)->policy.tls;
}

bool upstream_wants_tls(const struct exchange *exchange)
{
    worker_online(exchange->worker);
    return upstream_target(exchange) != NULL;
}

bool upstream_secure(struct upstream *up, struct tls_target *target)
{
    struct worker *worker = up->sock.worker;
    struct tls_engine *engine = NULL;
    struct err_info err = {.text = "TLS is not available"};
    uint32_t left_out = 0;
    up->tls = utls_take(worker, up->endpoint, target);
    if (worker->tls != NULL && tls_lib_connect(worker->tls, target, &up->tls->resume,
                                               &worker->cipher, &engine, &err) == RC_OK) {
        sock_start_tls(&up->sock, engine, TLS_CLIENT);
        return true;
    }
    if (log_limit_pass(&worker->upstream_tls_log, LOG_BURST, &left_out)) {
        log_error("no TLS connection to an endpoint can be made",
                  "endpoint=%s reason=\"%s\" more=%u", up->endpoint->text, err.text, left_out);
    }
    return false;
}

void upstream_secured(struct upstream *up)
{
    struct stats *stats = &up->sock.worker->stats;
    struct tls_facts facts;
    tls_engine_facts(up->sock.tls->engine, &facts);
    if (!facts.resumed) {
        up->tls->verified_ms = worker_now(up->sock.worker);
    }
    stat_add(stats, facts.resumed ? STAT_UPSTREAM_TLS_RESUMED : STAT_UPSTREAM_TLS_FULL, 1);
    if (up->side.exchange != NULL) {
        struct backend *backend = up->side.exchange->backend;
        struct backend_slot *slot = &backend->slots[up->sock.worker->idx];
        counter_add(facts.resumed ? &slot->tls_resumed : &slot->tls_full, 1);
    }
}

static void note_failure(struct upstream *up, const char *why)
{
    struct worker *worker = up->sock.worker;
    struct exchange *exchange = up->side.exchange;
    uint32_t left_out = 0;
    tls_resume_clear(&up->tls->resume); /* the next one begins anew */
    stat_add(&worker->stats, STAT_UPSTREAM_TLS_FAILED, 1);
    if (exchange == NULL) {
        return;
    }
    exchange_note_tls_failure(exchange, why);
    if (log_limit_pass(&worker->upstream_tls_log, LOG_BURST, &left_out)) {
        log_warn("TLS with an endpoint failed",
                 "route=%s backend=%s endpoint=%s reason=\"%s\" more=%u",
                 exchange->rule->route->name, exchange->backend->name, up->endpoint->text, why,
                 left_out);
    }
}

enum lost upstream_lost_by(struct upstream *up)
{
    const struct sock *sock = &up->sock;
    if (up->tls == NULL || (sock->connecting && sock->sent == 0)) {
        return sock->connecting ? LOST_CONNECT : LOST_CLOSED;
    }
    const struct tls_engine *eng = sock->tls->engine;
    bool failed = tls_engine_state(eng) == TLS_FAILED;
    /* An endpoint of TLS 1.3 refuses our certificate when we think that all is done. */
    bool refused = failed && tls_engine_peer_alert(eng) >= 0 && up->requests == 1 && !up->any_byte;
    if (!sock->connecting && !refused) {
        return LOST_CLOSED;
    }
    char why[CAUSE_MAX];
    const char *verify = tls_engine_verify_text(eng);
    if (verify[0] != '\0') {
        (void)snprintf(why, sizeof(why), "endpoint certificate: %s", verify);
    } else {
        (void)snprintf(why, sizeof(why), "endpoint TLS: %s",
                       failed ? tls_engine_error(eng) : "closed in the middle of the handshake");
    }
    note_failure(up, why);
    return verify[0] != '\0' ? LOST_CERTIFICATE : LOST_TLS;
}
