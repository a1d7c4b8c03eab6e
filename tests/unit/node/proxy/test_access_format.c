/*
 * Records as text: every field in both formats, and that no value can leave its place.
 *
 * covers: access_record.c access_capture.c
 */
#include "node/base/mem.h"
#include "node/proxy/access_capture.h"
#include "node/proxy/access_record.h"
#include "node/proxy/exchange.h"
#include "tests/support/unit.h"

static _Alignas(8) char bytes[ACCESS_RECORD_MAX];
static struct access_items items;
static struct access_record record;
static struct buf out;

static void begin(void)
{
    items = (struct access_items){.bytes = bytes, .size = sizeof(bytes)};
    record = (struct access_record){
        .wall_ms = UINT64_C(1769853600123), /* 2026-01-31T10:00:00.123Z */
        .wait_us = 1,
        .queue_us = 2,
        .connect_us = 3,
        .first_us = 4,
        .total_us = 1000005,
        .bytes_in = 6,
        .bytes_out = 7,
        .status = 200,
        .minor = 1,
    };
    assert_int_equal(addr_parse("10.0.0.1:4711", &record.client, NULL), RC_OK);
}

static void put(enum access_item_id id, const char *text)
{
    access_item_put(&items, id, text, strlen(text), 100000);
}

static void put_named(enum access_item_id id, const char *name, const char *value, size_t len)
{
    access_item_put_named(&items, id, &(const struct access_text){name, strlen(name)},
                          &(const struct access_text){value, len});
}

static const char *format(bool combined)
{
    struct access_style style = {.node = "n\"1", .node_len = 3, .combined = combined};
    buf_deinit(&out);
    buf_init(&out, 1 << 18);
    record.items_len = (uint32_t)items.len;
    access_format(&out, &record, bytes, &style);
    assert_false(out.full);
    /* One line, whatever was in it. */
    assert_ptr_equal(strchr(out.data, '\n'), out.data + out.len - 1);
    return out.data;
}

static void fill(void)
{
    put(ACCESS_ITEM_LISTENER, "0.0.0.0:80");
    put(ACCESS_ITEM_METHOD, "GET");
    put(ACCESS_ITEM_HOST, "a.test");
    put(ACCESS_ITEM_TARGET, "/p?q");
    put(ACCESS_ITEM_AGENT, "curl/8");
    put(ACCESS_ITEM_REFERER, "http://b.test/");
    put(ACCESS_ITEM_REQUEST_ID, "id-1");
    put(ACCESS_ITEM_STICKY, "kept");
    put(ACCESS_ITEM_ROUTE, "ns/r");
    put(ACCESS_ITEM_BACKEND, "ns/b");
    put(ACCESS_ITEM_ENDPOINT, "10.1.0.4:8080");
    put_named(ACCESS_ITEM_REQUEST_FIELD, "x-a", "1", 1);
    put_named(ACCESS_ITEM_RESPONSE_FIELD, "x-b", "2", 1);
    put_named(ACCESS_ITEM_COOKIE, "C", "3", 1);
    put_named(ACCESS_ITEM_REQUEST_FIELD, "x-c", "4", 1);
}

static void test_json(void **state)
{
    (void)state;
    begin();
    fill();
    record.retries = 1;
    record.reused = true;
    record.end = EXCHANGE_END_CLIENT;
    record.phase = ACCESS_PHASE_RESPONSE;
    record.reason = REASON_NO_ROUTE;
    assert_string_equal(
        format(false),
        "{\"time\":\"2026-01-31T10:00:00.123Z\",\"kind\":\"http\",\"node\":\"n\\\"1\","
        "\"client\":\"10.0.0.1:4711\",\"listener\":\"0.0.0.0:80\",\"method\":\"GET\","
        "\"host\":\"a.test\",\"path\":\"/p?q\",\"userAgent\":\"curl/8\","
        "\"referer\":\"http://b.test/\",\"requestId\":\"id-1\",\"sticky\":\"kept\","
        "\"route\":\"ns/r\",\"backend\":\"ns/b\",\"endpoint\":\"10.1.0.4:8080\","
        "\"version\":\"1.1\",\"status\":200,\"bytesIn\":6,\"bytesOut\":7,\"waitUs\":1,"
        "\"queueUs\":2,\"connectUs\":3,\"firstByteUs\":4,\"totalUs\":1000005,\"reused\":true,"
        "\"retries\":1,\"end\":\"client.response\",\"reason\":\"no_route\","
        "\"requestHeaders\":{\"x-a\":\"1\",\"x-c\":\"4\"},\"responseHeaders\":{\"x-b\":\"2\"},"
        "\"cookies\":{\"C\":\"3\"}}\n");
}

