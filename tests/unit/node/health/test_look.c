/*
 * Looks by TLS against an origin on loopback whose certificate is made for the run.
 */
#include "node/health/look.h"

#include "node/base/mem.h"
#include "node/net/listener.h"
#include "node/net/loop.h"
#include "node/net/stream.h"
#include "tests/support/unit.h"

enum { CIPHER_MAX = 1 << 17 };

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static const char until_close[] = "HTTP/1.1 200 OK\r\n\r\nhello";

enum manner {
    SPEAKS_TLS = 0,
    SPEAKS_PLAIN,
    HANGS_UP, /* after the first bytes */
    SAYS_NOTHING,
    FORGETS_END, /* TLS, and ends without close_notify */
};

struct world {
    uv_loop_t loop;
    struct listener *listener;
    struct addr addr;
    struct tls_lib *lib; /* of both sides: one thread */
    struct tls_policy *policy;
    struct tls_cert *cert;
    char *chain;
    char *other_chain; /* of somebody else */
    enum manner manner;
    const char *answer;
    unsigned heard; /* events at the origin */
    char request[2048];

    bool done;
    enum look_result result;
    char why[LOOK_TEXT_MAX];
};

/* ---- the origin ---- */

struct visit {
    struct world *world;
    struct stream *stream;
    struct tls_engine *eng;
    struct buf cipher;
    struct buf plain;
};

static void visit_send(struct visit *visit)
{
    if (visit->cipher.len != 0) {
        int rc = stream_write(visit->stream, visit->cipher.data, visit->cipher.len);
        assert_true(rc == RC_OK || rc == RC_CLOSED); /* the look may be over */
        buf_reset(&visit->cipher);
    }
}

static void answer_by_tls(struct visit *visit)
{
    struct world *world = visit->world;
    size_t used;
    (void)snprintf(world->request, sizeof(world->request), "%.*s", (int)visit->plain.len,
                   visit->plain.data);
    assert_int_equal(tls_engine_write(visit->eng, world->answer, strlen(world->answer), &used),
                     RC_OK);
    if (world->manner != FORGETS_END) {
        tls_engine_end(visit->eng);
    }
    visit_send(visit);
    stream_finish(visit->stream, 1000);
}

static void visit_data(void *owner, const uint8_t *bytes, size_t len)
{
    struct visit *visit = owner;
    struct world *world = visit->world;
    world->heard++;
    switch (world->manner) {
    case SPEAKS_TLS:
    case FORGETS_END: {
        size_t used;
        int rc = tls_engine_feed(visit->eng, bytes, len, &used, &visit->plain);
        visit_send(visit);
        if (rc == RC_OK && visit->plain.len != 0) {
            answer_by_tls(visit);
        }
        return;
    }
    case SPEAKS_PLAIN:
        assert_int_equal(stream_write(visit->stream, ok, strlen(ok)), RC_OK);
        return;
    case HANGS_UP:
        stream_close(visit->stream, STREAM_LOCAL, NULL);
        return;
    case SAYS_NOTHING:
        return;
    }
}

static void visit_closed(void *owner, enum stream_reason reason, const char *text)
{
    struct visit *visit = owner;
    (void)reason;
    (void)text;
    tls_engine_free(visit->eng);
    buf_deinit(&visit->cipher);
    buf_deinit(&visit->plain);
    mem_free(visit);
}

static const struct stream_ops visit_ops = {
    .on_data = visit_data, .on_closed = visit_closed, .write_cap_bytes = 1 << 20};

static void origin_accept(void *owner, struct stream *stream)
{
    struct world *world = owner;
    struct visit *visit = mem_new(sizeof(*visit));
    struct err_info err;
    visit->world = world;
    visit->stream = stream;
    buf_init(&visit->cipher, CIPHER_MAX);
    buf_init(&visit->plain, CIPHER_MAX);
    const struct tls_accept accept = {.policy = world->policy, .cert = world->cert};
    assert_int_equal(tls_lib_accept(world->lib, &accept, &visit->cipher, &visit->eng, &err), RC_OK);
    stream_adopt(stream, &visit_ops, visit);
}

/* ---- the world ---- */

static char *make_cert(const char *name, struct tls_cert **ret_cert)
{
    struct err_info err;
    char *chain = NULL, *key = NULL;
    const char *names[] = {name};
    assert_int_equal(tls_cert_generate(names, 1, &chain, &key, &err), RC_OK);
    const struct tls_cert_source source = {.chain = chain, .key = key};
    if (ret_cert != NULL) {
        assert_int_equal(tls_cert_read(&source, 1, ret_cert, &err), RC_OK);
    }
    mem_free(key);
    return chain;
}

static int set_up(void **state)
{
    struct world *world = mem_new(sizeof(*world));
    struct err_info err;
    const struct tls_lib_config config = {.keylog_fd = -1};
    const struct tls_policy_spec policy = {0};
    struct listener_config listen = {
        .on_accept = origin_accept, .owner = world, .streams_max = 16, .backlog = 16};
    struct addr bind;
    loop_init(&world->loop);
    assert_int_equal(tls_lib_new(&config, &world->lib, &err), RC_OK);
    assert_int_equal(tls_policy_new(&policy, &world->policy, &err), RC_OK);
    world->chain = make_cert("origin.test", &world->cert);
    world->other_chain = make_cert("origin.test", NULL);
    assert_int_equal(addr_parse("127.0.0.1:0", &bind, NULL), RC_OK);
    assert_int_equal(listener_open_tcp(&world->loop, &bind, &listen, &world->listener, &err),
                     RC_OK);
    listener_addr(world->listener, &world->addr);
    world->answer = ok;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    listener_close(world->listener, NULL, NULL);
    loop_run(&world->loop);
    loop_close_clean(&world->loop);
    tls_lib_free(world->lib);
    tls_policy_unref(world->policy);
    tls_cert_unref(world->cert);
    mem_free(world->chain);
    mem_free(world->other_chain);
    mem_free(world);
    return 0;
}

