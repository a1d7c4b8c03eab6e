/*
 * The trail's file: records, rotation, what a crash left, selection.
 * covers: audit.c audit_select.c
 */
#include "tests/support/unit.h"

#include "admin/server/audit.h"
#include "node/base/mem.h"
#include "node/net/loop.h"

#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

static uv_loop_t loop;
static char folder[] = "/tmp/skein-audit-XXXXXX";
static char path[64], older[64];
static unsigned answered;
static int last_rc;
static char *last_text;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/skein-audit-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/audit.log", folder);
    snprintf(older, sizeof(older), "%s/audit.log.1", folder);
    loop_init(&loop);
    answered = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mem_free(last_text);
    last_text = NULL;
    (void)unlink(path);
    (void)unlink(older);
    assert_int_equal(rmdir(folder), 0);
    loop_close_clean(&loop);
    return 0;
}

static void on_done(void *arg, int rc)
{
    (void)arg;
    last_rc = rc;
    answered++;
}

static void on_read(void *arg, int rc, char *text)
{
    (void)arg;
    mem_free(last_text);
    last_rc = rc;
    last_text = text;
    answered++;
}

static bool has_answered(void *arg)
{
    return answered >= *(unsigned *)arg;
}

static void wait_for(unsigned count)
{
    assert_true(loop_run_until(&loop, has_answered, &count, WAIT_MS));
}

static struct audit *open_audit(size_t file_max)
{
    struct audit *audit;
    struct err_info err = {0};
    assert_int_equal(audit_open(&loop, path, file_max, &audit, &err), RC_OK);
    return audit;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void close_audit(struct audit *audit)
{
    bool closed = false;
    audit_close(audit, on_closed, &closed);
    assert_true(loop_run_until(&loop, is_true, &closed, WAIT_MS));
}

static void append(struct audit *audit, int second, const char *user)
{
    audit_append(
        audit,
        mem_printf("{\"time\":\"2026-01-31T10:00:%02d.000Z\",\"user\":\"%s\"}", second, user),
        on_done, NULL);
}

static const char *read_all(struct audit *audit, const char *since, const char *user, size_t limit)
{
    struct audit_query query = {.limit = limit};
    unsigned before = answered;
    snprintf(query.since, sizeof(query.since), "%s", since);
    snprintf(query.user, sizeof(query.user), "%s", user);
    audit_read(audit, &query, on_read, NULL);
    wait_for(before + 1);
    return last_text;
}

static void test_records_and_selection(void **state)
{
    (void)state;
    struct audit *audit = open_audit(0);
    assert_string_equal(read_all(audit, "", "", 10), "[]");
    answered = 0;
    for (int i = 0; i < 6; i++) {
        append(audit, i, i % 2 == 0 ? "even" : "odd");
    }
    wait_for(6);
    assert_int_equal(last_rc, RC_OK);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    assert_string_equal(read_all(audit, "", "", 2),
                        "[{\"time\":\"2026-01-31T10:00:04.000Z\",\"user\":\"even\"},"
                        "{\"time\":\"2026-01-31T10:00:05.000Z\",\"user\":\"odd\"}]");
    assert_string_equal(read_all(audit, "2026-01-31T10:00:04.000Z", "even", 10),
                        "[{\"time\":\"2026-01-31T10:00:04.000Z\",\"user\":\"even\"}]");
    assert_string_equal(read_all(audit, "2027-01-01T00:00:00.000Z", "", 10), "[]");
    assert_int_equal(audit_lost(audit), 0);
    close_audit(audit);
}

static void test_rotation_keeps_two_files(void **state)
{
    (void)state;
    struct audit *audit = open_audit(200); /* four records of 51 bytes do not fit */
    for (int i = 0; i < 10; i++) {
        append(audit, i, "u");
    }
    wait_for(10);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_true(facts.st_size <= 200);
    assert_int_equal(stat(older, &facts), 0);
    assert_true(facts.st_size <= 200);
    const char *text = read_all(audit, "", "", 100);
    assert_non_null(strstr(text, "10:00:09"));
    assert_null(strstr(text, "10:00:00.000Z"));
    assert_true(strstr(text, "10:00:08") < strstr(text, "10:00:09"));
    close_audit(audit);
    audit = open_audit(200); /* the size of what is there counts */
    append(audit, 10, "u");
    append(audit, 11, "u");
    append(audit, 12, "u");
    answered = 0;
    wait_for(3);
    assert_int_equal(stat(path, &facts), 0);
    assert_true(facts.st_size <= 200);
    close_audit(audit);
}

static void test_a_cut_record(void **state)
{
    (void)state;
    FILE *file = fopen(path, "w");
    fputs("{\"time\":\"2026-01-31T09:00:00.000Z\"}\n{\"time\":\"2026-01-31T09:0", file);
    fclose(file);
    struct audit *audit = open_audit(0);
    append(audit, 1, "u");
    wait_for(1);
    assert_string_equal(read_all(audit, "", "", 10),
                        "[{\"time\":\"2026-01-31T09:00:00.000Z\"},"
                        "{\"time\":\"2026-01-31T10:00:01.000Z\",\"user\":\"u\"}]");
    close_audit(audit);
}

static void test_what_is_queued_is_written_at_the_end(void **state)
{
    (void)state;
    struct audit *audit = open_audit(0);
    for (int i = 0; i < 50; i++) {
        audit_append(audit, mem_strdup("{\"time\":\"2026\"}"), NULL, NULL);
    }
    close_audit(audit);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 50 * 16);
}

static void test_no_file(void **state)
{
    (void)state;
    struct audit *audit;
    struct err_info err = {0};
    assert_int_equal(audit_open(&loop, "/nowhere/at/all", 0, &audit, &err), RC_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records_and_selection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rotation_keeps_two_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_cut_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_queued_is_written_at_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_no_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
