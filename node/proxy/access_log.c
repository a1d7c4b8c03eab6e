/*
 * Access log: rings of records and the thread that writes them; see access_log.h.
 *
 * A ring has one producer and one consumer. `head` is where the producer writes next, `tail` where
 * the consumer reads; both grow for ever and are taken modulo the size. A record never wraps: when
 * it does not fit before the end, the rest is skipped (a record length of 0 says so).
 *
 * Sleep and wake: the writer sets `sleeping`, looks at all rings once more, then waits for the
 * eventfd. A worker that put something looks at `sleeping` afterwards. Both are sequentially
 * consistent, so one of them sees the other.
 */
#include "node/proxy/access_log.h"

#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/proxy/stats_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RING_BYTES = 1 << 20,
    OUT_BYTES = 1 << 17, /* a line at its longest: six times a record, and what is before it */
    OUT_FULL_BYTES = 1 << 15,
    CHECK_FILE_MS = 1000,
    GATHER_US = 2000,
    LAST_WORDS_MS = 2000, /* at the end, for a reader that does not read */
};

struct ring {
    _Alignas(CACHE_LINE) struct access_ring wants;
    struct access_log *log;
    char *bytes;
    bool fresh; /* the producer put something since the last wake */
    struct counter dropped;
    _Alignas(CACHE_LINE) _Atomic uint64_t head;
    _Alignas(CACHE_LINE) _Atomic uint64_t tail;
};

struct access_log {
    struct ring *rings;
    size_t ring_count;
    char *path; /* NULL: stdout */
    char *node;
    int fd;
    int wake_fd;
    bool patient; /* a pipe, socket or terminal: its reader may keep us waiting */
    _Atomic bool combined;
    _Atomic bool sleeping;
    _Atomic bool stopping;
    pthread_t thread;
    struct counter written; /* lines */
    struct counter failed;
    uint64_t dropped_told;
    uint64_t checked_ms;
    uint64_t stop_ms; /* when stopping was seen */
    struct log_limit complaints;
    struct access_style style;
    struct buf out;
};

/* ---- workers ---- */

static struct ring *ring_of(struct access_ring *wants)
{
    return CONTAINER_OF(wants, struct ring, wants);
}

static void *ring_reserve(struct ring *ring, size_t size, uint64_t *ret_head)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    size_t at = head % RING_BYTES;
    size_t skip = RING_BYTES - at < size ? RING_BYTES - at : 0;
    if (head + skip + size - tail > RING_BYTES) {
        counter_add(&ring->dropped, 1);
        return NULL;
    }
    if (skip != 0) {
        memset(ring->bytes + at, 0, sizeof(uint32_t)); /* positions are multiples of 8 */
        head += skip;
        at = 0;
    }
    *ret_head = head;
    return ring->bytes + at;
}

void access_log_put(struct worker *worker, struct access_record *record,
                    const struct access_items *items)
{
    struct ring *ring = ring_of(worker->access);
    ASSERT(sizeof(*record) + items->len <= ACCESS_RECORD_MAX);
    size_t size = (sizeof(*record) + items->len + 7) / 8 * 8;
    uint64_t head;
    char *at = ring_reserve(ring, size, &head);
    if (at == NULL) {
        return;
    }
    record->size = (uint32_t)size;
    record->items_len = (uint32_t)items->len;
    record->wall_ms = time_wall_ms();
    memcpy(at, record, sizeof(*record));
    if (items->len != 0) {
        memcpy(at + sizeof(*record), items->bytes, items->len);
    }
    atomic_store_explicit(&ring->head, head + size, memory_order_seq_cst);
    ring->fresh = true;
}

void access_log_wake(struct access_ring *wants)
{
    struct ring *ring = ring_of(wants);
    if (!ring->fresh) {
        return;
    }
    ring->fresh = false;
    struct access_log *log = ring->log;
    if (atomic_load_explicit(&log->sleeping, memory_order_seq_cst) &&
        atomic_exchange_explicit(&log->sleeping, false, memory_order_seq_cst)) {
        (void)eventfd_write(log->wake_fd, 1); /* cannot overflow: one write for each sleep */
    }
}

static uint64_t dropped_of(const struct access_log *log)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < log->ring_count; i++) {
        sum += counter_read(&log->rings[i].dropped);
    }
    return sum;
}

void access_log_metrics(const struct access_log *log, struct buf *out)
{
    static const struct buf no_labels;
    text_family(out, "skein_access_log_lines_total", "counter", "Access log lines written");
    text_series(out, "skein_access_log_lines_total", &no_labels, "", counter_read(&log->written));
    text_family(out, "skein_access_log_dropped_total", "counter",
                "Access log records lost: the writer was too slow, or the file took no more");
    text_series(out, "skein_access_log_dropped_total", &no_labels, "reason=\"full\"",
                dropped_of(log));
    text_series(out, "skein_access_log_dropped_total", &no_labels, "reason=\"write\"",
                counter_read(&log->failed));
}

