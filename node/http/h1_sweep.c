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

/*
 * Bit i of the result is set when byte i of 64 is a control byte or DEL. It may also be set for a
 * byte above 0x7f, which who looks at the single bytes passes over: they are rare in heads.
 */
#if defined(__SSE2__) && !defined(SKEIN_NO_SIMD)
/* Raised by one, as a signed number, DEL and all above are negative and controls below 0x21. */
static inline uint64_t control_bits16(const char *bytes)
{
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    block = _mm_subs_epi8(_mm_add_epi8(block, _mm_set1_epi8(1)), _mm_set1_epi8(0x21));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(block);
}

static inline uint64_t control_bits(const char *bytes)
{
    return control_bits16(bytes) | control_bits16(bytes + 16) << 16 |
           control_bits16(bytes + 32) << 32 | control_bits16(bytes + 48) << 48;
}
#else
/* Eight bytes at a time, without carries from one to the next, and their high bits gathered by a
 * multiplication. */
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

/* The same for less than 64 bytes, from `at` to `len`; nothing is read at or behind len. */
static uint64_t control_bits_end(const char *bytes, size_t at, size_t len)
{
    size_t left = len - at;
    if (len >= BLOCK) {
        return control_bits(bytes + len - BLOCK) >> (BLOCK - left);
    }
    char padded[BLOCK];
    memset(padded, 'x', sizeof(padded));
    memcpy(padded, bytes + at, left);
    return control_bits(padded);
}

static inline uint64_t control_bits_upto(const char *bytes, size_t at, size_t len)
{
    return LIKELY(len - at >= BLOCK) ? control_bits(bytes + at) : control_bits_end(bytes, at, len);
}

size_t h1_next_control(const char *bytes, size_t at, size_t len)
{
    for (; at < len; at += BLOCK) {
        uint64_t bits = control_bits_upto(bytes, at, len);
        for (; bits != 0; bits &= bits - 1) {
            size_t place = at + (size_t)__builtin_ctzll(bits);
            if (bytes[place] != '\t' && (unsigned char)bytes[place] < 0x80) {
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
    const char *bytes;
    size_t window; /* nothing behind it is looked at */
    size_t base;   /* of the block in progress */
    uint64_t bits; /* its control bytes that were not looked at yet */
    size_t line;   /* begin of the line in progress */
    size_t start, start_end;
    struct h1_field *field, *field_end; /* the next one to fill; as many as are allowed */
    enum h1_fault fault;
};

static inline int sweep_fault(struct sweep *sweep, enum h1_fault fault)
{
    sweep->fault = fault;
    return fault == H1_FAULT_FIELDS_TOO_MANY ? RC_TOO_BIG : RC_INVALID;
}

/*
 * The next CRLF. 0: it is at *ret_pos; RC_AGAIN: none, and the bytes are sound up to *ret_pos;
 * RC_INVALID.
 */
static inline int next_crlf(struct sweep *sweep, size_t *ret_pos)
{
    const char *bytes = sweep->bytes;
    for (;;) {
        while (LIKELY(sweep->bits != 0)) {
            size_t pos = sweep->base + (size_t)__builtin_ctzll(sweep->bits);
            sweep->bits &= sweep->bits - 1;
            *ret_pos = pos;
            if (LIKELY(bytes[pos] == '\r' && pos + 1 < sweep->window && bytes[pos + 1] == '\n')) {
                sweep->bits &= sweep->bits - 1; /* its LF, when it is in this block */
                return 0;
            }
            if (bytes[pos] == '\r' && pos + 1 == sweep->window) {
                return RC_AGAIN;
            }
            /* a tab, text, or an LF at the begin of a block whose CR ended the one before */
            bool is_fine = bytes[pos] == '\t' || (unsigned char)bytes[pos] >= 0x80 ||
                           (bytes[pos] == '\n' && pos < sweep->line);
            if (!is_fine) {
                return sweep_fault(sweep, H1_FAULT_CONTROL_BYTE);
            }
        }
        sweep->base += BLOCK;
        if (sweep->base >= sweep->window) {
            *ret_pos = sweep->window;
            return RC_AGAIN;
        }
        sweep->bits = control_bits_upto(bytes, sweep->base, sweep->window);
    }
}

/* The start line and what may stand before it. 0: start and start_end are known. */
static inline int sweep_start(struct sweep *sweep, size_t *ret_pos)
{
    while (sweep->start_end == 0) {
        int rc = next_crlf(sweep, ret_pos);
        if (UNLIKELY(rc != 0)) {
            return rc;
        }
        size_t pos = *ret_pos;
        if (LIKELY(pos != sweep->line)) {
            sweep->start_end = pos;
        } else if (pos >= 2 * EMPTY_LINES_MAX) {
            return sweep_fault(sweep, H1_FAULT_START_LINE);
        } else {
            sweep->start = pos + 2;
        }
        sweep->line = pos + 2;
    }
    return 0;
}

/* Field lines. 1: the head is complete, and ends at line; else as next_crlf. */
static inline int sweep_fields(struct sweep *sweep, size_t *ret_pos)
{
    for (;;) {
        int rc = next_crlf(sweep, ret_pos);
        if (UNLIKELY(rc != 0)) {
            return rc;
        }
        size_t line = sweep->line, pos = *ret_pos;
        sweep->line = pos + 2;
        if (UNLIKELY((unsigned char)sweep->bytes[line] <= ' ')) { /* CR, or a fold */
            return pos == line ? 1 : sweep_fault(sweep, H1_FAULT_FOLD);
        }
        if (UNLIKELY(sweep->field == sweep->field_end)) {
            return sweep_fault(sweep, H1_FAULT_FIELDS_TOO_MANY);
        }
        sweep->field->name.off = (uint16_t)line;
        sweep->field->value.off = (uint16_t)pos;
        sweep->field++;
    }
}

/* Lines up to the window's end. 1: the head is complete; RC_AGAIN, RC_INVALID, RC_TOO_BIG. */
static int sweep_window(struct h1_scan *scan, const char *bytes, size_t window,
                        const struct h1_limits *limits, struct h1_head *head)
{
    uint32_t fields_max = MIN(limits->field_count, head->fields_cap);
    struct sweep sweep = {
        .bytes = bytes,
        .window = window,
        .base = (size_t)scan->pos,
        .line = scan->line,
        .start = scan->start,
        .start_end = scan->start_end,
        .field = head->fields,
        .field_end = head->fields + (fields_max - MIN(scan->fields, fields_max)),
    };
    size_t pos = scan->pos;
    int rc = RC_AGAIN;
    if (LIKELY(pos < window)) {
        sweep.bits = control_bits_upto(bytes, pos, window);
        rc = sweep_start(&sweep, &pos);
        rc = rc == 0 ? sweep_fields(&sweep, &pos) : rc;
    }
    head->field_count = (uint32_t)(sweep.field - head->fields);
    scan->pos = (uint32_t)pos;
    scan->line = (uint32_t)sweep.line;
    scan->start = (uint32_t)sweep.start;
    scan->start_end = (uint32_t)sweep.start_end;
    scan->fields += head->field_count;
    head->fault = sweep.fault;
    head->len = rc == 1 ? (uint32_t)sweep.line : 0;
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
