/*
 * Listeners. Not calling uv_accept is what pauses accepting: libuv stops polling the socket until
 * the connection that it holds was taken.
 *
 * The memory goes when the handle is closed and the last accepted stream has gone.
 */
#include "node/net/listener.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/net/loop.h"
#include "node/net/stream_accept.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    STREAMS_DEFAULT = 256,
    BACKLOG_DEFAULT = 128,
    MODE_DEFAULT = 0660,
};

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    struct listener_config config;
    uint32_t streams;
    bool waiting; /* a connection waits in the handle for a free place */
    bool closing;
    bool closed;
    char *path;  /* unix: owned; NULL for TCP */
    dev_t dev;   /* unix: the file that we made */
    ino_t inode; /* likewise */
    void (*on_closed)(void *owner);
    void *closed_owner;
};

static void free_when_done(struct listener *listener)
{
    if (listener->closed && listener->streams == 0) {
        mem_free(listener->path);
        mem_free(listener);
    }
}

static void accept_one(struct listener *listener);

static void on_stream_gone(void *arg)
{
    struct listener *listener = arg;
    ASSERT(listener->streams > 0);
    listener->streams--;
    if (listener->waiting && !listener->closing) {
        listener->waiting = false;
        accept_one(listener);
        return;
    }
    free_when_done(listener);
}

static void accept_one(struct listener *listener)
{
    struct stream *stream = stream_new_accept(listener->io.handle.loop, listener->path != NULL,
                                              on_stream_gone, listener);
    listener->streams++;
    if (uv_accept(&listener->io.stream, stream_handle(stream)) < 0) {
        stream_abandon(stream);
        return;
    }
    stream_accepted(stream);
    listener->config.on_accept(listener->config.owner, stream);
    /* A stream that nobody took would stay for ever. It may be closing, but not yet gone. */
    ASSERT(stream_is_taken(stream));
}

static void on_connection(uv_stream_t *handle, int status)
{
    struct listener *listener = handle->data;
    if (status < 0 || listener->closing) {
        return; /* out of descriptors or a client that gave up: the next one is told anew */
    }
    if (listener->streams >= listener->config.streams_max) {
        listener->waiting = true;
        return;
    }
    accept_one(listener);
}

static struct listener *listener_new(const struct listener_config *config)
{
    ASSERT(config->on_accept != NULL);
    struct listener *listener = mem_new(sizeof(*listener));
    listener->config = *config;
    if (listener->config.streams_max == 0) {
        listener->config.streams_max = STREAMS_DEFAULT;
    }
    if (listener->config.backlog == 0) {
        listener->config.backlog = BACKLOG_DEFAULT;
    }
    return listener;
}

static int listen_on(struct listener *listener)
{
    listener->io.handle.data = listener;
    return uv_listen(&listener->io.stream, (int)listener->config.backlog, on_connection);
}

int listener_open_tcp(uv_loop_t *loop, const struct addr *bind,
                      const struct listener_config *config, struct listener **ret_listener,
                      struct err_info *err)
{
    struct listener *listener = listener_new(config);
    ASSERT(uv_tcp_init(loop, &listener->io.tcp) == 0); /* makes no descriptor yet */
    /* An IPv6 address listens for IPv6 alone, so that 0.0.0.0 and [::] can stand side by side. */
    unsigned flags = bind->sa.sa_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0;
    int code = uv_tcp_bind(&listener->io.tcp, &bind->sa, flags);
    if (code == 0) {
        code = listen_on(listener);
    }
    if (code < 0) {
        char text[ADDR_TEXT_MAX];
        addr_format(bind, text);
        listener_close(listener, NULL, NULL);
        if (code == UV_EADDRINUSE) {
            return err_set(err, RC_BUSY, "%s (TCP) is in use by another process", text);
        }
        return err_set(err, RC_IO, "cannot listen on %s (TCP): %s", text, uv_strerror(code));
    }
    *ret_listener = listener;
    return RC_OK;
}

/* ---- unix sockets ---- */

/* Something answers on the socket file. Anything unclear counts as an answer. */
static bool answers(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return true;
    }
    bool refused = connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 &&
                   (errno == ECONNREFUSED || errno == ENOENT);
    (void)close(fd); /* nothing was written */
    return !refused;
}

/* Take away a socket file that its process left behind. */
static int remove_stale(const struct sockaddr_un *name, struct err_info *err)
{
    struct stat st;
    if (lstat(name->sun_path, &st) < 0) {
        return RC_OK; /* gone meanwhile: bind says what else is wrong */
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(err, RC_BUSY, "%s exists and is not a socket", name->sun_path);
    }
    if (answers(name)) {
        return err_set(err, RC_BUSY, "%s is in use by another process", name->sun_path);
    }
    if (unlink(name->sun_path) < 0 && errno != ENOENT) {
        return err_set(err, RC_IO, "cannot remove the stale socket %s: %s", name->sun_path,
                       strerror(errno));
    }
    return RC_OK;
}

