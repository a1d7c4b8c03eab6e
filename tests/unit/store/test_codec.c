#include "fixture.h"

#include <arpa/inet.h>

static void test_numbers(void **state)
{
    (void)state;
    uint8_t bytes[8];
    put_be64(bytes, 0x0102030405060708U);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[7], 8);
    assert_true(get_be64(bytes) == 0x0102030405060708U);
    assert_int_equal(get_be32(bytes), 0x01020304);
    assert_int_equal(get_be16(bytes), 0x0102);
    put_be32(bytes, UINT32_MAX);
    put_be16(bytes + 4, 0xfffe);
    assert_int_equal(get_be32(bytes), UINT32_MAX);
    assert_int_equal(get_be16(bytes + 4), 0xfffe);
}

static void test_vector(void **state)
{
    (void)state;
    struct dot dots[ROW_VECTOR_MAX];
    struct dot back[ROW_VECTOR_MAX];
    uint8_t bytes[ROW_VECTOR_MAX * STORE_DOT_LEN + STORE_DOT_LEN];
    uint32_t count = 0;
    memset(bytes, 0, sizeof(bytes));
    for (size_t i = 0; i < ROW_VECTOR_MAX; i++) {
        dots[i] = (struct dot){.origin = {.node = UINT64_MAX - i, .generation = UINT32_MAX},
                               .seq = i << 40};
    }
    vector_encode(dots, ROW_VECTOR_MAX, bytes);
    assert_int_equal(vector_decode(bytes, (size_t)ROW_VECTOR_MAX * STORE_DOT_LEN, back, &count), 0);
    assert_int_equal(count, ROW_VECTOR_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_true(back[i].origin.node == dots[i].origin.node);
        assert_true(back[i].origin.generation == dots[i].origin.generation);
        assert_true(back[i].seq == dots[i].seq);
    }
    assert_int_equal(vector_decode(bytes, 0, back, &count), RC_CORRUPT);
    assert_int_equal(vector_decode(bytes, STORE_DOT_LEN - 1, back, &count), RC_CORRUPT);
    assert_int_equal(vector_decode(bytes, STORE_DOT_LEN + 1, back, &count), RC_CORRUPT);
    assert_int_equal(vector_decode(bytes, sizeof(bytes), back, &count), RC_CORRUPT);
}

static void test_addr(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.1.2.3:7946", "[2001:db8::1]:65535", ":80"};
    uint8_t bytes[STORE_ADDR_LEN];
    struct addr addr;
    struct addr back;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(addr_parse(texts[i], &addr, NULL), RC_OK);
        addr_encode(&addr, bytes);
        assert_int_equal(addr_decode(bytes, sizeof(bytes), &back), RC_OK);
        assert_int_equal(addr_compare(&addr, &back), 0);
    }
    /* A link-local address means nothing without its interface. */
    assert_int_equal(addr_parse("[fe80::1]:1", &addr, NULL), RC_OK);
    addr.in6.sin6_scope_id = 3;
    addr_encode(&addr, bytes);
    assert_int_equal(addr_decode(bytes, sizeof(bytes), &back), RC_OK);
    assert_int_equal(back.in6.sin6_scope_id, 3);

    memset(&addr, 0, sizeof(addr));
    addr_encode(&addr, bytes);
    assert_int_equal(addr_decode(bytes, sizeof(bytes), &back), RC_OK);
    assert_int_equal(back.sa.sa_family, AF_UNSPEC);
    assert_int_equal(addr_decode(bytes, sizeof(bytes) - 1, &back), RC_CORRUPT);
    bytes[0] = 5;
    assert_int_equal(addr_decode(bytes, sizeof(bytes), &back), RC_CORRUPT);
}

/* Every field takes part in its checksum. */
static void test_sums(void **state)
{
    (void)state;
    struct sample s;
    uint8_t stamp[ROW_STAMP_LEN];
    uint8_t vector[STORE_DOT_LEN];
    sample_make(&s, "shop/a", PEER, 4, 100, "value");
    row_stamp(&s.row, stamp);
    vector_encode(s.row.vector, 1, vector);
    uint64_t sum = entry_sum(&s.row, stamp, vector, sizeof(vector));
#define DIFFERS(change)                                                                            \
    do {                                                                                           \
        struct sample t = s;                                                                       \
        t.row.id = t.id;                                                                           \
        t.row.value = t.value;                                                                     \
        change;                                                                                    \
        assert_true(entry_sum(&t.row, stamp, vector, sizeof(vector)) != sum);                      \
    } while (0)
    DIFFERS(t.row.kind++);
    DIFFERS(t.row.flags = ROW_SECRET);
    DIFFERS(t.row.dot.seq++);
    DIFFERS(t.row.created_hlc++);
    DIFFERS(t.id[0] ^= 1);
    DIFFERS(t.value[4] ^= 1);
    DIFFERS(t.row.value_len--);
    stamp[0] ^= 1;
    DIFFERS((void)t);
    stamp[0] ^= 1;
    vector[19] ^= 1;
    DIFFERS((void)t);

    struct gossip_member member = {.id = 1, .generation = 2, .incarnation = 3, .name = "r1"};
    uint64_t member_before = member_sum(&member);
    member.state = MEMBER_DEAD;
    assert_true(member_sum(&member) != member_before);
    member.state = MEMBER_ALIVE;
    assert_true(member_sum(&member) == member_before);
    member.rtt_us = 5; /* not stored */
    assert_true(member_sum(&member) == member_before);
    member.name[1] = '2';
    assert_true(member_sum(&member) != member_before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_addr),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
