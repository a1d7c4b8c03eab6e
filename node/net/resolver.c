/*
 * Names, who watches them, and when each is looked up again.
 *
 *   name           | agenda                                     | job
 *   waiting        | its next look-up, or a hold that runs out  | NULL
 *   being looked up| a hold that runs out, or none              | under way
 *   without watch  | the end of its memory                      | either
 *
 * A name that nobody watches any more is remembered for a while: an endpoint that moves from one
 * backend to another in one change keeps its addresses. Watches that are owed a call stand in
 * `told`, so that a callback may open and close any watch.
 */
#include "node/net/resolver.h"

#include "node/base/check.h"
#include "node/base/hashtable.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"
#include "node/net/agenda.h"
#include "node/net/resolver_pool.h"

#include <inttypes.h>
#include <netdb.h>
#include <string.h>
#include <utlist.h>

enum { MEMORY_MS = 30000 };

struct resolver_watch {
    struct resolver_name *name;
    uint64_t interval_ms;
    uint64_t hold_ms;
    void (*changed)(void *arg);
    void *arg;
    bool expired;                       /* its hold ran out: it has no addresses */
    bool is_told;                       /* in resolver->told */
    struct resolver_watch *prev, *next; /* of the name */
    struct resolver_watch *told_prev, *told_next;
};

struct resolver_name {
    struct resolver *resolver;
    char *host;
    struct agenda_entry moment;
    struct resolver_watch *watches;
    struct resolver_job *job;
    bool pending; /* no look-up has ended yet */
    struct addr *addrs;
    size_t count;
    char *error; /* of the last look-up; NULL: it succeeded */
    uint32_t failures;
    uint64_t good_ms;    /* when the addresses were found */
    uint64_t look_up_ms; /* the next one */
    UT_hash_handle hh;
};

struct resolver {
    uv_loop_t *loop;
    uv_timer_t timer;
    unsigned holds; /* timer and pool, at the end */
    struct resolver_pool *pool;
    struct resolver_name *names;
    struct resolver_watch *told;
    struct agenda agenda;
    struct rng rng;
    uint64_t succeeded;
    uint64_t failed;
};

/* ---- getaddrinfo ---- */

static int look_up_system(void *ctx, const char *host, struct addr *ret_addrs, size_t cap,
                          size_t *ret_count, struct err_info *err)
{
    (void)ctx;
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0) {
        bool absent = code == EAI_NONAME || code == EAI_NODATA;
        return err_set(err, absent ? RC_NOT_FOUND : RC_IO, "%s",
                       code == EAI_SYSTEM ? "the system failed" : gai_strerror(code));
    }
    size_t count = 0;
    for (const struct addrinfo *at = found; at != NULL && count < cap; at = at->ai_next) {
        addr_from_sockaddr(at->ai_addr, &ret_addrs[count]);
        count += ret_addrs[count].sa.sa_family != AF_UNSPEC;
    }
    freeaddrinfo(found);
    *ret_count = count;
    return RC_OK;
}

const struct resolver_ops resolver_system = {.lookup = look_up_system};

/* ---- when ---- */

static void on_timer(uv_timer_t *timer);

static void arm(struct resolver *resolver)
{
    const struct agenda_entry *first = agenda_first(&resolver->agenda);
    if (first == NULL) {
        (void)uv_timer_stop(&resolver->timer); /* always 0 */
        return;
    }
    uint64_t now = time_mono_ms();
    uv_update_time(resolver->loop); /* timers count from the loop's idea of now */
    (void)uv_timer_start(&resolver->timer, on_timer, first->due > now ? first->due - now : 0, 0);
}

static uint64_t with_jitter(struct resolver *resolver, uint64_t ms)
{
    uint64_t part = ms / 10;
    return ms - part + rng_below(&resolver->rng, 2 * part + 1);
}

static uint64_t expiry_of(const struct resolver_watch *watch)
{
    uint64_t good_ms = watch->name->good_ms;
    return watch->hold_ms < UINT64_MAX - good_ms ? good_ms + watch->hold_ms : UINT64_MAX;
}

/* Put the name where it belongs on the agenda. O(its watches). */
static void plan(struct resolver_name *name, uint64_t now)
{
    struct resolver *resolver = name->resolver;
    uint64_t due = name->job == NULL ? name->look_up_ms : UINT64_MAX;
    struct resolver_watch *watch;
    if (name->watches == NULL) {
        due = now + MEMORY_MS;
    } else if (name->error != NULL && name->count > 0) {
        DL_FOREACH (name->watches, watch) {
            due = watch->expired ? due : MIN(due, expiry_of(watch));
        }
    }
    if (due == UINT64_MAX) {
        agenda_clear(&resolver->agenda, &name->moment);
    } else {
        agenda_set(&resolver->agenda, &name->moment, due);
    }
}

