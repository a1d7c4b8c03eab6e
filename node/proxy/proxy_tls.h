/*
 * What TLS listeners, hosts, rules and backends ask for, as node/app hands it over: counted,
 * immutable descriptions of node/tls. The data plane takes references of its own, so the caller may
 * drop its own when a call returns.
 *
 * A connection on a TLS listener is told by its ClientHello: the host of its server name decides
 * whether the bytes go on untouched (a passthrough rule), or which certificate and policy end it
 * here. What the client asks for inside is matched like any request, and must be of a host with the
 * same policy: else 421 (RFC 9110 15.5.20).
 */
#ifndef SKEIN_NODE_PROXY_PROXY_TLS_H
#define SKEIN_NODE_PROXY_PROXY_TLS_H

#include "node/tls/tls_cert.h"
#include "node/tls/tls_policy.h"
#include "node/tls/tls_tickets.h"

/* Who ends the TLS of clients, and what schemes the rule is there for. */
enum proxy_termination {
    PROXY_PLAIN = 0,   /* nobody: on plain listeners only */
    PROXY_EDGE,        /* the router */
    PROXY_PASSTHROUGH, /* the endpoint: by server name, for the whole host; path and all that is of
                          HTTP mean nothing */
    PROXY_REENCRYPT,   /* the router, which speaks TLS to the endpoint */
};

/* What plain HTTP gets from a rule of EDGE or REENCRYPT. A request that a trusted proxy received by
 * TLS is not plain. */
enum proxy_insecure {
    PROXY_INSECURE_DENY = 0, /* 404, as if there were no rule */
    PROXY_INSECURE_ALLOW,
    PROXY_INSECURE_REDIRECT,
};

/* What a rule demands of the client's certificate, which the host's policy asked for and verified.
 */
struct proxy_client_cert {
    bool required;               /* none: 403 */
    bool tell;                   /* details go upstream in X-SSL-Client-* fields */
    const char *const *subjects; /* patterns with *, of which one has to match; none: any */
    size_t subject_count;
};

/* Of one rule; all zero is a plain one. */
struct proxy_rule_tls {
    enum proxy_termination termination;
    enum proxy_insecure insecure;
    uint16_t redirect_status;                    /* 301, 302, 307, 308 */
    struct tls_target *target;                   /* REENCRYPT: how; wins over the backend's */
    const struct proxy_client_cert *client_cert; /* NULL: nothing is demanded */
    bool misdirected; /* its policy lost against another rule of the host: always 421 */
};

/* Of one host. NULL in proxy_host_set: the defaults of proxy_tls. */
struct proxy_host_tls {
    struct tls_cert *cert;     /* NULL: the default one */
    struct tls_policy *policy; /* NULL: the default one */
    bool tickets_off;
};

/* Of all TLS listeners. */
struct proxy_tls {
    struct tls_cert *cert;     /* for no server name, and for unknown ones; NULL: such are refused
                                  (alert unrecognized_name) */
    struct tls_policy *policy; /* never NULL */
    bool strict_sni;           /* unknown names are refused; no name gets cert */
    bool tickets_off;
    uint32_t inspect_ms;     /* for the whole ClientHello: 5000 */
    uint32_t handshakes_max; /* with clients, at once, of the node: 4096; more wait in the kernel */
};

#endif
