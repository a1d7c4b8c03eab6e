#include "fixture.h"

#include "store/writer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ANSWERS_MAX = 4000 };

/* What the done callback was told, and a gate that can hold it up. */
struct answers {
    pthread_mutex_t lock;
    pthread_cond_t change;
    uint64_t tokens[ANSWERS_MAX];
    int rcs[ANSWERS_MAX];
    size_t count;
    bool closed; /* done waits while this is set */
};

static void answers_init(struct answers *a)
{
    memset(a, 0, sizeof(*a));
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->change, NULL);
}

static void answers_deinit(struct answers *a)
{
    pthread_cond_destroy(&a->change);
    pthread_mutex_destroy(&a->lock);
}

static void on_done(void *ctx, uint64_t token, int rc)
{
    struct answers *a = ctx;
    pthread_mutex_lock(&a->lock);
    if (a->count < ANSWERS_MAX) {
        a->tokens[a->count] = token;
        a->rcs[a->count] = rc;
    }
    a->count++;
    pthread_cond_broadcast(&a->change);
    while (a->closed) {
        pthread_cond_wait(&a->change, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
}

static void answers_wait(struct answers *a, size_t count)
{
    pthread_mutex_lock(&a->lock);
    while (a->count < count) {
        pthread_cond_wait(&a->change, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
}

static void gate(struct answers *a, bool closed)
{
    pthread_mutex_lock(&a->lock);
    a->closed = closed;
    pthread_cond_broadcast(&a->change);
    pthread_mutex_unlock(&a->lock);
}

/* Memory of the batch is overwritten right after the call: what is written must be a copy. */
static void submit_row(struct store_writer *writer, uint64_t node, uint64_t number)
{
    struct sample s;
    char id[32];
    snprintf(id, sizeof(id), "row-%u", (unsigned)number);
    sample_make(&s, id, node, number, number, "value");
    struct gossip_batch batch = sample_batch(&s);
    store_writer_submit(writer, &batch, number);
    memset(&s, 0xee, sizeof(s));
}

/* One answer is held up at the gate while others queue: they must share the next commit. */
static void test_group_commit(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    gate(&answers, true);
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    submit_row(writer, PEER, 1);
    answers_wait(&answers, 1);
    struct store_stats stats;
    store_writer_stats(writer, &stats);
    assert_int_equal(stats.commits, 1);
    for (uint64_t i = 2; i <= 101; i++) {
        submit_row(writer, PEER, i);
    }
    store_writer_stats(writer, &stats);
    assert_int_equal(stats.queue_jobs, 100);
    assert_true(stats.queue_bytes > 100 * sizeof(struct row));
    gate(&answers, false);
    answers_wait(&answers, 101);
    store_writer_stats(writer, &stats);
    assert_int_equal(stats.commits, 2);
    assert_int_equal(stats.jobs, 101);
    assert_int_equal(stats.failed, 0);
    assert_int_equal(stats.batch_max, 100);
    assert_int_equal(stats.queue_jobs, 0);
    assert_int_equal(stats.queue_bytes, 0);
    store_writer_stop(writer);
    for (size_t i = 0; i < 101; i++) {
        assert_int_equal(answers.tokens[i], i + 1);
        assert_int_equal(answers.rcs[i], RC_OK);
    }
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 101);
    assert_true(held_seq(held, PEER) == 101);
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

/* What is queued when the writer stops is written and answered. */
static void test_stop_drains(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    for (uint64_t i = 1; i <= 500; i++) {
        submit_row(writer, PEER, i);
    }
    store_writer_stop(writer);
    assert_int_equal(answers.count, 500);
    store_close(store);
    store = open_store(*state);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 500);
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

/* A whole batch with every part, copied. */
static void test_all_parts_are_copied(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    struct sample s[2];
    const struct row *rows[2] = {&s[0].row, &s[1].row};
    sample_make(&s[0], "a", PEER, 1, 1, "v");
    sample_make(&s[1], "b", PEER, 2, 2, "");
    s[1].row.flags = ROW_TOMBSTONE;
    s[1].row.value = NULL;
    struct dot frontier[2] = {s[1].dot, {.origin = {.node = 5, .generation = 3}, .seq = 8}};
    struct gossip_member members[2] = {{.id = 1, .generation = 1, .name = "r1"},
                                       {.id = 2, .generation = 1, .name = "r2"}};
    uint64_t forgotten = 1;
    struct gossip_batch batch = {
        .rows = rows,
        .row_count = 2,
        .frontier = frontier,
        .frontier_count = 2,
        .members = members,
        .member_count = 2,
        .forgotten = &forgotten,
        .forgotten_count = 1,
        .incarnation_limit = 2000,
        .generation = 4,
    };
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    store_writer_submit(writer, &batch, 1);
    memset(s, 0xee, sizeof(s));
    memset(frontier, 0xee, sizeof(frontier));
    memset(members, 0xee, sizeof(members));
    forgotten = 2;
    store_writer_stop(writer);
    assert_int_equal(answers.rcs[0], RC_OK);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 2);
    assert_int_equal(held_find(held, "b")->flags, ROW_TOMBSTONE);
    assert_true(held_seq(held, 5) == 8);
    assert_int_equal(held->member_count, 1);
    assert_string_equal(held->members[0].name, "r2");
    assert_int_equal(store_identity(store).generation, 4);
    assert_true(store_identity(store).incarnation_limit == 2000);
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

/* Above the cap a batch is refused, in its turn, and nothing else is. */
static void test_cap(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    gate(&answers, true);
    struct store_writer *writer = store_writer_start(store, 4000, on_done, &answers);
    submit_row(writer, PEER, 1);
    answers_wait(&answers, 1);
    for (uint64_t i = 2; i <= 100; i++) {
        submit_row(writer, PEER, i);
    }
    struct gossip_batch empty = {0};
    store_writer_submit(writer, &empty, 101);
    gate(&answers, false);
    answers_wait(&answers, 101);
    submit_row(writer, PEER, 102);
    answers_wait(&answers, 102);
    struct store_stats stats;
    store_writer_stats(writer, &stats);
    assert_int_equal(stats.queue_bytes, 0);
    assert_int_equal(stats.frontier_held, 1);
    store_writer_stop(writer);
    size_t refused = 0;
    for (size_t i = 0; i < 102; i++) {
        assert_int_equal(answers.tokens[i], i + 1);
        assert_true(answers.rcs[i] == RC_OK || answers.rcs[i] == RC_FULL);
        refused += answers.rcs[i] == RC_FULL;
    }
    assert_true(refused > 50 && refused < 99);
    assert_int_equal(stats.failed, refused);
    assert_int_equal(answers.rcs[1], RC_OK);
    assert_int_equal(answers.rcs[101], RC_OK);
    /* Rows of a peer are missing, so its frontier must stay where it was sound. */
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 101 - refused + (answers.rcs[100] != RC_OK));
    uint64_t covered = held_seq(held, PEER);
    for (uint64_t i = 1; i <= covered; i++) {
        char id[32];
        snprintf(id, sizeof(id), "row-%u", (unsigned)i);
        assert_non_null(held_find(held, id));
    }
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

/* A bad batch in the middle of a group fails alone. */
static void test_bad_batch(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    gate(&answers, true);
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    submit_row(writer, PEER, 1);
    answers_wait(&answers, 1);
    submit_row(writer, PEER, 2);
    struct sample s;
    sample_make(&s, "bad", PEER, 3, 3, "v");
    s.row.kind = 0;
    struct gossip_batch batch = sample_batch(&s);
    store_writer_submit(writer, &batch, 3);
    submit_row(writer, PEER, 4);
    gate(&answers, false);
    store_writer_stop(writer);
    static const int want[] = {RC_OK, RC_OK, RC_INVALID, RC_OK};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(answers.tokens[i], i + 1);
        assert_int_equal(answers.rcs[i], want[i]);
    }
    store_close(store);
    answers_deinit(&answers);
}

/* A full disk fails every batch of the transaction, and the thread goes on to try the next. */
static void test_full_disk(void **state)
{
    struct store *store = open_store(*state);
    struct answers answers;
    struct err_info err;
    uint64_t self = store_identity(store).node;
    answers_init(&answers);
    assert_int_equal(sql_exec(store->db, "PRAGMA max_page_count = 1", &err), RC_OK);
    gate(&answers, true);
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    submit_row(writer, self, 1);
    answers_wait(&answers, 1);
    for (uint64_t i = 2; i <= 400; i++) {
        submit_row(writer, self, i);
    }
    gate(&answers, false);
    answers_wait(&answers, 400);
    store_writer_stop(writer);
    assert_int_equal(answers.rcs[0], RC_OK);
    for (size_t i = 1; i < 400; i++) {
        assert_int_equal(answers.rcs[i], RC_NO_SPACE);
    }
    assert_false(store_is_frontier_held(store)); /* they were our own and nobody saw them */
    assert_int_equal(sql_exec(store->db, "PRAGMA max_page_count = 100000", &err), RC_OK);
    writer = store_writer_start(store, 0, on_done, &answers);
    submit_row(writer, self, 401);
    store_writer_stop(writer);
    assert_int_equal(answers.rcs[400], RC_OK);
    struct held *held = held_load(store);
    assert_int_equal(held->row_count, 2);
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

/* The same file may not grow any more: the kernel says so instead of SQLite. */
static void test_file_size_limit(void **state)
{
    char path[STORE_PATH_MAX];
    pid_t child = fork();
    if (child == 0) {
        struct answers *answers = mem_new(sizeof(*answers));
        struct store *store = open_store(*state);
        uint64_t self = store_identity(store).node;
        answers_init(answers);
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {.rlim_cur = 60000, .rlim_max = RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        struct store_writer *writer = store_writer_start(store, 0, on_done, answers);
        uint64_t next = 1;
        for (; next < 500; next++) {
            submit_row(writer, self, next);
            answers_wait(answers, next);
            if (answers->rcs[next - 1] != RC_OK) {
                break;
            }
        }
        bool full = answers->rcs[next - 1] == RC_NO_SPACE;
        limit.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &limit);
        submit_row(writer, self, next + 1);
        answers_wait(answers, next + 1);
        bool again = answers->rcs[next] == RC_OK;
        store_writer_stop(writer);
        store_close(store);
        _exit(full && again ? 0 : full ? 2 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct store_opened opened;
    struct store *store = open_noting(*state, &opened);
    assert_false(opened.set_aside);
    store_close(store);
    assert_false(find_file(*state, "skein.db.damaged-", path));
}

static void tell_pipe(void *ctx, uint64_t token, int rc)
{
    if (rc == RC_OK && write(*(int *)ctx, &token, sizeof(token)) != sizeof(token)) {
        _exit(4);
    }
}

/* Write as fast as the cap allows until killed; each durable token goes into the pipe. */
static void write_until_killed(const char *folder, int fd)
{
    struct store *store = open_store(folder);
    struct store_writer *writer = store_writer_start(store, 256 * 1024, tell_pipe, &fd);
    for (uint64_t i = 1;; i++) {
        struct store_stats stats;
        do {
            store_writer_stats(writer, &stats);
        } while (stats.queue_jobs >= 50);
        submit_row(writer, PEER, i);
    }
}

/* SIGKILL in the middle of a stream of writes: whatever was acknowledged is there. */
static void test_killed(void **state)
{
    uint64_t last = 0;
    for (int round = 0; round < 3; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            write_until_killed(*state, fds[1]);
        }
        close(fds[1]);
        uint64_t token = 0;
        last = 0;
        size_t count = 0;
        while (read(fds[0], &token, sizeof(token)) == (ssize_t)sizeof(token)) {
            assert_true(token == last + 1);
            last = token;
            if (++count == 200) {
                kill(child, SIGKILL);
            }
        }
        close(fds[0]);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && last >= 200);

        struct store_opened opened;
        struct store *store = open_noting(*state, &opened);
        assert_false(opened.created || opened.set_aside || opened.memory_lost);
        struct held *held = held_load(store);
        for (uint64_t i = 1; i <= last; i++) {
            char id[32];
            snprintf(id, sizeof(id), "row-%u", (unsigned)i);
            assert_non_null(held_find(held, id));
        }
        assert_true(held_seq(held, PEER) >= last);
        held_free(held);
        store_close(store);
    }
}

struct submitter {
    struct store_writer *writer;
    uint64_t node;
};

static void *submit_many(void *arg)
{
    struct submitter *s = arg;
    for (uint64_t i = 1; i <= 300; i++) {
        submit_row(s->writer, s->node, i);
        struct store_stats stats;
        store_writer_stats(s->writer, &stats);
    }
    return NULL;
}

/* Several threads at once (for the thread sanitizer); each sees its own order. */
static void test_many_submitters(void **state)
{
    enum { THREADS = 4 };
    struct store *store = open_store(*state);
    struct answers answers;
    answers_init(&answers);
    struct store_writer *writer = store_writer_start(store, 0, on_done, &answers);
    pthread_t threads[THREADS];
    struct submitter submitters[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        submitters[i] = (struct submitter){.writer = writer, .node = 100 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    store_writer_stop(writer);
    assert_int_equal(answers.count, 300 * THREADS);
    struct held *held = held_load(store);
    for (size_t i = 0; i < THREADS; i++) {
        assert_true(held_seq(held, 100 + i) == 300);
    }
    assert_int_equal(held->row_count, 300);
    held_free(held);
    store_close(store);
    answers_deinit(&answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_group_commit),
        FOLDER_TEST(test_stop_drains),
        FOLDER_TEST(test_all_parts_are_copied),
        FOLDER_TEST(test_cap),
        FOLDER_TEST(test_bad_batch),
        FOLDER_TEST(test_full_disk),
        FOLDER_TEST(test_file_size_limit),
        FOLDER_TEST(test_killed),
        FOLDER_TEST(test_many_submitters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
