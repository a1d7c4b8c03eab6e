/*
 * The data folder: creation, lock, private files, atomic replacement, setting a database aside.
 *
 * Nothing here deletes what it did not create: a damaged database is renamed, never removed.
 */
#include "store/internal.h"

#include "node/base/timesrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int errno_rc(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? RC_NO_SPACE : RC_IO;
}

static int fail(struct err_info *err, const char *what, const char *path)
{
    int rc = errno_rc();
    return err_set(err, rc, "%s %.300s: %s", what, path, strerror(errno));
}

int path_join(const char *dir, const char *name, char out[STORE_PATH_MAX], struct err_info *err)
{
    int len = snprintf(out, STORE_PATH_MAX, "%s/%s", dir, name);
    if (len < 0 || len >= STORE_PATH_MAX) {
        return err_set(err, RC_TOO_BIG, "the path of the data folder is longer than %d bytes",
                       STORE_PATH_MAX);
    }
    return RC_OK;
}

/* Who holds the lock, as it wrote into the file; 0 when unknown. */
static long lock_holder(int fd)
{
    char text[32] = "";
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    return len > 0 ? strtol(text, NULL, 10) : 0;
}

int folder_lock(const char *dir, int *ret_fd, struct err_info *err)
{
    char path[STORE_PATH_MAX];
    int rc = path_join(dir, "lock", path, err);
    if (rc != RC_OK) {
        return rc;
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return fail(err, "cannot create the data folder", dir);
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail(err, "cannot open", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        rc = errno == EWOULDBLOCK
                 ? err_set(err, RC_BUSY,
                           "the data folder %.300s is in use by another process (process id %ld)",
                           dir, lock_holder(fd))
                 : fail(err, "cannot lock", path);
        (void)close(fd); /* read only so far */
        return rc;
    }
    char text[32];
    int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* The number only serves the message above; a full disk must not prevent a start. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        errno = 0;
    }
    *ret_fd = fd;
    return RC_OK;
}

int file_make_private(const char *dir, const char *name, bool *ret_created, struct err_info *err)
{
    char path[STORE_PATH_MAX];
    int rc = path_join(dir, name, path, err);
    if (rc != RC_OK) {
        return rc;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fail(err, "cannot open", path);
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        rc = fail(err, "cannot read the state of", path);
    } else if (!S_ISREG(st.st_mode)) {
        rc = err_set(err, RC_IO, "%.300s is not a plain file", path);
    } else if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) != 0) {
        rc = fail(err, "cannot set the mode of", path);
    } else {
        *ret_created = st.st_size == 0;
    }
    (void)close(fd); /* nothing was written */
    return rc;
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, text, len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return RC_IO;
        }
        text += done;
        len -= (size_t)done;
    }
    return RC_OK;
}

int folder_sync(const char *dir, struct err_info *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail(err, "cannot open the data folder", dir);
    }
    int rc = fsync(fd) == 0 ? RC_OK : fail(err, "cannot sync the data folder", dir);
    (void)close(fd); /* opened for reading */
    return rc;
}

int file_replace(const char *dir, const char *name, const char *text, size_t len,
                 struct err_info *err)
{
    char path[STORE_PATH_MAX];
    char temp_name[64];
    char temp[STORE_PATH_MAX];
    (void)snprintf(temp_name, sizeof(temp_name), "%s.new", name); /* names are short constants */
    int rc = path_join(dir, name, path, err);
    if (rc == RC_OK) {
        rc = path_join(dir, temp_name, temp, err);
    }
    if (rc != RC_OK) {
        return rc;
    }
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail(err, "cannot create", temp);
    }
    if (write_all(fd, text, len) != RC_OK || fsync(fd) != 0) {
        rc = fail(err, "cannot write", temp);
    }
    if (close(fd) != 0 && rc == RC_OK) {
        rc = fail(err, "cannot write", temp);
    }
    if (rc == RC_OK && rename(temp, path) != 0) {
        rc = fail(err, "cannot replace", path);
    }
    if (rc != RC_OK) {
        (void)unlink(temp); /* the old file is untouched; a leftover would be overwritten */
        return rc;
    }
    return folder_sync(dir, err);
}

/* Rename if it is there. */
static int move_file(const char *from, const char *to, struct err_info *err)
{
    if (rename(from, to) == 0 || errno == ENOENT) {
        return RC_OK;
    }
    return fail(err, "cannot set aside", from);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* "20260131T100000000Z": no byte that a shell or another file system minds. */
static void compact_time(uint64_t wall_ms, char out[TIME_TEXT_MAX])
{
    char text[TIME_TEXT_MAX];
    size_t len = 0;
    time_format_wall(wall_ms, text);
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr("-:.", *p) == NULL) {
            out[len++] = *p;
        }
    }
    out[len] = '\0';
}

int database_set_aside(const char *dir, uint64_t wall_ms, char ret_name[128], struct err_info *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", ""};
    char when[TIME_TEXT_MAX];
    char name[128];
    char from[STORE_PATH_MAX];
    char to[STORE_PATH_MAX];
    compact_time(wall_ms, when);
    for (int attempt = 0;; attempt++) {
        (void)snprintf(name, sizeof(name),
                       attempt == 0 ? "skein.db.damaged-%s" : "skein.db.damaged-%s.%d", when,
                       attempt);
        int rc = path_join(dir, name, to, err);
        if (rc != RC_OK) {
            return rc;
        }
        if (!exists(to)) {
            break;
        }
    }
    /* The log goes first: a new database must never find the log of an old one beside it. */
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        char part[160];
        (void)snprintf(part, sizeof(part), "skein.db%s", suffixes[i]); /* fits */
        int rc = path_join(dir, part, from, err);
        if (rc == RC_OK) {
            (void)snprintf(part, sizeof(part), "%s%s", name, suffixes[i]); /* fits */
            rc = path_join(dir, part, to, err);
        }
        if (rc == RC_OK) {
            rc = move_file(from, to, err);
        }
        if (rc != RC_OK) {
            return rc;
        }
    }
    memcpy(ret_name, name, sizeof(name));
    return folder_sync(dir, err);
}
