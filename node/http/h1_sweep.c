/*
 * The first pass over a head: where its lines are, and that it holds no byte that could be taken
 * for a line end by some and not by others.
 *
 * 64 bytes at a time, with SSE2 where the machine has it. After it, every control byte of
 * the head is a tab or part of a CRLF (RFC 9112 2.2, RFC 9110 5.5), which lets the later passes
 * work on lines without looking for trouble.
 */
#include "node/http/h1_int.h"

#include <string.h>

#if defined(__SSE2__) && !defined(SKEIN_NO_SIMD)
#include <emmintrin.h>
#endif

enum {
    EMPTY_LINES_MAX = 2, /* before a start line */
    METHOD_ROOM = 64,    /* what a request line may have besides its target before it is refused */
    HEAD_MAX = H1_HEAD_BYTES_MAX - 2 * EMPTY_LINES_MAX,
};

enum { BLOCK = 64 };

#if defined(__SSE2__) && !defined(SKEIN_NO_SIMD)
/* Bit i is set when byte i of 16 is below 0x20 or is DEL. */
static inline uint64_t control_bits16(const char *bytes)
{
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
    __m128i del = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7f));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(low, del));
}

/* The same for 64 bytes. */
static inline uint64_t control_bits(const char *bytes)
{
    return control_bits16(bytes) | control_bits16(bytes + 16) << 16 |
           control_bits16(bytes + 32) << 32 | control_bits16(bytes + 48) << 48;
}
#else
/* Bit i is set when byte i of 64 is below 0x20 or is DEL: eight bytes at a time, without carries
 * from one to the next, and their high bits gathered by a multiplication. */
static inline uint64_t control_bits(const char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t bits = 0;
    for (unsigned at = 0; at < BLOCK; at += 8) {
        uint64_t eight;
        memcpy(&eight, bytes + at, sizeof(eight));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        eight = __builtin_bswap64(eight);
#endif
        uint64_t del = eight ^ (ones * 0x7f);
        uint64_t above = ((eight & ~high) + ones * 0x60) | eight;
        uint64_t other = ((del & ~high) + ones * 0x7f) | del;
        uint64_t found = ~(above & other) & high;
        bits |= ((found >> 7) * UINT64_C(0x0102040810204080) >> 56) << at;
    }
    return bits;
}
#endif

/* Of up to 64 bytes from at on; nothing is read at or behind len. */
static inline uint64_t control_bits_upto(const char *bytes, size_t at, size_t len)
{
    size_t left = len - at;
    if (left >= BLOCK) {
        return control_bits(bytes + at);
    }
    if (len >= BLOCK) {
        return control_bits(bytes + len - BLOCK) >> (BLOCK - left);
    }
    char padded[BLOCK];
    memset(padded, 'x', sizeof(padded));
    memcpy(padded, bytes + at, left);
    return control_bits(padded);
}

size_t h1_next_control(const char *bytes, size_t at, size_t len)
{
    for (; at < len; at += BLOCK) {
        uint64_t bits = control_bits_upto(bytes, at, len);
        for (; bits != 0; bits &= bits - 1) {
            size_t place = at + (size_t)__builtin_ctzll(bits);
            if (bytes[place] != '\t') {
                return place;
            }
        }
    }
    return len;
}

/* The head is still without end: has it grown too large? */
static int check_growth(const struct h1_scan *scan, size_t len, const struct h1_limits *limits,
                        struct h1_head *head)
{
    uint32_t head_max = MIN(limits->head_bytes, (uint32_t)HEAD_MAX);
    bool in_start = scan->start_end == 0;
    if (in_start && len - scan->start > (size_t)limits->target_bytes + METHOD_ROOM) {
        head->fault = H1_FAULT_TARGET_TOO_LONG;
        return RC_TOO_BIG;
    }
    if (len - scan->start >= head_max) {
        head->fault = in_start ? H1_FAULT_TARGET_TOO_LONG : H1_FAULT_HEAD_TOO_BIG;
        return RC_TOO_BIG;
    }
    return RC_AGAIN;
}

/* The sweep's state in registers; it goes back into the scan when the sweep ends. */
struct sweep {
    struct h1_field *field, *field_end; /* the next one to fill; as many as are allowed */
    uint32_t line;                      /* begin of the line in progress */
    uint32_t start, start_end;
    enum h1_fault fault;
};

