/*
 * The data plane without the rest of a node: commands on stdin, one per line, an answer to each.
 *
 *   set NAME NUMBER                    a default (server_ms, retries_max, dot_segments ...)
 *   listen ADDRESS | listen-tls ADDRESS    before start, may be repeated
 *   workers N | log WHERE              before start
 *   tcp ADDRESS | trust NETWORK        before start: where ports open; whose PROXY headers count
 *   start                              "ok ADDRESS ..." with the real ports
 *   apply                              publish changed defaults
 *   backend NAME BALANCE ADDR[*W][!] ... [NAME=NUMBER ...] [hash=KIND[:NAME]]   make or change;
 *                                      BALANCE: random least rr hash; "!" drains; limits by name;
 *                                      tls=TARGET: endpoints speak TLS
 *   target NAME ...                    a TLS target (driver_target.h)
 *   cert | policy | tls | tickets      TLS listeners (driver_listen.h)
 *   health BACKEND ADDR up|down        what active checks found
 *   rule PATH exact|prefix ROUTE BACKEND[*W] ... [NAME_ms=NUMBER ...] [sticky=COOKIE]
 *        [tls=TARGET]
 *        [attempts=N retry_on=BITS per_try=MS statuses=N+N]
 *        [allow=NETWORK deny=NETWORK at_once=N rate=N]   collect a rule
 *   host NAME                          publish the collected rules for it; none removes it
 *   port N                             publish the one collected rule for it; none closes it
 *   metrics                            the text, then "ok"
 *   connections | reclaim | drain | quit
 *
 * Answers: "ok ...", or "error TEXT".
 */
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "node/proxy/proxy.h"
#include "tests/support/driver_listen.h"
#include "tests/support/driver_target.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKENDS_MAX = 64, WORDS_MAX = 5000, LINE_MAX_BYTES = 1 << 18, ADDRS_MAX = 8 };

static struct proxy *proxy;
static struct addr addrs[ADDRS_MAX];
static struct addr tcp_addrs[ADDRS_MAX];
static struct addr tls_addrs[ADDRS_MAX];
static const char *trusted[ADDRS_MAX];
static char log_path[4096] = "off";
static struct proxy_config config = {
    .http = addrs,
    .tcp = tcp_addrs,
    .https = tls_addrs,
    .proxy_trusted = {.items = trusted},
    .workers = 2,
    .node_name = "driver",
    .access_log = log_path,
    .defaults =
        {
            .timeouts = {5000, 30000, 30000, 3600000, 10000, 300000, 0, 5000, 1000, 1000},
            .header_bytes_max = 32768,
            .header_count_max = 128,
            .uri_bytes_max = 8192,
            .retries_max = 2,
            .idle_per_endpoint_max = 64,
        },
};

static struct {
    char *name;
    struct backend *backend;
} backends[BACKENDS_MAX];
static size_t backend_count;

static struct proxy_rule rules[PROXY_RULES_MAX];
static struct {
    struct proxy_policy policy;
    struct proxy_sticky sticky;
    const char *allow;
    const char *deny;
} asked[PROXY_RULES_MAX];
static size_t rule_count;
static struct err_info err;

