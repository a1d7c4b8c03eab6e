/*
 * Rules of a host: checking, compiling, matching; see rules.h.
 */
#include "node/proxy/rules.h"

#include "node/base/mem.h"
#include "node/proxy/affinity.h"
#include "node/proxy/catalog.h"
#include "node/proxy/policy.h"

/* A place in the trie. Children are sorted by segment, so that a look-up is a binary search. */
struct rule_node {
    const char *segment; /* inside a rule's path */
    size_t segment_len;
    struct rule *rule; /* the prefix that ends here, or NULL */
    struct rule_node **children;
    uint32_t child_count;
    uint32_t child_size;
};

/* Lengths first: cheap, and the order is only for searching. */
static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    if (a_len != b_len) {
        return a_len < b_len ? -1 : 1;
    }
    return a_len == 0 ? 0 : memcmp(a, b, a_len);
}

/* Where the child with this segment is, or would be; true: it is there. */
static bool child_find(const struct rule_node *node, const char *segment, size_t len,
                       uint32_t *ret_idx)
{
    uint32_t low = 0;
    uint32_t high = node->child_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct rule_node *child = node->children[mid];
        int order = compare_bytes(segment, len, child->segment, child->segment_len);
        if (order == 0) {
            *ret_idx = mid;
            return true;
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    *ret_idx = low;
    return false;
}

static struct rule_node *child_get(struct rule_node *node, const char *segment, size_t len)
{
    uint32_t idx;
    if (child_find(node, segment, len, &idx)) {
        return node->children[idx];
    }
    if (node->child_count == node->child_size) {
        node->child_size = MAX(node->child_size * 2, 4U);
        node->children = mem_grow(node->children, node->child_size, sizeof(struct rule_node *));
    }
    memmove(node->children + idx + 1, node->children + idx,
            (node->child_count - idx) * sizeof(struct rule_node *));
    struct rule_node *child = mem_new(sizeof(*child));
    child->segment = segment;
    child->segment_len = len;
    node->children[idx] = child;
    node->child_count++;
    return child;
}

/* Recursion: RULE_SEGMENTS_MAX deep at most. */
static void node_free(struct rule_node *node)
{
    if (node == NULL) {
        return;
    }
    for (uint32_t i = 0; i < node->child_count; i++) {
        node_free(node->children[i]);
    }
    mem_free(node->children);
    mem_free(node);
}

/* The next segment of path at *pos, which stands on a '/'; false: no more. */
static bool segment_next(const char *path, size_t len, size_t *pos, const char **ret_segment,
                         size_t *ret_len)
{
    if (*pos >= len) {
        return false;
    }
    size_t start = *pos + 1;
    const char *slash = start < len ? memchr(path + start, '/', len - start) : NULL;
    size_t end = slash != NULL ? (size_t)(slash - path) : len;
    *ret_segment = path + start;
    *ret_len = end - start;
    *pos = end;
    return true;
}

static void trie_add(struct rules *rules, struct rule *rule)
{
    size_t len = rule->path_len;
    if (len != 0 && rule->path[len - 1] == '/') {
        len--; /* "/a/" and "/a" are one prefix, "/" and "" too */
    }
    struct rule_node *node = rules->root;
    const char *segment;
    size_t segment_len;
    size_t pos = 0;
    while (segment_next(rule->path, len, &pos, &segment, &segment_len)) {
        node = child_get(node, segment, segment_len);
    }
    if (node->rule == NULL) {
        node->rule = rule;
    }
}

static int compare_exact(const void *left, const void *right)
{
    const struct rule *a = *(struct rule *const *)left;
    const struct rule *b = *(struct rule *const *)right;
    int order = compare_bytes(a->path, a->path_len, b->path, b->path_len);
    if (order != 0) {
        return order;
    }
    return a < b ? -1 : a > b; /* position in the array is the given order */
}

static void compile(struct rules *rules)
{
    rules->exact = mem_array(rules->count, sizeof(*rules->exact));
    rules->root = mem_new(sizeof(*rules->root));
    for (uint32_t i = 0; i < rules->count; i++) {
        struct rule *rule = &rules->rules[i];
        if (rule->path_type == PATH_EXACT) {
            rules->exact[rules->exact_count++] = rule;
        } else {
            trie_add(rules, rule);
        }
    }
    if (rules->exact_count != 0) {
        qsort(rules->exact, rules->exact_count, sizeof(*rules->exact), compare_exact);
    }
    rules->flat = rules->root->child_count == 0 ? rules->root->rule : NULL;
}

static int check_rule(const struct proxy_rule *from, struct err_info *err)
{
    size_t len = strlen(from->path);
    if (len != 0 && from->path[0] != '/') {
        return err_set(err, RC_INVALID, "route %s: path \"%s\" does not begin with /", from->route,
                       from->path);
    }
    if (len > RULE_PATH_MAX) {
        return err_set(err, RC_TOO_BIG, "route %s: path of %zu bytes is above %d", from->route, len,
                       RULE_PATH_MAX);
    }
    size_t segments = 0;
    for (size_t i = 0; i < len; i++) {
        segments += from->path[i] == '/';
    }
    if (segments > RULE_SEGMENTS_MAX) {
        return err_set(err, RC_TOO_BIG, "route %s: path of %zu segments is above %d", from->route,
                       segments, RULE_SEGMENTS_MAX);
    }
    if (from->target_count > PROXY_TARGETS_MAX) {
        return err_set(err, RC_TOO_BIG, "route %s: %zu backends is above %d", from->route,
                       from->target_count, PROXY_TARGETS_MAX);
    }
    for (size_t i = 0; i < from->target_count; i++) {
        if (from->targets[i].weight > PROXY_WEIGHT_MAX) {
            return err_set(err, RC_TOO_BIG, "route %s: weight %u is above %d", from->route,
                           from->targets[i].weight, PROXY_WEIGHT_MAX);
        }
    }
    return RC_OK;
}

static struct client_cert *client_cert_new(const struct proxy_client_cert *from)
{
    if (from == NULL) {
        return NULL;
    }
    struct client_cert *cert = mem_new(sizeof(*cert));
    cert->required = from->required;
    cert->tell = from->tell;
    cert->subject_count = from->subject_count;
    cert->subjects = mem_array(from->subject_count, sizeof(*cert->subjects));
    for (size_t i = 0; i < from->subject_count; i++) {
        cert->subjects[i] = mem_strdup(from->subjects[i]);
    }
    return cert;
}

static void client_cert_free(struct client_cert *cert)
{
    for (size_t i = 0; cert != NULL && i < cert->subject_count; i++) {
        mem_free(cert->subjects[i]);
    }
    if (cert != NULL) {
        mem_free(cert->subjects);
        mem_free(cert);
    }
}

static void rule_init(struct rule *rule, struct catalog *catalog, const struct proxy_rule *from,
                      struct policy *policy)
{
    rule->route = catalog_route(catalog, from->route);
    rule->path = mem_strdup(from->path);
    rule->path_len = strlen(from->path);
    rule->path_type = from->path_type;
    rule->timeouts = from->timeouts;
    static const struct proxy_timeouts none;
    rule->timeouts_set = memcmp(&rule->timeouts, &none, sizeof(none)) != 0;
    rule->forwarded_set = from->forwarded_set;
    rule->forwarded = from->forwarded;
    rule->targets = mem_array(from->target_count, sizeof(*rule->targets));
    rule->policy = policy;
    rule->termination = from->tls.termination;
    rule->insecure = from->tls.insecure;
    rule->redirect_status = from->tls.redirect_status != 0 ? from->tls.redirect_status : 308;
    rule->misdirected = from->tls.misdirected;
    rule->client_cert = client_cert_new(from->tls.client_cert);
    if (from->tls.termination == PROXY_REENCRYPT && from->tls.target != NULL) {
        rule->target = from->tls.target;
        tls_target_ref(rule->target);
    }
    if (from->policy != NULL) {
        const struct proxy_retries *retries = &from->policy->retries;
        rule->sticky = sticky_new(from->policy->sticky);
        rule->retries = retries->set ? mem_dup(retries, sizeof(*retries)) : NULL;
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < from->target_count; i++) {
        backend_ref(from->targets[i].backend);
        sum += from->targets[i].weight;
        rule->targets[rule->target_count++] =
            (struct rule_target){.backend = from->targets[i].backend, .weight_end = sum};
    }
}

int rules_init(struct rules *rules, struct catalog *catalog, const struct proxy_rule *from,
               size_t count, struct err_info *err)
{
    if (count > PROXY_RULES_MAX) {
        return err_set(err, RC_TOO_BIG, "%zu rules is above %d", count, PROXY_RULES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        int rc = check_rule(&from[i], err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    *rules = (struct rules){.rules = mem_array(count, sizeof(*rules->rules))};
    for (size_t i = 0; i < count; i++) {
        struct policy *policy = NULL;
        int rc = policy_new(catalog, from[i].route, from[i].policy, &policy, err);
        if (rc != RC_OK) {
            rules_deinit(rules, catalog);
            return rc;
        }
        rule_init(&rules->rules[rules->count++], catalog, &from[i], policy);
    }
    compile(rules);
    return RC_OK;
}

void rules_deinit(struct rules *rules, struct catalog *catalog)
{
    node_free(rules->root);
    rules->root = NULL;
    MEM_FREE(rules->exact);
    for (uint32_t i = 0; i < rules->count; i++) {
        struct rule *rule = &rules->rules[i];
        for (uint32_t j = 0; j < rule->target_count; j++) {
            backend_put(rule->targets[j].backend);
        }
        policy_free(rule->policy);
        tls_target_unref(rule->target);
        client_cert_free(rule->client_cert);
        sticky_free(rule->sticky);
        mem_free(rule->retries);
        mem_free(rule->targets);
        mem_free(rule->path);
        catalog_route_put(catalog, rule->route);
    }
    MEM_FREE(rules->rules);
}

const struct rule *rules_match(const struct rules *rules, const char *path, size_t len)
{
    uint32_t low = 0;
    uint32_t high = rules->exact_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct rule *rule = rules->exact[mid];
        if (compare_bytes(rule->path, rule->path_len, path, len) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low < rules->exact_count) {
        const struct rule *rule = rules->exact[low];
        if (compare_bytes(rule->path, rule->path_len, path, len) == 0) {
            return rule;
        }
    }
    if (LIKELY(rules->flat != NULL)) {
        return rules->flat;
    }
    const struct rule_node *node = rules->root;
    const struct rule *best = node->rule;
    const char *segment;
    size_t segment_len;
    size_t pos = 0;
    while (node->child_count != 0 && segment_next(path, len, &pos, &segment, &segment_len)) {
        uint32_t idx;
        if (!child_find(node, segment, segment_len, &idx)) {
            break;
        }
        node = node->children[idx];
        if (node->rule != NULL) {
            best = node->rule;
        }
    }
    return best;
}

struct backend *rule_draw(const struct rule *rule, struct rng *rng)
{
    uint32_t total = rule->target_count != 0 ? rule->targets[rule->target_count - 1].weight_end : 0;
    if (total == 0) {
        return NULL;
    }
    if (rule->target_count == 1) {
        return rule->targets[0].backend;
    }
    uint32_t point = (uint32_t)rng_below(rng, total);
    uint32_t i = 0;
    while (rule->targets[i].weight_end <= point) {
        i++;
    }
    return rule->targets[i].backend;
}
