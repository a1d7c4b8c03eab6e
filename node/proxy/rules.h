/*
 * The rules of one host: immutable, compiled for look-up by path.
 *
 * Exact paths are a sorted array. Prefixes are a trie of path segments, so a look-up costs the
 * depth of the rules, whatever the length of the path and the number of rules. Of several rules for
 * one path the first in the given order wins. Thread: built and freed by the control thread, read
 * by all.
 */
#ifndef SKEIN_NODE_PROXY_RULES_H
#define SKEIN_NODE_PROXY_RULES_H

#include "node/base/rng.h"
#include "node/proxy/backend.h"
#include "node/proxy/proxy_tls.h"

enum {
    RULE_PATH_MAX = 8192,
    RULE_SEGMENTS_MAX = 1024, /* the trie is freed by recursion */
};

/* A route's counters: they outlive the rules that carry its name. */
struct route;
struct policy;
struct tls_target;

/* What a rule demands of the client's certificate. */
struct client_cert {
    bool required;
    bool tell;
    size_t subject_count;
    char **subjects; /* patterns; none: any */
};

struct rule_target {
    struct backend *backend; /* one reference */
    uint32_t weight_end;     /* sum of the weights up to and with this one */
};

struct rule {
    struct route *route; /* one reference */
    char *path;
    size_t path_len;
    enum path_type path_type;
    struct proxy_timeouts timeouts; /* 0: the default */
    bool timeouts_set;              /* any of them */
    bool forwarded_set;
    enum forwarded_policy forwarded;
    uint32_t target_count;
    struct rule_target *targets;
    struct policy *policy; /* NULL: asks for nothing */
    enum proxy_termination termination;
    enum proxy_insecure insecure;
    uint16_t redirect_status;        /* with PROXY_INSECURE_REDIRECT */
    bool misdirected;                /* TLS clients get 421 */
    struct client_cert *client_cert; /* what it demands of it; NULL: nothing */
    struct tls_target *target;     /* how endpoints are asked, a reference; NULL: as backends say */
    struct sticky *sticky;         /* affinity.h; NULL: none */
    struct proxy_retries *retries; /* NULL: the default's */
};

struct rule_node;

struct rules {
    uint32_t count;
    uint32_t exact_count;
    struct rule *rules;
    struct rule **exact; /* sorted by path */
    struct rule_node *root;
    const struct rule *flat; /* of the root when that is all there is: spares its cache line */
};

/* Check and compile. On failure nothing is held. */
MUST_CHECK int rules_init(struct rules *rules, struct catalog *catalog,
                          const struct proxy_rule *from, size_t count, struct err_info *err);
void rules_deinit(struct rules *rules, struct catalog *catalog);

/* path: canonical (uri_path_canon), without query. NULL: none covers it. */
const struct rule *rules_match(const struct rules *rules, const char *path, size_t len);

/* A weighted draw among the targets; NULL when no target has a weight. */
struct backend *rule_draw(const struct rule *rule, struct rng *rng);

#endif
