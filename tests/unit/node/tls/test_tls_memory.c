/*
 * What an idle connection keeps: a ticket that went out leaves no buffer behind, and what has come
 * in part of the next record is not lost by that.
 * covers: tls_engine.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/tls/tls_lib.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>

enum { CAP = 100000, RECORD_HEADER = 5 };

/* ---- OpenSSL's memory, counted ---- */

static size_t live;

static void *count_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    void *at = malloc(size);
    live += malloc_usable_size(at);
    return at;
}

static void count_free(void *at, const char *file, int line)
{
    (void)file;
    (void)line;
    live -= malloc_usable_size(at);
    free(at);
}

static void *count_realloc(void *at, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    live -= malloc_usable_size(at);
    void *moved = realloc(at, size);
    live += malloc_usable_size(moved);
    return moved;
}

/* ---- a connection ---- */

static struct ticket_ring *ring;

static const struct ticket_ring *ring_of(void *arg)
{
    (void)arg;
    return ring;
}

struct stage {
    char *chain, *key;
    struct tls_cert *cert;
    struct tls_policy *policy;
    struct tls_target *target;
    struct tls_lib *lib;
    struct tls_engine *server, *client;
    struct buf to_client, to_server, plain;
};

static void feed(struct tls_engine *to, struct buf *from, size_t len, struct buf *plain)
{
    size_t used = 0;
    assert_int_equal(tls_engine_feed(to, (const uint8_t *)from->data, len, &used, plain), RC_OK);
    assert_int_equal(used, len);
    buf_drop(from, used);
}

static void settle(struct stage *stage)
{
    while (stage->to_client.len != 0 || stage->to_server.len != 0) {
        feed(stage->server, &stage->to_server, stage->to_server.len, &stage->plain);
        feed(stage->client, &stage->to_client, stage->to_client.len, &stage->plain);
    }
}

static void begin(struct stage *stage)
{
    struct err_info err = {0};
    const struct ticket_key key = {.state = TICKET_ACTIVE};
    const uint8_t domain[TLS_DIGEST_BYTES] = {1};
    memset(stage, 0, sizeof(*stage));
    ring = ticket_ring_new(&key, 1, 3600);
    buf_init(&stage->to_client, CAP);
    buf_init(&stage->to_server, CAP);
    buf_init(&stage->plain, CAP);
    assert_int_equal(tls_cert_generate(NULL, 0, &stage->chain, &stage->key, &err), RC_OK);
    const struct tls_cert_source source = {.chain = stage->chain, .key = stage->key};
    assert_int_equal(tls_cert_read(&source, 1, &stage->cert, &err), RC_OK);
    assert_int_equal(tls_policy_new(&(struct tls_policy_spec){0}, &stage->policy, &err), RC_OK);
    const struct tls_target_spec to = {.verify = TLS_VERIFY_NONE};
    assert_int_equal(tls_target_new(&to, &stage->target, &err), RC_OK);
    const struct tls_lib_config config = {.tickets = ring_of, .keylog_fd = -1};
    assert_int_equal(tls_lib_new(&config, &stage->lib, &err), RC_OK);
    const struct tls_accept accept = {
        .policy = stage->policy, .cert = stage->cert, .domain = domain};
    assert_int_equal(tls_lib_accept(stage->lib, &accept, &stage->to_client, &stage->server, &err),
                     RC_OK);
    assert_int_equal(
        tls_lib_connect(stage->lib, stage->target, NULL, &stage->to_server, &stage->client, &err),
        RC_OK);
    assert_int_equal(tls_engine_start(stage->client), RC_OK);
    settle(stage);
    assert_int_equal(tls_engine_state(stage->server), TLS_OPEN);
}

static void end(struct stage *stage)
{
    tls_engine_free(stage->server);
    tls_engine_free(stage->client);
    tls_lib_free(stage->lib);
    tls_target_unref(stage->target);
    tls_policy_unref(stage->policy);
    tls_cert_unref(stage->cert);
    ticket_ring_unref(ring);
    mem_free(stage->chain);
    mem_free(stage->key);
    buf_deinit(&stage->to_client);
    buf_deinit(&stage->to_server);
    buf_deinit(&stage->plain);
}

static void write_all(struct tls_engine *eng, const char *text)
{
    size_t used = 0;
    assert_int_equal(tls_engine_write(eng, text, strlen(text), &used), RC_OK);
}

/* ---- tests ---- */

/* The record buffers have 16 kB; a session and its ticket are well below that. */
static void no_buffer_stays(bool with_data)
{
    struct stage stage;
    begin(&stage);
    size_t before = live;
    if (with_data) {
        write_all(stage.server, "pong");
    } else {
        tls_engine_ticket(stage.server);
    }
    assert_true(stage.to_client.len > 100); /* it carries the ticket */
    assert_true(live < before + 8192);
    end(&stage);
}

static void test_a_ticket_with_data_leaves_no_buffer(void **state)
{
    (void)state;
    no_buffer_stays(true);
}

static void test_a_ticket_alone_leaves_no_buffer(void **state)
{
    (void)state;
    no_buffer_stays(false);
}

/* Cut before, within and behind the header of a record, a ticket goes out in between. */
static void test_a_record_in_part_survives_the_ticket(void **state)
{
    (void)state;
    static const size_t cuts[] = {1, RECORD_HEADER - 1, RECORD_HEADER, RECORD_HEADER + 1, 20};
    for (size_t i = 0; i < ARRAY_LEN(cuts) * 2; i++) {
        struct stage stage;
        begin(&stage);
        write_all(stage.client, "ping");
        feed(stage.server, &stage.to_server, cuts[i / 2], &stage.plain);
        assert_int_equal(stage.plain.len, 0);
        if (i % 2 == 0) {
            write_all(stage.server, "pong");
        } else {
            tls_engine_ticket(stage.server);
        }
        feed(stage.server, &stage.to_server, stage.to_server.len, &stage.plain);
        assert_int_equal(stage.plain.len, 4);
        assert_memory_equal(stage.plain.data, "ping", 4);
        end(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ticket_with_data_leaves_no_buffer),
        cmocka_unit_test(test_a_ticket_alone_leaves_no_buffer),
        cmocka_unit_test(test_a_record_in_part_survives_the_ticket),
    };
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1) {
        return 1; /* OpenSSL has allocated already */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
