/*
 * One pass over a head of the usual shape: all of it is there, field values hold no tab and no byte
 * above 0x7f, and have no white space around them but one space in front.
 *
 * What is not of that shape, or in any way wrong, is left to the careful passes (h1_sweep,
 * h1_fields), which begin anew: here nothing is refused, and nothing is taken that they would
 * refuse or read in another way; tests compare the two.
 *
 * Names and values are looked at 16 bytes at a time. Without SSE2 every head goes the other way.
 */
#include "node/http/h1_int.h"

#if defined(__SSE2__)
#include <emmintrin.h>

enum {
    NAME_ROOM = 32, /* bytes that are looked at for a name */
    FAR_ROOM = 64,  /* for a name, the first block of a value, and a line end */
};

static inline __m128i load16(const char *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

static inline unsigned equal_bits(__m128i one, __m128i other)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(one, other));
}

/* Which of 16 bytes are no visible ASCII and no space: raised by one, as signed numbers, those from
 * 0x7f on are negative and controls below 0x21. */
static inline unsigned odd_bits(const char *bytes)
{
    __m128i block = _mm_add_epi8(load16(bytes), _mm_set1_epi8(1));
    return (unsigned)_mm_movemask_epi8(_mm_subs_epi8(block, _mm_set1_epi8(0x21)));
}

/* The first such byte in [at, end); end when there is none. There are 16 bytes before end. */
static inline const char *find_odd(const char *at, const char *end)
{
    for (; end - at >= 16; at += 16) {
        unsigned odd = odd_bits(at);
        if (odd != 0) {
            return at + (unsigned)__builtin_ctz(odd);
        }
    }
    unsigned odd = odd_bits(end - 16) >> (16 - (end - at));
    return odd != 0 ? at + (unsigned)__builtin_ctz(odd) : end;
}

/* Which of 16 bytes of a name are those of a known one in any case. With one bit set in each, they
 * are equal: upper-case letters are that far from the lower-case ones, all others have it, but for
 * controls, which are left out. */
static inline unsigned same_bits(__m128i name, const char *text)
{
    __m128i lower = _mm_or_si128(name, _mm_set1_epi8(0x20));
    __m128i same = _mm_cmpeq_epi8(lower, _mm_load_si128((const __m128i *)(const void *)text));
    return (unsigned)_mm_movemask_epi8(
        _mm_and_si128(same, _mm_cmpgt_epi8(name, _mm_set1_epi8(0x1f))));
}

/* A name that is not in the table, or too short for it. */
static __attribute__((noinline)) size_t take_other_name(struct h1_field *field, const char *name,
                                                        size_t len)
{
    static const struct h1_known_name other = {.id = H1_OTHER};
    const struct h1_known_name *known = len < 4 ? h1_known(name, len) : NULL;
    if (known == NULL && !h1_is_token(name, len)) {
        return 0;
    }
    return h1_set_name(field, len, known != NULL ? known : &other);
}

/* The name at the begin of a line, of which 32 bytes may be read, into field; returns its length.
 * 0: there is none that is plainly a token. */
static inline size_t take_name(struct h1_field *field, const char *name)
{
    __m128i first = load16(name);
    unsigned colons = equal_bits(first, _mm_set1_epi8(':'));
    if (UNLIKELY(colons == 0)) {
        colons = equal_bits(load16(name + 16), _mm_set1_epi8(':')) << 16;
    }
    size_t len = colons != 0 ? (unsigned)__builtin_ctz(colons) : 0;
    if (LIKELY(len >= 4)) {
        const struct h1_known_name *known = h1_known_slot(name, len);
        uint64_t same = same_bits(first, known->text);
        if (len > 15) {
            same |= (uint64_t)same_bits(load16(name + 16), known->text + 16) << 16;
        }
        if (LIKELY((unsigned)__builtin_ctzll(~same) > len)) { /* the colon, too */
            return h1_set_name(field, len, known);
        }
    }
    return take_other_name(field, name, len);
}

/* The same close to the end of what may be read. */
static __attribute__((noinline)) size_t take_last_name(struct h1_field *field, const char *name,
                                                       const char *end)
{
    char padded[NAME_ROOM] = {0};
    memcpy(padded, name, (size_t)(end - name));
    return take_name(field, padded);
}

size_t h1_quick_line(const char *bytes, size_t len)
{
    if (len < 16) {
        return 0;
    }
    const char *end = bytes + len, *at = find_odd(bytes, end);
    return end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? (size_t)(at - bytes) : 0;
}

/* A value without white space around it. */
static inline bool is_trimmed(const char *value, const char *end)
{
    return *value != ' ' && (end[-1] != ' ' || end == value);
}

/* Field lines up to the empty one, which is where the next line begins then. False: not usual. */
static bool take_lines(struct h1_head *head, const char *bytes, const char **line_io,
                       const char *end, struct h1_field *stop, struct h1_notes *notes)
{
    const char *line = *line_io;
    struct h1_field *field = head->fields;
    while (LIKELY(end - line >= 2 && line[0] != '\r')) {
        if (UNLIKELY(field == stop)) {
            return false;
        }
        bool is_far = end - line >= FAR_ROOM; /* nothing of this line is close to the end */
        size_t len = LIKELY(is_far || end - line >= NAME_ROOM) ? take_name(field, line)
                                                               : take_last_name(field, line, end);
        const char *value = line + len + 1;
        if (UNLIKELY(len == 0 || (!is_far && end - value < 4))) {
            return false;
        }
        value += *value == ' ';
        unsigned odd = is_far ? odd_bits(value) : 0;
        const char *at = odd != 0 ? value + (unsigned)__builtin_ctz(odd) : find_odd(value, end);
        if (UNLIKELY((odd == 0 && end - at < 4) || memcmp(at, "\r\n", 2) != 0 ||
                     !is_trimmed(value, at))) {
            return false;
        }
        field->name.off = (uint16_t)(line - bytes);
        field->value.off = (uint16_t)(value - bytes);
        field->value.len = (uint16_t)(at - value);
        if (UNLIKELY(h1_note_field(head, bytes, field, notes) != 0)) {
            return false;
        }
        line = at + 2;
        field++;
    }
    head->field_count = (uint32_t)(field - head->fields);
    *line_io = line;
    return true;
}

bool h1_quick_fields(struct h1_head *head, const char *bytes, size_t begin, size_t len,
                     uint32_t fields_max)
{
    const char *line = bytes + begin, *end = bytes + len;
    struct h1_notes notes = {0};
    struct h1_field *stop = head->fields + MIN(fields_max, head->fields_cap);
    if (!take_lines(head, bytes, &line, end, stop, &notes) || end - line < 2 ||
        memcmp(line, "\r\n", 2) != 0) {
        return false;
    }
    head->len = (uint32_t)(line + 2 - bytes);
    return h1_settle_fields(head, bytes, &notes) == 0;
}

#else

size_t h1_quick_line(const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    return 0;
}

bool h1_quick_fields(struct h1_head *head, const char *bytes, size_t begin, size_t len,
                     uint32_t fields_max)
{
    (void)head;
    (void)bytes;
    (void)begin;
    (void)len;
    (void)fields_max;
    return false;
}

#endif
