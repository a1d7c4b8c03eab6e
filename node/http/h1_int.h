/*
 * Private to node/http: byte classes and the parts of the head parser.
 */
#ifndef SKEIN_NODE_HTTP_H1_INT_H
#define SKEIN_NODE_HTTP_H1_INT_H

#include "node/http/h1_head.h"

#include <string.h>

enum {
    H1_CLASS_TOKEN = 1,  /* RFC 9110 5.6.2 */
    H1_CLASS_TARGET = 2, /* visible ASCII but '#': a fragment is never sent (RFC 9112 3.2) */
    H1_CLASS_DIGIT = 4,
    H1_CLASS_HEX = 8,
};

extern const uint8_t h1_class[256];

static inline bool h1_is_class(char byte, uint8_t class_bits)
{
    return (h1_class[(unsigned char)byte] & class_bits) != 0;
}

static inline char h1_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* A field name that this unit has a word for: one half of a cache line. */
struct h1_known_name {
    char text[28]; /* lower-case, with the colon behind it, padded with zeros */
    /* copied into struct h1_field as one */
    uint8_t id; /* enum h1_name; H1_OTHER for names that are only common */
    bool hop;   /* never outlives the connection */
    bool drop;  /* false */
    bool special;
};

_Static_assert(sizeof(struct h1_known_name) == 32, "compared as two blocks of 16 bytes");
_Static_assert(sizeof(struct h1_field) == 12 && offsetof(struct h1_field, id) == 8,
               "ends in the same four bytes");

extern const struct h1_known_name h1_known_names[256] __attribute__((aligned(64)));

/* Eight bytes with their upper-case letters made lower-case. */
static inline uint64_t h1_lower8(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t seven = bytes & ~high;
    uint64_t from_a = seven + ones * (0x80 - 'A');
    uint64_t above_z = seven + ones * (0x7f - 'Z');
    return bytes | (((from_a ^ above_z) & ~bytes & high) >> 2);
}

/* `len` bytes, 2 to 7, as one number; bytes in the middle may be there twice. */
static inline uint64_t h1_load_short(const char *text, size_t len)
{
    if (len >= 4) {
        uint32_t head, tail;
        memcpy(&head, text, 4);
        memcpy(&tail, text + len - 4, 4);
        return (uint64_t)head << 32 | tail;
    }
    uint16_t head, tail;
    memcpy(&head, text, 2);
    memcpy(&tail, text + len - 2, 2);
    return (uint64_t)head << 16 | tail;
}

static inline uint64_t h1_load8(const char *text)
{
    uint64_t bytes;
    memcpy(&bytes, text, 8);
    return bytes;
}

/* text in any case equals the lower-case word of the same length. */
static inline bool h1_same_word(const char *text, const char *word, size_t len)
{
    if (len < 2) {
        return len == 0 || h1_lower(text[0]) == word[0];
    }
    if (len < 8) {
        return h1_lower8(h1_load_short(text, len)) == h1_load_short(word, len);
    }
    for (size_t at = 0; at + 8 < len; at += 8) {
        if (h1_lower8(h1_load8(text + at)) != h1_load8(word + at)) {
            return false;
        }
    }
    return h1_lower8(h1_load8(text + len - 8)) == h1_load8(word + len - 8);
}

