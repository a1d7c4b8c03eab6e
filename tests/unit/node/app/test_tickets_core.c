/*
 * tickets_core: one key's life by hand, then whole clusters with skew and partitions, by seed.
 *
 * In the clusters each node seals when it likes; whoever has had time to hear of a key must open
 * what was sealed with it, until the ticket's life is over.
 */
#include "tests/support/unit.h"

#include "node/app/tickets_core.h"
#include "node/base/mem.h"
#include "node/base/rng.h"

#define HOUR_MS 3600000ull
#define BASE_MS (1000 * HOUR_MS)

static const struct tickets_settings twelve = {true, 12 * 3600, 12 * 3600};

static struct tickets_key key_of(uint8_t name, uint64_t epoch, uint64_t hlc_ms, uint32_t flags)
{
    struct tickets_key key = {.epoch = epoch,
                              .hlc = hlc_ms << 16,
                              .not_before_ms = hlc_ms,
                              .life_s = 12 * 3600,
                              .flags = flags};
    memset(key.name, name, sizeof(key.name));
    memset(key.secret, name ^ 0xff, sizeof(key.secret));
    return key;
}

static enum ticket_state state_of(const struct tickets_core *core, uint8_t name)
{
    for (size_t i = 0; i < tickets_core_count(core); i++) {
        struct tickets_shown shown;
        tickets_core_at(core, i, &shown);
        if (shown.key->name[0] == name) {
            return shown.state;
        }
    }
    fail_msg("no key %u", name);
    return TICKET_PENDING;
}

static struct tickets_todo step(struct tickets_core *core, uint64_t wall_ms, bool in_step)
{
    const struct tickets_member members[] = {
        {.id = 1, .is_self = true, .is_up = true, .is_ready = true, .in_step = true},
        {.id = 2, .is_up = true, .is_ready = true, .in_step = in_step},
    };
    struct tickets_world world = {wall_ms, members, 2, true};
    struct tickets_todo todo;
    tickets_core_step(core, &twelve, &world, &todo);
    return todo;
}

static struct tickets_todo step_alone(struct tickets_core *core, uint64_t wall_ms)
{
    const struct tickets_member self = {1, true, true, true, true};
    struct tickets_world world = {wall_ms, &self, 1, true};
    struct tickets_todo todo;
    tickets_core_step(core, &twelve, &world, &todo);
    return todo;
}

static void test_settings(void **state)
{
    (void)state;
    struct tickets_settings settings = tickets_settings_of(true, 0, 0);
    assert_int_equal(settings.rotation_s, 12 * 3600);
    assert_int_equal(settings.life_s, 12 * 3600);
    settings = tickets_settings_of(true, 5000, 0);
    assert_int_equal(settings.life_s, 5);
    settings = tickets_settings_of(true, 10, 60000);
    assert_int_equal(settings.rotation_s, 1);
    assert_int_equal(settings.life_s, 1);
    settings = tickets_settings_of(true, 30ull * 24 * HOUR_MS, 30ull * 24 * HOUR_MS);
    assert_int_equal(settings.life_s, TICKET_LIFE_MAX_S);
    assert_int_equal(tickets_settings_of(true, UINT64_MAX, 0).rotation_s, UINT32_MAX);
}