static void test_json_of_little(void **state)
{
    (void)state;
    begin();
    record.kind = ACCESS_TCP;
    record.wait_us = record.queue_us = record.connect_us = record.first_us = ACCESS_TIME_NONE;
    addr_set_port(&record.client, 0);
    assert_string_equal(format(false),
                        "{\"time\":\"2026-01-31T10:00:00.123Z\",\"kind\":\"tcp\","
                        "\"node\":\"n\\\"1\",\"client\":\"10.0.0.1\",\"bytesIn\":6,\"bytesOut\":7,"
                        "\"totalUs\":1000005,\"reused\":false,\"retries\":0}\n");
}

static void test_combined(void **state)
{
    (void)state;
    begin();
    fill();
    assert_string_equal(
        format(true),
        "10.0.0.1 - - [31/Jan/2026:10:00:00 +0000] \"GET /p?q HTTP/1.1\" 200 7 "
        "\"http://b.test/\" \"curl/8\" \"a.test\" \"ns/r\" \"ns/b\" \"10.1.0.4:8080\" "
        "1/2/3/4/1000005 0 - \"id-1\" \"x-a=1\" \"<x-b=2\" \"cookie:C=3\" \"x-c=4\"\n");
    begin();
    record.end = EXCHANGE_END_TIME;
    record.phase = ACCESS_PHASE_HEAD;
    record.status = 408;
    record.first_us = ACCESS_TIME_NONE;
    assert_string_equal(format(true), "10.0.0.1 - - [31/Jan/2026:10:00:00 +0000] \"-\" 408 7 "
                                      "\"-\" \"-\" \"-\" \"-\" \"-\" \"-\" "
                                      "1/2/3/-1/1000005 0 time.head \"-\"\n");
    begin();
    record.kind = ACCESS_TCP;
    put(ACCESS_ITEM_LISTENER, "0.0.0.0:5432");
    assert_non_null(strstr(format(true), "] \"TCP 0.0.0.0:5432\" 200 7 "));
}

static void test_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *json;
        const char *plain;
    } rows[] = {
        {"a\"b\\c", "a\\\"b\\\\c", "a\\\"b\\\\c"},
        {"\n\r\t\x01\x1b[31m\x7f", "\\u000a\\u000d\\u0009\\u0001\\u001b[31m\\u007f",
         "\\x0a\\x0d\\x09\\x01\\x1b[31m\\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
         "\\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80"},
        {"\xc2\x9b"
         "2J",
         "\\u009b2J", "\\xc2\\x9b2J"},                                /* a C1 control */
        {"\xe2\x80\xa8x", "\\u2028x", "\\xe2\\x80\\xa8x"},            /* a line separator */
        {"\xff\xfe", "\\ufffd\\ufffd", "\\xff\\xfe"},                 /* never in UTF-8 */
        {"\xc0\xaf", "\\ufffd\\ufffd", "\\xc0\\xaf"},                 /* overlong */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd", "\\xf4\\x90\\x80\\x80"},
        {"a\xe2\x82", "a\\ufffd\\ufffd", "a\\xe2\\x82"}, /* cut */
        {"\xe2\x82z", "\\ufffd\\ufffdz", "\\xe2\\x82z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static const enum access_item_id ids[] = {ACCESS_ITEM_METHOD,  ACCESS_ITEM_HOST,
                                                  ACCESS_ITEM_TARGET,  ACCESS_ITEM_AGENT,
                                                  ACCESS_ITEM_REFERER, ACCESS_ITEM_ROUTE};
        begin();
        for (size_t j = 0; j < ARRAY_LEN(ids); j++) {
            put(ids[j], rows[i].text);
        }
        put_named(ACCESS_ITEM_COOKIE, "c", rows[i].text, strlen(rows[i].text));
        char want[256];
        (void)snprintf(want, sizeof(want), "\"path\":\"%s\",\"userAgent\":\"%s\"", rows[i].json,
                       rows[i].json);
        assert_non_null(strstr(format(false), want));
        (void)snprintf(want, sizeof(want), "{\"c\":\"%s\"}}\n", rows[i].json);
        assert_non_null(strstr(format(false), want));
        (void)snprintf(want, sizeof(want), "\"%s %s HTTP/1.1\"", rows[i].plain, rows[i].plain);
        assert_non_null(strstr(format(true), want));
        (void)snprintf(want, sizeof(want), "\"cookie:c=%s\"\n", rows[i].plain);
        assert_non_null(strstr(format(true), want));
    }
}