static uint64_t interval_of(const struct resolver_name *name)
{
    uint64_t interval_ms = UINT64_MAX;
    struct resolver_watch *watch;
    DL_FOREACH (name->watches, watch) {
        interval_ms = MIN(interval_ms, watch->interval_ms);
    }
    if (name->error == NULL || interval_ms <= RESOLVER_RETRY_MS) {
        return interval_ms;
    }
    uint64_t retry_ms = (uint64_t)RESOLVER_RETRY_MS << MIN(name->failures - 1, (uint32_t)20);
    return MIN(interval_ms, retry_ms);
}

/* ---- telling ---- */

static void tell(struct resolver_watch *watch)
{
    if (!watch->is_told) {
        watch->is_told = true;
        DL_APPEND2(watch->name->resolver->told, watch, told_prev, told_next);
    }
}

static void tell_all(struct resolver_name *name)
{
    struct resolver_watch *watch;
    DL_FOREACH (name->watches, watch) {
        tell(watch);
    }
}

static void untell(struct resolver_watch *watch)
{
    if (watch->is_told) {
        watch->is_told = false;
        DL_DELETE2(watch->name->resolver->told, watch, told_prev, told_next);
    }
}

/* From the loop's own level. */
static void deliver(struct resolver *resolver)
{
    while (resolver->told != NULL) {
        struct resolver_watch *watch = resolver->told;
        untell(watch);
        watch->changed(watch->arg);
    }
}

/* ---- names ---- */

static void name_free(struct resolver_name *name)
{
    struct resolver *resolver = name->resolver;
    ASSERT(name->watches == NULL);
    HASH_DEL(resolver->names, name);
    agenda_clear(&resolver->agenda, &name->moment);
    if (name->job != NULL) {
        name->job->name = NULL;
    }
    mem_free(name->addrs);
    mem_free(name->error);
    mem_free(name->host);
    mem_free(name);
}

static void look_up(struct resolver_name *name)
{
    struct resolver_job *job = mem_new(sizeof(*job));
    job->name = name;
    job->host = mem_strdup(name->host);
    job->failing = name->failures > 0;
    name->job = job;
    resolver_pool_start(name->resolver->pool, job);
}

static bool take_addrs(struct resolver_name *name, const struct resolver_job *job)
{
    bool same = name->count == job->count && !name->pending && name->error == NULL;
    for (size_t i = 0; same && i < job->count; i++) {
        same = addr_compare(&name->addrs[i], &job->addrs[i]) == 0;
    }
    if (!same) {
        mem_free(name->addrs);
        name->addrs = mem_dup(job->addrs, job->count * sizeof(*job->addrs));
        name->count = job->count;
    }
    MEM_FREE(name->error);
    name->failures = 0;
    struct resolver_watch *watch;
    DL_FOREACH (name->watches, watch) {
        watch->expired = false;
    }
    return !same;
}

static bool take_failure(struct resolver_name *name, const struct resolver_job *job)
{
    bool same = name->error != NULL && strcmp(name->error, job->err.text) == 0;
    if (!same) {
        mem_free(name->error);
        name->error = mem_strdup(job->err.text);
    }
    name->failures += name->failures < UINT32_MAX;
    return !same;
}

static void expire(struct resolver_name *name, uint64_t now)
{
    if (name->error == NULL || name->count == 0) {
        return;
    }
    struct resolver_watch *watch;
    DL_FOREACH (name->watches, watch) {
        if (!watch->expired && expiry_of(watch) <= now) {
            watch->expired = true;
            tell(watch);
        }
    }
}

static void on_done(void *arg, struct resolver_job *job)
{
    struct resolver *resolver = arg;
    struct resolver_name *name = job->name;
    *(job->rc == RC_OK ? &resolver->succeeded : &resolver->failed) += 1;
    if (name != NULL) {
        uint64_t now = time_mono_ms();
        name->job = NULL;
        bool changed = job->rc == RC_OK ? take_addrs(name, job) : take_failure(name, job);
        name->good_ms = job->rc == RC_OK ? now : name->good_ms;
        changed = changed || name->pending;
        name->pending = false;
        if (changed) {
            tell_all(name);
        }
        if (name->watches != NULL) {
            name->look_up_ms = now + with_jitter(resolver, interval_of(name));
            expire(name, now);
            plan(name, now);
        }
    }
    resolver_job_free(job);
    deliver(resolver);
    arm(resolver);
}

static void on_moment(struct resolver_name *name, uint64_t now)
{
    if (name->watches == NULL) {
        name_free(name);
        return;
    }
    expire(name, now);
    if (name->job == NULL && name->look_up_ms <= now) {
        look_up(name);
    }
    plan(name, now);
}