static int number_set(const char *name, const char *value, struct proxy_timeouts *timeouts)
{
    struct proxy_defaults *d = &config.defaults;
    const struct {
        const char *name;
        uint32_t *at;
    } rows[] = {
        {"connect_ms", &timeouts->connect_ms},
        {"client_ms", &timeouts->client_ms},
        {"server_ms", &timeouts->server_ms},
        {"tunnel_ms", &timeouts->tunnel_ms},
        {"client_header_ms", &timeouts->client_header_ms},
        {"keepalive_ms", &timeouts->keepalive_ms},
        {"request_ms", &timeouts->request_ms},
        {"queue_ms", &timeouts->queue_ms},
        {"client_fin_ms", &timeouts->client_fin_ms},
        {"server_fin_ms", &timeouts->server_fin_ms},
        {"header_bytes_max", &d->header_bytes_max},
        {"header_count_max", &d->header_count_max},
        {"uri_bytes_max", &d->uri_bytes_max},
        {"retries_max", &d->retries_max},
        {"idle_per_endpoint_max", &d->idle_per_endpoint_max},
    };
    uint32_t number = (uint32_t)strtoul(value, NULL, 10);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *rows[i].at = number;
            return RC_OK;
        }
    }
    if (strcmp(name, "body_bytes_max") == 0) {
        d->body_bytes_max = number;
    } else if (strcmp(name, "forwarded") == 0) {
        d->forwarded = (enum forwarded_policy)number;
    } else if (strcmp(name, "dot_segments") == 0) {
        d->dot_segments = (enum dot_segments)number;
    } else if (strcmp(name, "continue_closed") == 0) {
        d->continue_closed = number != 0;
    } else if (strcmp(name, "access") == 0) { /* 0 as `log` says, 1 off, 2 on */
        d->access = (enum proxy_access)number;
    } else if (strcmp(name, "access_format") == 0) { /* 1 JSON, 2 combined */
        d->access_format = (enum proxy_access_format)number;
    } else if (strcmp(name, "access_empty") == 0) {
        d->access_empty_requests = number != 0;
    } else if (strcmp(name, "connections_max") == 0) {
        config.connections_max = number;
    } else {
        return err_set(&err, RC_INVALID, "unknown setting %s", name);
    }
    return RC_OK;
}

static struct backend *backend_named(const char *name)
{
    for (size_t i = 0; i < backend_count; i++) {
        if (strcmp(backends[i].name, name) == 0) {
            return backends[i].backend;
        }
    }
    if (backend_count == BACKENDS_MAX) {
        return NULL;
    }
    backends[backend_count].name = mem_strdup(name);
    backends[backend_count].backend = backend_new(proxy, name);
    return backends[backend_count++].backend;
}

/* "text*7" -> 7, and the text is cut there. */
static uint32_t take_weight(char *text)
{
    char *star = strchr(text, '*');
    if (star == NULL) {
        return 1;
    }
    *star = '\0';
    return (uint32_t)strtoul(star + 1, NULL, 10);
}

/* "NAME=NUMBER", or "hash=KIND[:NAME]"; the text is cut. */
static int backend_option(struct proxy_backend *policy, char *word, char *equals)
{
    static const char *const kinds[] = {"client", "header", "cookie", "query", "path", "host"};
    const struct {
        const char *name;
        uint32_t *at;
    } rows[] = {
        {"limit", &policy->connections_per_endpoint_max},
        {"queue", &policy->queue_max},
        {"queue_ms", &policy->queue_ms},
        {"panic", &policy->panic_percent},
        {"slow_start", &policy->slow_start_ms},
        {"failures", &policy->passive.failures},
        {"window", &policy->passive.window_ms},
        {"eject", &policy->passive.eject_ms},
        {"max_ejected", &policy->passive.max_ejected_percent},
        {"idle", &policy->idle_per_endpoint_max},
        {"idle_ms", &policy->idle_ms},
        {"requests", &policy->requests_per_connection_max},
    };
    *equals++ = '\0';
    if (strcmp(word, "proxy") == 0) {
        policy->proxy_protocol = (enum proxy_protocol_version)strtoul(equals, NULL, 10);
        return RC_OK;
    }
    if (strcmp(word, "tls") == 0) {
        policy->tls = driver_target_find(equals);
        return policy->tls != NULL ? RC_OK : err_set(&err, RC_NOT_FOUND, "no target %s", equals);
    }
    if (strcmp(word, "hash") == 0) {
        char *colon = strchr(equals, ':');
        if (colon != NULL) {
            *colon = '\0';
            policy->hash_name = colon + 1;
        }
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            if (strcmp(kinds[i], equals) == 0) {
                policy->hash_on = (enum proxy_hash_on)i;
                return RC_OK;
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, word) == 0) {
            *rows[i].at = (uint32_t)strtoul(equals, NULL, 10);
            return RC_OK;
        }
    }
    return err_set(&err, RC_INVALID, "unknown option %s", word);
}