static void test_life(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_todo todo = step_alone(core, BASE_MS);
    assert_true(todo.make);
    assert_int_equal(todo.key.epoch, 1);
    assert_int_equal(todo.key.flags, TICKETS_FIRST);
    assert_false(step_alone(core, BASE_MS + 100).make); /* it is on its way */
    struct tickets_key first = key_of('a', 1, BASE_MS, TICKETS_FIRST);
    assert_true(tickets_core_put(core, &first));
    todo = step_alone(core, BASE_MS + 200);
    assert_true(todo.ring_changed);
    assert_int_equal(state_of(core, 'a'), TICKET_ACTIVE);
    assert_false(step_alone(core, BASE_MS + 6 * HOUR_MS - 1).make);
    todo = step_alone(core, BASE_MS + 6 * HOUR_MS);
    assert_true(todo.make);
    assert_int_equal(todo.key.epoch, 2);
    assert_int_equal(todo.key.flags, 0);
    assert_int_equal(todo.key.not_before_ms, BASE_MS + 12 * HOUR_MS);

    struct tickets_key next = key_of('b', 2, BASE_MS + 6 * HOUR_MS, 0);
    next.not_before_ms = todo.key.not_before_ms;
    assert_true(tickets_core_put(core, &next));
    assert_false(step(core, BASE_MS + 12 * HOUR_MS - 1, false).make);
    assert_int_equal(state_of(core, 'b'), TICKET_PENDING);
    (void)step(core, BASE_MS + 12 * HOUR_MS, false);
    assert_int_equal(state_of(core, 'b'), TICKET_PENDING); /* the other one may not have it */
    assert_true(step(core, BASE_MS + 12 * HOUR_MS + 1000, true).ring_changed);
    assert_int_equal(state_of(core, 'b'), TICKET_ACTIVE);
    assert_int_equal(state_of(core, 'a'), TICKET_RETIRING);
    (void)step(core, BASE_MS + 12 * HOUR_MS + 2000, false);
    assert_int_equal(state_of(core, 'b'), TICKET_ACTIVE); /* never back */

    assert_int_equal(step_alone(core, BASE_MS + 24 * HOUR_MS).drop_count, 0);
    todo = step_alone(core, BASE_MS + 24 * HOUR_MS + 11 * 60 * 1000);
    assert_int_equal(todo.drop_count, 1);
    assert_int_equal(todo.drop[0][0], 'a');
    assert_true(todo.ring_changed);
    assert_int_equal(tickets_core_count(core), 1);
    tickets_core_free(core);
}

static void test_waits_no_longer_than_five_minutes(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_key first = key_of('a', 1, BASE_MS, TICKETS_FIRST);
    struct tickets_key next = key_of('b', 2, BASE_MS + 12 * HOUR_MS, 0);
    (void)tickets_core_put(core, &first);
    (void)tickets_core_put(core, &next);
    (void)step(core, BASE_MS + 12 * HOUR_MS + 299 * 1000, false);
    assert_int_equal(state_of(core, 'a'), TICKET_ACTIVE);
    (void)step(core, BASE_MS + 12 * HOUR_MS + 300 * 1000, false);
    assert_int_equal(state_of(core, 'b'), TICKET_ACTIVE);
    tickets_core_free(core);
}

static void test_two_of_one_epoch(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_key late = key_of('x', 1, BASE_MS + 5, TICKETS_FIRST);
    struct tickets_key early = key_of('y', 1, BASE_MS, TICKETS_FIRST);
    (void)tickets_core_put(core, &late);
    (void)step(core, BASE_MS + 10, true);
    assert_int_equal(state_of(core, 'x'), TICKET_ACTIVE);
    (void)tickets_core_put(core, &early);
    (void)step(core, BASE_MS + 20, true);
    assert_int_equal(state_of(core, 'y'), TICKET_ACTIVE);
    assert_int_equal(state_of(core, 'x'), TICKET_RETIRING);
    tickets_core_free(core);
}

static void test_rank(void **state)
{
    (void)state;
    /* Two nodes that see each other: one makes the key, the other waits for its turn. */
    struct tickets_core *cores[2] = {tickets_core_new(1), tickets_core_new(2)};
    unsigned makers = 0;
    for (uint64_t i = 0; i < 2; i++) {
        const struct tickets_member members[] = {
            {.id = 1, .is_self = i == 0, .is_up = true, .is_ready = true},
            {.id = 2, .is_self = i == 1, .is_up = true, .is_ready = true},
        };
        struct tickets_world world = {BASE_MS, members, 2, true};
        struct tickets_todo todo;
        tickets_core_step(cores[i], &twelve, &world, &todo);
        makers += todo.make ? 1 : 0;
        bool was_first = todo.make;
        world.wall_ms = BASE_MS + 30 * 1000;
        tickets_core_step(cores[i], &twelve, &world, &todo);
        assert_true(was_first || todo.make); /* no key has shown */
    }
    assert_int_equal(makers, 1);
    tickets_core_free(cores[0]);
    tickets_core_free(cores[1]);
}

