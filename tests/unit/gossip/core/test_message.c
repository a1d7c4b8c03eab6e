/* Bounds of sizes. That they hold for what the codec makes is tested with the codec. */
#include "gossip/core/message.h"
#include "tests/support/unit.h"

static void a_bound_counts_every_byte_of_what_is_carried(void **state)
{
    (void)state;
    struct dot vector[2] = {{{1, 1}, 1}, {{UINT64_MAX, UINT32_MAX}, UINT64_MAX}};
    static uint8_t value[ROW_VALUE_MAX];
    struct row row = {.kind = 1,
                      .id = "a",
                      .id_len = 1,
                      .hlc = 1,
                      .dot = vector[0],
                      .vector = vector,
                      .vector_len = 1};
    size_t small = msg_row_size(&row);
    assert_in_range(small, 30, 60);
    row.vector_len = 2;
    assert_in_range(msg_row_size(&row), small + 24, small + 32);
    row.value = value;
    row.value_len = ROW_VALUE_MAX;
    assert_in_range(msg_row_size(&row), small + ROW_VALUE_MAX, small + ROW_VALUE_MAX + 40);
}

static void the_largest_single_row_fits_a_stream_message(void **state)
{
    (void)state;
    static struct dot vector[ROW_VECTOR_MAX];
    for (size_t i = 0; i < ROW_VECTOR_MAX; i++) {
        vector[i] = (struct dot){{UINT64_MAX, UINT32_MAX}, UINT64_MAX};
    }
    static uint8_t value[ROW_VALUE_MAX];
    struct row row = {.kind = 255,
                      .id = "",
                      .id_len = ROW_ID_MAX,
                      .hlc = 1,
                      .dot = vector[0],
                      .vector = vector,
                      .vector_len = ROW_VECTOR_MAX,
                      .value = value,
                      .value_len = ROW_VALUE_MAX};
    const struct row *rows[] = {&row};
    struct gossip_part part = {.kind = PART_ROWS, .rows = rows, .row_count = 1};
    struct gossip_msg msg = {.parts = &part, .part_count = 1};
    assert_true(msg_size(&msg) + MSG_CHUNK_BYTES < GOSSIP_STREAM_MSG_MAX);
}

static void the_head_of_a_datagram_leaves_room(void **state)
{
    (void)state;
    struct gossip_fact fact = {
        .id = UINT64_MAX, .generation = UINT32_MAX, .incarnation = UINT64_MAX};
    memset(fact.name, 'n', sizeof(fact.name) - 1);
    memset(fact.version, 'v', sizeof(fact.version) - 1);
    struct gossip_summary summary = {0};
    struct gossip_msg msg = {.sender = &fact, .summary = &summary};
    assert_in_range(msg_size(&msg), 200, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bound_counts_every_byte_of_what_is_carried),
        cmocka_unit_test(the_largest_single_row_fits_a_stream_message),
        cmocka_unit_test(the_head_of_a_datagram_leaves_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
