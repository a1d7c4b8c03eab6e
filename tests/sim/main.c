/*
 * skein_sim: run seeds, print one line per failing one that replays it, and a summary.
 */
#include "gossip/core/mutant.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SKEIN_MUTANTS
enum mutant mutant_active = MUTANT_NONE;
#endif

static const char usage[] =
    "usage: skein_sim [--seeds N] [--first-seed S] [--nodes N] [--loss P] [--faults RATE]\n"
    "                 [--keys N] [--writes PER_SECOND] [--steps MILLISECONDS] [--settle MS]\n"
    "                 [--plain] [--twice] [--verbose] [--mutant 1..4 [--expect-failure]]\n"
    "  --steps   how long faults and writes go on, in virtual milliseconds\n"
    "  --plain   only writes that fit a datagram and may be in one\n"
    "  --twice   run every seed twice and compare the traces\n"
    "  --expect-failure  succeed at the first seed that fails: the mutant is caught\n";

struct run {
    struct sim_options options;
    uint64_t seeds;
    bool twice;
    bool expect_failure;
    unsigned mutant;
};

static bool parse_number(const char *text, double *ret_value)
{
    char *end = NULL;
    *ret_value = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *ret_value >= 0;
}

static bool parse_option(struct run *run, const char *name, const char *text)
{
    struct sim_options *options = &run->options;
    if (strcmp(name, "--first-seed") == 0) {
        options->seed = strtoull(text, NULL, 10);
        return true;
    }
    double value = 0;
    if (!parse_number(text, &value)) {
        return false;
    }
    if (strcmp(name, "--seeds") == 0) {
        run->seeds = (uint64_t)value;
    } else if (strcmp(name, "--nodes") == 0) {
        options->nodes = (size_t)value;
    } else if (strcmp(name, "--loss") == 0) {
        options->loss = value;
    } else if (strcmp(name, "--faults") == 0) {
        options->faults = value;
    } else if (strcmp(name, "--keys") == 0) {
        options->keys = (uint32_t)value;
    } else if (strcmp(name, "--writes") == 0) {
        options->writes = (uint32_t)value;
    } else if (strcmp(name, "--steps") == 0) {
        options->hostile_ms = (uint64_t)value;
    } else if (strcmp(name, "--settle") == 0) {
        options->settle_ms = (uint64_t)value;
    } else if (strcmp(name, "--mutant") == 0) {
        run->mutant = (unsigned)value;
    } else {
        return false;
    }
    return true;
}

static bool parse(struct run *run, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            run->options.verbose = true;
        } else if (strcmp(argv[i], "--plain") == 0) {
            run->options.plain = true;
        } else if (strcmp(argv[i], "--twice") == 0) {
            run->twice = true;
        } else if (strcmp(argv[i], "--expect-failure") == 0) {
            run->expect_failure = true;
        } else if (i + 1 < argc && parse_option(run, argv[i], argv[i + 1])) {
            i++;
        } else {
            return false;
        }
    }
    const struct sim_options *options = &run->options;
    return options->nodes >= 1 && options->nodes <= SIM_NODES_MAX && options->keys >= 1 &&
           options->writes >= 1 && options->loss < 1;
}

static void print_failure(const struct run *run, const struct sim_options *options,
                          const char *fault)
{
    (void)printf("FAILED seed %" PRIu64 ": %s\n  replay: --first-seed %" PRIu64
                 " --seeds 1 --nodes %zu --loss %g --faults %g --keys %u --writes %u --steps "
                 "%" PRIu64 " --settle %" PRIu64,
                 options->seed, fault, options->seed, options->nodes, options->loss,
                 options->faults, options->keys, options->writes, options->hostile_ms,
                 options->settle_ms);
    (void)printf("%s", options->plain ? " --plain" : "");
    (void)printf(run->mutant != 0 ? " --mutant %u\n" : "\n", run->mutant);
    (void)fflush(stdout);
}

