/*
 * The schedule: three agendas behind one timer.
 *
 *   state    | agenda                     | look
 *   waiting  | steady or failing, by turn | NULL
 *   looking  | limits                     | running
 *
 * A target is failing when its last look was not good. The timer stands at the earliest moment at
 * which something can be done: with all places taken only a time limit or the end of a look can
 * free one.
 */
#include "node/health/prober.h"

#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/timesrc.h"
#include "node/health/look.h"
#include "node/net/agenda.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct prober_target {
    struct agenda_entry moment;
    struct prober *prober;
    struct look *look; /* NULL: waiting */
    struct check_spec *spec;
    struct check check;
    bool failing;
    uint64_t started_ms;
    uint64_t since_wall_ms;
    struct addr addr;
    char *host; /* NULL: the address */
    char *why;  /* NULL: nothing was wrong */
    void *owner;
};

enum { TLS_STARTS = 8 }; /* a handshake takes as long as so many looks without */

struct prober {
    uv_timer_t timer;
    uv_loop_t *loop;
    const struct prober_ops *ops;
    struct tls_lib *tls; /* NULL: no check wanted it yet */
    struct agenda steady;
    struct agenda failing;
    struct agenda limits;
    size_t looking_failing; /* of those in flight: failing ones */
    size_t count;
    uint64_t slice; /* the slice of time in which `starts` were made */
    uint32_t starts;
    uint64_t results[LOOK_RESULT_COUNT];
    struct rng rng;
};

/* ---- the timer ---- */

static bool has_place(const struct prober *prober, bool failing)
{
    return prober->limits.count < PROBER_IN_FLIGHT_MAX &&
           (!failing || prober->looking_failing < PROBER_IN_FLIGHT_MAX / 2);
}

static void on_timer(uv_timer_t *timer);

static void earlier(const struct agenda *agenda, uint64_t *due)
{
    const struct agenda_entry *first = agenda_first(agenda);
    if (first != NULL) {
        *due = MIN(*due, first->due);
    }
}

static void arm(struct prober *prober)
{
    uint64_t start_due = UINT64_MAX;
    if (has_place(prober, false)) {
        earlier(&prober->steady, &start_due);
    }
    if (has_place(prober, true)) {
        earlier(&prober->failing, &start_due);
    }
    uint64_t now = time_mono_ms();
    if (start_due <= now && prober->slice == now / PROBER_SLICE_MS &&
        prober->starts >= PROBER_STARTS_PER_SLICE) {
        start_due = (prober->slice + 1) * PROBER_SLICE_MS;
    }
    uint64_t due = start_due;
    earlier(&prober->limits, &due);
    if (due == UINT64_MAX) {
        (void)uv_timer_stop(&prober->timer); /* always 0 */
        return;
    }
    uv_update_time(prober->loop); /* timers count from the loop's idea of now */
    (void)uv_timer_start(&prober->timer, on_timer, due > now ? due - now : 0, 0);
}

/* ---- results ---- */

static void wait_until(struct prober *prober, struct prober_target *target, uint64_t due)
{
    agenda_set(target->failing ? &prober->failing : &prober->steady, &target->moment, due);
}

/* The look is over: out of flight, nothing decided. */
static void leave(struct prober *prober, struct prober_target *target)
{
    target->look = NULL;
    agenda_clear(&prober->limits, &target->moment);
    if (target->failing) {
        prober->looking_failing--;
    }
}

/* What made it down stays until it is up again. */
static void keep_why(struct prober_target *target, const char *why)
{
    if (why[0] == '\0' && target->check.vote == CHECK_UP) {
        MEM_FREE(target->why);
    } else if (why[0] != '\0' && (target->why == NULL || strcmp(target->why, why) != 0)) {
        mem_free(target->why);
        target->why = mem_strdup(why);
    }
}
/* Of a target that is out of flight. */
static void conclude(struct prober *prober, struct prober_target *target, enum look_result result,
                     const char *why)
{
    prober->results[result]++;
    const struct check_pace *pace = &target->spec->pace;
    bool turned = false;
    if (result != LOOK_LOCAL) {
        turned = check_observe(&target->check, pace, result == LOOK_GOOD);
        target->failing = result != LOOK_GOOD;
        keep_why(target, why);
    }
    wait_until(prober, target,
               check_next(&target->check, pace, &prober->rng, target->started_ms, time_mono_ms()));
    if (turned) {
        target->since_wall_ms = time_wall_ms();
        prober->ops->on_vote(target->owner, target->check.vote, why);
    }
}

