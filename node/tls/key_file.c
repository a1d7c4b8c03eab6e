/*
 * Text of key files. Base64 is accepted in its one canonical form only, so that a mistyped key is
 * seen here and not as a node that cannot join.
 */
#include "node/tls/key_file.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/tls/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "skein-key-1:";
enum {
    PREFIX_LEN = sizeof(prefix) - 1,
    BASE64_LEN = 44, /* of KEY_BYTES, with its one '=' */
};

void key_generate(uint8_t ret_key[KEY_BYTES])
{
    rng_secret(ret_key, KEY_BYTES);
}

void key_format(const uint8_t key[KEY_BYTES], char ret_text[KEY_TEXT_MAX])
{
    memcpy(ret_text, prefix, PREFIX_LEN);
    int len = EVP_EncodeBlock((unsigned char *)ret_text + PREFIX_LEN, key, KEY_BYTES);
    ASSERT(len == BASE64_LEN);
}

void key_file_format(const uint8_t key[KEY_BYTES], char *out, size_t size)
{
    ASSERT(size >= KEY_FILE_TEXT_MAX);
    char text[KEY_TEXT_MAX];
    key_format(key, text);
    (void)snprintf(out, size,
                   "# Skein cluster key: the same file on every node, readable by its user alone.\n"
                   "# Who has it can join the cluster and change its configuration.\n"
                   "# More lines are more keys: the first is used, all are accepted.\n"
                   "%s\n",
                   text); /* fits by size */
    crypto_wipe(text, sizeof(text));
}

static int parse_key(const char *text, size_t len, uint8_t ret_key[KEY_BYTES])
{
    unsigned char bytes[BASE64_LEN / 4 * 3];
    unsigned char again[BASE64_LEN + 1];
    if (len != BASE64_LEN ||
        EVP_DecodeBlock(bytes, (const unsigned char *)text, BASE64_LEN) != (int)sizeof(bytes)) {
        return RC_INVALID;
    }
    int rc = RC_INVALID;
    if (EVP_EncodeBlock(again, bytes, KEY_BYTES) == BASE64_LEN &&
        memcmp(again, text, BASE64_LEN) == 0) {
        memcpy(ret_key, bytes, KEY_BYTES);
        rc = RC_OK;
    }
    crypto_wipe(bytes, sizeof(bytes));
    crypto_wipe(again, sizeof(again));
    return rc;
}

/* One line without its newline, which is neither empty nor a comment. */
static int parse_line(const char *line, size_t len, struct key_ring *ring, const char **ret_why)
{
    if (len < PREFIX_LEN || memcmp(line, prefix, PREFIX_LEN) != 0) {
        *ret_why = "does not begin with \"skein-key-1:\"";
        return RC_INVALID;
    }
    if (ring->count == KEY_FILE_KEYS_MAX) {
        *ret_why = "is one key too many: at most 8 are accepted";
        return RC_INVALID;
    }
    uint8_t *key = ring->keys[ring->count];
    if (parse_key(line + PREFIX_LEN, len - PREFIX_LEN, key) != RC_OK) {
        *ret_why = "has no 44 characters of base64 (32 bytes) after \"skein-key-1:\"";
        return RC_INVALID;
    }
    for (size_t i = 0; i < ring->count; i++) {
        if (memcmp(ring->keys[i], key, KEY_BYTES) == 0) {
            *ret_why = "repeats an earlier key";
            return RC_INVALID;
        }
    }
    ring->count++;
    return RC_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

int key_file_parse(const char *name, const char *text, size_t len, struct key_ring *ret_ring,
                   struct err_info *err)
{
    struct key_ring ring = {0};
    size_t line_no = 0;
    for (size_t at = 0; at < len;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', len - at);
        size_t line_len = end != NULL ? (size_t)(end - line) : len - at;
        at += line_len + 1;
        line_no++;
        while (line_len > 0 && is_blank(line[line_len - 1])) {
            line_len--;
        }
        while (line_len > 0 && is_blank(*line)) {
            line++;
            line_len--;
        }
        if (line_len == 0 || *line == '#') {
            continue;
        }
        const char *why = NULL;
        if (parse_line(line, line_len, &ring, &why) != RC_OK) {
            key_ring_wipe(&ring);
            return err_set(err, RC_INVALID, "%s: line %zu %s", name, line_no, why);
        }
    }
    if (ring.count == 0) {
        return err_set(err, RC_INVALID,
                       "%s holds no key: a line skein-key-1:<base64 of 32 bytes> is expected, as "
                       "\"skeinctl keygen\" writes it",
                       name);
    }
    *ret_ring = ring;
    key_ring_wipe(&ring);
    return RC_OK;
}

static int check_file(const char *path, const struct stat *st, struct err_info *err)
{
    if (!S_ISREG(st->st_mode)) {
        return err_set(err, RC_INVALID, "%s is not a regular file", path);
    }
    /* A file of root may be readable by the group that the node runs as. */
    mode_t refused = st->st_uid == 0 ? 037 : 077;
    if ((st->st_mode & refused) != 0) {
        return err_set(err, RC_AUTH,
                       "%s has mode %04o: the cluster key must not be accessible by group or "
                       "others; chmod 600 %s (640 if it belongs to root and a group of skein's)",
                       path, (unsigned)(st->st_mode & 07777), path);
    }
    if (st->st_size > KEY_FILE_BYTES_MAX) {
        return err_set(err, RC_INVALID, "%s is no key file: it has %lld bytes, at most %d are read",
                       path, (long long)st->st_size, KEY_FILE_BYTES_MAX);
    }
    return RC_OK;
}

/* Read all of fd, at most KEY_FILE_BYTES_MAX bytes, into text. */
static int read_all(int fd, char *text, size_t *ret_len)
{
    size_t len = 0;
    while (len < KEY_FILE_BYTES_MAX) {
        ssize_t got = read(fd, text + len, KEY_FILE_BYTES_MAX - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return RC_IO;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    *ret_len = len;
    return RC_OK;
}

int key_file_load(const char *path, struct key_ring *ret_ring, struct err_info *err)
{
    /* Non-blocking, so that a pipe at this path cannot hold the start. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_set(err, errno == ENOENT ? RC_NOT_FOUND : RC_IO,
                       "cannot read the key file %s: %s", path, strerror(errno));
    }
    char *text = NULL;
    size_t len = 0;
    struct stat st;
    int rc = RC_OK;
    if (fstat(fd, &st) < 0) {
        rc = err_set(err, RC_IO, "cannot read the key file %s: %s", path, strerror(errno));
        goto out;
    }
    rc = check_file(path, &st, err);
    if (rc != RC_OK) {
        goto out;
    }
    text = mem_new(KEY_FILE_BYTES_MAX);
    if (read_all(fd, text, &len) != RC_OK) {
        rc = err_set(err, RC_IO, "cannot read the key file %s: %s", path, strerror(errno));
        goto out;
    }
    rc = key_file_parse(path, text, len, ret_ring, err);
out:
    if (text != NULL) {
        crypto_wipe(text, KEY_FILE_BYTES_MAX);
    }
    mem_free(text);
    (void)close(fd); /* was only read */
    return rc;
}

void key_ring_wipe(struct key_ring *ring)
{
    crypto_wipe(ring, sizeof(*ring));
}
