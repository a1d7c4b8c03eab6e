/*
 * What field lines say: names and values, Content-Length, Transfer-Encoding, Connection, Expect,
 * TE, Upgrade.
 */
#include "tests/unit/node/http/heads.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define END "\r\n\r\n"

struct row {
    const char *lines; /* behind Host; NUL bytes only in test_control */
    enum h1_fault fault;
    const char *text; /* behind the fixed beginning */
};

static const struct row rows[] = {
    /* names and values */
    {"X-Empty:", 0, "none keep [X-Empty|]"},
    {"X:  a \t b\t ", 0, "none keep [X|a \t b]"},
    {"X: J\xfcrgen \xe4", 0, "none keep [X|J\xfcrgen \xe4]"},
    {"!#$%&'*+-.^_`|~09azAZ: v", 0, "none keep [!#$%&'*+-.^_`|~09azAZ|v]"},
    {"X: a:b", 0, "none keep [X|a:b]"},
    {"X : a", H1_FAULT_FIELD_NAME, NULL},
    {"X\t: a", H1_FAULT_FIELD_NAME, NULL},
    {": a", H1_FAULT_FIELD_NAME, NULL},
    {"Just-a-word", H1_FAULT_FIELD_NAME, NULL},
    {"X-T\xe9st: a", H1_FAULT_FIELD_NAME, NULL},
    {"X(: a", H1_FAULT_FIELD_NAME, NULL},
    {"X: a\r\n b", H1_FAULT_FOLD, NULL},
    {"X: a\r\n\tb", H1_FAULT_FOLD, NULL},
    {"X: a\rY: b", H1_FAULT_CONTROL_BYTE, NULL},
    {"X: a\nY: b", H1_FAULT_CONTROL_BYTE, NULL},
    {"X: a\x0c", H1_FAULT_CONTROL_BYTE, NULL},
    {"X: a\x7f", H1_FAULT_CONTROL_BYTE, NULL},
    /* Content-Length */
    {"Content-Length: 5", 0, "length:5 keep [Content-Length|5]"},
    {"Content-Length:  \t 0 ", 0, "length:0 keep [Content-Length|0]"},
    {"Content-Length:\t5\t", 0, "length:5 keep [Content-Length|5]"},
    {"content-LENGTH: 05", 0, "length:5 keep [content-LENGTH|05]"},
    {"Content-Length: 9223372036854775807", 0,
     "length:9223372036854775807 keep [Content-Length|9223372036854775807]"},
    {"Content-Length: 4294967301", 0, "length:4294967301 keep [Content-Length|4294967301]"},
    {"Content_Length: 5", 0, "none keep [Content_Length|5]"},
    {"Content-Length: 9223372036854775808", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 18446744073709551621", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 9999999999999999999999999999999999999999", H1_FAULT_LENGTH, NULL},
    {"Content-Length:", H1_FAULT_LENGTH, NULL},
    {"Content-Length: +5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: -5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5.0", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5e0", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 0x5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5abc", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5 5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: \"5\"", H1_FAULT_LENGTH, NULL},
    {"Content-Length: \xd9\xa5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5, 5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5, 6", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5\r\nContent-Length: 5", H1_FAULT_LENGTH, NULL},
    {"Content-Length: 5\r\nContent-Length: 0", H1_FAULT_LENGTH, NULL},
    {"Content-Length:\r\nContent-Length: 5", H1_FAULT_LENGTH, NULL},
    {"Content-Length:\r\n 5", H1_FAULT_FOLD, NULL},
    {"Content-Length : 5", H1_FAULT_FIELD_NAME, NULL},
    /* Transfer-Encoding */
    {"Transfer-Encoding: chunked", 0, "chunked keep -[Transfer-Encoding|chunked]"},
    {"TRANSFER-ENCODING:\tCHUNKED", 0, "chunked keep -[TRANSFER-ENCODING|CHUNKED]"},
    {"Transfer-Encoding: \tchunked\t ", 0, "chunked keep -[Transfer-Encoding|chunked]"},
    {"Connection:\tclose\t", 0, "none -[Connection|close]"},
    {"Connection: \t", 0, "none keep -[Connection|]"},
    {"Connection:\tupgrade \t\r\nUpgrade:\tx\t", 0,
     "none keep upgrade -[Connection|upgrade] -[Upgrade|x]"},
    {"Transfer_Encoding: chunked", 0, "none keep [Transfer_Encoding|chunked]"},
    {"Transfer-Encoding:", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: ,", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked,", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: identity", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: xchunked", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked, chunked", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked, identity", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked;q=1", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: \"chunked\"", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: gzip, chunked", H1_FAULT_CODING_UNKNOWN, NULL},
    {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", H1_FAULT_CODING, NULL},
    {"Transfer-Encoding: chunked\r\nContent-Length: 0", H1_FAULT_LENGTH_AND_CODING, NULL},
    {"Content-Length: 4\r\nTransfer-Encoding: chunked", H1_FAULT_LENGTH_AND_CODING, NULL},
    {"Transfer-Encoding: chunked\x0c", H1_FAULT_CONTROL_BYTE, NULL},
    {"X: a\rTransfer-Encoding: chunked", H1_FAULT_CONTROL_BYTE, NULL},
    /* Connection */
    {"Connection: close", 0, "none -[Connection|close]"},
    {"Connection: keep-alive, Close", 0, "none -[Connection|keep-alive, Close]"},
    {"Connection: x-HOP-a\r\nconnection: X-Hop-B,,\r\nX-Hop-A: 1\r\nX-hop-b: 2\r\nX-End: 3", 0,
     "none keep -[Connection|x-HOP-a] -[connection|X-Hop-B,,] -[X-Hop-A|1] -[X-hop-b|2] "
     "[X-End|3]"},
    {"X: 1\r\nX: 2\r\nConnection: x", 0, "none keep -[X|1] -[X|2] -[Connection|x]"},
    {"Connection: content-length, host, transfer-encoding\r\nContent-Length: 3", 0,
     "length:3 keep -[Connection|content-length, host, transfer-encoding] [Content-Length|3]"},
    {"Connection: a b", H1_FAULT_CONNECTION, NULL},
    {"Connection: \"x\"", H1_FAULT_CONNECTION, NULL},
    {"Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", 0,
     "none keep -[Connection|a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]"},
    {"Connection: a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a",
     H1_FAULT_CONNECTION, NULL},
    {"Keep-Alive: timeout=9\r\nProxy-Connection: close\r\nProxy: http://evil/\r\npRoXy: x", 0,
     "none keep -[Keep-Alive|timeout=9] -[Proxy-Connection|close] -[Proxy|http://evil/] "
     "-[pRoXy|x]"},
    /* Expect, TE, Upgrade */
    {"Expect: 100-Continue", 0, "none keep expect [Expect|100-Continue]"},
    {"Expect: other", 0, "none keep expect-other [Expect|other]"},
    {"Expect: 100-continue\r\nExpect: 100-continue", 0,
     "none keep expect expect-other [Expect|100-continue] [Expect|100-continue]"},
    {"TE: gzip;q=0.5, Trailers", 0, "none keep te -[TE|gzip;q=0.5, Trailers]"},
    {"Upgrade: websocket\r\nConnection: keep-alive, UPGRADE", 0,
     "none keep upgrade -[Upgrade|websocket] -[Connection|keep-alive, UPGRADE]"},
    {"Upgrade: websocket", 0, "none keep -[Upgrade|websocket]"},
    {"Connection: upgrade", 0, "none keep -[Connection|upgrade]"},
    {"Connection: upgrade\r\nUpgrade:", 0, "none keep -[Connection|upgrade] -[Upgrade|]"},
    {"Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA", 0,
     "none keep -[Connection|upgrade, HTTP2-Settings] -[Upgrade|h2c] -[HTTP2-Settings|AAA]"},
    {"Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: H2C", 0,
     "none keep -[Connection|upgrade] -[Upgrade|websocket] -[Upgrade|H2C]"},
    {"Connection: upgrade\r\nUpgrade: spdy\r\nContent-Length: 0", 0,
     "length:0 keep upgrade -[Connection|upgrade] -[Upgrade|spdy] [Content-Length|0]"},
    {"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 1", 0,
     "length:1 keep -[Connection|upgrade] -[Upgrade|websocket] [Content-Length|1]"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char raw[1024], want[1024] = "";
        struct heads_parse got;
        int len = snprintf(raw, sizeof(raw), GET "%s" END, rows[i].lines);
        heads_parse_all(raw, (size_t)len, true, H1_GET, &got);
        if (got.fault != rows[i].fault) {
            fail_msg("%s: fault %s", rows[i].lines, h1_fault_label(got.fault));
        }
        if (rows[i].text != NULL) {
            /* "<framing> <rest>" with the fixed fields in between */
            int framing = (int)strcspn(rows[i].text, " ");
            const char *fields = strchr(rows[i].text, '[');
            fields -= fields[-1] == '-' ? 1 : 0;
            (void)snprintf(want, sizeof(want),
                           "len=%d 1.1 %.*s method=GET target=/ path=/ host=a%.*s[Host|a] %s", len,
                           framing, rows[i].text, (int)(fields - rows[i].text) - framing,
                           rows[i].text + framing, fields);
        }
        assert_string_equal(got.text, want);
    }
}

static void test_version_10(void **state)
{
    (void)state;
    struct heads_parse got;
    static const char coding[] = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    heads_parse_all(coding, sizeof(coding) - 1, true, H1_GET, &got);
    assert_int_equal(got.fault, H1_FAULT_CODING);
    static const char rest[] = "GET / HTTP/1.0\r\nConnection: keep-alive, upgrade\r\n"
                               "Upgrade: websocket\r\nExpect: 100-continue\r\n\r\n";
    heads_parse_all(rest, sizeof(rest) - 1, true, H1_GET, &got);
    assert_string_equal(got.text, "len=93 1.0 none method=GET target=/ path=/ keep "
                                  "-[Connection|keep-alive, upgrade] -[Upgrade|websocket] "
                                  "[Expect|100-continue]");
}

/* Every byte value at the end of a value, in the middle of a name, and in the target. */
static void test_control(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char raw[64] = GET "X: ab" END;
        struct heads_parse got;
        size_t len = strlen(raw);
        bool is_control = (byte < 0x20 && byte != '\t') || byte == 0x7f;
        raw[len - 5] = (char)byte;
        heads_parse_all(raw, len, true, H1_GET, &got);
        assert_int_equal(got.fault, is_control ? H1_FAULT_CONTROL_BYTE : H1_FAULT_NONE);
        memcpy(raw, GET "Xy: b" END, len);
        raw[len - 8] = (char)byte;
        heads_parse_all(raw, len, true, H1_GET, &got);
        char one = (char)byte;
        bool is_name = h1_is_token(&one, 1) || byte == ':';
        assert_int_equal(got.fault, is_control ? H1_FAULT_CONTROL_BYTE
                                    : is_name  ? H1_FAULT_NONE
                                               : H1_FAULT_FIELD_NAME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_version_10),
        cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
