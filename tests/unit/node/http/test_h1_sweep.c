/*
 * The sweep finds a control byte at every place of every alignment, and nothing else.
 */
#include "tests/support/unit.h"

#include "node/http/h1_int.h"

static void test_every_place(void **state)
{
    (void)state;
    static const int bytes[] = {0, 1, 10, 13, 31, 127, 9, 32, 126, 128, 159, 160, 255};
    for (size_t len = 0; len <= 70; len++) {
        char *text = malloc(len > 0 ? len : 1);
        memset(text, 'x', len);
        assert_int_equal(h1_next_control(text, 0, len), len);
        for (size_t at = 0; at < len; at++) {
            for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
                bool is_control = (bytes[i] < 32 && bytes[i] != 9) || bytes[i] == 127;
                text[at] = (char)bytes[i];
                assert_int_equal(h1_next_control(text, 0, len), is_control ? at : len);
                assert_int_equal(h1_next_control(text, at, len), is_control ? at : len);
                assert_int_equal(h1_next_control(text, at + 1, len), len);
            }
            text[at] = 'x';
        }
        free(text);
    }
}

static void test_behind_tabs(void **state)
{
    (void)state;
    char text[64];
    memset(text, '\t', sizeof(text));
    assert_int_equal(h1_next_control(text, 0, sizeof(text)), sizeof(text));
    for (size_t at = 0; at < sizeof(text); at++) {
        text[at] = '\r';
        assert_int_equal(h1_next_control(text, 0, sizeof(text)), at);
        text[at] = '\t';
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_behind_tabs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
