/*
 * Field lines of a swept head: names, values, and what they say about framing and the connection.
 *
 * The sweep has proven that lines end in CRLF and hold no other control byte than tab, so a value
 * needs no look at its bytes here unless it is one that this unit acts on.
 */
#include "node/http/h1_int.h"

enum {
    NOMINATED_MAX = 32, /* names that Connection may list; the work is this times the fields */
};

/* Names that Connection may not take out of a message. */
static const uint64_t protected_names =
    H1_BIT(H1_HOST) | H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_TRANSFER_ENCODING);

/* RFC 9110 8.6: digits only. Nineteen of them stay below 2^64, so no sum overflows. */
static int take_length(struct h1_head *head, const char *value, size_t len)
{
    uint64_t sum = 0;
    if (len == 0 || len > 19) {
        return h1_refuse(head, H1_FAULT_LENGTH);
    }
    for (size_t i = 0; i < len; i++) {
        if (!h1_is_class(value[i], H1_CLASS_DIGIT)) {
            return h1_refuse(head, H1_FAULT_LENGTH);
        }
        sum = sum * 10 + (uint64_t)(value[i] - '0');
    }
    if (sum > INT64_MAX) {
        return h1_refuse(head, H1_FAULT_LENGTH);
    }
    head->content_length = sum;
    head->length_announced = true;
    if (head->framing == H1_BODY_NONE) {
        head->framing = H1_BODY_LENGTH;
    }
    return 0;
}

/*
 * RFC 9112 6.1: one coding, chunked, is what this side can undo. With another one in front of it
 * the end of the body would be known but not its content (501); everything else has no known end
 * (400).
 */
static int take_coding(struct h1_head *head, const char *value, size_t len)
{
    if (len == 7 && h1_same_word(value, "chunked", 7)) {
        head->framing = H1_BODY_CHUNKED;
        return 0;
    }
    size_t cursor = 0, chunked_count = 0;
    struct h1_span item;
    bool is_last = false;
    while (h1_list_next(value, len, &cursor, &item)) {
        is_last = item.len == 7 && h1_same_word(value + item.off, "chunked", 7);
        chunked_count += is_last ? 1 : 0;
        if (!h1_is_token(value + item.off, item.len)) {
            return h1_refuse(head, H1_FAULT_CODING);
        }
    }
    bool is_known_end = is_last && chunked_count == 1 && value[len - 1] != ',';
    return h1_refuse(head, is_known_end ? H1_FAULT_CODING_UNKNOWN : H1_FAULT_CODING);
}

/* repeated: the head has one of this name already. */
static int take_special(struct h1_head *head, const char *bytes, const struct h1_field *field,
                        bool repeated)
{
    const char *value = bytes + field->value.off;
    size_t len = field->value.len;
    switch (field->id) {
    case H1_CONTENT_LENGTH:
        return repeated ? h1_refuse(head, H1_FAULT_LENGTH) : take_length(head, value, len);
    case H1_TRANSFER_ENCODING:
        return repeated ? h1_refuse(head, H1_FAULT_CODING) : take_coding(head, value, len);
    case H1_HOST:
        head->host = field->value;
        return repeated ? h1_refuse(head, H1_FAULT_HOST) : 0;
    case H1_EXPECT:
        if (head->minor == 0) {
            return 0;
        }
        if (!repeated && len == 12 && h1_same_word(value, "100-continue", 12)) {
            head->expect_continue = true;
        } else {
            head->expect_other = true;
        }
        return 0;
    default: /* H1_TE */
        head->te_trailers = head->te_trailers || h1_list_has(value, len, "trailers");
        return 0;
    }
}

static int nominate(struct h1_head *head, const char *bytes, const char *name, size_t len)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct h1_field *field = &head->fields[i];
        if (field->name.len != len || (protected_names & H1_BIT(field->id)) != 0) {
            continue;
        }
        const char *other = bytes + field->name.off;
        size_t at = 0;
        while (at < len && h1_lower(other[at]) == h1_lower(name[at])) {
            at++;
        }
        field->hop = field->hop || at == len;
    }
    return 0;
}

struct connection_options {
    bool close, keep_alive, upgrade;
    uint32_t nominated;
};

/* RFC 9110 7.6.1 */
static int take_connection(struct h1_head *head, const char *bytes, const struct h1_field *field,
                           struct connection_options *options)
{
    const char *list = bytes + field->value.off;
    size_t cursor = 0;
    struct h1_span item;
    while (h1_list_next(list, field->value.len, &cursor, &item)) {
        const char *word = list + item.off;
        if (item.len == 10 && h1_same_word(word, "keep-alive", 10)) {
            options->keep_alive = true;
        } else if (item.len == 5 && h1_same_word(word, "close", 5)) {
            options->close = true;
        } else if (item.len == 7 && h1_same_word(word, "upgrade", 7)) {
            options->upgrade = true;
        } else if (!h1_is_token(word, item.len) || ++options->nominated > NOMINATED_MAX) {
            return h1_refuse(head, H1_FAULT_CONNECTION);
        } else {
            (void)nominate(head, bytes, word, item.len);
        }
    }
    return 0;
}

