/*
 * Datagrams: round trip, bounds, closing from within the callback, address in use.
 */
#include "node/net/dgram.h"
#include "node/net/loop.h"
#include "tests/support/unit.h"

#include <unistd.h>

struct post {
    struct dgram *dgram;
    unsigned count;
    uint8_t last[64];
    size_t last_len;
    struct addr from;
    bool close_on_receive;
    unsigned closed;
    uint64_t too_big;
};

static void on_closed(void *owner)
{
    ((struct post *)owner)->closed++;
}

static void on_datagram(void *owner, const struct addr *from, uint8_t *bytes, size_t len)
{
    struct post *post = owner;
    assert_int_equal(post->closed, 0);
    post->count++;
    post->from = *from;
    post->last_len = len;
    memcpy(post->last, bytes, len);
    if (post->close_on_receive) {
        post->too_big = dgram_counters(post->dgram)->received_too_big;
        dgram_close(post->dgram, on_closed, post);
    }
}

static void open_post(uv_loop_t *loop, struct post *post, struct addr *ret_addr)
{
    struct addr any;
    assert_int_equal(addr_parse("127.0.0.1:0", &any, NULL), RC_OK);
    struct dgram_config config = {
        .bytes_max = sizeof(post->last), .on_datagram = on_datagram, .owner = post};
    assert_int_equal(dgram_open(loop, &any, &config, &post->dgram, NULL), RC_OK);
    dgram_addr(post->dgram, ret_addr);
    assert_int_not_equal(addr_port(ret_addr), 0);
}

static bool came(void *arg)
{
    return ((struct post *)arg)->count > 0;
}

static void round_trip(void **state)
{
    (void)state;
    uv_loop_t loop;
    loop_init(&loop);
    struct post a = {0};
    struct post b = {0};
    struct addr addr_a;
    struct addr addr_b;
    open_post(&loop, &a, &addr_a);
    open_post(&loop, &b, &addr_b);
    assert_int_equal(dgram_send(a.dgram, &addr_b, "hello", 5), RC_OK);
    assert_true(loop_run_until(&loop, came, &b, 10000));
    assert_int_equal(b.last_len, 5);
    assert_memory_equal(b.last, "hello", 5);
    assert_int_equal(addr_compare(&b.from, &addr_a), 0);
    assert_int_equal(dgram_counters(a.dgram)->sent, 1);
    assert_int_equal(dgram_counters(b.dgram)->received, 1);

    uint8_t large[65] = {0};
    assert_int_equal(dgram_send(a.dgram, &addr_b, large, sizeof(large)), RC_TOO_BIG);
    dgram_close(a.dgram, on_closed, &a);
    dgram_close(b.dgram, on_closed, &b);
    loop_close_clean(&loop);
    assert_int_equal(a.closed + b.closed, 2);
}

static void too_long_is_dropped(void **state)
{
    (void)state;
    uv_loop_t loop;
    loop_init(&loop);
    struct post post = {.close_on_receive = true};
    struct addr addr;
    open_post(&loop, &post, &addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    uint8_t large[200] = {0};
    assert_int_equal(sendto(fd, large, 65, 0, &addr.sa, addr_len(&addr)), 65);
    assert_int_equal(sendto(fd, large, 200, 0, &addr.sa, addr_len(&addr)), 200);
    assert_int_equal(sendto(fd, large, 64, 0, &addr.sa, addr_len(&addr)), 64);
    assert_int_equal(sendto(fd, large, 3, 0, &addr.sa, addr_len(&addr)), 3);
    assert_true(loop_run_until(&loop, came, &post, 10000));
    assert_int_equal(post.last_len, 64);
    assert_int_equal(post.too_big, 2);
    close(fd);
    loop_close_clean(&loop);
    assert_int_equal(post.count, 1); /* closed within the callback: nothing after it */
    assert_int_equal(post.closed, 1);
}

static void in_use(void **state)
{
    (void)state;
    uv_loop_t loop;
    loop_init(&loop);
    struct post post = {0};
    struct addr addr;
    open_post(&loop, &post, &addr);
    struct dgram_config config = {.bytes_max = 64, .on_datagram = on_datagram, .owner = &post};
    struct dgram *second = NULL;
    struct err_info err = {{0}};
    assert_int_equal(dgram_open(&loop, &addr, &config, &second, &err), RC_BUSY);
    assert_null(second);
    char text[ADDR_TEXT_MAX];
    assert_non_null(strstr(err.text, addr_format(&addr, text)));
    dgram_close(post.dgram, NULL, NULL);
    dgram_close(NULL, NULL, NULL);
    loop_close_clean(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(too_long_is_dropped),
        cmocka_unit_test(in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
