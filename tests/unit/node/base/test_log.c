/*
 * log: one line per event, levels hold, and bytes of a peer cannot make a second line or end a JSON
 * string.
 */
#include "tests/support/unit.h"

#include "node/base/log.h"

#include <fcntl.h>
#include <unistd.h>

static char captured[8192];

/* Run with stderr in a pipe. */
static void capture(void (*body)(void))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    body();
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    assert_int_equal(close(saved), 0);
    assert_int_equal(close(ends[1]), 0);
    ssize_t len = read(ends[0], captured, sizeof(captured) - 1);
    captured[len > 0 ? len : 0] = '\0';
    assert_int_equal(close(ends[0]), 0);
}

static void hostile(void)
{
    log_setup(LOG_LEVEL_INFO, true, "r1");
    log_info("joined", "peer=%s", "x\"}\n{\"forged\": 1}\x01\xff");
    log_debug("hidden", "x=%d", 1);
}

static void test_escapes(void **state)
{
    (void)state;
    capture(hostile);
    assert_non_null(strstr(captured, "\"node\":\"r1\",\"event\":\"joined\""));
    assert_non_null(strstr(captured, "x\\\"}\\u000a{\\\"forged\\\": 1}\\u0001\\u00ff"));
    assert_null(strstr(captured, "hidden"));
    assert_true(strchr(captured, '\n') == captured + strlen(captured) - 1);
}

static char long_text[3000];

static void overlong(void)
{
    log_setup(LOG_LEVEL_INFO, false, "r1");
    memset(long_text, '"', sizeof(long_text) - 1);
    log_warn("long", "%s", long_text);
}

static void test_cut(void **state)
{
    (void)state;
    capture(overlong);
    size_t len = strlen(captured);
    assert_in_range(len, 1000, 4096);
    assert_int_equal(captured[len - 1], '\n');
}

static void test_limit(void **state)
{
    (void)state;
    struct log_limit limit = {0};
    uint32_t suppressed = 0;
    unsigned passed = 0;
    for (int i = 0; i < 1000; i++) {
        passed += log_limit_pass(&limit, 3, &suppressed);
    }
    /* A second may end in between; a slow machine may see a few of them. */
    assert_in_range(passed, 3, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
