/*
 * cidr: what a network is, what it holds, and that a set holds what its networks hold.
 */
#include "tests/support/unit.h"

#include "node/base/cidr.h"
#include "node/base/rng.h"

#include <arpa/inet.h>

static bool in_network(const char *network, const char *ip)
{
    struct cidr cidr;
    uint8_t addr[16];
    assert_int_equal(cidr_parse(network, &cidr, NULL), RC_OK);
    bool v6 = strchr(ip, ':') != NULL;
    assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, ip, addr), 1);
    return cidr_has(&cidr, addr, v6 ? 16 : 4);
}

static void networks(void **state)
{
    (void)state;
    assert_true(in_network("10.0.0.0/8", "10.255.0.1"));
    assert_false(in_network("10.0.0.0/8", "11.0.0.0"));
    assert_true(in_network("10.1.2.128/25", "10.1.2.129"));
    assert_false(in_network("10.1.2.128/25", "10.1.2.127"));
    assert_true(in_network("10.1.2.3", "10.1.2.3"));
    assert_false(in_network("10.1.2.3", "10.1.2.2"));
    assert_true(in_network("0.0.0.0/0", "1.2.3.4"));
    assert_false(in_network("0.0.0.0/0", "::1"));
    assert_true(in_network("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(in_network("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(in_network("::/0", "2001:db8::1"));
    assert_false(in_network("::/0", "10.0.0.1"));
    /* A v4-mapped client is the IPv4 client that it is, and so is a v4-mapped network. */
    assert_true(in_network("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert_false(in_network("10.0.0.0/8", "::ffff:11.1.2.3"));
    assert_false(in_network("::/0", "::ffff:10.0.0.1"));
    assert_true(in_network("::ffff:10.0.0.0/104", "10.1.2.3"));
    assert_true(in_network("::ffff:10.0.0.1", "10.0.0.1"));
    assert_false(in_network("::ffff:10.0.0.0/104", "11.1.2.3"));
}

static void malformed_networks_are_refused_with_a_text(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "10.0.0.0/33",
                                      "10.0.0.1/8",
                                      "10.0.0/8",
                                      "10.0.0.0/",
                                      "::/129",
                                      "10.0.0.0/-1",
                                      "::1/127",
                                      "10.0.0.0/8/8",
                                      "example.com",
                                      "10.0.0.0 /8",
                                      "10.0.0.0/+8",
                                      "10.0.0.0/ 8",
                                      "10.0.0.0/0008",
                                      "[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cidr cidr;
        struct err_info err = {""};
        assert_int_equal(cidr_parse(bad[i], &cidr, &err), RC_INVALID);
        assert_true(err.text[0] != '\0');
    }
}

static struct addr ip(const char *text)
{
    struct addr addr;
    assert_int_equal(addr_parse_ip(text, strlen(text), &addr), RC_OK);
    return addr;
}

static bool set_has(const struct cidr_set *set, const char *text)
{
    struct addr addr = ip(text);
    return cidr_set_has(set, &addr);
}

static void sets(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "10.0.0.0/8",    "192.168.1.0/24", "192.168.0.0/24",        "10.9.0.0/16",    "1.2.3.4",
        "2001:db8::/32", "fe80::/10",      "::ffff:172.16.0.0/108", "2001:db8:1::/48"};
    struct cidr_set *set = NULL;
    assert_int_equal(cidr_set_new(texts, ARRAY_LEN(texts), &set, NULL), RC_OK);
    static const char *const inside[] = {"10.0.0.0",
                                         "10.255.255.255",
                                         "192.168.0.255",
                                         "192.168.1.0",
                                         "1.2.3.4",
                                         "2001:db8::1",
                                         "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
                                         "fe80::1",
                                         "febf::1",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "::ffff:10.1.1.1"};
    static const char *const outside[] = {"9.255.255.255",
                                          "11.0.0.0",
                                          "192.168.2.0",
                                          "192.167.255.255",
                                          "1.2.3.3",
                                          "1.2.3.5",
                                          "2001:db7::1",
                                          "2001:db9::",
                                          "fec0::1",
                                          "::1",
                                          "::",
                                          "172.32.0.0",
                                          "0.0.0.0",
                                          "255.255.255.255"};
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        assert_true(set_has(set, inside[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        assert_false(set_has(set, outside[i]));
    }
    struct addr unset = {0};
    assert_false(cidr_set_has(set, &unset));
    assert_false(cidr_set_has(NULL, &unset));
    cidr_set_free(set);
    assert_int_equal(cidr_set_new(NULL, 0, &set, NULL), RC_OK);
    assert_false(set_has(set, "10.0.0.1"));
    cidr_set_free(set);
    static const char *const bad[] = {"10.0.0.0/8", "x"};
    struct err_info err = {0};
    assert_int_equal(cidr_set_new(bad, 2, &set, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "\"x\""));
}

/* Against the networks one by one, on small numbers so that they nest and meet. */
static void sets_agree_with_their_networks(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7);
    for (int round = 0; round < 300; round++) {
        enum { COUNT = 12, TEXT = 64 };
        char store[COUNT][TEXT];
        const char *texts[COUNT];
        struct cidr cidrs[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            unsigned bits = 24 + (unsigned)rng_below(&rng, 9);
            unsigned last = (unsigned)rng_below(&rng, 256) & (0xff00U >> (bits - 24)) & 0xffU;
            bool v6 = rng_chance(&rng, 0.3);
            (void)snprintf(store[i], TEXT, v6 ? "2001:db8::%x/%u" : "10.0.0.%u/%u", last,
                           v6 ? bits + 96 : bits);
            texts[i] = store[i];
            assert_int_equal(cidr_parse(texts[i], &cidrs[i], NULL), RC_OK);
        }
        struct cidr_set *set = NULL;
        assert_int_equal(cidr_set_new(texts, COUNT, &set, NULL), RC_OK);
        for (unsigned last = 0; last < 512; last++) {
            char text[TEXT];
            (void)snprintf(text, TEXT, last < 256 ? "10.0.0.%u" : "2001:db8::%x", last % 256);
            struct addr addr = ip(text);
            struct cidr one = cidr_of_addr(&addr);
            bool want = false;
            for (size_t i = 0; i < COUNT; i++) {
                want = want || cidr_has(&cidrs[i], one.addr, one.len);
            }
            assert_int_equal(cidr_set_has(set, &addr), want);
        }
        cidr_set_free(set);
    }
}

static void addresses(void **state)
{
    (void)state;
    struct addr v6 = ip("2001:db8:1:2:3:4:5:6");
    struct cidr around = cidr_around(&v6, 32, 64);
    char text[INET6_ADDRSTRLEN];
    assert_string_equal(inet_ntop(AF_INET6, around.addr, text, sizeof(text)), "2001:db8:1:2::");
    assert_int_equal(around.bits, 64);
    struct addr mapped = ip("::ffff:10.1.2.3");
    addr_set_port(&mapped, 80);
    around = cidr_around(&mapped, 24, 64);
    assert_int_equal(around.len, 4);
    assert_memory_equal(around.addr, "\x0a\x01\x02\x00", 4);
    struct addr plain = addr_unmapped(&mapped);
    assert_string_equal(addr_format(&plain, (char[ADDR_TEXT_MAX]){0}), "10.1.2.3:80");
    struct addr none = {0};
    assert_int_equal(cidr_of_addr(&none).len, 0);
    struct addr ret;
    assert_int_equal(addr_parse_ip("10.0.0.1x", 8, &ret), RC_OK);
    assert_int_equal(addr_parse_ip("10.0.0.1x", 9, &ret), RC_INVALID);
    assert_int_equal(addr_parse_ip("", 0, &ret), RC_INVALID);
    assert_int_equal(addr_parse_ip("1.1.1.1\0", 8, &ret), RC_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks),  cmocka_unit_test(malformed_networks_are_refused_with_a_text),
        cmocka_unit_test(sets),      cmocka_unit_test(sets_agree_with_their_networks),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
