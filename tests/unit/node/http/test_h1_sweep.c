/*
 * The sweep finds a control byte at every place of every alignment, and nothing else; with SSE2 and
 * without.
 */
#include "tests/support/unit.h"

#include "node/http/h1_int.h"

/* The portable form, compiled once more under other names. */
size_t portable_next_control(const char *bytes, size_t at, size_t len);
int portable_sweep(struct h1_scan *scan, const char *bytes, size_t len,
                   const struct h1_limits *limits, struct h1_head *head);
#define SKEIN_NO_SIMD
#define h1_next_control portable_next_control
#define h1_sweep        portable_sweep
#include "node/http/h1_sweep.c"
#undef h1_next_control
#undef h1_sweep

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
                assert_int_equal(portable_next_control(text, 0, len), is_control ? at : len);
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

/* Both forms see the same lines. */
static void test_sweeps(void **state)
{
    (void)state;
    static const struct h1_limits limits = {
        .head_bytes = 4096, .field_count = 16, .target_bytes = 1024};
    char text[1024] = "GET / HTTP/1.1\r\n";
    size_t len = strlen(text);
    for (int i = 0; i < 12; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "X: %0*d\t\r\n", 1 + i * 7, i);
    }
    len += (size_t)snprintf(text + len, sizeof(text) - len, "\r\n\r\n\r\n");
    for (size_t cut = 0; cut <= len; cut++) {
        struct h1_field fields[16], other_fields[16];
        struct h1_head head, other;
        struct h1_scan scan = {0}, other_scan = {0};
        h1_head_init(&head, fields, 16);
        h1_head_init(&other, other_fields, 16);
        int rc = h1_sweep(&scan, text, cut, &limits, &head);
        assert_int_equal(rc, cut >= len - 4 ? 0 : RC_AGAIN);
        assert_int_equal(portable_sweep(&other_scan, text, cut, &limits, &other), rc);
        assert_int_equal(other_scan.pos, scan.pos);
        assert_int_equal(other_scan.line, scan.line);
        assert_int_equal(head.len, rc == 0 ? len - 4 : 0);
        assert_int_equal(other.len, head.len);
        assert_int_equal(other.field_count, head.field_count);
        for (uint32_t i = 0; i < head.field_count; i++) {
            assert_int_equal(other_fields[i].name.off, fields[i].name.off);
            assert_memory_equal(text + fields[i].name.off, "X: ", 3);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_behind_tabs),
        cmocka_unit_test(test_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
