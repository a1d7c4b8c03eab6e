/*
 * Private to node/http: byte classes and the parts of the head parser.
 */
#ifndef SKEIN_NODE_HTTP_H1_INT_H
#define SKEIN_NODE_HTTP_H1_INT_H

#include "node/http/h1_head.h"

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

/* text in any case equals the lower-case word of the same length. */
bool h1_same_word(const char *text, const char *word, size_t len);

/*
 * The next element of a comma-separated list without white space around it; *cursor starts at 0.
 * Empty elements are passed over (RFC 9110 5.6.1). False at the end.
 */
bool h1_list_next(const char *list, size_t len, size_t *cursor, struct h1_span *ret);

/* Offset of the first control byte other than tab in bytes[at..len), or len. */
size_t h1_next_control(const char *bytes, size_t at, size_t len);

/*
 * Go on looking for the end of a head; record the begin of each field line in head->fields[].name
 * as far as they are new in this call. 0: ret_end is its length; RC_AGAIN; RC_INVALID, RC_TOO_BIG
 * with head->fault.
 */
MUST_CHECK int h1_sweep(struct h1_scan *scan, const char *bytes, size_t len,
                        const struct h1_limits *limits, struct h1_head *head);

/*
 * Names, values and ids of the swept field lines, hop-by-hop marks, keep-alive, length and coding.
 * RC_INVALID with head->fault.
 */
MUST_CHECK int h1_parse_fields(struct h1_head *head, const char *bytes);

/* Have llhttp read the swept head and compare what it makes of the framing. start: of the start
 * line. RC_INVALID. */
MUST_CHECK int h1_confirm(struct h1_head *head, const char *bytes, size_t start, bool is_request);

static inline int h1_refuse(struct h1_head *head, enum h1_fault fault)
{
    head->fault = fault;
    return RC_INVALID;
}

#endif
