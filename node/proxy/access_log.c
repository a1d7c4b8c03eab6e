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

#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RING_BYTES = 1 << 20,
    OUT_BYTES = 1 << 16,
    CHECK_FILE_MS = 1000,
    TEXT_MAX = 256,
};

/* Texts in the order in which they follow the record. */
enum text {
    TEXT_PEER = 0,
    TEXT_METHOD,
    TEXT_HOST,
    TEXT_TARGET,
    TEXT_ROUTE,
    TEXT_BACKEND,
    TEXT_ENDPOINT,
    TEXT_COUNT
};

struct record {
    uint32_t size; /* all of it, a multiple of 8; 0: go on at the ring's start */
    uint16_t status;
    uint16_t reason;
    uint64_t wall_ms;
    uint64_t duration_us;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint16_t retries;
    uint16_t text_len[TEXT_COUNT];
};

struct access_ring {
    _Alignas(CACHE_LINE) _Atomic uint64_t head;
    bool fresh; /* the producer put something since the last wake */
    struct access_log *log;
    struct counter dropped;
    _Alignas(CACHE_LINE) _Atomic uint64_t tail;
    char *bytes;
};

struct access_log {
    struct access_ring *rings;
    size_t ring_count;
    char *path; /* NULL: stdout */
    char *node;
    int fd;
    int wake_fd;
    _Atomic bool sleeping;
    _Atomic bool stopping;
    pthread_t thread;
    uint64_t dropped_told;
    uint64_t checked_ms;
    struct buf out;
};

/* ---- workers ---- */

static void *ring_reserve(struct access_ring *ring, size_t size, uint64_t *ret_head)
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

static void ring_put(struct access_ring *ring, struct record *record,
                     const char *const texts[TEXT_COUNT])
{
    size_t size = sizeof(*record);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        size += record->text_len[i];
    }
    size = (size + 7) / 8 * 8;
    uint64_t head;
    char *at = ring_reserve(ring, size, &head);
    if (at == NULL) {
        return;
    }
    record->size = (uint32_t)size;
    record->wall_ms = time_wall_ms();
    memcpy(at, record, sizeof(*record));
    at += sizeof(*record);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (record->text_len[i] != 0) {
            memcpy(at, texts[i], record->text_len[i]);
            at += record->text_len[i];
        }
    }
    atomic_store_explicit(&ring->head, head + size, memory_order_seq_cst);
    ring->fresh = true;
}

static uint16_t text_len(const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;
    return (uint16_t)(len < TEXT_MAX ? len : TEXT_MAX);
}

void access_log_exchange(struct worker *worker, const struct exchange *exchange,
                         uint64_t duration_us)
{
    const char *texts[TEXT_COUNT] = {
        [TEXT_PEER] = exchange->peer_text,
        [TEXT_METHOD] = exchange->method_text,
        [TEXT_HOST] = exchange->host_text,
        [TEXT_TARGET] = exchange->target_text,
        [TEXT_ROUTE] = exchange->rule != NULL ? exchange->rule->route->name : NULL,
        [TEXT_BACKEND] = exchange->backend != NULL ? exchange->backend->name : NULL,
        [TEXT_ENDPOINT] = exchange->endpoint != NULL ? exchange->endpoint->text : NULL,
    };
    struct record record = {
        .status = exchange->status,
        .reason = (uint16_t)exchange->reason,
        .duration_us = duration_us,
        .bytes_in = exchange->bytes_in,
        .bytes_out = exchange->bytes_out,
        .retries = (uint16_t)(exchange->tried_count + (exchange->stale_retried ? 1 : 0)),
        .text_len = {[TEXT_PEER] = text_len(texts[TEXT_PEER]),
                     [TEXT_METHOD] = exchange->method_len,
                     [TEXT_HOST] = exchange->host_len,
                     [TEXT_TARGET] = exchange->target_len,
                     [TEXT_ROUTE] = text_len(texts[TEXT_ROUTE]),
                     [TEXT_BACKEND] = text_len(texts[TEXT_BACKEND]),
                     [TEXT_ENDPOINT] = text_len(texts[TEXT_ENDPOINT])},
    };
    ring_put(worker->access, &record, texts);
}

void access_log_refused(struct worker *worker, const struct fwd_peer *peer, enum reason reason)
{
    const char *texts[TEXT_COUNT] = {[TEXT_PEER] = peer->address};
    struct record record = {
        .status = reason_row(reason)->status,
        .reason = (uint16_t)reason,
        .text_len = {[TEXT_PEER] = text_len(peer->address)},
    };
    ring_put(worker->access, &record, texts);
}

void access_log_tcp(struct worker *worker, const struct tcp_record *from)
{
    if (!access_log_wants(worker)) {
        return;
    }
    char peer[ADDR_TEXT_MAX];
    const char *texts[TEXT_COUNT] = {
        [TEXT_PEER] = addr_format(from->client, peer),
        [TEXT_ROUTE] = from->route,
        [TEXT_BACKEND] = from->backend,
        [TEXT_ENDPOINT] = from->endpoint,
    };
    uint64_t end_ns = from->end_ns != 0 ? from->end_ns : uv_hrtime();
    struct record record = {
        .reason = (uint16_t)from->reason,
        .duration_us = (end_ns - from->start_ns) / 1000,
        .bytes_in = from->bytes_in,
        .bytes_out = from->bytes_out,
        .retries = (uint16_t)from->retries,
    };
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        record.text_len[i] = text_len(texts[i]);
    }
    ring_put(worker->access, &record, texts);
}