static int bind_fd(int fd, const struct sockaddr_un *name, unsigned mode, struct err_info *err)
{
    /* The mode of the socket caps that of the file that bind makes: never wider, not for a moment.
     */
    if (fchmod(fd, mode) < 0) {
        return err_set(err, RC_IO, "%s: %s", name->sun_path, strerror(errno));
    }
    for (int attempt = 0; bind(fd, (const struct sockaddr *)name, sizeof(*name)) < 0; attempt++) {
        if (errno != EADDRINUSE) {
            return err_set(err, RC_IO, "cannot listen on %s: %s", name->sun_path, strerror(errno));
        }
        if (attempt > 0) {
            return err_set(err, RC_BUSY, "%s is in use by another process", name->sun_path);
        }
        int rc = remove_stale(name, err);
        if (rc != RC_OK) {
            return rc;
        }
    }
    if (chmod(name->sun_path, mode) < 0) { /* what the umask took away */
        return err_set(err, RC_IO, "cannot set the mode of %s: %s", name->sun_path,
                       strerror(errno));
    }
    return RC_OK;
}

/* A bound descriptor, or a negative RC_*. */
static int bind_unix(const char *path, unsigned mode, struct err_info *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path[0] == '\0' || strlen(path) >= sizeof(name.sun_path)) {
        return err_set(err, RC_INVALID,
                       "\"%.120s\" cannot be a socket: 1 to %zu bytes are accepted", path,
                       sizeof(name.sun_path) - 1);
    }
    memcpy(name.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return err_set(err, RC_IO, "cannot make a socket for %s: %s", path, strerror(errno));
    }
    int rc = bind_fd(fd, &name, mode, err);
    if (rc != RC_OK) {
        (void)close(fd); /* nothing was written */
        return rc;
    }
    return fd;
}

int listener_open_unix(uv_loop_t *loop, const char *path, unsigned mode,
                       const struct listener_config *config, struct listener **ret_listener,
                       struct err_info *err)
{
    int fd = bind_unix(path, mode != 0 ? mode : MODE_DEFAULT, err);
    if (fd < 0) {
        return fd;
    }
    struct listener *listener = listener_new(config);
    listener->path = mem_strdup(path);
    struct stat st;
    if (lstat(path, &st) == 0) {
        listener->dev = st.st_dev;
        listener->inode = st.st_ino;
    }
    ASSERT(uv_pipe_init(loop, &listener->io.pipe, 0) == 0);
    int code = uv_pipe_open(&listener->io.pipe, fd);
    if (code < 0) {
        (void)close(fd); /* nothing was written */
    } else {
        code = listen_on(listener);
    }
    if (code < 0) {
        listener_close(listener, NULL, NULL);
        return err_set(err, RC_IO, "cannot listen on %s: %s", path, uv_strerror(code));
    }
    *ret_listener = listener;
    return RC_OK;
}

/* Remove our socket file, but not one that another process has put in its place. */
static void remove_own(const struct listener *listener)
{
    struct stat st;
    if (listener->path != NULL && lstat(listener->path, &st) == 0 && st.st_dev == listener->dev &&
        st.st_ino == listener->inode) {
        (void)unlink(listener->path); /* a file left behind is replaced at the next start */
    }
}

/* ---- end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    listener->closed = true;
    if (listener->on_closed != NULL) {
        listener->on_closed(listener->closed_owner);
    }
    free_when_done(listener);
}

void listener_close(struct listener *listener, void (*on_closed)(void *owner), void *owner)
{
    if (listener == NULL) {
        ASSERT(on_closed == NULL);
        return;
    }
    ASSERT(!listener->closing);
    listener->closing = true;
    listener->on_closed = on_closed;
    listener->closed_owner = owner;
    listener->io.handle.data = listener;
    remove_own(listener);
    uv_close(&listener->io.handle, on_handle_closed);
}

void listener_addr(const struct listener *listener, struct addr *ret_addr)
{
    struct sockaddr_storage name;
    int len = sizeof(name);
    *ret_addr = (struct addr){0};
    if (listener->path == NULL &&
        uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&name, &len) == 0) {
        addr_from_sockaddr((struct sockaddr *)&name, ret_addr);
    }
}

uint32_t listener_streams(const struct listener *listener)
{
    return listener->streams;
}
