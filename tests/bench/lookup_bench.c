/*
 * What it costs to find the rule for a request: lookup_bench HOSTS [--marks].
 *
 * HOSTS hosts, each with a rule for everything, every tenth with one for /api as well. A look-up is
 * what an exchange does before it has a rule: canonical name from the Host field, canonical path,
 * host, rule. Hosts are asked for in random order, so a large table is met with cold caches; for
 * comparison also one host again and again. Prints nanoseconds, or between marks (marks.h) does
 * LOOKUPS_COUNTED look-ups for the instruction count.
 */
#include "node/base/mem.h"
#include "node/http/uri.h"
#include "node/proxy/catalog.h"
#include "tests/bench/marks.h"

#include "node/base/timesrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUPS = 200000, LOOKUPS_COUNTED = 100, BATCHES = 9, HOST_TEXT_MAX = 64 };

bool marks_on;

static struct catalog catalog;
static char (*asked)[HOST_TEXT_MAX]; /* Host fields in the order in which they are asked for */
static unsigned found;

static void build(size_t hosts)
{
    catalog_init(&catalog, 1);
    struct backend *backend = backend_make(&catalog, "bench/backend");
    const struct proxy_target target = {.backend = backend, .weight = 1};
    for (size_t i = 0; i < hosts; i++) {
        char name[HOST_TEXT_MAX];
        (void)snprintf(name, sizeof(name), "app-%zu.apps.example.com", i);
        const struct proxy_rule rules[] = {
            {.route = "bench/all", .path = "/", .targets = &target, .target_count = 1},
            {.route = "bench/api", .path = "/api", .targets = &target, .target_count = 1},
        };
        struct err_info err;
        if (hosts_set(&catalog.hosts, name, rules, i % 10 == 0 ? 2 : 1, NULL, &err) != RC_OK) {
            (void)fprintf(stderr, "lookup_bench: %s\n", err.text);
            exit(1);
        }
    }
    backend_put(backend);
}

static void choose(size_t hosts)
{
    struct rng rng;
    rng_init(&rng, 1);
    asked = mem_array(LOOKUPS, HOST_TEXT_MAX);
    for (size_t i = 0; i < LOOKUPS; i++) {
        (void)snprintf(asked[i], HOST_TEXT_MAX, "App-%zu.apps.example.com:8080",
                       (size_t)rng_below(&rng, hosts));
    }
}

__attribute__((noinline)) static void look_up(const char *field)
{
    static const char path[] = "/api/v1/items/42";
    static char scratch[sizeof(path)];
    char name[URI_HOST_MAX + 1];
    struct uri_host uri;
    struct uri_path canon;
    if (uri_host_canon(field, strlen(field), name, &uri) != RC_OK ||
        uri_path_canon(path, sizeof(path) - 1, URI_DOTS_REFUSE, scratch, sizeof(scratch), &canon) !=
            RC_OK) {
        return;
    }
    struct host *host = hosts_find(&catalog.hosts, name, uri.name_len);
    if (host != NULL && rules_match(&host->rules, canon.at, canon.len) != NULL) {
        found++;
    }
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Nanoseconds of a look-up, median and best of the batches. */
static void measure(bool same, double *ret_median, double *ret_best)
{
    double batches[BATCHES];
    for (size_t batch = 0; batch < BATCHES; batch++) {
        uint64_t start = time_mono_ns();
        for (size_t i = 0; i < LOOKUPS; i++) {
            look_up(asked[same ? 0 : i]);
        }
        batches[batch] = (double)(time_mono_ns() - start) / LOOKUPS;
    }
    qsort(batches, BATCHES, sizeof(batches[0]), by_value);
    *ret_median = batches[BATCHES / 2];
    *ret_best = batches[0];
}

int main(int argc, char **argv)
{
    size_t hosts = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    marks_on = argc > 2 && strcmp(argv[2], "--marks") == 0;
    if (hosts == 0 || hosts > 1000000) {
        (void)fputs("usage: lookup_bench HOSTS [--marks]\n", stderr);
        return 64;
    }
    build(hosts);
    choose(hosts);
    if (marks_on) {
        mark();
        mark();
        mark();
        for (size_t i = 0; i < LOOKUPS_COUNTED; i++) {
            look_up(asked[i]);
        }
        mark();
        return found == LOOKUPS_COUNTED ? 0 : 1;
    }
    double median;
    double best;
    double same;
    double unused;
    measure(false, &median, &best);
    measure(true, &same, &unused);
    printf("{\"hosts\": %zu, \"random_ns\": %.1f, \"random_best_ns\": %.1f, \"same_ns\": %.1f}\n",
           hosts, median, best, same);
    catalog_deinit(&catalog);
    mem_free(asked);
    return found == 2 * BATCHES * LOOKUPS ? 0 : 1;
}