static void test_rotate_and_revoke(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_key first = key_of('a', 1, BASE_MS, TICKETS_FIRST);
    (void)tickets_core_put(core, &first);
    (void)step(core, BASE_MS, true);
    struct tickets_key asked;
    assert_true(tickets_core_rotate(core, &twelve, BASE_MS + 1000, false, &asked));
    assert_int_equal(asked.epoch, 2);
    asked.hlc = asked.not_before_ms << 16;
    memset(asked.name, 'b', sizeof(asked.name));
    (void)tickets_core_put(core, &asked);
    (void)step(core, BASE_MS + 1000, false);
    assert_int_equal(state_of(core, 'a'), TICKET_ACTIVE);
    (void)step(core, BASE_MS + 11000, false); /* ten seconds are enough */
    assert_int_equal(state_of(core, 'b'), TICKET_ACTIVE);
    assert_int_equal(state_of(core, 'a'), TICKET_RETIRING);

    assert_true(tickets_core_rotate(core, &twelve, BASE_MS + 20000, true, &asked));
    asked.hlc = asked.not_before_ms << 16;
    memset(asked.name, 'c', sizeof(asked.name));
    (void)tickets_core_put(core, &asked);
    struct tickets_todo todo = step(core, BASE_MS + 20001, false);
    assert_int_equal(state_of(core, 'c'), TICKET_ACTIVE);
    assert_int_equal(tickets_core_count(core), 1);
    /* What was made before it and comes late counts for nothing either. */
    struct tickets_key stray = key_of('d', 9, BASE_MS + 15000, 0);
    (void)tickets_core_put(core, &stray);
    (void)step(core, BASE_MS + 20002, true);
    assert_int_equal(tickets_core_count(core), 1);
    todo = step(core, BASE_MS + 20002 + 31000, true);
    assert_int_equal(todo.drop_count, 3);
    tickets_core_free(core);
}

static void test_caps(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_key asked;
    for (uint8_t i = 1; i <= 100; i++) {
        struct tickets_key key = key_of(i, i, BASE_MS + i, TICKETS_ASKED);
        assert_true(tickets_core_put(core, &key));
    }
    struct tickets_key old = key_of(200, 1, BASE_MS, TICKETS_ASKED);
    assert_false(tickets_core_put(core, &old));
    (void)step(core, BASE_MS + 1000, true);
    assert_int_equal(tickets_core_count(core), TICKET_KEYS_MAX);
    assert_false(tickets_core_rotate(core, &twelve, BASE_MS + 1000, false, &asked));
    assert_true(tickets_core_rotate(core, &twelve, BASE_MS + 1000, true, &asked));
    struct ticket_key ring[TICKET_KEYS_MAX];
    assert_int_equal(tickets_core_ring(core, ring), TICKET_KEYS_MAX);
    assert_int_equal(ring[0].name[0], 100);
    assert_int_equal(ring[0].state, TICKET_ACTIVE);
    assert_int_equal(ring[1].state, TICKET_RETIRING);
    tickets_core_remove(core, (const uint8_t[TICKET_NAME_BYTES]){0}); /* unknown */
    tickets_core_free(core);
    tickets_core_free(NULL);
}

static void test_disabled(void **state)
{
    (void)state;
    struct tickets_core *core = tickets_core_new(1);
    struct tickets_settings off = twelve;
    off.enabled = false;
    const struct tickets_member self = {1, true, true, true, true};
    struct tickets_world world = {BASE_MS, &self, 1, true};
    struct tickets_todo todo;
    tickets_core_step(core, &off, &world, &todo);
    assert_false(todo.make);
    tickets_core_step(core, &twelve, &world, &todo);
    assert_true(todo.make);
    assert_true(todo.ring_changed);
    tickets_core_free(core);
}

/* ---- clusters ---- */

enum { NODES = 5, KEYS = 4096, TICK_MS = 100, ROTATION_S = 10, DELAY_MS = 600 };