/* What a node makes with its key. */
static void make_token(const char *text, uint8_t ret_token[PROXY_TOKEN_BYTES])
{
    uint64_t hash[2];
    hash_sip128(1, 2, text, strlen(text), hash);
    memcpy(ret_token, hash, PROXY_TOKEN_BYTES);
}

static int cmd_backend(char **words, size_t count)
{
    static struct proxy_endpoint endpoints[PROXY_ENDPOINTS_MAX + 1];
    struct proxy_backend policy = {.idle_per_endpoint_max = PROXY_POOL_DEFAULT};
    policy.balance = strcmp(words[2], "rr") == 0      ? BALANCE_ROUND_ROBIN
                     : strcmp(words[2], "least") == 0 ? BALANCE_LEAST_CONN
                     : strcmp(words[2], "hash") == 0  ? BALANCE_HASH
                                                      : BALANCE_RANDOM;
    size_t n = 0;
    for (size_t i = 3; i < count && n < ARRAY_LEN(endpoints); i++) {
        char *equals = strchr(words[i], '=');
        if (equals != NULL) {
            int rc = backend_option(&policy, words[i], equals);
            if (rc != RC_OK) {
                return rc;
            }
            continue;
        }
        size_t len = strlen(words[i]);
        bool draining = words[i][len - 1] == '!';
        if (draining) {
            words[i][len - 1] = '\0';
        }
        endpoints[n].draining = draining;
        endpoints[n].weight = take_weight(words[i]);
        int rc = addr_parse(words[i], &endpoints[n].addr, &err);
        if (rc != RC_OK) {
            return rc;
        }
        make_token(words[i], endpoints[n].token);
        n++;
    }
    return backend_set(proxy, backend_named(words[1]), &policy, endpoints, n, &err);
}

static int cmd_health(char **words)
{
    struct addr addr;
    int rc = addr_parse(words[2], &addr, &err);
    if (rc == RC_OK) {
        backend_health(proxy, backend_named(words[1]), &addr,
                       strcmp(words[3], "up") == 0 ? PROXY_HEALTH_UP : PROXY_HEALTH_DOWN);
    }
    return rc;
}

/* True: the word was one of the policy's. */
static bool policy_option(size_t idx, const char *word, const char *value)
{
    struct proxy_policy *policy = &asked[idx].policy;
    struct proxy_retries *retries = &policy->retries;
    uint32_t number = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(word, "sticky") == 0) {
        asked[idx].sticky = (struct proxy_sticky){.cookie = mem_strdup(value), .path = "/"};
        policy->sticky = &asked[idx].sticky;
    } else if (strcmp(word, "allow") == 0) {
        asked[idx].allow = mem_strdup(value);
        policy->allow_from = (struct proxy_texts){.items = &asked[idx].allow, .count = 1};
    } else if (strcmp(word, "deny") == 0) {
        asked[idx].deny = mem_strdup(value);
        policy->deny_from = (struct proxy_texts){.items = &asked[idx].deny, .count = 1};
    } else if (strcmp(word, "at_once") == 0) {
        policy->connections_max = number;
    } else if (strcmp(word, "rate") == 0) {
        policy->rate = (struct proxy_rate){.requests = number, .window_ms = 3600000};
    } else if (strcmp(word, "attempts") == 0) {
        retries->attempts = number;
        retries->set = true;
    } else if (strcmp(word, "retry_on") == 0) {
        retries->on = number;
        retries->set = true;
    } else if (strcmp(word, "per_try") == 0) {
        retries->per_try_ms = number;
    } else if (strcmp(word, "statuses") == 0) {
        char *next = unconst(value);
        while (*next != '\0' && retries->status_count < PROXY_RETRY_STATUSES_MAX) {
            retries->statuses[retries->status_count++] = (uint16_t)strtoul(next, &next, 10);
            next += *next == '+';
        }
    } else {
        return false;
    }
    rules[idx].policy = policy;
    return true;
}

