/*
 * PROXY headers: what is read, what is refused, at every split; what is written is read back.
 */
#include "node/net/proxy_header.h"

#include "tests/support/unit.h"

#include <string.h>

#define SIG       "\r\n\r\n\0\r\nQUIT\n"
#define V4        "\x01\x02\x03\x04\x0a\x00\x00\x01\x12\x34\x00\x50"
#define LIT(text) text, sizeof(text) - 1

static struct proxy_header header;

static int parse(const char *bytes, size_t len)
{
    return proxy_header_parse(bytes, len, &header);
}

static void assert_ends(const char *source, const char *destination)
{
    char text[ADDR_TEXT_MAX];
    assert_true(header.told);
    assert_string_equal(addr_format(&header.source, text), source);
    assert_string_equal(addr_format(&header.destination, text), destination);
}

/* A whole header, at every split, and with bytes behind it. */
static void assert_takes(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(parse(bytes, i), RC_AGAIN);
    }
    char more[8192];
    memcpy(more, bytes, len);
    memcpy(more + len, "PROXY \r\n", 8);
    assert_int_equal(parse(more, len + 8), RC_OK);
    assert_int_equal(header.len, len);
    assert_int_equal(parse(bytes, len), RC_OK);
    assert_int_equal(header.len, len);
}

static void version_1(void **state)
{
    (void)state;
    assert_takes(LIT("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n"));
    assert_ends("192.0.2.1:56324", "198.51.100.7:443");
    assert_takes(LIT("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n"));
    assert_ends("[2001:db8::1]:0", "[::1]:65535");
    assert_takes(LIT("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"));
    assert_takes(LIT("PROXY UNKNOWN\r\n"));
    assert_false(header.told);
    /* The longest line that there is. */
    assert_takes(LIT("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"));
    assert_int_equal(header.len, PROXY_HEADER_V1_MAX);
    assert_false(header.told);
}

static void version_1_is_strict(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "PROXX",
        "proxy TCP4",
        "GET / HTTP/1.1\r\n",
        "\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\n\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\rX",
        "PROXY TCP4  192.0.2.1 198.51.100.7 56324 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443 7\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 \r\n",
        "PROXY TCP4 192.0.2.01 198.51.100.7 56324 443\r\n",
        "PROXY TCP4 192.0.2 198.51.100.7 56324 443\r\n",
        "PROXY TCP4 ::1 ::1 56324 443\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.7 56324 443\r\n",
        "PROXY TCP6 fe80::1%eth0 ::1 56324 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 056 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 -1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 1 4x3\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP5 192.0.2.1 198.51.100.7 1 443\r\n",
        "PROXY \r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.7 1 443\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY UNKNOWN\nx\r\n",
        ("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 655350\r\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(parse(wrong[i], strlen(wrong[i])), RC_INVALID);
    }
    assert_int_equal(parse(LIT("PROXY TCP4 1.2.3.4\0 5.6.7.8 1 2\r\n")), RC_INVALID);
    char endless[PROXY_HEADER_V1_MAX];
    memset(endless, 'x', sizeof(endless));
    memcpy(endless, "PROXY ", 6);
    assert_int_equal(parse(endless, sizeof(endless) - 1), RC_AGAIN);
    assert_int_equal(parse(endless, sizeof(endless)), RC_INVALID);
}

static void version_2(void **state)
{
    (void)state;
    assert_takes(LIT(SIG "\x21\x11\x00\x0c" V4));
    assert_ends("1.2.3.4:4660", "10.0.0.1:80");
    assert_takes(LIT(SIG "\x21\x21\x00\x24"
                         "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x34\x00\x50"));
    assert_ends("[2001:db8::1]:4660", "[::1]:80");
    /* TLVs of any kind, empty ones too. */
    assert_takes(LIT(SIG "\x21\x11\x00\x17" V4 "\x04\x00\x00\x01\x00\x02h2\xee\x00\x00"));
    assert_ends("1.2.3.4:4660", "10.0.0.1:80");
    /* LOCAL: whatever the block is. */
    assert_takes(LIT(SIG "\x20\x00\x00\x00"));
    assert_false(header.told);
    assert_takes(LIT(SIG "\x20\xff\x00\x05\x03\xff\xff\xff\xff"));
    assert_false(header.told);
    /* Families that name no TCP ends: unspecified, datagrams, unix. */
    assert_takes(LIT(SIG "\x21\x00\x00\x03xyz"));
    assert_false(header.told);
    assert_takes(LIT(SIG "\x21\x12\x00\x0c" V4));
    assert_false(header.told);
    char unix_ends[16 + 216] = SIG "\x21\x31\x00\xd8";
    assert_takes(unix_ends, sizeof(unix_ends));
    assert_false(header.told);
}

