/*
 * The audit thread and its two queues; see the header.
 *
 * The lock protects jobs, last_job and ending, and is a leaf. What the file needs (fd, size, dirty)
 * belongs to the audit thread once it runs.
 */
#include "admin/server/audit.h"

#include "node/base/check.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/net/mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SYNC_S = 1, FILE_MODE = 0600 };

struct job {
    struct mail mail; /* on the way back */
    struct job *next; /* on the way there */
    char *line;       /* NULL: read */
    size_t len;
    struct audit_query query;
    int rc;
    char *text;
    void (*appended)(void *arg, int rc);
    void (*was_read)(void *arg, int rc, char *text);
    void *arg;
};

struct audit {
    struct mailbox answers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job *jobs;
    struct job *last_job;
    bool ending;

    char *path;
    size_t file_max;
    int fd;
    size_t size;
    bool dirty; /* written since the last fdatasync */
    atomic_uint_fast64_t lost;

    void (*closed)(void *arg);
    void *closed_arg;
};

/* ---- the file ---- */

static int open_file(struct audit *audit)
{
    struct stat facts;
    audit->fd = open(audit->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, FILE_MODE);
    if (audit->fd < 0 || fstat(audit->fd, &facts) != 0) {
        return RC_IO;
    }
    audit->size = (size_t)facts.st_size;
    char last = '\n';
    if (audit->size > 0 && pread(audit->fd, &last, 1, facts.st_size - 1) == 1 && last != '\n') {
        /* A record was cut: the next one begins on a line of its own. */
        audit->size += write(audit->fd, "\n", 1) == 1;
    }
    return RC_OK;
}

static int rotate(struct audit *audit)
{
    char *older = mem_printf("%s.1", audit->path);
    bool good = fdatasync(audit->fd) == 0 && rename(audit->path, older) == 0;
    mem_free(older);
    if (!good) {
        return RC_IO; /* the file grows on: better than losing records */
    }
    (void)close(audit->fd);
    return open_file(audit);
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, bytes, len);
        if (done < 0 && errno != EINTR) {
            return errno == ENOSPC || errno == EDQUOT ? RC_NO_SPACE : RC_IO;
        }
        bytes += done > 0 ? done : 0;
        len -= done > 0 ? (size_t)done : 0;
    }
    return RC_OK;
}

static int append(struct audit *audit, const char *line, size_t len)
{
    if (audit->size > 0 && audit->size + len > audit->file_max && rotate(audit) != RC_OK) {
        log_warn("the audit trail cannot be rotated", "file=%s reason=\"%s\"", audit->path,
                 strerror(errno));
    }
    if (audit->fd < 0 && open_file(audit) != RC_OK) {
        return RC_IO;
    }
    int rc = write_all(audit->fd, line, len);
    if (rc != RC_OK) {
        /* What was written of the line would spoil the next one. */
        if (ftruncate(audit->fd, (off_t)audit->size) != 0) {
            log_warn("the audit trail has half a line", "file=%s reason=\"%s\"", audit->path,
                     strerror(errno));
        }
        return rc;
    }
    audit->size += len;
    audit->dirty = true;
    return RC_OK;
}

/* ---- the thread ---- */

static void do_job(struct audit *audit, struct job *job)
{
    if (job->line == NULL) {
        job->text = audit_select(audit->path, &job->query);
        return;
    }
    static struct log_limit limit;
    uint32_t suppressed = 0;
    job->rc = append(audit, job->line, job->len);
    if (job->rc != RC_OK) {
        (void)atomic_fetch_add_explicit(&audit->lost, 1, memory_order_relaxed);
        if (log_limit_pass(&limit, 1, &suppressed)) {
            log_error("a record of the audit trail is lost", "file=%s reason=\"%s\" left_out=%u",
                      audit->path, rc_text(job->rc), suppressed);
        }
    }
}