static int cmd_rule(char **words, size_t count)
{
    if (rule_count == PROXY_RULES_MAX) {
        return err_set(&err, RC_TOO_BIG, "too many rules");
    }
    struct proxy_rule *rule = &rules[rule_count];
    struct proxy_target *targets = mem_array(count, sizeof(*targets));
    *rule = (struct proxy_rule){
        .path = mem_strdup(strcmp(words[1], "-") == 0 ? "" : words[1]),
        .path_type = strcmp(words[2], "exact") == 0 ? PATH_EXACT : PATH_PREFIX,
        .route = mem_strdup(words[3]),
        .targets = targets,
    };
    rule_count++;
    for (size_t i = 4; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (equals != NULL) {
            *equals = '\0';
            if (strcmp(words[i], "tls") == 0) {
                rule->tls.termination = PROXY_REENCRYPT;
                rule->tls.insecure = PROXY_INSECURE_ALLOW;
                rule->tls.target = driver_target_find(equals + 1);
                continue;
            }
            if (driver_listen_rule(words[i], equals + 1, &rule->tls) ||
                policy_option(rule_count - 1, words[i], equals + 1)) {
                continue;
            }
            int rc = number_set(words[i], equals + 1, &rule->timeouts);
            if (rc != RC_OK) {
                return rc;
            }
            continue;
        }
        if (strcmp(words[i], "client_cert") == 0) {
            (void)driver_listen_rule(words[i], NULL, &rule->tls); /* it is one */
            continue;
        }
        uint32_t weight = take_weight(words[i]);
        targets[rule->target_count++] =
            (struct proxy_target){.backend = backend_named(words[i]), .weight = weight};
    }
    return RC_OK;
}

static void free_rules(void)
{
    for (size_t i = 0; i < rule_count; i++) {
        mem_free(unconst(rules[i].path));
        mem_free(unconst(rules[i].route));
        mem_free(unconst(rules[i].targets));
        mem_free(unconst(asked[i].sticky.cookie));
        mem_free(unconst(asked[i].allow));
        mem_free(unconst(asked[i].deny));
        memset(&asked[i], 0, sizeof(asked[i]));
    }
    rule_count = 0;
}

static int cmd_port(uint16_t port)
{
    if (rule_count == 0) {
        proxy_tcp_remove(proxy, port);
        return RC_OK;
    }
    const struct proxy_tcp tcp = {
        .route = rules[0].route,
        .targets = rules[0].targets,
        .target_count = rules[0].target_count,
        .timeouts = rules[0].timeouts,
        .policy = rules[0].policy,
    };
    int rc = proxy_tcp_set(proxy, port, &tcp, &err);
    free_rules();
    return rc;
}

static int cmd_start(void)
{
    int rc = proxy_start(&config, &proxy, &err);
    rc = rc == RC_OK ? proxy_serve(proxy, &err) : rc;
    if (rc != RC_OK) {
        return rc;
    }
    printf("ok");
    for (size_t i = 0; i < config.http_count + config.https_count; i++) {
        struct addr addr;
        char text[ADDR_TEXT_MAX];
        proxy_listen_addr(proxy, i, &addr);
        printf(" %s", addr_format(&addr, text));
    }
    printf("\n");
    return RC_AGAIN; /* answered */
}

static void cmd_metrics(void)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 26);
    proxy_metrics(proxy, &out);
    (void)fwrite(out.data, 1, out.len, stdout);
    buf_deinit(&out);
}

