/*
 * A reader over the records that carry a ClientHello. The message is gathered into one run first
 * (it is copied only when it lies in several records), then read with a cursor that cannot pass its
 * end.
 */
#include "node/tls/tls_hello.h"

#include <string.h>

enum {
    RECORD_HEADER = 5,
    RECORD_MAX = 16384, /* of plaintext: RFC 8446 5.1 */
    TYPE_HANDSHAKE = 22,
    MESSAGE_HEADER = 4,
    MESSAGE_CLIENT_HELLO = 1,
    EXT_SERVER_NAME = 0,
    EXT_ALPN = 16,
    EXT_SUPPORTED_VERSIONS = 43,
    VERSION_12 = 0x0303,
    VERSION_13 = 0x0304,
    LEVEL_FATAL = 2,
    TYPE_ALERT = 21,
};

/* What is left of a run of bytes; `bad` stays set once something did not fit. */
struct cursor {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static uint32_t take_number(struct cursor *cursor, size_t bytes)
{
    if (cursor->left < bytes) {
        cursor->bad = true;
        cursor->left = 0;
        return 0;
    }
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        number = number << 8 | cursor->at[i];
    }
    cursor->at += bytes;
    cursor->left -= bytes;
    return number;
}

static struct cursor take_run(struct cursor *cursor, size_t len)
{
    struct cursor run = {0};
    if (cursor->left < len) {
        cursor->bad = true;
        cursor->left = 0;
        return run;
    }
    run = (struct cursor){.at = cursor->at, .left = len};
    cursor->at += len;
    cursor->left -= len;
    return run;
}

/* A run behind its length in so many bytes. */
static struct cursor take_vector(struct cursor *cursor, size_t length_bytes)
{
    return take_run(cursor, take_number(cursor, length_bytes));
}

/* ---- what is no TLS ---- */

static bool is_upper(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z';
}

/* A method of upper-case letters and a blank, as far as that can be seen. */
static enum tls_hello_result look_foreign(const uint8_t *bytes, size_t len)
{
    enum { METHOD_MAX = 16 };
    for (size_t i = 0; i < len && i <= METHOD_MAX; i++) {
        if (bytes[i] == ' ' && i >= 3) {
            return TLS_HELLO_HTTP;
        }
        if (!is_upper(bytes[i])) {
            return TLS_HELLO_FOREIGN;
        }
    }
    return len <= METHOD_MAX ? TLS_HELLO_MORE : TLS_HELLO_FOREIGN;
}

/* ---- the message ---- */

/* Canonical form: lower-case letters, digits, '-', '_' and dots; no empty label, no address. */
static bool take_host(const uint8_t *name, size_t len, char *out)
{
    if (len > 0 && name[len - 1] == '.') {
        len--;
    }
    if (len == 0 || len > TLS_HELLO_NAME_MAX) {
        return false;
    }
    bool has_letter = false;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = name[i];
        c = is_upper(c) ? c | 0x20 : c;
        bool letter = (c >= 'a' && c <= 'z') || c == '-' || c == '_';
        bool dot = c == '.' && i > 0 && i + 1 < len && name[i - 1] != '.';
        if (!letter && !dot && (c < '0' || c > '9')) {
            return false;
        }
        has_letter = has_letter || letter;
        out[i] = (char)c;
    }
    out[len] = '\0';
    return has_letter; /* RFC 6066 3: literal addresses are not permitted */
}

static void read_server_name(struct cursor ext, struct tls_hello *hello, bool *bad)
{
    struct cursor list = take_vector(&ext, 2);
    bool seen = false;
    *bad = ext.bad || ext.left != 0 || list.left == 0;
    while (list.left > 0 && !*bad) {
        uint32_t type = take_number(&list, 1);
        struct cursor name = take_vector(&list, 2);
        *bad = list.bad || (type == 0 && seen); /* more than one host name: RFC 6066 3 */
        if (!*bad && type == 0) {
            seen = true;
            hello->bad_name = !take_host(name.at, name.left, hello->server_name);
            if (hello->bad_name) {
                hello->server_name[0] = '\0';
            }
        }
    }
}

static void read_alpn(struct cursor ext, struct tls_hello *hello, bool *bad)
{
    static const char http11[] = "http/1.1", h2[] = "h2";
    struct cursor list = take_vector(&ext, 2);
    hello->has_alpn = true;
    hello->offers_http11 = false;
    *bad = ext.bad || ext.left != 0 || list.left == 0;
    while (list.left > 0 && !*bad) {
        struct cursor name = take_vector(&list, 1);
        *bad = list.bad || name.left == 0;
        if (name.left == sizeof(http11) - 1 && memcmp(name.at, http11, name.left) == 0) {
            hello->offers_http11 = true;
        } else if (name.left == sizeof(h2) - 1 && memcmp(name.at, h2, name.left) == 0) {
            hello->offers_h2 = true;
        }
    }
}

static void read_versions(struct cursor ext, struct tls_hello *hello, bool *bad)
{
    struct cursor list = take_vector(&ext, 1);
    uint16_t max = 0;
    while (list.left > 0 && !list.bad) {
        uint16_t version = (uint16_t)take_number(&list, 2);
        if (version <= VERSION_13 && version >= 0x0300) { /* what is above is GREASE or unknown */
            max = MAX(max, version);
        }
    }
    *bad = ext.bad || ext.left != 0 || list.bad;
    hello->max_version = max != 0 ? max : hello->max_version;
}

