/*
 * Loops: waiting with a limit, and the proof of emptiness at the end.
 */
#include "node/net/loop.h"
#include "tests/support/unit.h"

#include <sys/wait.h>
#include <unistd.h>

struct ticker {
    uv_timer_t timer;
    int count;
};

static void on_tick(uv_timer_t *timer)
{
    struct ticker *ticker = timer->data;
    ticker->count++;
}

static bool three(void *arg)
{
    return ((struct ticker *)arg)->count >= 3;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void runs_until(void **state)
{
    (void)state;
    uv_loop_t loop;
    loop_init(&loop);
    struct ticker ticker = {0};
    assert_int_equal(uv_timer_init(&loop, &ticker.timer), 0);
    ticker.timer.data = &ticker;
    assert_int_equal(uv_timer_start(&ticker.timer, on_tick, 0, 1), 0);
    assert_true(loop_run_until(&loop, three, &ticker, 10000));
    assert_false(loop_run_until(&loop, never, &ticker, 5)); /* the limit ends it */
    uv_close((uv_handle_t *)&ticker.timer, NULL);
    assert_false(loop_run_until(&loop, never, &ticker, 10000)); /* an empty loop ends it at once */
    loop_close_clean(&loop);
}

static void leftover_aborts(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0); /* not the abort that is waited for */
        }
        uv_loop_t loop;
        uv_timer_t timer;
        loop_init(&loop);
        (void)uv_timer_init(&loop, &timer);
        loop_close_clean(&loop);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void codes(void **state)
{
    (void)state;
    assert_int_equal(rc_from_uv(0), RC_OK);
    assert_int_equal(rc_from_uv(5), RC_OK);
    assert_int_equal(rc_from_uv(UV_EADDRINUSE), RC_BUSY);
    assert_int_equal(rc_from_uv(UV_ECONNRESET), RC_CLOSED);
    assert_int_equal(rc_from_uv(UV_EACCES), RC_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_until),
        cmocka_unit_test(leftover_aborts),
        cmocka_unit_test(codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