/* ---- the writer ---- */

static uint64_t count_lines(const char *text, size_t len)
{
    uint64_t count = 0;
    for (size_t i = 0; i < len; i++) {
        count += text[i] == '\n';
    }
    return count;
}

/*
 * May some bytes be written without waiting for the reader? True, as soon as they may. False: the
 * node stops, and the reader has had its time. A pipe that is ready takes PIPE_BUF bytes at once.
 */
static bool wait_writable(struct access_log *log)
{
    for (;;) {
        bool stopping = atomic_load_explicit(&log->stopping, memory_order_acquire);
        if (stopping && log->stop_ms == 0) {
            log->stop_ms = time_mono_ms();
        }
        struct pollfd fds[2] = {{.fd = log->fd, .events = POLLOUT},
                                {.fd = stopping ? -1 : log->wake_fd, .events = POLLIN}};
        uint64_t waited_ms = stopping ? time_mono_ms() - log->stop_ms : 0;
        int left_ms = waited_ms < LAST_WORDS_MS ? (int)(LAST_WORDS_MS - waited_ms) : 0;
        int n = poll(fds, 2, stopping ? left_ms : -1);
        if (fds[0].revents != 0) {
            return true; /* or an error, which the write tells */
        }
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        eventfd_t count;
        (void)eventfd_read(log->wake_fd, &count); /* the rings are looked at anyway */
    }
}

/* How much to write at once: where a reader may be slow, whole lines that a pipe takes at once. */
static size_t piece_len(const struct access_log *log, const char *text, size_t len)
{
    if (!log->patient || len <= PIPE_BUF) {
        return len;
    }
    const char *end = memrchr(text, '\n', PIPE_BUF);
    return end != NULL ? (size_t)(end - text) + 1 : PIPE_BUF;
}

static void write_out(struct access_log *log)
{
    size_t done = 0;
    int error = 0;
    while (done < log->out.len) {
        if (log->patient && !wait_writable(log)) {
            error = ETIMEDOUT;
            break;
        }
        ssize_t n = write(log->fd, log->out.data + done,
                          piece_len(log, log->out.data + done, log->out.len - done));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (n <= 0) {
            error = n < 0 ? errno : EIO;
            break;
        }
        done += (size_t)n;
    }
    uint64_t lost = count_lines(log->out.data + done, log->out.len - done);
    counter_add(&log->written, count_lines(log->out.data, done));
    counter_add(&log->failed, lost);
    uint32_t suppressed;
    if (lost != 0 && log_limit_pass(&log->complaints, 1, &suppressed)) {
        /* Disk full, pipe closed: these lines are lost, traffic goes on. */
        log_warn("access log lines are lost", "lines=%llu reason=\"%s\"", (unsigned long long)lost,
                 strerror(error));
    }
    buf_reset(&log->out);
}

