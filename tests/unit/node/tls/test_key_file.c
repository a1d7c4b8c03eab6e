/*
 * Key files: round trip, several keys, and every fault with a text that names file and line.
 */
#include "node/tls/key_file.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char line_a[] = "skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

static void round_trip(void **state)
{
    (void)state;
    uint8_t key[KEY_BYTES];
    uint8_t second[KEY_BYTES];
    key_generate(key);
    key_generate(second);
    assert_memory_not_equal(key, second, KEY_BYTES);
    char text[KEY_FILE_TEXT_MAX];
    key_file_format(key, text, sizeof(text));
    struct key_ring ring;
    assert_int_equal(key_file_parse("f", text, strlen(text), &ring, NULL), RC_OK);
    assert_int_equal(ring.count, 1);
    assert_memory_equal(ring.keys[0], key, KEY_BYTES);
    key_ring_wipe(&ring);
    assert_int_equal(ring.count, 0);
}

static void known_text(void **state)
{
    (void)state;
    struct key_ring ring;
    char text[512];
    snprintf(text, sizeof(text),
             "# comment\r\n\n  %s \r\n\t# indented\n"
             "skein-key-1://////////////////////////////////////////8=",
             line_a);
    assert_int_equal(key_file_parse("f", text, strlen(text), &ring, NULL), RC_OK);
    assert_int_equal(ring.count, 2);
    for (unsigned i = 0; i < KEY_BYTES; i++) {
        assert_int_equal(ring.keys[0][i], i);
        assert_int_equal(ring.keys[1][i], 0xff);
    }
    char out[KEY_TEXT_MAX];
    key_format(ring.keys[0], out);
    assert_string_equal(out, line_a);
}

static void refuse(const char *text, const char *expected)
{
    struct key_ring ring;
    struct err_info err = {{0}};
    assert_int_equal(key_file_parse("the.key", text, strlen(text), &ring, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "the.key"));
    if (strstr(err.text, expected) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, expected);
    }
    assert_null(strstr(err.text, "AAECAw")); /* never the content */
}

static void malformed(void **state)
{
    (void)state;
    refuse("", "holds no key");
    refuse("# only a comment\n", "holds no key");
    refuse("hello\n", "line 1 does not begin");
    refuse("\n\nskein-key-2:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "line 3 does not begin");
    refuse("skein-key-1:", "line 1 has no 44 characters");
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "44 characters");
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8==", "44 characters");
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", "44 characters"); /* bits */
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A", "44 characters");
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh-=", "44 characters");
    refuse("skein-key-1: AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "44 characters");
    refuse("skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
           "skein-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
           "line 2 repeats");
    char many[1024] = "";
    for (int i = 0; i < 9; i++) {
        uint8_t key[KEY_BYTES] = {(uint8_t)i};
        key_format(key, many + strlen(many));
        strncat(many, "\n", 2);
    }
    refuse(many, "line 9 is one key too many");

    /* A NUL inside is no end of text. */
    char with_nul[128];
    size_t len = (size_t)snprintf(with_nul, sizeof(with_nul), "%s\nx", line_a);
    with_nul[len - 1] = '\0';
    struct key_ring ring;
    struct err_info err = {{0}};
    assert_int_equal(key_file_parse("f", with_nul, len, &ring, &err), RC_INVALID);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void file_faults(void **state)
{
    (void)state;
    char dir[] = "/tmp/skein-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char path[64];
    snprintf(path, sizeof(path), "%s/cluster.key", dir);
    struct key_ring ring;
    struct err_info err = {{0}};

    assert_int_equal(key_file_load(path, &ring, &err), RC_NOT_FOUND);
    assert_non_null(strstr(err.text, path));

    write_file(path, line_a, 0600);
    assert_int_equal(key_file_load(path, &ring, &err), RC_OK);
    assert_int_equal(ring.count, 1);
    write_file(path, line_a, 0400);
    assert_int_equal(key_file_load(path, &ring, &err), RC_OK);

    static const mode_t open_modes[] = {0644, 0604, 0620, 0602, 0660, 0601, 0650};
    for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
        write_file(path, line_a, open_modes[i]);
        assert_int_equal(key_file_load(path, &ring, &err), RC_AUTH);
        char mode[8];
        snprintf(mode, sizeof(mode), "%04o", (unsigned)open_modes[i]);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, mode));
    }

    write_file(path, "garbage", 0600);
    assert_int_equal(key_file_load(path, &ring, &err), RC_INVALID);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(truncate(path, 70000), 0);
    assert_int_equal(key_file_load(path, &ring, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "70000"));
    unlink(path);

    assert_int_equal(key_file_load(dir, &ring, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "regular"));
    assert_int_equal(mkfifo(path, 0600), 0); /* does not wait for a writer */
    assert_int_equal(key_file_load(path, &ring, &err), RC_INVALID);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(known_text),
        cmocka_unit_test(malformed),
        cmocka_unit_test(file_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
