/*
 * Listeners: address in use, the cap on streams, unix socket files stale, taken and foreign.
 */
#include "node/net/listener.h"
#include "node/net/loop.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { STREAMS = 5 };

struct hall {
    uv_loop_t loop;
    struct listener *listener;
    struct stream *streams[STREAMS];
    unsigned accepted;
    unsigned closed;
    bool listener_closed;
    char dir[64];
    char path[96];
};

static void on_data(void *owner, const uint8_t *bytes, size_t len)
{
    (void)owner;
    (void)bytes;
    (void)len;
}

static void on_closed(void *owner, enum stream_reason reason, const char *text)
{
    (void)reason;
    (void)text;
    ((struct hall *)owner)->closed++;
}

static const struct stream_ops ops = {
    .on_data = on_data, .on_closed = on_closed, .write_cap_bytes = 1024};

static void on_accept(void *owner, struct stream *stream)
{
    struct hall *hall = owner;
    hall->streams[hall->accepted++] = stream;
    stream_adopt(stream, &ops, hall);
}

static void on_listener_closed(void *owner)
{
    ((struct hall *)owner)->listener_closed = true;
}

static void hall_init(struct hall *hall)
{
    *hall = (struct hall){0};
    loop_init(&hall->loop);
    snprintf(hall->dir, sizeof(hall->dir), "/tmp/skein-test-XXXXXX");
    assert_non_null(mkdtemp(hall->dir));
    snprintf(hall->path, sizeof(hall->path), "%s/admin.sock", hall->dir);
}

static void hall_end(struct hall *hall)
{
    loop_close_clean(&hall->loop);
    unlink(hall->path);
    assert_int_equal(rmdir(hall->dir), 0);
}

static int open_unix(struct hall *hall, unsigned mode, struct listener **ret, struct err_info *err)
{
    struct listener_config config = {.on_accept = on_accept, .owner = hall};
    return listener_open_unix(&hall->loop, hall->path, mode, &config, ret, err);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void port_in_use(void **state)
{
    (void)state;
    struct hall hall;
    hall_init(&hall);
    struct addr addr;
    struct listener_config config = {.on_accept = on_accept, .owner = &hall};
    assert_int_equal(addr_parse("127.0.0.1:0", &addr, NULL), RC_OK);
    assert_int_equal(listener_open_tcp(&hall.loop, &addr, &config, &hall.listener, NULL), RC_OK);
    listener_addr(hall.listener, &addr);
    struct listener *second = NULL;
    struct err_info err = {{0}};
    assert_int_equal(listener_open_tcp(&hall.loop, &addr, &config, &second, &err), RC_BUSY);
    assert_null(second);
    char text[ADDR_TEXT_MAX];
    assert_non_null(strstr(err.text, addr_format(&addr, text)));

    assert_int_equal(addr_parse("192.0.2.1:0", &addr, NULL), RC_OK); /* not an address of ours */
    assert_int_equal(listener_open_tcp(&hall.loop, &addr, &config, &second, &err), RC_IO);
    assert_non_null(strstr(err.text, "192.0.2.1"));
    listener_close(hall.listener, on_listener_closed, &hall);
    listener_close(NULL, NULL, NULL);
    hall_end(&hall);
    assert_true(hall.listener_closed);
}

static bool two_accepted(void *arg)
{
    return ((struct hall *)arg)->accepted >= 2;
}

static bool three_accepted(void *arg)
{
    return ((struct hall *)arg)->accepted >= 3;
}

static void cap(void **state)
{
    (void)state;
    struct hall hall;
    hall_init(&hall);
    struct listener_config config = {.streams_max = 2, .on_accept = on_accept, .owner = &hall};
    assert_int_equal(listener_open_unix(&hall.loop, hall.path, 0, &config, &hall.listener, NULL),
                     RC_OK);
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_unix(hall.path);
        assert_true(fds[i] >= 0);
    }
    assert_true(loop_run_until(&hall.loop, two_accepted, &hall, 10000));
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&hall.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(hall.accepted, 2);
    assert_int_equal(listener_streams(hall.listener), 2);
    stream_close(hall.streams[0], STREAM_LOCAL, NULL);
    assert_true(loop_run_until(&hall.loop, three_accepted, &hall, 10000));
    assert_int_equal(listener_streams(hall.listener), 2);

    /* The listener goes first: its streams live on, the fourth is never accepted. */
    listener_close(hall.listener, on_listener_closed, &hall);
    (void)uv_run(&hall.loop, UV_RUN_NOWAIT);
    assert_true(hall.listener_closed);
    assert_true(stream_is_open(hall.streams[1]));
    assert_true(stream_is_unix(hall.streams[1]));
    stream_close(hall.streams[1], STREAM_LOCAL, NULL);
    stream_close(hall.streams[2], STREAM_LOCAL, NULL);
    hall_end(&hall);
    assert_int_equal(hall.accepted, 3);
    assert_int_equal(hall.closed, 3);
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
}