/* A protocol that may be switched to: HTTP/2 would hide requests from this node. */
static bool has_good_upgrade(const struct h1_head *head, const char *bytes)
{
    const struct h1_field *field = h1_find(head, H1_UPGRADE);
    bool found = false;
    for (; field != NULL; field = h1_find_next(head, field)) {
        const char *value = bytes + field->value.off;
        if (h1_list_has(value, field->value.len, "h2c") ||
            h1_list_has(value, field->value.len, "h2")) {
            return false;
        }
        found = found || field->value.len > 0;
    }
    return found;
}

static int apply_connection(struct h1_head *head, const char *bytes)
{
    struct connection_options options = {0};
    const struct h1_field *field = h1_find(head, H1_CONNECTION);
    for (; field != NULL; field = h1_find_next(head, field)) {
        int rc = take_connection(head, bytes, field, &options);
        if (rc != 0) {
            return rc;
        }
    }
    head->close_option = options.close;
    head->keep_alive = !options.close && (head->minor == 1 || options.keep_alive);
    head->upgrade = options.upgrade && head->minor == 1 && has_good_upgrade(head, bytes);
    return 0;
}

/* Offset of the first colon of a line, or its end when there is none; reads nothing at or behind
 * `readable`. */
static inline size_t find_colon(const char *bytes, size_t at, size_t end, size_t readable)
{
#ifdef __SSE2__
    for (; at < end && readable - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(bytes + at));
        int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(':')));
        if (LIKELY(bits != 0)) {
            return MIN(at + (size_t)__builtin_ctz((unsigned)bits), end);
        }
    }
#else
    (void)readable;
#endif
    while (at < end && bytes[at] != ':') {
        at++;
    }
    return MIN(at, end);
}

static inline bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* One line, from name.off to its CRLF at value.off, as the sweep left it. */
static inline int take_line(struct h1_head *head, const char *bytes, struct h1_field *field,
                            size_t readable)
{
    size_t begin = field->name.off, end = field->value.off;
    size_t at = find_colon(bytes, begin, end, readable);
    const struct h1_known_name *known = h1_known(bytes + begin, at - begin, readable - begin);
    uint8_t id = H1_OTHER, flags = 0;
    if (LIKELY(known != NULL)) {
        id = known->id;
        flags = known->flags;
    } else if (!h1_is_token(bytes + begin, at - begin)) {
        return h1_refuse(head, H1_FAULT_FIELD_NAME);
    }
    if (UNLIKELY(at == end)) {
        return h1_refuse(head, H1_FAULT_FIELD_NAME);
    }
    size_t value = at + 1;
    while (is_blank(bytes[value])) { /* ends at the CR, if not before */
        value++;
    }
    while (end > value && is_blank(bytes[end - 1])) {
        end--;
    }
    uint64_t bit = H1_BIT(id);
    bool repeated = (head->present & bit) != 0;
    head->present |= bit;
    *field = (struct h1_field){
        .name = {.off = (uint16_t)begin, .len = (uint16_t)(at - begin)},
        .value = {.off = (uint16_t)value, .len = (uint16_t)(end - value)},
        .id = id,
        .hop = (flags & H1_KNOWN_HOP) != 0,
    };
    return (flags & H1_KNOWN_SPECIAL) != 0 ? take_special(head, bytes, field, repeated) : 0;
}

int h1_parse_fields(struct h1_head *head, const char *bytes, size_t len)
{
    for (struct h1_field *field = head->fields, *end = field + head->field_count; field < end;
         field++) {
        int rc = take_line(head, bytes, field, len);
        if (UNLIKELY(rc != 0)) {
            return rc;
        }
    }
    head->present &= ~H1_BIT(H1_OTHER);
    bool has_coding = (head->present & H1_BIT(H1_TRANSFER_ENCODING)) != 0;
    if (has_coding && head->length_announced) {
        return h1_refuse(head, H1_FAULT_LENGTH_AND_CODING);
    }
    if (has_coding && head->minor == 0) {
        return h1_refuse(head, H1_FAULT_CODING); /* RFC 9112 6.1 */
    }
    if ((head->present & H1_BIT(H1_CONNECTION)) == 0) {
        head->keep_alive = head->minor == 1;
        return 0;
    }
    return apply_connection(head, bytes);
}