static void on_done(void *arg, enum look_result result, const char *why)
{
    struct world *world = arg;
    assert_false(world->done);
    world->done = true;
    world->result = result;
    (void)snprintf(world->why, sizeof(world->why), "%s", why);
}

static struct check_spec *spec_new(enum check_type type, const struct tls_target_spec *how,
                                   const char *body)
{
    struct err_info err;
    struct check_config config = {
        .type = type,
        .pace = {.interval_ms = 1, .interval_down_ms = 1, .timeout_ms = 1, .rise = 1, .fall = 1},
        .body = body,
    };
    struct check_spec *spec = NULL;
    assert_int_equal(tls_target_new(how, &config.tls, &err), RC_OK);
    assert_int_equal(check_spec_new(&config, &spec), RC_OK);
    tls_target_unref(config.tls); /* the spec has its own */
    return spec;
}

static struct look *look_begin(struct world *world, const struct check_spec *spec)
{
    struct look *look = NULL;
    const struct look_ask ask = {.loop = &world->loop,
                                 .spec = spec,
                                 .addr = &world->addr,
                                 .host = "origin.test:443",
                                 .tls = world->lib,
                                 .done = on_done,
                                 .arg = world};
    world->done = false;
    assert_int_equal(look_start(&ask, &look, world->why), LOOK_PENDING);
    return look;
}

/* One look, to its end. */
static void look_at(struct world *world, enum check_type type, const struct tls_target_spec *how,
                    const char *body)
{
    struct check_spec *spec = spec_new(type, how, body);
    (void)look_begin(world, spec);
    while (!world->done) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    check_spec_unref(spec);
}

static struct tls_target_spec full(const struct world *world)
{
    return (struct tls_target_spec){.ca = world->chain, .server_name = "origin.test"};
}

static void expect(const struct world *world, enum look_result result, const char *words)
{
    if (world->result != result || strstr(world->why, words) == NULL) {
        fail_msg("%s: %s", look_result_label(world->result), world->why);
    }
}

static void test_good(void **state)
{
    struct world *world = *state;
    const struct tls_target_spec how = full(world);
    look_at(world, CHECK_TCP, &how, NULL);
    expect(world, LOOK_GOOD, "");
    look_at(world, CHECK_HTTP, &how, NULL);
    expect(world, LOOK_GOOD, "");
    assert_non_null(strstr(world->request, "GET / HTTP/1.1\r\nHost: origin.test:443\r\n"));
    look_at(world, CHECK_HTTP, &how, "hell");
    expect(world, LOOK_GOOD, "");
    world->answer = until_close; /* ended by close_notify */
    look_at(world, CHECK_HTTP, &how, "heaven");
    expect(world, LOOK_BODY, "heaven");
}

static void test_bad_answers(void **state)
{
    struct world *world = *state;
    const struct tls_target_spec how = full(world);
    world->answer = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    look_at(world, CHECK_HTTP, &how, NULL);
    expect(world, LOOK_STATUS, "503");
    world->manner = FORGETS_END;
    world->answer = until_close;
    look_at(world, CHECK_HTTP, &how, "heaven"); /* what was cut off is not known */
    expect(world, LOOK_CLOSED, "closed");
}

static void test_certificates(void **state)
{
    struct world *world = *state;
    struct tls_target_spec how = full(world);
    for (int type = CHECK_TCP; type <= CHECK_HTTP; type++) {
        how = full(world);
        how.server_name = "elsewhere.test";
        look_at(world, (enum check_type)type, &how, NULL);
        expect(world, LOOK_TLS, "certificate: ");
        expect(world, LOOK_TLS, "elsewhere.test");
        how.verify = TLS_VERIFY_CA_ONLY;
        look_at(world, (enum check_type)type, &how, NULL);
        expect(world, LOOK_GOOD, "");
        how.ca = world->other_chain;
        look_at(world, (enum check_type)type, &how, NULL);
        expect(world, LOOK_TLS, "certificate: ");
        how.verify = TLS_VERIFY_NONE;
        look_at(world, (enum check_type)type, &how, NULL);
        expect(world, LOOK_GOOD, "");
    }
    assert_null(strstr(world->request, "secret"));
}

static void test_no_tls(void **state)
{
    struct world *world = *state;
    const struct tls_target_spec how = full(world);
    world->manner = SPEAKS_PLAIN;
    look_at(world, CHECK_TCP, &how, NULL);
    expect(world, LOOK_TLS, "TLS: ");
    world->manner = HANGS_UP;
    look_at(world, CHECK_HTTP, &how, NULL);
    assert_true(world->result == LOOK_TLS || world->result == LOOK_CLOSED); /* a reset, maybe */
}

/* The time limit is the owner's: it asks what the look waits for, and cancels. */
static void test_silence(void **state)
{
    struct world *world = *state;
    const struct tls_target_spec how = full(world);
    struct check_spec *spec = spec_new(CHECK_HTTP, &how, NULL);
    world->manner = SAYS_NOTHING;
    struct look *look = look_begin(world, spec);
    assert_string_equal(look_waits_for(look), "connect");
    while (world->heard == 0) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_string_equal(look_waits_for(look), "TLS handshake");
    look_cancel(look);
    check_spec_unref(spec);
    assert_false(world->done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_certificates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_tls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silence, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