static void unix_mode_and_removal(void **state)
{
    (void)state;
    struct hall hall;
    hall_init(&hall);
    struct stat st;
    mode_t old = umask(0077);
    assert_int_equal(open_unix(&hall, 0, &hall.listener, NULL), RC_OK);
    assert_int_equal(stat(hall.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    listener_close(hall.listener, NULL, NULL);
    assert_int_equal(stat(hall.path, &st), -1);
    assert_int_equal(open_unix(&hall, 0600, &hall.listener, NULL), RC_OK);
    assert_int_equal(stat(hall.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    umask(old);

    /* Another process replaced the file: it is not ours to remove. */
    assert_int_equal(unlink(hall.path), 0);
    int fd = open(hall.path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    listener_close(hall.listener, NULL, NULL);
    assert_int_equal(stat(hall.path, &st), 0);
    hall_end(&hall);
}

static void unix_stale_and_taken(void **state)
{
    (void)state;
    struct hall hall;
    hall_init(&hall);

    /* Stale: bound once, nobody listens. */
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", hall.path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    assert_int_equal(open_unix(&hall, 0, &hall.listener, NULL), RC_OK);

    struct listener *second = NULL;
    struct err_info err = {{0}};
    assert_int_equal(open_unix(&hall, 0, &second, &err), RC_BUSY);
    assert_non_null(strstr(err.text, hall.path));
    fd = connect_unix(hall.path); /* the first still answers */
    assert_true(fd >= 0);
    close(fd);
    listener_close(hall.listener, NULL, NULL);

    /* A file that is no socket is left alone. */
    fd = open(hall.path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_unix(&hall, 0, &second, &err), RC_BUSY);
    assert_non_null(strstr(err.text, "not a socket"));
    struct stat st;
    assert_int_equal(stat(hall.path, &st), 0);
    hall_end(&hall);
}

static void unix_bad_paths(void **state)
{
    (void)state;
    struct hall hall;
    hall_init(&hall);
    struct listener_config config = {.on_accept = on_accept, .owner = &hall};
    struct err_info err = {{0}};
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(listener_open_unix(&hall.loop, path, 0, &config, &hall.listener, &err),
                     RC_INVALID);
    assert_int_equal(listener_open_unix(&hall.loop, "", 0, &config, &hall.listener, &err),
                     RC_INVALID);
    assert_int_equal(
        listener_open_unix(&hall.loop, "/nonexistent/a.sock", 0, &config, &hall.listener, &err),
        RC_IO);
    assert_non_null(strstr(err.text, "/nonexistent/a.sock"));
    hall_end(&hall);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_in_use),           cmocka_unit_test(cap),
        cmocka_unit_test(unix_mode_and_removal), cmocka_unit_test(unix_stale_and_taken),
        cmocka_unit_test(unix_bad_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
