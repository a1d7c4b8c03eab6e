/*
 * The cluster's key file: one key a line, "skein-key-1:<base64 of 32 bytes>".
 *
 * Lines that start with '#' and empty lines are skipped. The first key is the one in use, the
 * others are accepted too, so that keys can be changed without a stop. The text never goes to a
 * log; error texts name the file and the line, never the content.
 * Thread: any; reading blocks.
 */
#ifndef SKEIN_NODE_TLS_KEY_FILE_H
#define SKEIN_NODE_TLS_KEY_FILE_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum {
    KEY_BYTES = 32,
    KEY_FILE_KEYS_MAX = 8,
    KEY_FILE_BYTES_MAX = 64 * 1024,
    KEY_TEXT_MAX = 64, /* one line without its newline, NUL included */
};

/* Secret: end it with key_ring_wipe. */
struct key_ring {
    size_t count; /* 1..KEY_FILE_KEYS_MAX */
    uint8_t keys[KEY_FILE_KEYS_MAX][KEY_BYTES];
};

/* A fresh random key, and its line. */
void key_generate(uint8_t ret_key[KEY_BYTES]);
void key_format(const uint8_t key[KEY_BYTES], char ret_text[KEY_TEXT_MAX]);

/* A whole key file with comments that say what it is, ready to be written with mode 0600. out is
 * NUL-terminated; size at least KEY_FILE_TEXT_MAX. */
enum { KEY_FILE_TEXT_MAX = 512 };
void key_file_format(const uint8_t key[KEY_BYTES], char *out, size_t size);

/* Parse text. `name` is what error texts call it. RC_INVALID: err says which line and why. */
MUST_CHECK int key_file_parse(const char *name, const char *text, size_t len,
                              struct key_ring *ret_ring, struct err_info *err);

/*
 * Read a key file.
 *
 * RC_NOT_FOUND, RC_IO  cannot be read
 * RC_AUTH              others may read or write it, or its group (which may read a file of root's);
 *                      err names the file and its mode
 * RC_INVALID           no regular file, too large, or malformed; err names the file and the line
 */
MUST_CHECK int key_file_load(const char *path, struct key_ring *ret_ring, struct err_info *err);

void key_ring_wipe(struct key_ring *ring);

#endif
