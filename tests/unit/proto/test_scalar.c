/*
 * Text forms of durations, times and bytes; UTF-8. covers: scalar.c utf8.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "proto/scalar.h"
#include "proto/utf8.h"

static void durations_go_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
        const char *canonical;
    } cases[] = {
        {"0s", 0, "0s"},
        {"500ms", 500, "500ms"},
        {"30s", 30000, "30s"},
        {"90s", 90000, "1m30s"},
        {"1h30m", 5400000, "1h30m"},
        {"2d", 172800000, "2d"},
        {"24h", 86400000, "1d"},
        {"1s500ms", 1500, "1s500ms"},
        {"0ms", 0, "0s"},
        {"007s", 7000, "7s"},
        {"1d1h1m1s1ms", 90061001, "1d1h1m1s1ms"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t ms = 99;
        char text[DURATION_TEXT_MAX];
        assert_int_equal(duration_parse(cases[i].text, &ms, NULL), RC_OK);
        assert_int_equal(ms, cases[i].ms);
        assert_string_equal(duration_format(ms, text), cases[i].canonical);
    }
    char text[DURATION_TEXT_MAX];
    uint64_t back = 0;
    assert_int_equal(duration_parse(duration_format(UINT64_MAX, text), &back, NULL), RC_OK);
    assert_true(back == UINT64_MAX);
}

static void bad_durations_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "5",
        "s",
        "-5s",
        "1.5s",
        "5 s",
        "5S",
        "5us",
        "5s5s",
        "5s1m",
        "1h1h",
        "5sms",
        "5mss",
        " 5s",
        "5s ",
        "1h30",
        "++1s",
        "5w",
        "18446744073709551616ms",
        "213503982335d",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t ms = 99;
        struct err_info err = {""};
        assert_int_equal(duration_parse(bad[i], &ms, &err), RC_INVALID);
        assert_int_equal(ms, 99);
        assert_true(err.text[0] != '\0');
    }
}

static void times_go_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t wall_ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-01-31T10:00:00.000Z", 1769853600000},
        {"2026-01-31T10:00:00Z", 1769853600000},
        {"2026-01-31T12:00:00+02:00", 1769853600000},
        {"2026-01-31T04:30:00.5-05:30", 1769853600500},
        {"2024-02-29T23:59:59.999Z", 1709251199999},
        {"2000-02-29t00:00:00z", 951782400000},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2026-01-31T10:00:00.123456789Z", 1769853600123},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t wall_ms = 99;
        assert_int_equal(wall_parse(cases[i].text, &wall_ms, NULL), RC_OK);
        assert_int_equal(wall_ms, cases[i].wall_ms);
        char text[TIME_TEXT_MAX];
        uint64_t back = 0;
        assert_int_equal(wall_parse(time_format_wall(wall_ms, text), &back, NULL), RC_OK);
        assert_int_equal(back, wall_ms);
    }
}

static void bad_times_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "2026-01-31",
        "2026-01-31 10:00:00Z",
        "2026-02-29T10:00:00Z",
        "2100-02-29T10:00:00Z",
        "2026-13-01T10:00:00Z",
        "2026-00-01T10:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T10:00:00",
        "2026-01-31T10:00:00.Z",
        "2026-01-31T10:00:00+2:00",
        "2026-01-31T10:00:00Zx",
        "1970-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59Z",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t wall_ms = 99;
        assert_int_equal(wall_parse(bad[i], &wall_ms, NULL), RC_INVALID);
        assert_int_equal(wall_ms, 99);
    }
}

static void base64_goes_both_ways(void **state)
{
    (void)state;
    /* RFC 4648 10 */
    static const char *const cases[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = base64_encode((const uint8_t *)cases[i][0], strlen(cases[i][0]));
        assert_string_equal(text, cases[i][1]);
        uint8_t *bytes = NULL;
        size_t len = 0;
        assert_int_equal(base64_decode(text, strlen(text), &bytes, &len), RC_OK);
        assert_int_equal(len, strlen(cases[i][0]));
        assert_memory_equal(bytes, cases[i][0], len);
        mem_free(bytes);
        mem_free(text);
    }
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(base64_decode("_-8", 3, &bytes, &len), RC_OK);
    assert_int_equal(len, 2);
    assert_int_equal(bytes[0], 0xff);
    assert_int_equal(bytes[1], 0xef);
    mem_free(bytes);
}

static void bad_base64_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z", "Zg=", "Zg===", "Zm9v=", "Z=g=", "Zm 8", "Zh==", "=", "====", "Zm9*"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        assert_int_equal(base64_decode(bad[i], strlen(bad[i]), &bytes, &len), RC_INVALID);
        assert_null(bytes);
    }
}

static void utf8_is_strict(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "abc",
                                       "\xc3\xa4",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\xa6\xa2",
                                       "\xed\x9f\xbf",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "a\xc3",        "\xe2\x82",         "\xf0\x9f\xa6",     "\xc3("};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(utf8_is_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_false(utf8_is_valid(bad[i], strlen(bad[i])));
        char text[16];
        (void)snprintf(text, sizeof text, "%s", bad[i]);
        utf8_clean(text);
        assert_true(utf8_is_valid(text, strlen(text)));
    }
    char text[] = "line\nwith\x01\xc3\xa4\xff";
    utf8_clean(text);
    assert_string_equal(text, "line?with?\xc3\xa4?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_go_both_ways), cmocka_unit_test(bad_durations_are_refused),
        cmocka_unit_test(times_go_both_ways),     cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(base64_goes_both_ways),  cmocka_unit_test(bad_base64_is_refused),
        cmocka_unit_test(utf8_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