/* Format what is in the ring; true: there was something. */
static bool ring_take(struct access_log *log, struct ring *ring)
{
    log->style.combined = atomic_load_explicit(&log->combined, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_seq_cst);
    if (tail == head) {
        return false;
    }
    while (tail != head) {
        const char *at = ring->bytes + tail % RING_BYTES;
        uint32_t size;
        memcpy(&size, at, sizeof(size));
        if (size == 0) {
            tail += RING_BYTES - tail % RING_BYTES;
            continue;
        }
        const struct access_record *record = (const struct access_record *)(const void *)at;
        access_format(&log->out, record, at + sizeof(*record), &log->style);
        tail += size;
        atomic_store_explicit(&ring->tail, tail, memory_order_release);
        if (log->out.len > OUT_FULL_BYTES) {
            write_out(log);
        }
    }
    return true;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

/* Was the file moved away by a rotation? Then begin a new one. */
static void check_file(struct access_log *log)
{
    uint64_t now_ms = time_mono_ms();
    if (log->path == NULL || now_ms - log->checked_ms < CHECK_FILE_MS) {
        return;
    }
    log->checked_ms = now_ms;
    struct stat ours;
    struct stat named;
    if (fstat(log->fd, &ours) == 0 && stat(log->path, &named) == 0 && ours.st_ino == named.st_ino &&
        ours.st_dev == named.st_dev) {
        return;
    }
    int fd = open_file(log->path);
    if (fd >= 0) {
        (void)close(log->fd); /* every line was written */
        log->fd = fd;
    }
}

/* A node that cannot keep up says how much is missing, in the format of the log. */
static void tell_dropped(struct access_log *log)
{
    uint64_t dropped = dropped_of(log);
    if (dropped == log->dropped_told) {
        return;
    }
    unsigned long long count = dropped - log->dropped_told;
    log->dropped_told = dropped;
    if (!atomic_load_explicit(&log->combined, memory_order_relaxed)) {
        (void)buf_printf(&log->out, "{\"event\":\"access log records dropped\",\"count\":%llu}\n",
                         count);
        return;
    }
    uint32_t suppressed;
    if (log_limit_pass(&log->complaints, 1, &suppressed)) { /* its lines are all of one kind */
        log_warn("access log records dropped", "count=%llu", count);
    }
}

static bool take_all(struct access_log *log)
{
    bool any = false;
    for (size_t i = 0; i < log->ring_count; i++) {
        any = ring_take(log, &log->rings[i]) || any;
    }
    tell_dropped(log);
    if (log->out.len != 0) {
        check_file(log);
        write_out(log);
    }
    return any;
}

static void *writer_main(void *arg)
{
    struct access_log *log = arg;
    for (;;) {
        if (take_all(log)) {
            /* Let some gather: fewer, larger writes while there is traffic. */
            (void)usleep(GATHER_US);
            continue;
        }
        if (atomic_load_explicit(&log->stopping, memory_order_acquire)) {
            return NULL;
        }
        atomic_store_explicit(&log->sleeping, true, memory_order_seq_cst);
        if (!take_all(log)) {
            struct pollfd poll_fd = {.fd = log->wake_fd, .events = POLLIN};
            (void)poll(&poll_fd, 1, -1); /* whatever it says, the rings are looked at */
        }
        atomic_store_explicit(&log->sleeping, false, memory_order_seq_cst);
        eventfd_t count;
        (void)eventfd_read(log->wake_fd, &count); /* non-blocking; may have nothing */
    }
}

static void log_free(struct access_log *log)
{
    if (log->path != NULL && log->fd >= 0) {
        (void)close(log->fd); /* every line was written */
    }
    if (log->wake_fd >= 0) {
        (void)close(log->wake_fd);
    }
    for (size_t i = 0; i < log->ring_count; i++) {
        mem_free(log->rings[i].bytes);
    }
    mem_free(log->rings);
    mem_free(log->path);
    mem_free(log->node);
    buf_deinit(&log->out);
    mem_free(log);
}

static bool is_patient(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && !S_ISREG(info.st_mode);
}

static bool is_path(const char *where)
{
    return where != NULL && strcmp(where, "off") != 0 && strcmp(where, "stdout") != 0;
}

int access_log_open(const char *where, const char *node, size_t workers,
                    struct access_log **ret_log, struct err_info *err)
{
    struct access_log *log = mem_new(sizeof(*log));
    log->fd = STDOUT_FILENO;
    log->node = mem_strdup(node != NULL ? node : "");
    log->style = (struct access_style){.node = log->node, .node_len = strlen(log->node)};
    log->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    buf_init(&log->out, OUT_BYTES);
    if (is_path(where)) {
        log->path = mem_strdup(where);
        log->fd = open_file(where);
    }
    if (log->fd < 0 || log->wake_fd < 0) {
        int rc =
            err_set(err, RC_IO, "cannot write the access log to %s: %s", where, strerror(errno));
        log_free(log);
        return rc;
    }
    log->patient = is_patient(log->fd);
    log->rings = mem_lines(workers * sizeof(*log->rings));
    log->ring_count = workers;
    for (size_t i = 0; i < workers; i++) {
        log->rings[i].log = log;
        log->rings[i].bytes = mem_new(RING_BYTES); /* real pages once they are used */
    }
    if (pthread_create(&log->thread, NULL, writer_main, log) != 0) {
        log_free(log);
        return err_set(err, RC_IO, "no thread for the access log");
    }
    *ret_log = log;
    return RC_OK;
}

struct access_ring *access_log_ring(struct access_log *log, size_t idx)
{
    return &log->rings[idx].wants;
}

void access_log_set(struct access_log *log, const struct access_options *options)
{
    atomic_store_explicit(&log->combined, options->combined, memory_order_relaxed);
    for (size_t i = 0; i < log->ring_count; i++) {
        struct access_ring *wants = &log->rings[i].wants;
        atomic_store_explicit(&wants->empty_requests, options->empty_requests,
                              memory_order_relaxed);
        atomic_store_explicit(&wants->on, options->on, memory_order_relaxed);
    }
}

void access_log_close(struct access_log *log)
{
    if (log == NULL) {
        return;
    }
    atomic_store_explicit(&log->stopping, true, memory_order_release);
    (void)eventfd_write(log->wake_fd, 1); /* cannot overflow */
    (void)pthread_join(log->thread, NULL);
    log_free(log);
}
