/*
 * Probes and their schedule against listeners on loopback. Nothing here depends on how long
 * something takes: tests wait for events, and time limits are either unreachable or certain.
 * covers: prober.c
 */
#include "node/base/mem.h"
#include "node/health/look.h"
#include "node/health/prober.h"
#include "node/net/listener.h"
#include "node/net/loop.h"
#include "node/net/stream.h"
#include "tests/support/unit.h"

#include <unistd.h>

enum { WAIT_MS = 20000, NEVER_MS = 3600000 };

/* ---- an origin that is told what to do ---- */

struct origin {
    struct listener *listener;
    struct addr addr;
    const char *answer; /* NULL: says nothing */
    bool hang_up;       /* close at once */
    unsigned accepted;
    char request[2048]; /* the last one */
    size_t request_len;
};

static void origin_data(void *owner, const uint8_t *bytes, size_t len);

static void origin_closed(void *owner, enum stream_reason reason, const char *text)
{
    (void)reason;
    (void)text;
    mem_free(owner);
}

static const struct stream_ops origin_ops = {
    .on_data = origin_data, .on_closed = origin_closed, .write_cap_bytes = 65536};

struct visit {
    struct origin *origin;
    struct stream *stream;
};

static void origin_data(void *owner, const uint8_t *bytes, size_t len)
{
    struct visit *visit = owner;
    struct origin *origin = visit->origin;
    size_t part = MIN(len, sizeof(origin->request) - 1 - origin->request_len);
    memcpy(origin->request + origin->request_len, bytes, part);
    origin->request_len += part;
    if (origin->answer != NULL && strstr(origin->request, "\r\n\r\n") != NULL) {
        memset(origin->request + origin->request_len, 0, 1);
        int rc = stream_write(visit->stream, origin->answer, strlen(origin->answer));
        assert_true(rc == RC_OK || rc == RC_CLOSED); /* a look that was cancelled is gone */
        stream_finish(visit->stream, 100);
    }
}

static void origin_accept(void *owner, struct stream *stream)
{
    struct origin *origin = owner;
    struct visit *visit = mem_new(sizeof(*visit));
    *visit = (struct visit){origin, stream};
    origin->accepted++;
    origin->request_len = 0;
    memset(origin->request, 0, sizeof(origin->request));
    stream_adopt(stream, &origin_ops, visit);
    if (origin->hang_up) {
        stream_close(stream, STREAM_LOCAL, NULL);
    }
}

static void origin_open(uv_loop_t *loop, struct origin *origin)
{
    struct listener_config config = {
        .on_accept = origin_accept, .owner = origin, .streams_max = 4096, .backlog = 1024};
    struct err_info err;
    struct addr bind;
    assert_int_equal(addr_parse("127.0.0.1:0", &bind, NULL), RC_OK);
    assert_int_equal(listener_open_tcp(loop, &bind, &config, &origin->listener, &err), RC_OK);
    listener_addr(origin->listener, &origin->addr);
}

/* ---- what the prober says ---- */

struct subject {
    struct prober_target *target;
    unsigned votes;
    enum check_vote vote;
    char why[LOOK_TEXT_MAX];
};

static void on_vote(void *owner, enum check_vote vote, const char *why)
{
    struct subject *subject = owner;
    subject->votes++;
    subject->vote = vote;
    (void)snprintf(subject->why, sizeof(subject->why), "%s", why);
}

static const struct prober_ops ops = {.on_vote = on_vote};

struct world {
    uv_loop_t loop;
    struct prober *prober;
    struct origin origin;
    struct subject subject;
    struct check_spec *spec;
};

static struct check_spec *spec_new(enum check_type type, uint32_t interval_ms, uint32_t timeout_ms)
{
    struct check_config config = {.type = type,
                                  .pace = {.interval_ms = interval_ms,
                                           .interval_down_ms = interval_ms,
                                           .timeout_ms = timeout_ms,
                                           .rise = 2,
                                           .fall = 2}};
    struct check_spec *spec = NULL;
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    return spec;
}

static int set_up(void **state)
{
    struct world *world = mem_new(sizeof(*world));
    loop_init(&world->loop);
    world->prober = prober_new(&world->loop, &ops);
    origin_open(&world->loop, &world->origin);
    world->origin.answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    prober_remove(world->prober, world->subject.target);
    check_spec_unref(world->spec);
    prober_free(world->prober);
    if (world->origin.listener != NULL) {
        listener_close(world->origin.listener, NULL, NULL);
    }
    loop_run(&world->loop);
    loop_close_clean(&world->loop);
    mem_free(world);
    return 0;
}