static void version_2_is_strict(void **state)
{
    (void)state;
    assert_int_equal(parse(LIT("\r\n\r\n\0\r\nQUIX")), RC_INVALID);
    assert_int_equal(parse(LIT(SIG "\x11")), RC_INVALID);                       /* version 1 */
    assert_int_equal(parse(LIT(SIG "\x22")), RC_INVALID);                       /* command 2 */
    assert_int_equal(parse(LIT(SIG "\x21\x41\x00\x00")), RC_INVALID);           /* family 4 */
    assert_int_equal(parse(LIT(SIG "\x21\x13\x00\x0c" V4)), RC_INVALID);        /* transport 3 */
    assert_int_equal(parse(LIT(SIG "\x21\x11\x00\x0b" V4)), RC_INVALID);        /* too short */
    assert_int_equal(parse(LIT(SIG "\x21\x21\x00\x0c" V4)), RC_INVALID);        /* the same */
    assert_int_equal(parse(LIT(SIG "\x21\x31\x00\xd7")), RC_INVALID);           /* the same */
    assert_int_equal(parse(LIT(SIG "\x21\x11\x00\x0d" V4 "\x04")), RC_INVALID); /* cut TLV */
    assert_int_equal(parse(LIT(SIG "\x21\x11\x00\x0f" V4 "\x04\x00\x01")), RC_INVALID);
    assert_int_equal(parse(LIT(SIG "\x21\x11\x10\x01")), RC_TOO_BIG);
    assert_int_equal(parse(LIT(SIG "\x20\x00\xff\xff")), RC_TOO_BIG);
    char large[PROXY_HEADER_MAX] = SIG "\x21\x11\x10\x00" V4;
    large[28] = (char)0xea;
    large[29] = (4084 - 3) >> 8;
    large[30] = (char)((4084 - 3) & 255);
    assert_takes(large, sizeof(large));
    assert_ends("1.2.3.4:4660", "10.0.0.1:80");
}

/* The checksum of this header was computed bit by bit, by a program that gives e3069283 for
 * "123456789" (RFC 3720 B.4 has more). */
static void checksums(void **state)
{
    (void)state;
    char with[] = SIG "\x21\x11\x00\x13" V4 "\x03\x00\x04\xb5\xeb\xc5\xc9";
    size_t len = sizeof(with) - 1;
    assert_takes(with, len);
    assert_ends("1.2.3.4:4660", "10.0.0.1:80");
    const size_t type_at = 28; /* another type is no checksum */
    for (size_t i = 16; i < len; i++) {
        with[i] ^= 1;
        assert_int_equal(parse(with, len) == RC_OK, i == type_at);
        with[i] ^= 1;
    }
    assert_int_equal(parse(LIT(SIG "\x21\x11\x00\x12" V4 "\x03\x00\x03\x00\x00\x00")), RC_INVALID);
}

static struct addr addr_of(const char *text)
{
    struct addr addr = {0};
    if (text != NULL) {
        assert_int_equal(addr_parse(text, &addr, NULL), RC_OK);
    }
    return addr;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        const char *destination;
        const char *line;
        const char *read_source; /* NULL: nothing is told */
        const char *read_destination;
    } rows[] = {
        {"192.0.2.1:5", "10.0.0.1:65535", "PROXY TCP4 192.0.2.1 10.0.0.1 5 65535\r\n",
         "192.0.2.1:5", "10.0.0.1:65535"},
        {"[2001:db8::1]:1", "[::1]:2", "PROXY TCP6 2001:db8::1 ::1 1 2\r\n", "[2001:db8::1]:1",
         "[::1]:2"},
        {"[::ffff:1.2.3.4]:1", "10.0.0.1:2", "PROXY TCP4 1.2.3.4 10.0.0.1 1 2\r\n", "1.2.3.4:1",
         "10.0.0.1:2"},
        {"10.0.0.1:1", "[2001:db8::1]:2", "PROXY TCP6 ::ffff:10.0.0.1 2001:db8::1 1 2\r\n",
         "[::ffff:10.0.0.1]:1", "[2001:db8::1]:2"},
        {NULL, "10.0.0.1:1", "PROXY UNKNOWN\r\n", NULL, NULL},
        {"10.0.0.1:1", NULL, "PROXY UNKNOWN\r\n", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct addr source = addr_of(rows[i].source);
        struct addr destination = addr_of(rows[i].destination);
        char out[PROXY_HEADER_OUT_MAX + 1];
        size_t len = proxy_header_v1(out, &source, &destination);
        assert_string_equal(out, rows[i].line);
        assert_int_equal(len, strlen(rows[i].line));
        for (int version = 1; version <= 2; version++) {
            assert_takes(out, len);
            if (rows[i].read_source != NULL) {
                assert_ends(rows[i].read_source, rows[i].read_destination);
            } else {
                assert_false(header.told);
            }
            len = proxy_header_v2(out, &source, &destination);
        }
    }
    struct addr wide = addr_of("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    char out[PROXY_HEADER_OUT_MAX + 1];
    assert_true(proxy_header_v1(out, &wide, &wide) <= PROXY_HEADER_V1_MAX);
    assert_int_equal(parse(out, strlen(out)), RC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1), cmocka_unit_test(version_1_is_strict),
        cmocka_unit_test(version_2), cmocka_unit_test(version_2_is_strict),
        cmocka_unit_test(checksums), cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