/* The time in which that share of all writes reached everybody. */
static double spread_s(const uint32_t *spread, double share)
{
    uint64_t total = 0;
    for (size_t i = 0; i < SIM_SPREAD_STEPS; i++) {
        total += spread[i];
    }
    uint64_t seen = 0;
    for (size_t i = 0; i < SIM_SPREAD_STEPS; i++) {
        seen += spread[i];
        if (total != 0 && (double)seen >= share * (double)total) {
            return (double)(i + 1) * SIM_SPREAD_MS / 1000.0;
        }
    }
    return 0;
}

static bool run_seed(const struct run *run, const struct sim_options *options,
                     struct sim_result *result)
{
    sim_run(options, result);
    if (result->ok && run->twice) {
        struct sim_result again;
        sim_run(options, &again);
        if (again.trace != result->trace) {
            (void)snprintf(result->fault, sizeof(result->fault),
                           "two runs differ: trace %" PRIx64 " and %" PRIx64, result->trace,
                           again.trace);
            result->ok = false;
        }
    }
    if (!result->ok) {
        print_failure(run, options, result->fault);
    }
    return result->ok;
}

static void add_result(struct sim_result *sum, const struct sim_result *result)
{
    sum->settled_ms += result->settled_ms;
    sum->datagrams += result->datagrams;
    sum->acknowledged += result->acknowledged;
    sum->refused += result->refused;
    sum->crashes += result->crashes;
    sum->cuts += result->cuts;
    sum->syncs += result->syncs;
    sum->repairs += result->repairs;
    sum->generations += result->generations;
    sum->false_deaths += result->false_deaths;
    sum->trace ^= result->trace;
    for (size_t k = 0; k < SIM_SPREAD_STEPS; k++) {
        sum->spread[k] += result->spread[k];
    }
}

int main(int argc, char **argv)
{
    struct run run = {
        .options = {.seed = 1,
                    .nodes = 5,
                    .loss = 0.05,
                    .faults = 0.3,
                    .keys = 40,
                    .writes = 8,
                    .hostile_ms = 40000,
                    .settle_ms = 150000},
        .seeds = 20,
    };
    if (!parse(&run, argc, argv)) {
        (void)fputs(usage, stderr);
        return 2;
    }
#ifdef SKEIN_MUTANTS
    mutant_active = run.mutant < MUTANT_COUNT ? (enum mutant)run.mutant : MUTANT_NONE;
#else
    if (run.mutant != 0) {
        (void)fputs("skein_sim: this build has no mutants\n", stderr);
        return 2;
    }
#endif
    struct sim_result sum = {.fault = ""};
    uint64_t failed = 0;
    uint64_t slowest_ms = 0;
    for (uint64_t i = 0; i < run.seeds; i++) {
        struct sim_options options = run.options;
        options.seed += i;
        struct sim_result result;
        failed += run_seed(&run, &options, &result) ? 0 : 1;
        if (run.expect_failure && failed != 0) {
            return 0;
        }
        slowest_ms = MAX(slowest_ms, result.settled_ms);
        add_result(&sum, &result);
    }
    (void)printf("%" PRIu64 " seeds, %zu nodes, %g loss: %" PRIu64 " failed; settled in %.1f s on "
                 "average, %.1f s at most\n",
                 run.seeds, run.options.nodes, run.options.loss, failed,
                 (double)sum.settled_ms / 1000.0 / (double)MAX(run.seeds, (uint64_t)1),
                 (double)slowest_ms / 1000.0);
    (void)printf("  %" PRIu64 " writes acknowledged, %" PRIu64 " refused, %" PRIu64
                 " crashes, %" PRIu64 " datagrams, %" PRIu64 " sessions completed, %" PRIu64
                 " cut, %" PRIu64 " rows repaired by audit, %" PRIu64 " generations, %" PRIu64
                 " false deaths in calm, trace %" PRIx64 "\n",
                 sum.acknowledged, sum.refused, sum.crashes, sum.datagrams, sum.syncs, sum.cuts,
                 sum.repairs, sum.generations, sum.false_deaths, sum.trace);
    if (run.options.faults <= 0) {
        (void)printf("  from durable to everywhere: median %.2f s, 99 of 100 in %.2f s\n",
                     spread_s(sum.spread, 0.5), spread_s(sum.spread, 0.99));
    }
    return (failed == 0) != run.expect_failure ? 0 : 1;
}