struct message {
    uint64_t at_ms;
    int to;
    bool gone;
    struct tickets_key key;
};

struct cluster {
    struct rng rng;
    uint64_t now_ms;
    int64_t skew_ms[NODES];
    struct tickets_core *cores[NODES];
    bool knows[NODES][KEYS]; /* rows, by number in the name */
    bool gone[NODES][KEYS];
    struct tickets_key rows[KEYS];
    size_t row_count;
    int side[NODES]; /* of a partition */
    uint64_t heal_ms;
    struct message *mail;
    size_t mail_count, mail_size;
};

static size_t number_of(const uint8_t *name)
{
    return (size_t)name[0] << 8 | name[1];
}

static void post(struct cluster *cluster, int from, const struct tickets_key *key, bool gone)
{
    for (int to = 0; to < NODES; to++) {
        if (to == from) {
            continue;
        }
        if (cluster->mail_count == cluster->mail_size) {
            cluster->mail_size = cluster->mail_size * 2 + 64;
            cluster->mail = mem_grow(cluster->mail, cluster->mail_size, sizeof(*cluster->mail));
        }
        uint64_t delay = rng_below(&cluster->rng, DELAY_MS);
        cluster->mail[cluster->mail_count++] =
            (struct message){cluster->now_ms + delay, to, gone, *key};
        /* A cut only delays: the rest comes by sync when it has healed. */
        if (cluster->side[to] != cluster->side[from]) {
            cluster->mail[cluster->mail_count - 1].at_ms = cluster->heal_ms + delay;
        }
    }
}

static void apply(struct cluster *cluster, int node, const struct tickets_key *key, bool gone)
{
    size_t number = number_of(key->name);
    if (gone) {
        cluster->gone[node][number] = true;
        tickets_core_remove(cluster->cores[node], key->name);
    } else if (!cluster->gone[node][number]) {
        cluster->knows[node][number] = true;
        assert_true(tickets_core_put(cluster->cores[node], key));
    }
}

static void deliver(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->mail_count;) {
        struct message *message = &cluster->mail[i];
        if (message->at_ms > cluster->now_ms) {
            i++;
            continue;
        }
        apply(cluster, message->to, &message->key, message->gone);
        *message = cluster->mail[--cluster->mail_count];
    }
}

static bool same_rows(const struct cluster *cluster, int a, int b)
{
    return memcmp(cluster->knows[a], cluster->knows[b], sizeof(cluster->knows[a])) == 0 &&
           memcmp(cluster->gone[a], cluster->gone[b], sizeof(cluster->gone[a])) == 0;
}

static void act(struct cluster *cluster, int node, const struct tickets_settings *settings)
{
    struct tickets_member members[NODES];
    for (int i = 0; i < NODES; i++) {
        bool up = cluster->side[i] == cluster->side[node];
        members[i] = (struct tickets_member){.id = (uint64_t)i + 1,
                                             .is_self = i == node,
                                             .is_up = up,
                                             .is_ready = true,
                                             .in_step = up && same_rows(cluster, i, node)};
    }
    uint64_t wall = cluster->now_ms + (uint64_t)cluster->skew_ms[node];
    struct tickets_world world = {wall, members, NODES, true};
    struct tickets_todo todo;
    tickets_core_step(cluster->cores[node], settings, &world, &todo);
    if (todo.make) {
        size_t number = cluster->row_count++;
        assert_true(number < KEYS);
        todo.key.name[0] = (uint8_t)(number >> 8);
        todo.key.name[1] = (uint8_t)number;
        todo.key.hlc = wall << 16;
        cluster->rows[number] = todo.key;
        apply(cluster, node, &todo.key, false);
        post(cluster, node, &todo.key, false);
    }
    for (size_t i = 0; i < todo.drop_count; i++) {
        struct tickets_key key = cluster->rows[number_of(todo.drop[i])];
        apply(cluster, node, &key, true);
        post(cluster, node, &key, true);
    }
}