static void test_nul_bytes_end_nothing(void **state)
{
    (void)state;
    begin();
    put_named(ACCESS_ITEM_REQUEST_FIELD, "x", "a\0b", 3);
    assert_non_null(strstr(format(false), "{\"x\":\"a\\u0000b\"}"));
    assert_non_null(strstr(format(true), "\"x=a\\x00b\""));
}

static void test_items_find_their_room(void **state)
{
    (void)state;
    begin();
    char long_text[2000];
    memset(long_text, 'x', sizeof(long_text));
    items.size = 1000;
    access_item_put(&items, ACCESS_ITEM_METHOD, long_text, 5, 3);
    for (int i = 0; i < 3; i++) {
        put_named(ACCESS_ITEM_REQUEST_FIELD, "name", long_text, 700);
    }
    assert_true(items.len <= items.size);
    size_t at = 0;
    const struct access_item *item = access_item_next(bytes, items.len, &at);
    assert_int_equal(item->len, 3);
    item = access_item_next(bytes, items.len, &at);
    assert_int_equal(item->len, 700);
    assert_memory_equal(access_item_name(item), "name", 4);
    assert_int_equal(access_item_value(item)[699], 'x');
    item = access_item_next(bytes, items.len, &at); /* cut */
    assert_non_null(item);
    assert_true(item->len > 200 && item->len < 300);
    assert_null(access_item_next(bytes, items.len, &at));
}

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        enum exchange_end end;
        enum access_phase phase;
        const char *text;
    } rows[] = {
        {EXCHANGE_END_NONE, ACCESS_PHASE_NONE, ""},
        {EXCHANGE_END_CLIENT, ACCESS_PHASE_REQUEST, "client.request"},
        {EXCHANGE_END_ENDPOINT, ACCESS_PHASE_CONNECT, "endpoint.connect"},
        {EXCHANGE_END_PROXY, ACCESS_PHASE_ROUTE, "proxy.route"},
        {EXCHANGE_END_TIME, ACCESS_PHASE_WAIT, "time.wait"},
        {EXCHANGE_END_RESOURCE, ACCESS_PHASE_QUEUE, "resource.queue"},
        {EXCHANGE_END_CLIENT, ACCESS_PHASE_TUNNEL, "client.tunnel"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        const struct access_record with = {.end = (uint8_t)rows[i].end,
                                           .phase = (uint8_t)rows[i].phase};
        assert_string_equal(access_end_text(&with, text, sizeof(text)), rows[i].text);
    }
}

static void test_captures(void **state)
{
    (void)state;
    const struct proxy_capture request[] = {{"X-Foo", 0}, {"", 5}, {"Authorization", 10000}};
    const struct proxy_capture cookie[] = {{"SessionId", 7}};
    const struct proxy_captures from = {
        .request = request, .request_count = 3, .cookies = cookie, .cookie_count = 1};
    struct captures *captures = captures_new(&from);
    assert_int_equal(captures->request_count, 2);
    assert_int_equal(captures->response_count, 0);
    assert_int_equal(captures->cookie_count, 1);
    assert_memory_equal(captures->request[0].name, "x-foo", 5);
    assert_int_equal(captures->request[0].max_length, CAPTURE_LENGTH);
    assert_int_equal(captures->request[1].name_len, 13);
    assert_int_equal(captures->request[1].max_length, CAPTURE_LENGTH_MAX);
    assert_memory_equal(captures->cookies[0].name, "SessionId", 9); /* case counts */
    assert_int_equal(captures->cookies[0].max_length, 7);
    mem_free(captures);
    assert_null(captures_new(&(const struct proxy_captures){0}));
}

static int teardown(void **state)
{
    (void)state;
    buf_deinit(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_little),
        cmocka_unit_test(test_combined),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_nul_bytes_end_nothing),
        cmocka_unit_test(test_items_find_their_room),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_captures),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