/* The next job; waits for one, for the time to sync, or for the end (NULL). */
static struct job *next_job(struct audit *audit, bool *ret_ending)
{
    int status = 0;
    struct timespec until;
    ASSERT(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += SYNC_S;
    ASSERT(pthread_mutex_lock(&audit->lock) == 0);
    while (audit->jobs == NULL && !audit->ending && status == 0) {
        status = audit->dirty ? pthread_cond_timedwait(&audit->more, &audit->lock, &until)
                              : pthread_cond_wait(&audit->more, &audit->lock);
    }
    struct job *job = audit->jobs;
    if (job != NULL) {
        audit->jobs = job->next;
    }
    *ret_ending = audit->ending && job == NULL;
    ASSERT(pthread_mutex_unlock(&audit->lock) == 0);
    return job;
}

static void *run(void *arg)
{
    struct audit *audit = arg;
    bool ending = false;
    unsigned since_sync = 0;
    while (!ending) {
        struct job *job = next_job(audit, &ending);
        if (job != NULL) {
            do_job(audit, job);
            int rc = mailbox_post_mt(&audit->answers, &job->mail);
            ASSERT(rc == RC_OK); /* unbounded, and closed only after this thread ended */
            since_sync++;
        }
        if (audit->dirty && audit->fd >= 0 && (job == NULL || since_sync >= 1000)) {
            (void)fdatasync(audit->fd); /* a failure shows at the next write */
            audit->dirty = false;
            since_sync = 0;
        }
    }
    return NULL;
}

/* ---- the loop's side ---- */

static void on_answer(void *owner, struct mail *mail)
{
    (void)owner;
    struct job *job = CONTAINER_OF(mail, struct job, mail);
    mem_free(job->line);
    if (job->appended != NULL) {
        job->appended(job->arg, job->rc);
    } else if (job->was_read != NULL) {
        job->was_read(job->arg, job->rc, job->text);
    } else {
        mem_free(job->text);
    }
    mem_free(job);
}

static void audit_free(struct audit *audit)
{
    if (audit->fd >= 0) {
        (void)close(audit->fd);
    }
    (void)pthread_mutex_destroy(&audit->lock);
    (void)pthread_cond_destroy(&audit->more);
    mem_free(audit->path);
    mem_free(audit);
}

int audit_open(uv_loop_t *loop, const char *path, size_t file_max, struct audit **ret_audit,
               struct err_info *err)
{
    struct audit *audit = mem_new(sizeof(*audit));
    ASSERT(pthread_mutex_init(&audit->lock, NULL) == 0);
    ASSERT(pthread_cond_init(&audit->more, NULL) == 0);
    audit->path = mem_strdup(path);
    audit->file_max = file_max != 0 ? file_max : (size_t)AUDIT_FILE_BYTES;
    if (open_file(audit) != RC_OK) {
        int rc = err_set(err, RC_IO, "%s: %s", path, strerror(errno));
        audit_free(audit);
        return rc;
    }
    mailbox_open(&audit->answers, loop, SIZE_MAX, on_answer, audit);
    int status = pthread_create(&audit->thread, NULL, run, audit);
    ASSERT(status == 0);
    *ret_audit = audit;
    return RC_OK;
}

static void on_mailbox_closed(void *owner)
{
    struct audit *audit = owner;
    void (*closed)(void *arg) = audit->closed;
    void *arg = audit->closed_arg;
    audit_free(audit);
    closed(arg);
}

void audit_close(struct audit *audit, void (*closed)(void *arg), void *arg)
{
    audit->closed = closed;
    audit->closed_arg = arg;
    ASSERT(pthread_mutex_lock(&audit->lock) == 0);
    audit->ending = true;
    ASSERT(pthread_cond_signal(&audit->more) == 0);
    ASSERT(pthread_mutex_unlock(&audit->lock) == 0);
    ASSERT(pthread_join(audit->thread, NULL) == 0);
    mailbox_close(&audit->answers, on_mailbox_closed);
}

static void submit(struct audit *audit, struct job *job)
{
    ASSERT(pthread_mutex_lock(&audit->lock) == 0);
    if (audit->jobs == NULL) {
        audit->jobs = job;
    } else {
        audit->last_job->next = job;
    }
    audit->last_job = job;
    ASSERT(pthread_cond_signal(&audit->more) == 0);
    ASSERT(pthread_mutex_unlock(&audit->lock) == 0);
}

void audit_append(struct audit *audit, char *line, void (*done)(void *arg, int rc), void *arg)
{
    struct job *job = mem_new(sizeof(*job));
    job->len = strlen(line);
    job->line = mem_grow(line, job->len + 2, 1);
    job->line[job->len++] = '\n';
    job->line[job->len] = '\0';
    job->appended = done;
    job->arg = arg;
    submit(audit, job);
}

void audit_read(struct audit *audit, const struct audit_query *query,
                void (*done)(void *arg, int rc, char *text), void *arg)
{
    struct job *job = mem_new(sizeof(*job));
    job->query = *query;
    job->was_read = done;
    job->arg = arg;
    submit(audit, job);
}

uint64_t audit_lost(const struct audit *audit)
{
    return atomic_load_explicit(&audit->lost, memory_order_relaxed);
}
