/*
 * buf: the cap holds, a refused append changes nothing, and memory handed over is the caller's.
 */
#include "tests/support/unit.h"

#include "node/base/buf.h"
#include "node/base/errors.h"
#include "node/base/mem.h"

static void test_cap(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 10);
    assert_int_equal(buf_puts(&buf, "12345678"), RC_OK);
    assert_int_equal(buf_puts(&buf, "abc"), RC_FULL);
    assert_true(buf.full);
    assert_string_equal(buf.data, "12345678");
    assert_int_equal(buf_putc(&buf, 'x'), RC_FULL); /* sticky until reset */
    buf_reset(&buf);
    assert_int_equal(buf_printf(&buf, "%s", "0123456789"), RC_OK);
    assert_int_equal(buf.len, 10);
    buf_deinit(&buf);
}

static void test_drop_and_take(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 1000);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(buf_printf(&buf, "%02d", i), RC_OK);
    }
    buf_drop(&buf, 190);
    assert_string_equal(buf.data, "9596979899");
    size_t len = 0;
    char *data = buf_take(&buf, &len);
    assert_int_equal(len, 10);
    assert_null(buf.data);
    mem_free(data);
    data = buf_take(&buf, &len);
    assert_string_equal(data, "");
    mem_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_drop_and_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