static void on_done(void *arg, enum look_result result, const char *why)
{
    struct prober_target *target = arg;
    struct prober *prober = target->prober;
    leave(prober, target);
    conclude(prober, target, result, why);
    arm(prober);
}

static void time_out(struct prober *prober, struct prober_target *target)
{
    char why[LOOK_TEXT_MAX];
    uint32_t limit_ms = target->spec->pace.timeout_ms;
    const char *what = look_waits_for(target->look);
    if (limit_ms % 1000 == 0) {
        (void)snprintf(why, sizeof(why), "%s timed out after %" PRIu32 "s", what, limit_ms / 1000);
    } else {
        (void)snprintf(why, sizeof(why), "%s timed out after %" PRIu32 "ms", what, limit_ms);
    }
    look_cancel(target->look);
    leave(prober, target);
    conclude(prober, target, LOOK_TIMEOUT, why);
}

/* ---- starting ---- */

/* Made when the first check wants it; NULL: this node's trouble. */
static struct tls_lib *prober_tls(struct prober *prober)
{
    const struct tls_lib_config config = {.keylog_fd = -1};
    struct err_info err = {0};
    if (prober->tls == NULL && tls_lib_new(&config, &prober->tls, &err) != RC_OK) {
        prober->tls = NULL;
        log_error("no checks by TLS can be made", "reason=\"%s\"", err.text);
    }
    return prober->tls;
}

static void begin(struct prober *prober, struct prober_target *target, uint64_t now)
{
    char text[ADDR_TEXT_MAX];
    char why[LOOK_TEXT_MAX] = "";
    const char *host = target->host != NULL ? target->host : addr_format(&target->addr, text);
    agenda_clear(target->failing ? &prober->failing : &prober->steady, &target->moment);
    target->started_ms = now;
    const struct look_ask ask = {
        .loop = prober->loop,
        .spec = target->spec,
        .addr = &target->addr,
        .host = host,
        .tls = target->spec->tls != NULL ? prober_tls(prober) : NULL,
        .done = on_done,
        .arg = target,
    };
    enum look_result result = LOOK_LOCAL;
    if (target->spec->tls == NULL || ask.tls != NULL) {
        result = look_start(&ask, &target->look, why);
    }
    if (result != LOOK_PENDING) {
        conclude(prober, target, result, why);
        return;
    }
    agenda_set(&prober->limits, &target->moment, now + target->spec->pace.timeout_ms);
    if (target->failing) {
        prober->looking_failing++;
    }
}

/* Who may start now and has waited longest; NULL: nobody. */
static struct prober_target *next_due(struct prober *prober, uint64_t now)
{
    struct agenda_entry *steady = NULL;
    struct agenda_entry *failing = NULL;
    if (has_place(prober, false)) {
        steady = agenda_due(&prober->steady, now);
    }
    if (has_place(prober, true)) {
        failing = agenda_due(&prober->failing, now);
    }
    struct agenda_entry *entry = steady;
    if (entry == NULL || (failing != NULL && failing->due < entry->due)) {
        entry = failing;
    }
    return entry != NULL ? CONTAINER_OF(entry, struct prober_target, moment) : NULL;
}

