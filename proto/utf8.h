/*
 * Is it UTF-8? Strict (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
 * Pure, any thread.
 */
#ifndef SKEIN_PROTO_UTF8_H
#define SKEIN_PROTO_UTF8_H

#include "node/base/defs.h"

/* Bytes of the character at text (len > 0 bytes are there): 1 to 4; 0 when it is malformed. */
size_t utf8_char_len(const char *text, size_t len);

/* Make it one line of valid UTF-8, in place: malformed bytes and control bytes become '?'. */
void utf8_clean(char *text);

bool utf8_is_valid(const char *text, size_t len);

#endif
