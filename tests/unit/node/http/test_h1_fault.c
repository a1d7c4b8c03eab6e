/*
 * Every fault has a status that a client may get, words, and a label of its own.
 */
#include "tests/support/unit.h"

#include "node/http/h1_head.h"

static void test_all(void **state)
{
    (void)state;
    for (int i = 0; i < H1_FAULT_COUNT; i++) {
        enum h1_fault fault = (enum h1_fault)i;
        int status = h1_fault_status(fault);
        assert_true(status == 400 || status == 413 || status == 414 || status == 431 ||
                    status == 500 || status == 501 || status == 502 || status == 505);
        assert_true(strlen(h1_fault_text(fault)) > 5);
        for (int other = 0; other < i; other++) {
            assert_string_not_equal(h1_fault_label(fault), h1_fault_label((enum h1_fault)other));
        }
    }
    assert_int_equal(h1_fault_status(H1_FAULT_TARGET_TOO_LONG), 414);
    assert_int_equal(h1_fault_status(H1_FAULT_HEAD_TOO_BIG), 431);
    assert_int_equal(h1_fault_status(H1_FAULT_VERSION), 505);
    assert_int_equal(h1_fault_status(H1_FAULT_CODING_UNKNOWN), 501);
    assert_int_equal(h1_fault_status(H1_FAULT_BODY_TOO_BIG), 413);
    assert_int_equal(h1_fault_status(H1_FAULT_HOST), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