static void watch(struct world *world, struct check_spec *spec)
{
    world->spec = spec;
    world->subject.target =
        prober_add(world->prober, &world->origin.addr, NULL, spec, &world->subject);
}

static bool has_voted(void *arg)
{
    return ((struct world *)arg)->subject.votes > 0;
}

static bool is_down(void *arg)
{
    return ((struct world *)arg)->subject.vote == CHECK_DOWN;
}

static bool is_up(void *arg)
{
    return ((struct world *)arg)->subject.vote == CHECK_UP;
}

static void run_until(struct world *world, bool (*done)(void *arg))
{
    assert_true(loop_run_until(&world->loop, done, world, WAIT_MS));
}

/* ---- tests ---- */

static void test_http_good(void **state)
{
    struct world *world = *state;
    watch(world, spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS));
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_UP);
    assert_string_equal(world->subject.why, "");
    char text[ADDR_TEXT_MAX];
    char host[128];
    (void)snprintf(host, sizeof(host), "\r\nHost: %s\r\n", addr_format(&world->origin.addr, text));
    assert_non_null(strstr(world->origin.request, host));
    struct prober_view view;
    prober_view(world->subject.target, &view);
    assert_int_equal(view.vote, CHECK_UP);
    assert_true(view.since_wall_ms > 0);
}

static void test_http_status_turns_and_back(void **state)
{
    struct world *world = *state;
    watch(world, spec_new(CHECK_HTTP, 1, NEVER_MS));
    run_until(world, is_up);
    world->origin.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    run_until(world, is_down);
    assert_string_equal(world->subject.why, "status 503");
    unsigned accepted = world->origin.accepted;
    world->origin.answer = "HTTP/1.1 204 Yes\r\n\r\n";
    run_until(world, is_up);
    assert_true(world->origin.accepted >= accepted + 2); /* rise */
    assert_int_equal(world->subject.votes, 3);
}

static void test_reason_stays_while_rising(void **state)
{
    struct world *world = *state;
    world->origin.answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    watch(world, spec_new(CHECK_HTTP, 1, NEVER_MS));
    run_until(world, is_down);
    world->origin.answer = "HTTP/1.1 204 Yes\r\n\r\n";
    struct prober_view view;
    do {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
        prober_view(world->subject.target, &view);
    } while (view.streak == 0 && view.vote == CHECK_DOWN);
    if (view.vote == CHECK_DOWN) { /* both looks may end in one turn */
        assert_string_equal(view.why, "status 503");
        assert_int_equal(view.needed, 2);
    }
    run_until(world, is_up);
    prober_view(world->subject.target, &view);
    assert_string_equal(view.why, "");
}

static void test_tcp(void **state)
{
    struct world *world = *state;
    watch(world, spec_new(CHECK_TCP, NEVER_MS, NEVER_MS));
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_UP);
}

static void test_refused(void **state)
{
    struct world *world = *state;
    listener_close(world->origin.listener, NULL, NULL);
    world->origin.listener = NULL;
    watch(world, spec_new(CHECK_TCP, NEVER_MS, NEVER_MS));
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_DOWN);
    assert_non_null(strstr(world->subject.why, "connection refused"));
}

static void test_port_override(void **state)
{
    struct world *world = *state;
    struct check_config config = {.type = CHECK_TCP,
                                  .port = addr_port(&world->origin.addr),
                                  .pace = {NEVER_MS, NEVER_MS, NEVER_MS, 1, 1}};
    assert_int_equal(check_spec_new(&config, &world->spec), RC_OK);
    struct addr other;
    assert_int_equal(addr_parse("127.0.0.1:1", &other, NULL), RC_OK);
    world->subject.target = prober_add(world->prober, &other, NULL, world->spec, &world->subject);
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_UP);
}

static void test_host_of_a_name(void **state)
{
    struct world *world = *state;
    world->spec = spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS);
    world->subject.target = prober_add(world->prober, &world->origin.addr, "web.example:8080",
                                       world->spec, &world->subject);
    run_until(world, has_voted);
    assert_non_null(strstr(world->origin.request, "\r\nHost: web.example:8080\r\n"));
}

static void test_silence_times_out(void **state)
{
    struct world *world = *state;
    world->origin.answer = NULL;
    watch(world, spec_new(CHECK_HTTP, NEVER_MS, 30));
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_DOWN);
    assert_non_null(strstr(world->subject.why, "timed out after 30ms"));
}

static void test_hang_up(void **state)
{
    struct world *world = *state;
    world->origin.hang_up = true;
    watch(world, spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS));
    run_until(world, has_voted);
    assert_int_equal(world->subject.vote, CHECK_DOWN);
    assert_non_null(strstr(world->subject.why, "connection "));
}

