/*
 * Counters of the data plane: one block per worker, written by that worker, summed by the reader.
 *
 * STAT_TABLE is the one list of names; a row gives the enum value, the Prometheus name, its label
 * and its help text. Rows of one metric stand together.
 */
#ifndef SKEIN_NODE_PROXY_STATS_H
#define SKEIN_NODE_PROXY_STATS_H

#include "node/base/buf.h"
#include "node/proxy/histogram.h"

/* X(enum, metric, labels, help) */
#define STAT_TABLE(X)                                                                              \
    X(STAT_CLIENT_ACCEPTED, "skein_client_connections_total", "", "Client connections accepted")   \
    X(STAT_CLIENT_REFUSED, "skein_client_connections_refused_total", "",                           \
      "Accepting paused because a connection or file limit was reached")                           \
    X(STAT_CLIENT_LIMITED, "skein_client_connections_limited_total", "",                           \
      "Client connections closed at once because their address had as many as it may have")        \
    X(STAT_CLIENT_ABORTED, "skein_client_aborts_total", "",                                        \
      "Exchanges ended because the client went away")                                              \
    X(STAT_REQUESTS, "skein_requests_total", "", "Requests whose head was read")                   \
    X(STAT_TUNNELS, "skein_tunnels_total", "", "Connections upgraded to another protocol")         \
    X(STAT_UPSTREAM_OPENED, "skein_upstream_connections_total", "",                                \
      "Connections opened to endpoints")                                                           \
    X(STAT_UPSTREAM_REUSED, "skein_upstream_reused_total", "",                                     \
      "Requests sent on a pooled connection")                                                      \
    X(STAT_UPSTREAM_STALE, "skein_upstream_stale_total", "",                                       \
      "Pooled connections found dead when they were used")                                         \
    X(STAT_CONNECT_FAILED, "skein_upstream_connect_failures_total", "reason=\"refused\"",          \
      "Failed connects to endpoints")                                                              \
    X(STAT_CONNECT_TIMEOUT, "skein_upstream_connect_failures_total", "reason=\"timeout\"", "")     \
    X(STAT_UPSTREAM_TLS_FULL, "skein_upstream_tls_handshakes_total", "result=\"full\"",            \
      "TLS handshakes with endpoints")                                                             \
    X(STAT_UPSTREAM_TLS_RESUMED, "skein_upstream_tls_handshakes_total", "result=\"resumed\"", "")  \
    X(STAT_UPSTREAM_TLS_FAILED, "skein_upstream_tls_handshakes_total", "result=\"failed\"", "")    \
    X(STAT_RETRIES, "skein_retries_total", "", "Requests sent to another endpoint or once more")   \
    X(STAT_RESPONSE_CUT, "skein_responses_cut_total", "",                                          \
      "Responses that ended early, shown to the client by closing")                                \
    X(STAT_TCP_ACCEPTED, "skein_tcp_connections_total", "", "Connections by ports of TCP routes")  \
    X(STAT_TCP_DENIED, "skein_tcp_connections_refused_total", "reason=\"denied\"",                 \
      "Connections of TCP routes that were closed at once")                                        \
    X(STAT_TCP_LIMITED, "skein_tcp_connections_refused_total", "reason=\"limited\"", "")           \
    X(STAT_TCP_UNAVAILABLE, "skein_tcp_connections_refused_total", "reason=\"unavailable\"", "")   \
    X(STAT_TCP_BYTES_IN, "skein_tcp_bytes_total", "direction=\"in\"",                              \
      "Bytes of TCP routes, from clients and to them")                                             \
    X(STAT_TCP_BYTES_OUT, "skein_tcp_bytes_total", "direction=\"out\"", "")                        \
    X(STAT_PROXY_HEADER_FAULT, "skein_proxy_header_faults_total", "",                              \
      "Connections closed because their PROXY header was missing, malformed or late")              \
    X(STAT_TLS_FULL, "skein_tls_handshakes_total", "result=\"full\"",                              \
      "TLS handshakes with clients")                                                               \
    X(STAT_TLS_RESUMED, "skein_tls_handshakes_total", "result=\"resumed\"", "")                    \
    X(STAT_TLS_FAILED, "skein_tls_handshakes_total", "result=\"failed\"", "")                      \
    X(STAT_TLS_HELLO_FAULT, "skein_tls_hello_faults_total", "reason=\"malformed\"",                \
      "Connections on TLS listeners that ended before a handshake")                                \
    X(STAT_TLS_HELLO_NONE, "skein_tls_hello_faults_total", "reason=\"empty\"", "")                 \
    X(STAT_TLS_HELLO_LATE, "skein_tls_hello_faults_total", "reason=\"timeout\"", "")               \
    X(STAT_TLS_HELLO_HTTP, "skein_tls_hello_faults_total", "reason=\"plain_http\"", "")            \
    X(STAT_TLS_NAME_UNKNOWN, "skein_tls_hello_faults_total", "reason=\"unknown_name\"", "")

enum stat_id {
#define X(name, metric, labels, help) name,
    STAT_TABLE(X)
#undef X
        STAT_COUNT
};

