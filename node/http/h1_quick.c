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

enum { LINE_ROOM = 64 }; /* a line with so much behind its begin needs no look at the end */

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
 * controls. */
static inline unsigned same_bits(__m128i name, const char *text)
{
    __m128i lower = _mm_or_si128(name, _mm_set1_epi8(0x20));
    return equal_bits(lower, _mm_load_si128((const __m128i *)(const void *)text));
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
 * 0: there is none that is plainly a token. Controls may stand in it where a known name has another
 * byte, since equal is what differs by one bit: the caller has looked for them. */
static inline size_t take_name(struct h1_field *field, const char *name)
{
    __m128i first = load16(name);
    unsigned colons = equal_bits(first, _mm_set1_epi8(':'));
    if (UNLIKELY(colons == 0)) {
        colons = equal_bits(load16(name + 16), _mm_set1_epi8(':')) << 16;
        if (colons == 0) {
            return 0;
        }
    }
    size_t len = (unsigned)__builtin_ctz(colons);
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

size_t h1_quick_line(const char *bytes, size_t len)
{
    if (len < 16) {
        return 0;
    }
    const char *end = bytes + len, *at = find_odd(bytes, end);
    return end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? (size_t)(at - bytes) : 0;
}

/* Where a line ends that does not within its first 32 bytes; 0: not before end. */
static __attribute__((noinline)) size_t far_stop(const char *line, const char *end)
{
    const char *at = find_odd(line + 32, end);
    return end - at >= 2 ? (size_t)(at - line) : 0;
}

/* A line that begins in the last LINE_ROOM bytes gets zeros behind its end. Returns where it is. */
static inline const char *put_tail(char tail[2 * LINE_ROOM], const char *bytes, size_t off,
                                   size_t len)
{
    memset(tail + LINE_ROOM, 0, LINE_ROOM);
    if (LIKELY(len >= LINE_ROOM)) {
        memcpy(tail, bytes + len - LINE_ROOM, LINE_ROOM);
    } else {
        memcpy(tail + LINE_ROOM - len, bytes, len);
    }
    return tail + LINE_ROOM - (len - off);
}

/* Field lines up to the empty one, where the next line begins then. False: not usual. */
static inline bool take_lines(struct h1_head *head, const char *bytes, size_t *off_io, size_t len,
                              const struct h1_field *stop, struct h1_notes *notes)
{
    char tail[2 * LINE_ROOM];
    size_t off = *off_io, far = len > LINE_ROOM ? len - LINE_ROOM : 0;
    const char *line = bytes + off, *end = bytes + len;
    struct h1_field *field = head->fields;
    uint64_t present = 0;
    for (;; field++) {
        if (UNLIKELY(off > far)) {
            line = put_tail(tail, bytes, off, len);
            end = tail + sizeof(tail);
            far = len;
        }
        if (UNLIKELY(field == stop)) {
            break;
        }
        unsigned odd = odd_bits(line) | odd_bits(line + 16) << 16;
        size_t stop_at = LIKELY(odd != 0) ? (unsigned)__builtin_ctz(odd) : far_stop(line, end);
        size_t name_len = take_name(field, line);
        if (UNLIKELY(name_len == 0)) {
            break;
        }
        size_t value = name_len + 1;
        value += line[value] == ' ';
        if (UNLIKELY(stop_at < value || memcmp(line + stop_at, "\r\n", 2) != 0 ||
                     line[value] == ' ' || (line[stop_at - 1] == ' ' && stop_at != value))) {
            return false;
        }
        field->name.off = (uint16_t)off;
        field->value.off = (uint16_t)(off + value);
        field->value.len = (uint16_t)(stop_at - value);
        if (UNLIKELY(field->special)) {
            notes->present = present;
            if (h1_note_field(head, bytes, field, notes) != 0) {
                return false;
            }
            present = notes->present;
        } else {
            present |= H1_BIT(field->id & 63);
        }
        line += stop_at + 2;
        off += stop_at + 2;
    }
    notes->present = present;
    head->field_count = (uint32_t)(field - head->fields);
    *off_io = off;
    return memcmp(line, "\r\n", 2) == 0;
}

bool h1_quick_fields(struct h1_head *head, const char *bytes, size_t begin, size_t len,
                     uint32_t fields_max)
{
    size_t off = begin;
    struct h1_notes notes = {0};
    const struct h1_field *stop = head->fields + MIN(fields_max, head->fields_cap);
    if (!take_lines(head, bytes, &off, len, stop, &notes)) {
        return false;
    }
    head->len = (uint32_t)off + 2;
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