static void test_change_looks_at_once(void **state)
{
    struct world *world = *state;
    watch(world, spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS));
    run_until(world, is_up);
    unsigned accepted = world->origin.accepted;
    struct check_config config = {
        .type = CHECK_HTTP, .body = "absent", .pace = {NEVER_MS, 1, NEVER_MS, 2, 2}};
    check_spec_unref(world->spec);
    assert_int_equal(check_spec_new(&config, &world->spec), RC_OK);
    prober_change(world->prober, world->subject.target, world->spec);
    run_until(world, is_down);
    assert_string_equal(world->subject.why, "body does not contain \"absent\"");
    assert_int_equal(world->origin.accepted, accepted + 2); /* fall: the vote was kept */
}

static void test_change_and_removal_in_flight(void **state)
{
    struct world *world = *state;
    world->origin.answer = NULL;
    watch(world, spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS));
    while (world->origin.accepted == 0) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(prober_in_flight(world->prober), 1);
    prober_change(world->prober, world->subject.target, world->spec);
    assert_int_equal(prober_in_flight(world->prober), 0);
    while (world->origin.accepted == 1) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    prober_remove(world->prober, world->subject.target);
    world->subject.target = NULL;
    assert_int_equal(prober_in_flight(world->prober), 0);
    assert_int_equal(prober_count(world->prober), 0);
    assert_int_equal(world->subject.votes, 0);
}

/* ---- many ---- */

enum { MANY = 1500 };

struct crowd {
    struct world *world;
    struct subject subjects[MANY];
    size_t most_in_flight;
};

static bool all_have_voted(void *arg)
{
    struct crowd *crowd = arg;
    crowd->most_in_flight = MAX(crowd->most_in_flight, prober_in_flight(crowd->world->prober));
    for (size_t i = 0; i < MANY; i++) {
        if (crowd->subjects[i].votes == 0) {
            return false;
        }
    }
    return true;
}

/* Half of them are black holes; the others are looked at all the same. */
static void test_many_are_bounded(void **state)
{
    struct world *world = *state;
    struct origin silent = {0};
    origin_open(&world->loop, &silent);
    struct crowd *crowd = mem_new(sizeof(*crowd));
    crowd->world = world;
    struct check_spec *spec = spec_new(CHECK_HTTP, NEVER_MS, 300);
    for (size_t i = 0; i < MANY; i++) {
        const struct addr *addr = i % 2 == 0 ? &world->origin.addr : &silent.addr;
        crowd->subjects[i].target =
            prober_add(world->prober, addr, NULL, spec, &crowd->subjects[i]);
    }
    assert_true(loop_run_until(&world->loop, all_have_voted, crowd, 50000));
    assert_in_range(crowd->most_in_flight, 1, PROBER_IN_FLIGHT_MAX);
    for (size_t i = 0; i < MANY; i++) {
        if (i % 2 != 0) {
            assert_int_equal(crowd->subjects[i].vote, CHECK_DOWN);
        }
    }
    struct buf out;
    buf_init(&out, 65536);
    prober_metrics(world->prober, &out);
    assert_non_null(strstr(out.data, "skein_health_targets 1500\n"));
    assert_non_null(strstr(out.data, "skein_health_checks_total{result=\"timeout\"} "));
    buf_deinit(&out);
    for (size_t i = 0; i < MANY; i++) {
        prober_remove(world->prober, crowd->subjects[i].target);
    }
    check_spec_unref(spec);
    mem_free(crowd);
    listener_close(silent.listener, NULL, NULL);
    loop_run_until(&world->loop, has_voted, world, 1); /* silent's streams close */
    listener_close(world->origin.listener, NULL, NULL);
    world->origin.listener = NULL;
    loop_run(&world->loop);
}

/* ---- one look ---- */

static void on_never(void *arg, enum look_result result, const char *why)
{
    (void)arg;
    (void)result;
    fail_msg("called after it was cancelled: %s", why);
}

static void test_cancel(void **state)
{
    struct world *world = *state;
    char why[LOOK_TEXT_MAX];
    world->spec = spec_new(CHECK_HTTP, NEVER_MS, NEVER_MS);
    struct look *look = NULL;
    const struct look_ask ask = {.loop = &world->loop,
                                 .spec = world->spec,
                                 .addr = &world->origin.addr,
                                 .host = "x",
                                 .done = on_never};
    assert_int_equal(look_start(&ask, &look, why), LOOK_PENDING);
    assert_string_equal(look_waits_for(look), "connect");
    look_cancel(look);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_http_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_http_status_turns_and_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reason_stays_while_rising, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tcp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_port_override, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_host_of_a_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silence_times_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hang_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_change_looks_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_change_and_removal_in_flight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