static void start_due(struct prober *prober, uint64_t now)
{
    if (prober->slice != now / PROBER_SLICE_MS) {
        prober->slice = now / PROBER_SLICE_MS;
        prober->starts = 0;
    }
    while (prober->starts < PROBER_STARTS_PER_SLICE) {
        struct prober_target *target = next_due(prober, now);
        if (target == NULL) {
            return;
        }
        prober->starts += target->spec->tls != NULL ? TLS_STARTS : 1;
        begin(prober, target, now);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct prober *prober = timer->data;
    uint64_t now = time_mono_ms();
    struct agenda_entry *entry;
    while ((entry = agenda_due(&prober->limits, now)) != NULL) {
        time_out(prober, CONTAINER_OF(entry, struct prober_target, moment));
    }
    start_due(prober, now);
    arm(prober);
}

/* ---- the interface ---- */

struct prober *prober_new(uv_loop_t *loop, const struct prober_ops *ops)
{
    struct prober *prober = mem_new(sizeof(*prober));
    prober->loop = loop;
    prober->ops = ops;
    agenda_init(&prober->steady);
    agenda_init(&prober->failing);
    agenda_init(&prober->limits);
    rng_init(&prober->rng, rng_secret_u64());
    (void)uv_timer_init(loop, &prober->timer); /* cannot fail */
    prober->timer.data = prober;
    return prober;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void prober_free(struct prober *prober)
{
    if (prober == NULL) {
        return;
    }
    ASSERT(prober->count == 0);
    agenda_deinit(&prober->steady);
    agenda_deinit(&prober->failing);
    agenda_deinit(&prober->limits);
    tls_lib_free(prober->tls); /* looks that are still closing have no engine any more */
    uv_close((uv_handle_t *)&prober->timer, on_timer_closed);
}

struct prober_target *prober_add(struct prober *prober, const struct addr *addr, const char *host,
                                 struct check_spec *spec, void *owner)
{
    struct prober_target *target = mem_new(sizeof(*target));
    target->prober = prober;
    target->spec = check_spec_ref(spec);
    target->addr = *addr;
    target->host = host != NULL ? mem_strdup(host) : NULL;
    target->owner = owner;
    prober->count++;
    wait_until(prober, target, time_mono_ms());
    arm(prober);
    return target;
}

/* In flight or not, it waits in no agenda afterwards. */
static void stop_looking(struct prober *prober, struct prober_target *target)
{
    if (target->look != NULL) {
        look_cancel(target->look);
        leave(prober, target);
    } else {
        agenda_clear(target->failing ? &prober->failing : &prober->steady, &target->moment);
    }
}

void prober_change(struct prober *prober, struct prober_target *target, struct check_spec *spec)
{
    stop_looking(prober, target);
    check_spec_unref(target->spec);
    target->spec = check_spec_ref(spec);
    target->check.streak = 0;
    target->check.spread = false;
    wait_until(prober, target, time_mono_ms());
    arm(prober);
}

void prober_remove(struct prober *prober, struct prober_target *target)
{
    if (target == NULL) {
        return;
    }
    stop_looking(prober, target);
    ASSERT(prober->count > 0);
    prober->count--;
    check_spec_unref(target->spec);
    mem_free(target->host);
    mem_free(target->why);
    mem_free(target);
    arm(prober);
}

void prober_view(const struct prober_target *target, struct prober_view *ret_view)
{
    *ret_view = (struct prober_view){
        .vote = target->check.vote,
        .since_wall_ms = target->since_wall_ms,
        .why = target->why != NULL ? target->why : "",
        .streak = target->check.streak,
        .needed = check_needed(&target->check, &target->spec->pace),
    };
}

size_t prober_count(const struct prober *prober)
{
    return prober->count;
}

size_t prober_in_flight(const struct prober *prober)
{
    return prober->limits.count;
}

/* How far the schedule lags: how long the one that waits longest has been due. */
static uint64_t late_ms(const struct prober *prober)
{
    uint64_t due = UINT64_MAX;
    earlier(&prober->steady, &due);
    earlier(&prober->failing, &due);
    uint64_t now = time_mono_ms();
    return due < now ? now - due : 0;
}

void prober_metrics(const struct prober *prober, struct buf *out)
{
    (void)buf_puts(out, "# HELP skein_health_checks_total Health checks by result.\n"
                        "# TYPE skein_health_checks_total counter\n");
    for (size_t i = LOOK_GOOD; i < LOOK_RESULT_COUNT; i++) {
        (void)buf_printf(out, "skein_health_checks_total{result=\"%s\"} %" PRIu64 "\n",
                         look_result_label((enum look_result)i), prober->results[i]);
    }
    (void)buf_printf(out,
                     "# HELP skein_health_targets Addresses under active checks.\n"
                     "# TYPE skein_health_targets gauge\nskein_health_targets %zu\n"
                     "# HELP skein_health_checks_in_flight Health checks under way.\n"
                     "# TYPE skein_health_checks_in_flight gauge\n"
                     "skein_health_checks_in_flight %zu\n"
                     "# HELP skein_health_late_seconds How long the most overdue check waits.\n"
                     "# TYPE skein_health_late_seconds gauge\n"
                     "skein_health_late_seconds %.3f\n",
                     prober->count, prober->limits.count, (double)late_ms(prober) / 1000.0);
}
