/*
 * UTF-8 by the table of RFC 3629 section 4. Pure.
 */
#include "proto/utf8.h"

#include <ctype.h>
#include <string.h>

static bool is_tail(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_char_len(const char *text, size_t len)
{
    const unsigned char *b = (const unsigned char *)text;
    if (b[0] < 0x80) {
        return 1;
    }
    if (b[0] >= 0xc2 && b[0] <= 0xdf) {
        return len >= 2 && is_tail(b[1]) ? 2 : 0;
    }
    if (b[0] >= 0xe0 && b[0] <= 0xef) {
        if (len < 3 || !is_tail(b[1]) || !is_tail(b[2])) {
            return 0;
        }
        bool overlong = b[0] == 0xe0 && b[1] < 0xa0;
        bool surrogate = b[0] == 0xed && b[1] > 0x9f;
        return overlong || surrogate ? 0 : 3;
    }
    if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        if (len < 4 || !is_tail(b[1]) || !is_tail(b[2]) || !is_tail(b[3])) {
            return 0;
        }
        bool overlong = b[0] == 0xf0 && b[1] < 0x90;
        bool too_large = b[0] == 0xf4 && b[1] > 0x8f;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

bool utf8_is_valid(const char *text, size_t len)
{
    while (len > 0) {
        size_t step = utf8_char_len(text, len);
        if (step == 0) {
            return false;
        }
        text += step;
        len -= step;
    }
    return true;
}

void utf8_clean(char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        size_t step = utf8_char_len(text, len);
        if (step == 0 || (step == 1 && iscntrl((unsigned char)*text))) {
            *text = '?';
            step = 1;
        }
        text += step;
        len -= step;
    }
}