static void on_timer(uv_timer_t *timer)
{
    struct resolver *resolver = timer->data;
    uint64_t now = time_mono_ms();
    struct agenda_entry *entry;
    while ((entry = agenda_due(&resolver->agenda, now)) != NULL) {
        on_moment(CONTAINER_OF(entry, struct resolver_name, moment), now);
    }
    deliver(resolver);
    arm(resolver);
}

/* ---- the interface ---- */

struct resolver *resolver_new(uv_loop_t *loop, const struct resolver_ops *ops, void *ctx)
{
    struct resolver *resolver = mem_new(sizeof(*resolver));
    resolver->loop = loop;
    agenda_init(&resolver->agenda);
    rng_init(&resolver->rng, rng_secret_u64());
    (void)uv_timer_init(loop, &resolver->timer); /* cannot fail */
    resolver->timer.data = resolver;
    resolver->pool = resolver_pool_new(loop, ops, ctx, on_done, resolver);
    resolver->holds = 2;
    return resolver;
}

static void release(void *arg)
{
    struct resolver *resolver = arg;
    if (--resolver->holds == 0) {
        mem_free(resolver);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void resolver_free(struct resolver *resolver)
{
    if (resolver == NULL) {
        return;
    }
    struct resolver_name *name, *next;
    HASH_ITER (hh, resolver->names, name, next) {
        name_free(name);
    }
    agenda_deinit(&resolver->agenda);
    resolver_pool_stop(resolver->pool, release, resolver);
    uv_close((uv_handle_t *)&resolver->timer, on_timer_closed);
}

struct resolver_watch *resolver_watch(struct resolver *resolver, const char *host,
                                      uint64_t interval_ms, uint64_t hold_ms,
                                      void (*changed)(void *arg), void *arg)
{
    struct resolver_watch *watch = mem_new(sizeof(*watch));
    struct resolver_name *name = NULL;
    HASH_FIND_STR(resolver->names, host, name);
    if (name == NULL) {
        name = mem_new(sizeof(*name));
        name->resolver = resolver;
        name->host = mem_strdup(host);
        name->pending = true;
        HASH_ADD_KEYPTR(hh, resolver->names, name->host, strlen(name->host), name);
    }
    bool idle = name->watches == NULL;
    watch->name = name;
    watch->changed = changed;
    watch->arg = arg;
    DL_APPEND(name->watches, watch);
    if (idle) {
        /* New, or nobody looked for a while: what is remembered serves until the answer. */
        name->look_up_ms = time_mono_ms();
    }
    resolver_watch_times(watch, interval_ms, hold_ms);
    return watch;
}

void resolver_watch_times(struct resolver_watch *watch, uint64_t interval_ms, uint64_t hold_ms)
{
    ASSERT(interval_ms > 0);
    struct resolver_name *name = watch->name;
    uint64_t now = time_mono_ms();
    watch->interval_ms = interval_ms;
    watch->hold_ms = hold_ms;
    uint64_t due = now + interval_ms;
    /* Without a need no plan: it costs O(watches), and very many may be opened at once. */
    if (name->error != NULL || name->look_up_ms > due || name->watches->next == NULL) {
        name->look_up_ms = MIN(name->look_up_ms, due);
        plan(name, now);
        arm(name->resolver);
    }
}

void resolver_unwatch(struct resolver_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    struct resolver_name *name = watch->name;
    untell(watch);
    DL_DELETE(name->watches, watch);
    mem_free(watch);
    if (name->watches == NULL) {
        plan(name, time_mono_ms());
        arm(name->resolver);
    }
}

void resolver_view(const struct resolver_watch *watch, struct resolver_view *ret_view)
{
    const struct resolver_name *name = watch->name;
    *ret_view = (struct resolver_view){
        .pending = name->pending,
        .addrs = name->addrs,
        .count = watch->expired ? 0 : name->count,
        .error = name->error,
    };
}

size_t resolver_names(const struct resolver *resolver)
{
    return HASH_COUNT(resolver->names);
}

void resolver_metrics(const struct resolver *resolver, struct buf *out)
{
    (void)buf_printf(out,
                     "# HELP skein_dns_names DNS names that endpoints use.\n"
                     "# TYPE skein_dns_names gauge\nskein_dns_names %zu\n"
                     "# HELP skein_dns_lookups_total Look-ups of names by result.\n"
                     "# TYPE skein_dns_lookups_total counter\n"
                     "skein_dns_lookups_total{result=\"good\"} %" PRIu64 "\n"
                     "skein_dns_lookups_total{result=\"failed\"} %" PRIu64 "\n",
                     resolver_names(resolver), resolver->succeeded, resolver->failed);
}
