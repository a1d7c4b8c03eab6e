/*
 * splice: bytes arrive whole and in order, and each end of the way shows as what it is.
 */
#include "node/proxy/splice.h"

#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOURCE = 0, FROM, TO, SINK };

/* SOURCE is written to by the test, FROM and TO are the router's, SINK is read by the test. */
static void open_way(int fds[4])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds + 2), 0);
}

static void close_way(int fds[4])
{
    for (int i = 0; i < 4; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static void test_moves_what_is_asked_for(void **state)
{
    (void)state;
    struct splice_pool pool = {0};
    struct splice_pipe *pipe = splice_pipe_take(&pool);
    assert_non_null(pipe);
    int fds[4];
    open_way(fds);
    assert_int_equal(write(fds[SOURCE], "0123456789", 10), 10);
    uint64_t left = 7;
    size_t moved = 0;
    assert_int_equal(splice_move(pipe, fds[FROM], fds[TO], &left, &moved), SPLICE_DONE);
    assert_int_equal(moved, 7);
    assert_int_equal(left, 0);
    char text[16] = "";
    assert_int_equal(read(fds[SINK], text, sizeof(text)), 7);
    assert_memory_equal(text, "0123456", 7);
    assert_int_equal(read(fds[FROM], text, sizeof(text)), 3); /* the rest was left alone */
    splice_pipe_put(&pool, pipe);
    assert_ptr_equal(splice_pipe_take(&pool), pipe); /* an empty one is used again */
    splice_pipe_put(&pool, pipe);
    splice_pool_deinit(&pool);
    close_way(fds);
}

static void test_dry_and_end(void **state)
{
    (void)state;
    struct splice_pool pool = {0};
    struct splice_pipe *pipe = splice_pipe_take(&pool);
    int fds[4];
    open_way(fds);
    uint64_t left = UINT64_MAX;
    size_t moved = 0;
    assert_int_equal(splice_move(pipe, fds[FROM], fds[TO], &left, &moved), SPLICE_DRY);
    assert_int_equal(moved, 0);
    assert_int_equal(write(fds[SOURCE], "ab", 2), 2);
    (void)shutdown(fds[SOURCE], SHUT_WR);
    assert_int_equal(splice_move(pipe, fds[FROM], fds[TO], &left, &moved), SPLICE_EOF);
    assert_int_equal(moved, 2);
    assert_true(left == UINT64_MAX);
    splice_pipe_put(&pool, pipe);
    splice_pool_deinit(&pool);
    close_way(fds);
}

static void test_full_sink(void **state)
{
    (void)state;
    struct splice_pool pool = {0};
    struct splice_pipe *pipe = splice_pipe_take(&pool);
    int fds[4];
    open_way(fds);
    static char block[4096];
    uint64_t left = UINT64_MAX, sent = 0, got = 0;
    enum splice_result result = SPLICE_DRY;
    while (result != SPLICE_FULL) {
        size_t moved;
        ssize_t n = write(fds[SOURCE], block, sizeof(block));
        sent += n > 0 ? (uint64_t)n : 0;
        result = splice_move(pipe, fds[FROM], fds[TO], &left, &moved);
        assert_true(result == SPLICE_FULL || result == SPLICE_DRY);
    }
    size_t held = pipe->held;
    assert_true(held > 0);
    assert_int_equal(splice_take_out(pipe, block, 100), MIN(held, (size_t)100));
    got = MIN(held, (size_t)100);
    (void)shutdown(fds[SOURCE], SHUT_WR);
    while (result != SPLICE_EOF) {
        size_t moved;
        ssize_t n;
        while ((n = read(fds[SINK], block, sizeof(block))) > 0) {
            got += (uint64_t)n;
        }
        result = splice_move(pipe, fds[FROM], fds[TO], &left, &moved);
    }
    ssize_t n;
    while ((n = read(fds[SINK], block, sizeof(block))) > 0) {
        got += (uint64_t)n;
    }
    assert_true(got == sent);
    splice_pipe_put(&pool, pipe);
    splice_pool_deinit(&pool);
    close_way(fds);
}

static void test_errors(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN); /* as in the node */
    struct splice_pool pool = {0};
    struct splice_pipe *pipe = splice_pipe_take(&pool);
    int fds[4];
    open_way(fds);
    (void)close(fds[SINK]);
    fds[SINK] = -1;
    assert_int_equal(write(fds[SOURCE], "ab", 2), 2);
    uint64_t left = UINT64_MAX;
    size_t moved = 0;
    assert_int_equal(splice_move(pipe, fds[FROM], fds[TO], &left, &moved), SPLICE_OUT_ERROR);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(pipe->held, 2);
    splice_pipe_put(&pool, pipe); /* closed: it is not empty */
    assert_int_equal(pool.free_count, 0);
    pipe = splice_pipe_take(&pool);
    assert_int_equal(splice_move(pipe, -1, fds[TO], &left, &moved), SPLICE_IN_ERROR);
    splice_pipe_put(&pool, pipe);
    splice_pool_deinit(&pool);
    close_way(fds);
}

static void test_number_of_pipes_is_bounded(void **state)
{
    (void)state;
    struct splice_pool pool = {0};
    struct splice_pipe *pipes[SPLICE_PIPES_MAX];
    for (size_t i = 0; i < ARRAY_LEN(pipes); i++) {
        pipes[i] = splice_pipe_take(&pool);
        assert_non_null(pipes[i]);
    }
    assert_null(splice_pipe_take(&pool));
    for (size_t i = 0; i < ARRAY_LEN(pipes); i++) {
        splice_pipe_put(&pool, pipes[i]);
    }
    splice_pool_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_what_is_asked_for),
        cmocka_unit_test(test_dry_and_end),
        cmocka_unit_test(test_full_sink),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_number_of_pipes_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