void access_log_wake(struct access_ring *ring)
{
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

uint64_t access_log_dropped(const struct access_log *log)
{
    uint64_t sum = 0;
    for (size_t i = 0; log != NULL && i < log->ring_count; i++) {
        sum += counter_read(&log->rings[i].dropped);
    }
    return sum;
}

/* ---- the writer ---- */

static void write_out(struct access_log *log)
{
    size_t done = 0;
    while (done < log->out.len && log->fd >= 0) {
        ssize_t n = write(log->fd, log->out.data + done, log->out.len - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break; /* disk full, pipe closed: these lines are lost, traffic goes on */
        }
        done += (size_t)n;
    }
    buf_reset(&log->out);
}

static void put_json_text(struct buf *out, const char *key, const char *text, size_t len)
{
    (void)buf_printf(out, ",\"%s\":\"", key);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            (void)buf_putc(out, '\\');
            (void)buf_putc(out, (char)c);
        } else if (c < 0x20 || c >= 0x7f) {
            (void)buf_printf(out, "\\u%04x", c); /* the bytes need not be UTF-8 */
        } else {
            (void)buf_putc(out, (char)c);
        }
    }
    (void)buf_putc(out, '"');
}

static void format_record(struct access_log *log, const struct record *record)
{
    static const char *const keys[TEXT_COUNT] = {"client", "method",  "host",    "target",
                                                 "route",  "backend", "endpoint"};
    char time[TIME_TEXT_MAX];
    struct buf *out = &log->out;
    (void)buf_printf(out, "{\"time\":\"%s\"", time_format_wall(record->wall_ms, time));
    put_json_text(out, "node", log->node, strlen(log->node));
    const char *text = (const char *)(record + 1);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (record->text_len[i] != 0) {
            put_json_text(out, keys[i], text, record->text_len[i]);
            text += record->text_len[i];
        }
    }
    (void)buf_printf(out, ",\"status\":%u,\"bytesIn\":%llu,\"bytesOut\":%llu,\"ms\":%.3f",
                     record->status, (unsigned long long)record->bytes_in,
                     (unsigned long long)record->bytes_out, (double)record->duration_us / 1000.0);
    if (record->retries != 0) {
        (void)buf_printf(out, ",\"retries\":%u", record->retries);
    }
    if (record->reason != 0) {
        (void)buf_printf(out, ",\"reason\":\"%s\"", reason_row((enum reason)record->reason)->label);
    }
    (void)buf_puts(out, "}\n");
}

/* Format what is in the ring; true: there was something. */
static bool ring_take(struct access_log *log, struct access_ring *ring)
{
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
        if (log->out.len > OUT_BYTES / 2) {
            write_out(log);
        }
        format_record(log, (const struct record *)(const void *)at);
        tail += size;
        atomic_store_explicit(&ring->tail, tail, memory_order_release);
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
    if (log->fd >= 0 && fstat(log->fd, &ours) == 0 && stat(log->path, &named) == 0 &&
        ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
        return;
    }
    int fd = open_file(log->path);
    if (fd >= 0) {
        if (log->fd >= 0) {
            (void)close(log->fd); /* every line was written */
        }
        log->fd = fd;
    }
}

static bool take_all(struct access_log *log)
{
    bool any = false;
    for (size_t i = 0; i < log->ring_count; i++) {
        any = ring_take(log, &log->rings[i]) || any;
    }
    uint64_t dropped = access_log_dropped(log);
    if (dropped != log->dropped_told) {
        (void)buf_printf(&log->out, "{\"event\":\"access log records dropped\",\"count\":%llu}\n",
                         (unsigned long long)(dropped - log->dropped_told));
        log->dropped_told = dropped;
    }
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
            (void)usleep(2000);
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

int access_log_open(const char *where, const char *node, size_t workers,
                    struct access_log **ret_log, struct err_info *err)
{
    *ret_log = NULL;
    if (where == NULL || strcmp(where, "off") == 0) {
        return RC_OK;
    }
    struct access_log *log = mem_new(sizeof(*log));
    log->fd = STDOUT_FILENO;
    log->node = mem_strdup(node != NULL ? node : "");
    log->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    buf_init(&log->out, OUT_BYTES);
    if (strcmp(where, "stdout") != 0) {
        log->path = mem_strdup(where);
        log->fd = open_file(where);
    }
    if (log->fd < 0 || log->wake_fd < 0) {
        int rc =
            err_set(err, RC_IO, "cannot write the access log to %s: %s", where, strerror(errno));
        log_free(log);
        return rc;
    }
    log->rings = mem_lines(workers * sizeof(*log->rings));
    log->ring_count = workers;
    for (size_t i = 0; i < workers; i++) {
        log->rings[i].log = log;
        log->rings[i].bytes = mem_new(RING_BYTES);
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
    return log == NULL ? NULL : &log->rings[idx];
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
