#include "fixture.h"

#include <sys/wait.h>

static unsigned mode_of(const char *folder, const char *name)
{
    char path[STORE_PATH_MAX];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_lock(void **state)
{
    int fd = -1;
    int other = -1;
    struct err_info err;
    assert_int_equal(folder_lock(*state, &fd, &err), RC_OK);
    /* flock belongs to the open file, so a second open stands for a second process. */
    assert_int_equal(folder_lock(*state, &other, &err), RC_BUSY);
    assert_non_null(strstr(err.text, *state));
    char pid[32];
    snprintf(pid, sizeof(pid), "process id %ld", (long)getpid());
    assert_non_null(strstr(err.text, pid));
    close(fd);
    assert_int_equal(folder_lock(*state, &fd, &err), RC_OK);
    close(fd);
}

static void test_lock_creates_folder(void **state)
{
    char path[STORE_PATH_MAX];
    char deep[STORE_PATH_MAX];
    int fd = -1;
    struct err_info err;
    snprintf(path, sizeof(path), "%s/data", (char *)*state);
    snprintf(deep, sizeof(deep), "%s/no/data", (char *)*state);
    assert_int_equal(folder_lock(deep, &fd, &err), RC_IO);
    assert_non_null(strstr(err.text, deep));
    assert_int_equal(folder_lock(path, &fd, &err), RC_OK);
    assert_int_equal(mode_of(*state, "data"), 0700);
    assert_int_equal(mode_of(path, "lock"), 0600);
    close(fd);
    remove_file(path, "lock");
    rmdir(path);
}

static void test_private(void **state)
{
    bool created = false;
    struct err_info err;
    mode_t before = umask(0);
    assert_int_equal(file_make_private(*state, "x", &created, &err), RC_OK);
    umask(before);
    assert_true(created);
    assert_int_equal(mode_of(*state, "x"), 0600);
    write_file(*state, "y", "content", 7);
    char path[STORE_PATH_MAX];
    snprintf(path, sizeof(path), "%s/y", (char *)*state);
    chmod(path, 0644);
    assert_int_equal(file_make_private(*state, "y", &created, &err), RC_OK);
    assert_false(created);
    assert_int_equal(mode_of(*state, "y"), 0600);
}

static void test_replace(void **state)
{
    char path[STORE_PATH_MAX];
    char text[16] = "";
    struct err_info err;
    assert_int_equal(file_replace(*state, "f", "one", 3, &err), RC_OK);
    assert_int_equal(file_replace(*state, "f", "two!", 4, &err), RC_OK);
    assert_int_equal(mode_of(*state, "f"), 0600);
    snprintf(path, sizeof(path), "%s/f", (char *)*state);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof(text)), 4);
    close(fd);
    assert_string_equal(text, "two!");
    assert_false(find_file(*state, "f.new", path));
    assert_int_equal(file_replace("/nonexistent", "f", "x", 1, &err), RC_IO);
}

static void test_path_too_long(void **state)
{
    (void)state;
    char dir[STORE_PATH_MAX + 1];
    char path[STORE_PATH_MAX];
    struct err_info err;
    memset(dir, 'a', sizeof(dir));
    dir[STORE_PATH_MAX] = '\0';
    assert_int_equal(path_join(dir, "x", path, &err), RC_TOO_BIG);
    dir[STORE_PATH_MAX - 3] = '\0';
    assert_int_equal(path_join(dir, "x", path, &err), RC_OK);
}

/* Twice in one millisecond gives two names; logs go along. */
static void test_set_aside(void **state)
{
    char first[128];
    char second[128];
    char path[STORE_PATH_MAX];
    struct err_info err;
    write_file(*state, "skein.db", "1", 1);
    write_file(*state, "skein.db-wal", "w", 1);
    assert_int_equal(database_set_aside(*state, 1000, first, &err), RC_OK);
    assert_string_equal(first, "skein.db.damaged-19700101T000001000Z");
    write_file(*state, "skein.db", "2", 1);
    assert_int_equal(database_set_aside(*state, 1000, second, &err), RC_OK);
    assert_string_not_equal(first, second);
    assert_true(find_file(*state, "skein.db.damaged-19700101T000001000Z-wal", path));
    snprintf(path, sizeof(path), "%s/skein.db-wal", (char *)*state);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/skein.db", (char *)*state);
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(test_lock),      FOLDER_TEST(test_lock_creates_folder),
        FOLDER_TEST(test_private),   FOLDER_TEST(test_replace),
        FOLDER_TEST(test_set_aside), cmocka_unit_test(test_path_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
