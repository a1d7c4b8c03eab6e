/*
 * Text forms of scalars. Pure.
 */
#include "proto/scalar.h"

#include "node/base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

bool u64_parse(const char *text, size_t len, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

static int duration_error(const char *text, struct err_info *err)
{
    return err_set(err, RC_INVALID, "\"%.40s\" is no duration such as 500ms, 30s, 1h30m or 2d",
                   text);
}

int duration_parse(const char *text, uint64_t *ret_ms, struct err_info *err)
{
    uint64_t total = 0;
    size_t next_unit = 0; /* units before it are used up */
    const char *at = text;
    do {
        size_t digits = strspn(at, "0123456789");
        uint64_t number = 0;
        if (!u64_parse(at, digits, &number)) {
            return duration_error(text, err);
        }
        at += digits;
        size_t name_len = strspn(at, "dhms");
        size_t unit = next_unit;
        while (unit < ARRAY_LEN(units) && (strlen(units[unit].name) != name_len ||
                                           strncmp(units[unit].name, at, name_len) != 0)) {
            unit++;
        }
        if (unit == ARRAY_LEN(units)) {
            return duration_error(text, err);
        }
        uint64_t part = 0;
        if (__builtin_mul_overflow(number, units[unit].ms, &part) ||
            __builtin_add_overflow(total, part, &total)) {
            return err_set(err, RC_INVALID, "\"%.40s\" is too long", text);
        }
        at += name_len;
        next_unit = unit + 1;
    } while (*at != '\0');
    *ret_ms = total;
    return RC_OK;
}

const char *duration_format(uint64_t ms, char out[DURATION_TEXT_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        uint64_t number = ms / units[i].ms;
        ms %= units[i].ms;
        if (number != 0) {
            used += (size_t)snprintf(out + used, DURATION_TEXT_MAX - used, "%llu%s",
                                     (unsigned long long)number, units[i].name);
        }
    }
    if (used == 0) {
        (void)snprintf(out, DURATION_TEXT_MAX, "0s");
    }
    return out;
}

/* Days since 1970-01-01 of a Gregorian date (Hinnant, "days_from_civil"). */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool take_number(const char **at, size_t digits, int64_t low, int64_t high,
                        int64_t *ret_value)
{
    uint64_t value = 0;
    if (strnlen(*at, digits) < digits || !u64_parse(*at, digits, &value) || (int64_t)value < low ||
        (int64_t)value > high) {
        return false;
    }
    *at += digits;
    *ret_value = (int64_t)value;
    return true;
}

static bool take_char(const char **at, char wanted, char or_else)
{
    if (**at == '\0' || (**at != wanted && **at != or_else)) {
        return false;
    }
    (*at)++;
    return true;
}

/* Digits beyond milliseconds are cut. */
static bool take_fraction(const char **at, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (**at != '.') {
        return true;
    }
    (*at)++;
    size_t digits = strspn(*at, "0123456789");
    int64_t scale = 100;
    for (size_t i = 0; i < digits; i++) {
        *ret_ms += ((*at)[i] - '0') * scale;
        scale /= 10;
    }
    *at += digits;
    return digits != 0;
}

static bool take_offset(const char **at, int64_t *ret_minutes)
{
    *ret_minutes = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    int64_t sign = **at == '-' ? -1 : 1;
    int64_t hours = 0;
    int64_t minutes = 0;
    if (!take_char(at, '+', '-') || !take_number(at, 2, 0, 23, &hours) ||
        !take_char(at, ':', ':') || !take_number(at, 2, 0, 59, &minutes)) {
        return false;
    }
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

static int64_t days_of_month(int64_t year, int64_t month)
{
    int64_t next =
        month == 12 ? days_from_civil(year + 1, 1, 1) : days_from_civil(year, month + 1, 1);
    return next - days_from_civil(year, month, 1);
}

int wall_parse(const char *text, uint64_t *ret_wall_ms, struct err_info *err)
{
    const char *at = text;
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0; /* 60 is a leap second, taken as the one after */
    int64_t ms = 0;
    int64_t offset = 0;
    bool good = take_number(&at, 4, 1970, 9999, &year) && take_char(&at, '-', '-') &&
                take_number(&at, 2, 1, 12, &month) && take_char(&at, '-', '-') &&
                take_number(&at, 2, 1, 31, &day) && day <= days_of_month(year, month) &&
                take_char(&at, 'T', 't') && take_number(&at, 2, 0, 23, &hour) &&
                take_char(&at, ':', ':') && take_number(&at, 2, 0, 59, &minute) &&
                take_char(&at, ':', ':') && take_number(&at, 2, 0, 60, &second) &&
                take_fraction(&at, &ms) && take_offset(&at, &offset) && *at == '\0';
    int64_t seconds =
        days_from_civil(year, month, day) * 86400 + hour * 3600 + (minute - offset) * 60 + second;
    if (!good || seconds < 0) {
        return err_set(err, RC_INVALID, "\"%.40s\" is no time such as 2026-01-31T10:00:00Z", text);
    }
    *ret_wall_ms = (uint64_t)seconds * 1000 + (uint64_t)ms;
    return RC_OK;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const uint8_t *bytes, size_t len)
{
    char *text = mem_new((len + 2) / 3 * 4 + 1);
    size_t used = 0;
    for (size_t i = 0; i < len; i += 3) {
        size_t rest = len - i;
        uint32_t bits = (uint32_t)bytes[i] << 16 | (rest > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (rest > 2 ? bytes[i + 2] : 0);
        text[used++] = base64_digits[bits >> 18];
        text[used++] = base64_digits[bits >> 12 & 63];
        text[used++] = rest > 1 ? base64_digits[bits >> 6 & 63] : '=';
        text[used++] = rest > 2 ? base64_digits[bits & 63] : '=';
    }
    return text;
}

static int base64_value(char digit)
{
    if (digit == '-') {
        return 62;
    }
    if (digit == '_') {
        return 63;
    }
    const char *found = digit != '\0' ? strchr(base64_digits, digit) : NULL;
    return found != NULL ? (int)(found - base64_digits) : -1;
}

int base64_decode(const char *text, size_t len, uint8_t **ret_bytes, size_t *ret_len)
{
    size_t padded = len;
    while (len > 0 && padded - len < 2 && text[len - 1] == '=') {
        len--;
    }
    if (len % 4 == 1 || (padded != len && padded % 4 != 0)) {
        return RC_INVALID;
    }
    uint8_t *bytes = mem_new(len / 4 * 3 + 3);
    size_t used = 0;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    for (size_t i = 0; i < len; i++) {
        int value = base64_value(text[i]);
        if (value < 0) {
            mem_free(bytes);
            return RC_INVALID;
        }
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            bytes[used++] = (uint8_t)(bits >> bit_count);
        }
    }
    /* Left-over bits that are not zero would make two texts for one value (RFC 4648 3.5). */
    if ((bits & ((1U << bit_count) - 1)) != 0) {
        mem_free(bytes);
        return RC_INVALID;
    }
    *ret_bytes = bytes;
    *ret_len = used;
    return RC_OK;
}