static bool opens(const struct cluster *cluster, int node, size_t number)
{
    for (size_t i = 0; i < tickets_core_count(cluster->cores[node]); i++) {
        struct tickets_shown shown;
        tickets_core_at(cluster->cores[node], i, &shown);
        if (number_of(shown.key->name) == number) {
            return true;
        }
    }
    return false;
}

static int sealer(const struct cluster *cluster, int node)
{
    struct ticket_key ring[TICKET_KEYS_MAX];
    size_t count = tickets_core_ring(cluster->cores[node], ring);
    int active = -1;
    for (size_t i = 0; i < count; i++) {
        if (ring[i].state == TICKET_ACTIVE) {
            assert_int_equal(active, -1); /* at most one */
            active = (int)number_of(ring[i].name);
        }
    }
    return active;
}

static void cut_or_heal(struct cluster *cluster)
{
    if (cluster->now_ms >= cluster->heal_ms) {
        memset(cluster->side, 0, sizeof(cluster->side));
    }
    if (cluster->now_ms >= cluster->heal_ms + 20000 && rng_chance(&cluster->rng, 0.01)) {
        for (int i = 0; i < NODES; i++) {
            cluster->side[i] = rng_chance(&cluster->rng, 0.5) ? 1 : 0;
        }
        cluster->heal_ms = cluster->now_ms + 1000 + rng_below(&cluster->rng, 30000);
    }
}

/* A ticket of every age up to its life, sealed in a time of peace, opens on every node. */
struct sealed {
    uint64_t at_ms;
    int key;
};

static void check_sealed(const struct cluster *cluster, const struct sealed *log, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cluster->now_ms - log[i].at_ms > (uint64_t)ROTATION_S * 1000) {
            continue;
        }
        for (int node = 0; node < NODES; node++) {
            if (!opens(cluster, node, (size_t)log[i].key)) {
                fail_msg("node %d, at %llu: no key %d, sealed at %llu", node,
                         (unsigned long long)cluster->now_ms, log[i].key,
                         (unsigned long long)log[i].at_ms);
            }
        }
    }
}

static void run_cluster(uint64_t seed)
{
    enum { LOG = 256 };
    const struct tickets_settings settings = {true, ROTATION_S, ROTATION_S};
    struct cluster *cluster = mem_new(sizeof(*cluster));
    struct sealed log[LOG];
    size_t sealed_count = 0;
    rng_init(&cluster->rng, seed);
    cluster->now_ms = BASE_MS;
    for (int i = 0; i < NODES; i++) {
        cluster->cores[i] = tickets_core_new((uint64_t)i + 1);
        cluster->skew_ms[i] = (int64_t)rng_below(&cluster->rng, 500) - 250;
    }
    for (int tick = 0; tick < 2400; tick++) {
        cluster->now_ms += TICK_MS;
        cut_or_heal(cluster);
        deliver(cluster);
        for (int i = 0; i < NODES; i++) {
            act(cluster, i, &settings);
        }
        bool peace = cluster->now_ms > cluster->heal_ms + 5000 && tick > 100;
        if (!peace) {
            sealed_count = 0; /* of a cut-off node, whose keys others cannot have */
            continue;
        }
        int node = (int)rng_below(&cluster->rng, NODES);
        int key = sealer(cluster, node);
        assert_true(key >= 0);
        log[sealed_count++ % LOG] = (struct sealed){cluster->now_ms, key};
        check_sealed(cluster, log, MIN(sealed_count, (size_t)LOG));
    }
    assert_true(cluster->row_count > 15); /* it did rotate */
    for (int i = 0; i < NODES; i++) {
        assert_true(tickets_core_count(cluster->cores[i]) <= TICKET_KEYS_MAX);
        tickets_core_free(cluster->cores[i]);
    }
    mem_free(cluster->mail);
    mem_free(cluster);
}

static void test_clusters(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        run_cluster(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_waits_no_longer_than_five_minutes),
        cmocka_unit_test(test_two_of_one_epoch),
        cmocka_unit_test(test_rank),
        cmocka_unit_test(test_rotate_and_revoke),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_disabled),
        cmocka_unit_test(test_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