static bool read_extensions(struct cursor all, struct tls_hello *hello)
{
    uint32_t seen = 0;
    while (all.left > 0) {
        uint32_t type = take_number(&all, 2);
        struct cursor ext = take_vector(&all, 2);
        if (all.bad) {
            return false;
        }
        bool bad = false;
        uint32_t bit = type < 32 ? 1U << type : 0; /* of ours: server name and ALPN */
        if (type == EXT_SERVER_NAME || type == EXT_ALPN) {
            bad = (seen & bit) != 0; /* twice: RFC 8446 4.2 */
            seen |= bit;
        }
        if (!bad && type == EXT_SERVER_NAME) {
            read_server_name(ext, hello, &bad);
        } else if (!bad && type == EXT_ALPN) {
            read_alpn(ext, hello, &bad);
        } else if (type == EXT_SUPPORTED_VERSIONS) {
            read_versions(ext, hello, &bad);
        }
        if (bad) {
            return false;
        }
    }
    return true;
}

static bool read_message(struct cursor body, struct tls_hello *hello)
{
    uint32_t version = take_number(&body, 2);
    hello->max_version = (uint16_t)MIN(version, (uint32_t)VERSION_12);
    (void)take_run(&body, 32);   /* random */
    (void)take_vector(&body, 1); /* session id */
    struct cursor suites = take_vector(&body, 2);
    struct cursor compressions = take_vector(&body, 1);
    hello->offers_http11 = true;
    if (body.bad || suites.left < 2 || suites.left % 2 != 0 || compressions.left == 0) {
        return false;
    }
    if (body.left == 0) {
        return true; /* no extensions: RFC 5246 7.4.1.2 */
    }
    struct cursor extensions = take_vector(&body, 2);
    return !body.bad && body.left == 0 && read_extensions(extensions, hello);
}

/* ---- the records ---- */

enum tls_hello_result tls_hello_read(const uint8_t *bytes, size_t len, struct tls_hello *ret_hello)
{
    if (len == 0) {
        return TLS_HELLO_MORE;
    }
    if (bytes[0] != TYPE_HANDSHAKE) {
        return look_foreign(bytes, len);
    }
    uint8_t joined[TLS_HELLO_BYTES_MAX + MESSAGE_HEADER];
    const uint8_t *message = NULL; /* of one record, or joined */
    size_t have = 0, off = 0, need = MESSAGE_HEADER;
    for (size_t records = 0;; records++) {
        if ((len - off >= 2 && bytes[off + 1] != 3) ||
            (len > off && bytes[off] != TYPE_HANDSHAKE)) {
            return off == 0 ? TLS_HELLO_FOREIGN : TLS_HELLO_BROKEN;
        }
        if (len - off < RECORD_HEADER) {
            return TLS_HELLO_MORE;
        }
        size_t size = (size_t)bytes[off + 3] << 8 | bytes[off + 4];
        if (size == 0) {
            return TLS_HELLO_BROKEN; /* RFC 8446 5.1: no empty fragments of handshakes */
        }
        if (size > RECORD_MAX) {
            return TLS_HELLO_TOO_BIG;
        }
        const uint8_t *fragment = bytes + off + RECORD_HEADER;
        size_t there = MIN(size, len - off - RECORD_HEADER);
        size_t used = MIN(there, sizeof(joined) - have);
        if (records == 0) {
            message = fragment;
        } else {
            if (message != joined) {
                memcpy(joined, message, have);
                message = joined;
            }
            memcpy(joined + have, fragment, used);
        }
        have += used;
        if (have >= 1 && message[0] != MESSAGE_CLIENT_HELLO) {
            return off == 0 && records == 0 ? TLS_HELLO_FOREIGN : TLS_HELLO_BROKEN;
        }
        if (have >= MESSAGE_HEADER) {
            need =
                ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]) + MESSAGE_HEADER;
            if (need > TLS_HELLO_BYTES_MAX) {
                return TLS_HELLO_TOO_BIG;
            }
        }
        if (have >= need && need > MESSAGE_HEADER) {
            if (have > need || there < size) {
                return TLS_HELLO_BROKEN; /* nothing may follow a ClientHello in its record */
            }
            break;
        }
        if (have == MESSAGE_HEADER && need == MESSAGE_HEADER) {
            return TLS_HELLO_BROKEN; /* an empty message */
        }
        if (there < size) {
            return len >= TLS_HELLO_WIRE_MAX ? TLS_HELLO_TOO_BIG : TLS_HELLO_MORE;
        }
        off += RECORD_HEADER + size;
        if (off >= TLS_HELLO_WIRE_MAX) {
            return TLS_HELLO_TOO_BIG;
        }
    }
    memset(ret_hello, 0, sizeof(*ret_hello));
    ret_hello->wire_len = off + RECORD_HEADER + ((size_t)bytes[off + 3] << 8 | bytes[off + 4]);
    const struct cursor body = {.at = message + MESSAGE_HEADER, .left = need - MESSAGE_HEADER};
    return read_message(body, ret_hello) ? TLS_HELLO_OK : TLS_HELLO_BROKEN;
}

void tls_alert_record(uint8_t alert, uint8_t out[TLS_ALERT_RECORD_LEN])
{
    const uint8_t record[TLS_ALERT_RECORD_LEN] = {TYPE_ALERT, 3, 3, 0, 2, LEVEL_FATAL, alert};
    memcpy(out, record, sizeof(record));
}