static int run(char **words, size_t count)
{
    const char *cmd = words[0];
    if (strcmp(cmd, "set") == 0 && count == 3) {
        return number_set(words[1], words[2], &config.defaults.timeouts);
    }
    if (strcmp(cmd, "listen") == 0 && count == 2 && config.http_count < ADDRS_MAX) {
        return addr_parse(words[1], &addrs[config.http_count++], &err);
    }
    if (strcmp(cmd, "listen-tls") == 0 && count == 2 && config.https_count < ADDRS_MAX) {
        return addr_parse(words[1], &tls_addrs[config.https_count++], &err);
    }
    if (strcmp(cmd, "tcp") == 0 && count == 2 && config.tcp_count < ADDRS_MAX) {
        return addr_parse(words[1], &tcp_addrs[config.tcp_count++], &err);
    }
    if (strcmp(cmd, "trust") == 0 && count == 2 && config.proxy_trusted.count < ADDRS_MAX) {
        trusted[config.proxy_trusted.count++] = mem_strdup(words[1]);
        return RC_OK;
    }
    if (strcmp(cmd, "workers") == 0 && count == 2) {
        config.workers = (uint32_t)strtoul(words[1], NULL, 10);
        return RC_OK;
    }
    if (strcmp(cmd, "log") == 0 && count == 2) {
        (void)snprintf(log_path, sizeof(log_path), "%s", words[1]);
        return RC_OK;
    }
    if (strcmp(cmd, "start") == 0 && proxy == NULL) {
        return cmd_start();
    }
    if (proxy == NULL) {
        return err_set(&err, RC_INVALID, "not started, or unknown: %s", cmd);
    }
    if (strcmp(cmd, "backend") == 0 && count >= 3) {
        return cmd_backend(words, count);
    }
    if (strcmp(cmd, "target") == 0 && count >= 2) {
        return driver_target_make(words, count, &err);
    }
    if (strcmp(cmd, "health") == 0 && count == 4) {
        return cmd_health(words);
    }
    if (strcmp(cmd, "rule") == 0 && count >= 4) {
        return cmd_rule(words, count);
    }
    int listen_rc;
    if (driver_listen_run(proxy, words, count, &listen_rc, &err)) {
        return listen_rc;
    }
    if (strcmp(cmd, "host") == 0 && count >= 2) {
        struct proxy_host_tls tls;
        int rc = driver_listen_host(words + 2, count - 2, &tls, &err);
        rc = rc != RC_OK ? rc : proxy_host_set(proxy, words[1], rules, rule_count, &tls, &err);
        free_rules();
        return rc;
    }
    if (strcmp(cmd, "port") == 0 && count == 2) {
        return cmd_port((uint16_t)strtoul(words[1], NULL, 10));
    }
    if (strcmp(cmd, "apply") == 0) {
        proxy_set_defaults(proxy, &config.defaults);
    } else if (strcmp(cmd, "reclaim") == 0) {
        proxy_reclaim(proxy);
    } else if (strcmp(cmd, "drain") == 0) {
        proxy_drain(proxy);
    } else if (strcmp(cmd, "metrics") == 0) {
        cmd_metrics();
    } else if (strcmp(cmd, "connections") == 0) {
        printf("ok %llu\n", (unsigned long long)proxy_connections(proxy));
        return RC_AGAIN;
    } else {
        return err_set(&err, RC_INVALID, "unknown command %s", cmd);
    }
    return RC_OK;
}

int main(void)
{
    static char line[LINE_MAX_BYTES];
    static char *words[WORDS_MAX];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        size_t count = 0;
        char *rest = line;
        for (char *word; (word = strsep(&rest, " \n")) != NULL && count < WORDS_MAX;) {
            if (word[0] != '\0') {
                words[count++] = word;
            }
        }
        if (count == 0) {
            continue;
        }
        if (strcmp(words[0], "quit") == 0) {
            break;
        }
        err.text[0] = '\0';
        int rc = run(words, count);
        if (rc == RC_OK) {
            printf("ok\n");
        } else if (rc != RC_AGAIN) {
            printf("error %s: %s\n", rc_name(rc), err.text);
        }
        (void)fflush(stdout);
    }
    free_rules();
    for (size_t i = 0; i < backend_count; i++) {
        backend_unref(proxy, backends[i].backend);
        mem_free(backends[i].name);
    }
    proxy_free(proxy);
    driver_targets_free();
    driver_listen_free();
    for (size_t i = 0; i < config.proxy_trusted.count; i++) {
        mem_free(unconst(trusted[i]));
    }
    printf("ok\n");
    return 0;
}