/* Four bytes as a number, the first one lowest on every machine, letters in lower case. */
static inline uint32_t h1_lower4(const char *text)
{
    uint32_t bytes;
    memcpy(&bytes, text, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap32(bytes);
#endif
    return bytes | 0x20202020u;
}

/* Where in the table a name of at least four bytes stands, if it does. The factor was found by
 * search so that no two collide; a test looks every name up. */
static inline const struct h1_known_name *h1_known_slot(const char *name, size_t len)
{
    uint32_t key = h1_lower4(name) + h1_lower4(name + len - 4) + (uint32_t)len * 4;
    return &h1_known_names[key * 0x72437fb9u >> 24];
}

/* NULL when the name is not in the table; what is in it, is a token. */
const struct h1_known_name *h1_known(const char *name, size_t len);

/* Copy to a cursor; returns the new one. Most texts of a head are short: no call for them. */
static inline char *h1_put(char *at, const char *text, size_t len)
{
    if (__builtin_constant_p(len) || len > 16) {
        memcpy(at, text, len);
    } else if (len >= 8) { /* the two halves may overlap */
        uint64_t head = h1_load8(text), tail = h1_load8(text + len - 8);
        memcpy(at, &head, 8);
        memcpy(at + len - 8, &tail, 8);
    } else if (len >= 4) {
        uint32_t head, tail;
        memcpy(&head, text, 4);
        memcpy(&tail, text + len - 4, 4);
        memcpy(at, &head, 4);
        memcpy(at + len - 4, &tail, 4);
    } else if (len != 0) {
        at[0] = text[0];
        at[len / 2] = text[len / 2];
        at[len - 1] = text[len - 1];
    }
    return at + len;
}

#define H1_PUT_TEXT(at, text) h1_put(at, text, sizeof(text) - 1)

/*
 * The next element of a comma-separated list without white space around it; *cursor starts at 0.
 * Empty elements are passed over (RFC 9110 5.6.1). False at the end.
 */
bool h1_list_next(const char *list, size_t len, size_t *cursor, struct h1_span *ret);

/* Offset of the first control byte other than tab in bytes[at..len), or len. */
size_t h1_next_control(const char *bytes, size_t at, size_t len);

/*
 * Go on looking for the end of a head; record where each line that is new in this call begins
 * (head->fields[].name.off) and where its CRLF is (value.off). 0: head->len is its length;
 * RC_AGAIN; RC_INVALID, RC_TOO_BIG with head->fault.
 */
MUST_CHECK int h1_sweep(struct h1_scan *scan, const char *bytes, size_t len,
                        const struct h1_limits *limits, struct h1_head *head);

/*
 * Names, values and ids of the swept field lines, and what they say. RC_INVALID with head->fault.
 */
MUST_CHECK int h1_parse_fields(struct h1_head *head, const char *bytes);

/* What is known of the fields so far. */
struct h1_notes {
    uint64_t present;
    const struct h1_field *connection; /* the first */
    uint32_t connections;
};

static inline size_t h1_set_name(struct h1_field *field, size_t len,
                                 const struct h1_known_name *known)
{
    const size_t tail = offsetof(struct h1_known_name, id);
    field->name.len = (uint16_t)len;
    memcpy((char *)field + offsetof(struct h1_field, id), (const char *)known + tail,
           sizeof(*known) - tail);
    return len;
}

/* A field that says something about the message: length, coding, Host, Expect, TE. */
MUST_CHECK int h1_take_special(struct h1_head *head, const char *bytes,
                               const struct h1_field *field, bool repeated);

/* The next field, with name, value and id. RC_INVALID with head->fault. */
static inline int h1_note_field(struct h1_head *head, const char *bytes,
                                const struct h1_field *field, struct h1_notes *notes)
{
    uint64_t bit = H1_BIT(field->id), before = notes->present;
    notes->present |= bit;
    if (LIKELY(!field->special)) {
        return 0;
    }
    if (field->id == H1_HOST && (before & bit) == 0) {
        head->host = field->value;
        return 0;
    }
    if (field->id != H1_CONNECTION) {
        return h1_take_special(head, bytes, field, (before & bit) != 0);
    }
    notes->connection = notes->connections++ == 0 ? field : notes->connection;
    return 0;
}

/* After the last one: framing, Connection. RC_INVALID with head->fault. */
MUST_CHECK int h1_settle_fields(struct h1_head *head, const char *bytes,
                                const struct h1_notes *notes);

/* A line of the usual shape at the begin: where its CRLF is; 0: it is none, or not complete. */
size_t h1_quick_line(const char *bytes, size_t len);

/*
 * All fields and the end of the head, from bytes[begin] on, when it is of the usual shape and has
 * no fault. False: nothing is said, and the head must be reset.
 */
bool h1_quick_fields(struct h1_head *head, const char *bytes, size_t begin, size_t len,
                     uint32_t fields_max);

static inline int h1_refuse(struct h1_head *head, enum h1_fault fault)
{
    head->fault = fault;
    return RC_INVALID;
}

#endif
