/*
 * What the parts count, one after the other, as Prometheus text.
 */
#include "node/app/node.h"
#include "node/app/status.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %" PRIu64 "\n", name, help, name, name,
                     value);
}

static void counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s counter\n%s %" PRIu64 "\n", name, help, name,
                     name, value);
}

static void metrics_objects(const struct node *node, struct buf *out)
{
    (void)buf_puts(out, "# HELP skein_objects Objects by kind.\n# TYPE skein_objects gauge\n");
    for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
        (void)buf_printf(out, "skein_objects{kind=\"%s\"} %zu\n", kind->name,
                         objects_count(node->objects, kind));
    }
    counter(out, "skein_objects_damaged_total", "Replicated objects that could not be read.",
            objects_damaged(node->objects));
}

static void metrics_store(const struct node *node, struct buf *out)
{
    if (node->writer == NULL) {
        return;
    }
    struct store_stats stats;
    store_writer_stats(node->writer, &stats);
    counter(out, "skein_store_commits_total", "Durable transactions.", stats.commits);
    counter(out, "skein_store_batches_total", "Batches handled, failed ones included.", stats.jobs);
    counter(out, "skein_store_failed_total", "Batches that did not reach the disk.", stats.failed);
    gauge(out, "skein_store_batches_per_commit_max", "Most batches in one transaction.",
          stats.batch_max);
    (void)buf_printf(out,
                     "# HELP skein_store_commit_seconds Duration of the last transaction.\n"
                     "# TYPE skein_store_commit_seconds gauge\nskein_store_commit_seconds %.6f\n",
                     (double)stats.commit_us / 1e6);
    gauge(out, "skein_store_queue", "Batches waiting or being written.", stats.queue_jobs);
    gauge(out, "skein_store_queue_bytes", "The same in bytes.", stats.queue_bytes);
    gauge(out, "skein_store_frontier_held", "1: replicated rows were lost by a failing disk.",
          stats.frontier_held);
}

static void metrics_cluster(const struct node *node, struct buf *out)
{
    enum { STATES = MEMBER_LEFT + 1 };
    const struct gossip *core = gossip_net_core(node->net);
    uint64_t counts[STATES] = {0};
    for (size_t i = 0; i < gossip_member_count(core); i++) {
        size_t state = gossip_member_at(core, i)->state;
        counts[MIN(state, (size_t)STATES - 1)]++;
    }
    (void)buf_puts(out, "# HELP skein_members Members by state.\n# TYPE skein_members gauge\n");
    for (size_t i = 0; i < STATES; i++) {
        (void)buf_printf(out, "skein_members{state=\"%s\"} %" PRIu64 "\n",
                         status_member_state((enum member_state)i), counts[i]);
    }
    gauge(out, "skein_revision", "Writes of the cluster that this node has.",
          gossip_revision(core));
    (void)buf_printf(out,
                     "# HELP skein_clock_offset_seconds Own clock minus the median of the peers'.\n"
                     "# TYPE skein_clock_offset_seconds gauge\nskein_clock_offset_seconds %.3f\n",
                     (double)gossip_clock_offset_ms(core) / 1000.0);
}

/* A number of /proc/self/stat, counted as proc(5) does (from 3 on); 0: not there. */
static uint64_t proc_stat(const char *text, int field)
{
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    for (int i = 2; at != NULL && i < field; i++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t count_open_files(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return 0;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);           /* was only read */
    return count > 3 ? count - 3 : 0; /* ".", ".." and its own */
}

/* Unix time at which the machine started; 0: not known. */
static uint64_t boot_time(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256];
    unsigned long long seconds = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL &&
           sscanf(line, "btime %llu", &seconds) != 1) {
    }
    if (file != NULL) {
        (void)fclose(file); /* was only read */
    }
    return seconds;
}

/* The names that every client library of Prometheus has. */
static void metrics_process(struct buf *out)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    if (file != NULL) {
        size_t len = fread(text, 1, sizeof(text) - 1, file);
        text[len] = '\0';
        (void)fclose(file); /* was only read */
    }
    long hertz = sysconf(_SC_CLK_TCK);
    uint64_t ticks = hertz > 0 ? (uint64_t)hertz : 100;
    (void)buf_printf(out,
                     "# HELP process_cpu_seconds_total User and system time.\n"
                     "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.2f\n",
                     (double)(proc_stat(text, 14) + proc_stat(text, 15)) / (double)ticks);
    gauge(out, "process_resident_memory_bytes", "Memory in RAM.",
          proc_stat(text, 24) * (uint64_t)sysconf(_SC_PAGESIZE));
    gauge(out, "process_virtual_memory_bytes", "Address space in use.", proc_stat(text, 23));
    gauge(out, "process_threads", "Threads.", proc_stat(text, 20));
    gauge(out, "process_start_time_seconds", "Unix time at which it started.",
          boot_time() + proc_stat(text, 22) / ticks);
    gauge(out, "process_open_fds", "Open file descriptors.", count_open_files());
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        gauge(out, "process_max_fds", "How many there may be.", limit.rlim_cur);
    }
}

void node_metrics(struct node *node, struct buf *out)
{
    char reason[256];
    (void)buf_printf(out,
                     "# HELP skein_build_info Version.\n# TYPE skein_build_info gauge\n"
                     "skein_build_info{version=\"%s\"} 1\n",
                     SKEIN_VERSION);
    gauge(out, "skein_ready", "1 when this node should get traffic.",
          node_is_ready(node, reason, sizeof(reason)));
    metrics_process(out);
    metrics_objects(node, out);
    metrics_store(node, out);
    metrics_cluster(node, out);
    gossip_net_metrics(node->net, out);
    tickets_metrics(node->tickets, out);
    if (node->routing != NULL) {
        routing_metrics(node->routing, out);
        routing_certs_metrics(node->routing, out);
    }
    if (node->proxy != NULL) {
        proxy_metrics(node->proxy, out);
    }
    if (node->admin != NULL) {
        admin_metrics(node->admin, out);
    }
}
