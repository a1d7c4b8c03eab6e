/*
 * The first pass over a head: where its lines are, and that it holds no byte that could be taken
 * for a line end by some and not by others.
 *
 * Sixteen bytes at a time where the machine has SSE2, else eight. After it, every control byte of
 * the head is a tab or part of a CRLF (RFC 9112 2.2, RFC 9110 5.5), which lets the later passes
 * work on lines without looking for trouble.
 */
#include "node/http/h1_int.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    EMPTY_LINES_MAX = 2, /* before a start line */
    METHOD_ROOM = 64,    /* what a request line may have besides its target before it is refused */
    HEAD_MAX = H1_HEAD_BYTES_MAX - 2 * EMPTY_LINES_MAX,
};

#ifdef __SSE2__
enum { STEP = 16 };

/* Bit i is set when byte i is below 0x20 or is DEL. */
static inline uint32_t control_bits(const char *bytes)
{
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
    __m128i del = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7f));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(low, del));
}

static inline size_t first_of(uint32_t bits)
{
    return (size_t)__builtin_ctz(bits);
}
#else
enum { STEP = 8 };

/* Bits are set in the first byte below 0x20 or DEL, perhaps in later ones too. */
static inline uint64_t control_bits(const char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t block;
    memcpy(&block, bytes, sizeof(block));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    block = __builtin_bswap64(block);
#endif
    uint64_t del = block ^ (ones * 0x7f);
    return ((block - ones * 0x20) & ~block & high) | ((del - ones) & ~del & high);
}

static inline size_t first_of(uint64_t bits)
{
    return (size_t)__builtin_ctzll(bits) / 8;
}
#endif

size_t h1_next_control(const char *bytes, size_t at, size_t len)
{
    while (len - at >= STEP) {
        __typeof__(control_bits(bytes)) bits = control_bits(bytes + at);
        if (bits == 0) {
            at += STEP;
            continue;
        }
        at += first_of(bits);
        if (bytes[at] != '\t') {
            return at;
        }
        at++;
    }
    for (; at < len; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return at;
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

/* A line [scan->line, end) is complete and not empty. */
static int take_line(struct h1_scan *scan, const char *bytes, size_t end,
                     const struct h1_limits *limits, struct h1_head *head)
{
    if (scan->start_end == 0) {
        scan->start = scan->line;
        scan->start_end = (uint32_t)end;
        return 0;
    }
    if (bytes[scan->line] == ' ' || bytes[scan->line] == '\t') {
        return h1_refuse(head, H1_FAULT_FOLD);
    }
    if (head->field_count >= MIN(limits->field_count, head->fields_cap)) {
        head->fault = H1_FAULT_FIELDS_TOO_MANY;
        return RC_TOO_BIG;
    }
    head->fields[head->field_count++].name.off = (uint16_t)scan->line;
    return 0;
}

int h1_sweep(struct h1_scan *scan, const char *bytes, size_t len, const struct h1_limits *limits,
             struct h1_head *head)
{
    uint32_t head_max = MIN(limits->head_bytes, (uint32_t)HEAD_MAX);
    /* Nothing behind the limit is looked at, so a long body behind a head costs nothing. */
    size_t window = MIN(len, (size_t)head_max + 2 * EMPTY_LINES_MAX);
    size_t pos = scan->pos;
    for (;;) {
        pos = h1_next_control(bytes, pos, window);
        scan->pos = (uint32_t)pos;
        if (pos == window || (pos + 1 == window && bytes[pos] == '\r')) {
            return check_growth(scan, window, limits, head);
        }
        if (bytes[pos] != '\r' || bytes[pos + 1] != '\n') {
            return h1_refuse(head, H1_FAULT_CONTROL_BYTE);
        }
        bool is_empty = pos == scan->line;
        if (is_empty && scan->start_end != 0) {
            head->len = (uint32_t)pos + 2;
            break;
        }
        if (is_empty && pos >= 2 * EMPTY_LINES_MAX) {
            return h1_refuse(head, H1_FAULT_START_LINE);
        }
        if (is_empty) {
            scan->start = (uint32_t)pos + 2;
        } else {
            int rc = take_line(scan, bytes, pos, limits, head);
            if (rc != 0) {
                return rc;
            }
        }
        pos += 2;
        scan->pos = scan->line = (uint32_t)pos;
    }
    if (head->len - scan->start > head_max) {
        head->fault = H1_FAULT_HEAD_TOO_BIG;
        return RC_TOO_BIG;
    }
    return 0;
}