/* Why Skein itself answered; X(enum, status, label, text for people) */
#define REASON_TABLE(X)                                                                            \
    X(REASON_NONE, 0, "none", "")                                                                  \
    X(REASON_OPTIONS, 200, "options", "An OPTIONS request that goes no further")                   \
    X(REASON_PREFLIGHT, 204, "preflight", "A CORS preflight request")                              \
    X(REASON_REDIRECT, 302, "redirect", "The resource is at another address")                      \
    X(REASON_BAD_REQUEST, 400, "bad_request", "The request is malformed")                          \
    X(REASON_EMPTY, 400, "empty", "The connection ended without a request")                        \
    X(REASON_BAD_PATH, 400, "bad_path", "The request target is not acceptable")                    \
    X(REASON_BAD_HOST, 400, "bad_host", "The Host header is missing or malformed")                 \
    X(REASON_BAD_FRAMING, 400, "bad_framing", "The message framing is ambiguous or malformed")     \
    X(REASON_DENIED, 403, "denied", "Access from this address is not allowed")                     \
    X(REASON_CLIENT_CERTIFICATE, 403, "client_certificate",                                        \
      "A client certificate that this route accepts is needed")                                    \
    X(REASON_NO_ROUTE, 404, "no_route", "No route matches this host and path")                     \
    X(REASON_CONNECT_METHOD, 405, "connect_method", "CONNECT is not offered")                      \
    X(REASON_TRACE_METHOD, 405, "trace_method", "TRACE is not answered here")                      \
    X(REASON_CLIENT_TIMEOUT, 408, "client_timeout", "The request did not arrive in time")          \
    X(REASON_BODY_TOO_BIG, 413, "body_too_big", "The request body is above the limit")             \
    X(REASON_URI_TOO_LONG, 414, "uri_too_long", "The request target is above the limit")           \
    X(REASON_EXPECTATION, 417, "expectation", "This expectation is not known")                     \
    X(REASON_RATE_LIMITED, 429, "rate_limited", "There were too many requests; try again later")   \
    X(REASON_TOO_MANY, 429, "too_many_at_once", "There are too many requests at once")             \
    X(REASON_MISDIRECTED, 421, "misdirected", "This host is not served on this connection")        \
    X(REASON_HEADERS_TOO_BIG, 431, "headers_too_big", "The request headers are above the limit")   \
    X(REASON_NOT_IMPLEMENTED, 501, "not_implemented", "This transfer coding is not known")         \
    X(REASON_CONNECT_FAILED, 502, "connect_failed", "No endpoint accepted a connection")           \
    X(REASON_ENDPOINT_TLS, 502, "endpoint_tls", "No endpoint could be reached over TLS")           \
    X(REASON_ENDPOINT_CERTIFICATE, 502, "endpoint_certificate",                                    \
      "The endpoint's certificate was not accepted")                                               \
    X(REASON_BAD_RESPONSE, 502, "bad_response", "The endpoint's response is malformed")            \
    X(REASON_UPSTREAM_CLOSED, 502, "upstream_closed", "The endpoint closed before it answered")    \
    X(REASON_NO_ENDPOINT, 503, "no_endpoint", "No endpoint is available for this route")           \
    X(REASON_QUEUE_FULL, 503, "queue_full", "All endpoints are busy and too many requests wait")   \
    X(REASON_QUEUE_TIMEOUT, 503, "queue_timeout", "No endpoint had room in time")                  \
    X(REASON_ROUTE_FULL, 503, "route_full", "This route has as many requests as it may have")      \
    X(REASON_OVERLOAD, 503, "overload", "This node is out of resources")                           \
    X(REASON_CONNECT_TIMEOUT, 504, "connect_timeout", "No endpoint accepted a connection in time") \
    X(REASON_SERVER_TIMEOUT, 504, "server_timeout", "The endpoint did not answer in time")         \
    X(REASON_REQUEST_TIMEOUT, 504, "request_timeout", "The whole exchange took too long")          \
    X(REASON_BAD_VERSION, 505, "bad_version", "This HTTP version is not offered")

enum reason {
#define X(name, status, label, text) name,
    REASON_TABLE(X)
#undef X
        REASON_COUNT
};

struct reason_row {
    uint16_t status;
    const char *label;
    const char *text;
};
const struct reason_row *reason_row(enum reason reason);

/* What flows through a route, a backend or an endpoint; index 0 of responses: none was complete. */
struct traffic {
    struct counter responses[6]; /* by first digit of the status */
    struct counter bytes_in;     /* request bodies */
    struct counter bytes_out;    /* response bodies */
};

struct stats {
    struct counter values[STAT_COUNT];
    struct counter answered[REASON_COUNT]; /* by Skein itself */
    struct counter responses[6];           /* sent to clients, by class */
    struct counter bytes_in;
    struct counter bytes_out;
    struct histogram duration; /* of exchanges */
    struct counter clients;    /* open now */
    struct counter upstreams;  /* open now, idle included */
    struct counter tunnels;    /* open now */
};

static inline void stat_add(struct stats *stats, enum stat_id stat, uint64_t n)
{
    counter_add(&stats->values[stat], n);
}

/* The sum of the workers' blocks as Prometheus text. */
void stats_format(struct stats *const *blocks, size_t count, struct buf *out);

/* code="2xx" and so on, by index of traffic.responses. */
extern const char *const traffic_classes[6];

/* One more exchange. Thread: the one that writes. */
static inline void traffic_count(struct traffic *traffic, size_t klass, uint64_t bytes_in,
                                 uint64_t bytes_out)
{
    counter_add(&traffic->responses[klass], 1);
    counter_add(&traffic->bytes_in, bytes_in);
    counter_add(&traffic->bytes_out, bytes_out);
}

/* sum += part; the caller owns sum. */
void traffic_merge(struct traffic *sum, const struct traffic *part);

#endif