static inline int sweep_fault(struct sweep *sweep, enum h1_fault fault)
{
    sweep->fault = fault;
    return fault == H1_FAULT_FIELDS_TOO_MANY ? RC_TOO_BIG : RC_INVALID;
}

/* A CRLF at pos. 0: a line was taken; 1: the head ends with it; RC_INVALID, RC_TOO_BIG. */
static inline int take_crlf(struct sweep *sweep, const char *bytes, uint32_t pos)
{
    uint32_t line = sweep->line;
    sweep->line = pos + 2;
    if (UNLIKELY(sweep->start_end == 0)) {
        if (pos != line) {
            sweep->start_end = pos;
            return 0;
        }
        sweep->start = pos + 2;
        return pos >= 2 * EMPTY_LINES_MAX ? sweep_fault(sweep, H1_FAULT_START_LINE) : 0;
    }
    if (UNLIKELY(pos == line)) {
        return 1;
    }
    if (UNLIKELY((unsigned char)bytes[line] <= ' ')) { /* controls but tab were refused */
        return sweep_fault(sweep, H1_FAULT_FOLD);
    }
    if (UNLIKELY(sweep->field == sweep->field_end)) {
        return sweep_fault(sweep, H1_FAULT_FIELDS_TOO_MANY);
    }
    sweep->field->name.off = (uint16_t)line;
    sweep->field->value.off = (uint16_t)pos;
    sweep->field++;
    return 0;
}

/* Lines of [begin, window). 1: the head is complete; RC_AGAIN: sound up to *ret_pos. */
static inline int sweep_lines(struct sweep *sweep, const char *bytes, size_t begin, size_t window,
                              size_t *ret_pos)
{
    for (size_t base = begin; base < window; base += BLOCK) {
        uint64_t bits = control_bits_upto(bytes, base, window);
        while (bits != 0) {
            size_t pos = base + (size_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            if (UNLIKELY(bytes[pos] != '\r')) {
                /* a tab, or an LF at the begin of a block whose CR ended the one before */
                if (bytes[pos] == '\t' || pos < sweep->line) {
                    continue;
                }
                return sweep_fault(sweep, H1_FAULT_CONTROL_BYTE);
            }
            if (UNLIKELY(pos + 1 == window)) {
                *ret_pos = pos;
                return RC_AGAIN;
            }
            if (UNLIKELY(bytes[pos + 1] != '\n')) {
                return sweep_fault(sweep, H1_FAULT_CONTROL_BYTE);
            }
            bits &= bits - 1; /* its LF, when it is in this block */
            int rc = take_crlf(sweep, bytes, (uint32_t)pos);
            if (UNLIKELY(rc != 0)) {
                return rc;
            }
        }
    }
    *ret_pos = MAX(window, begin);
    return RC_AGAIN;
}

static int sweep_window(struct h1_scan *scan, const char *bytes, size_t window,
                        const struct h1_limits *limits, struct h1_head *head)
{
    uint32_t fields_max = MIN(limits->field_count, head->fields_cap);
    struct sweep sweep = {
        .field = head->fields,
        .field_end = head->fields + (fields_max - MIN(scan->fields, fields_max)),
        .line = scan->line,
        .start = scan->start,
        .start_end = scan->start_end,
    };
    size_t pos = scan->pos;
    int rc = sweep_lines(&sweep, bytes, pos, window, &pos);
    head->field_count = (uint32_t)(sweep.field - head->fields);
    scan->pos = (uint32_t)pos;
    scan->line = sweep.line;
    scan->start = sweep.start;
    scan->start_end = sweep.start_end;
    scan->fields += head->field_count;
    head->fault = sweep.fault;
    head->len = rc == 1 ? sweep.line : 0;
    return rc;
}

int h1_sweep(struct h1_scan *scan, const char *bytes, size_t len, const struct h1_limits *limits,
             struct h1_head *head)
{
    uint32_t head_max = MIN(limits->head_bytes, (uint32_t)HEAD_MAX);
    /* Nothing behind the limit is looked at, so a long body behind a head costs nothing. */
    size_t window = MIN(len, (size_t)head_max + 2 * EMPTY_LINES_MAX);
    int rc = sweep_window(scan, bytes, window, limits, head);
    if (rc == RC_AGAIN) {
        return check_growth(scan, window, limits, head);
    }
    if (rc == 1 && head->len - scan->start > head_max) {
        head->fault = H1_FAULT_HEAD_TOO_BIG;
        return RC_TOO_BIG;
    }
    return rc == 1 ? 0 : rc;
}
