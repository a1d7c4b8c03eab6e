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
static __attribute__((noinline)) int take_coding(struct h1_head *head, const char *value,
                                                 size_t len)
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

/* All but the length. */
static __attribute__((noinline)) int take_rare(struct h1_head *head, const char *bytes,
                                               const struct h1_field *field, bool repeated)
{
    const char *value = bytes + field->value.off;
    size_t len = field->value.len;
    switch (field->id) {
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

int h1_take_special(struct h1_head *head, const char *bytes, const struct h1_field *field,
                    bool repeated)
{
    if (LIKELY(field->id == H1_CONTENT_LENGTH)) {
        return repeated ? h1_refuse(head, H1_FAULT_LENGTH)
                        : take_length(head, bytes + field->value.off, field->value.len);
    }
    return take_rare(head, bytes, field, repeated);
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

/* One element of a Connection list. */
static int take_option(struct h1_head *head, const char *bytes, const char *word, size_t len,
                       struct connection_options *options)
{
    if (len == 10 && h1_same_word(word, "keep-alive", 10)) {
        options->keep_alive = true;
    } else if (len == 5 && h1_same_word(word, "close", 5)) {
        options->close = true;
    } else if (len == 7 && h1_same_word(word, "upgrade", 7)) {
        options->upgrade = true;
    } else if (!h1_is_token(word, len) || ++options->nominated > NOMINATED_MAX) {
        return h1_refuse(head, H1_FAULT_CONNECTION);
    } else {
        (void)nominate(head, bytes, word, len);
    }
    return 0;
}

/* RFC 9110 7.6.1 */
static int take_connection(struct h1_head *head, const char *bytes, const struct h1_field *field,
                           struct connection_options *options)
{
    const char *list = bytes + field->value.off;
    size_t cursor = 0;
    struct h1_span item;
    while (h1_list_next(list, field->value.len, &cursor, &item)) {
        int rc = take_option(head, bytes, list + item.off, item.len, options);
        if (rc != 0) {
            return rc;
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

/* All that Connection fields list. */
static __attribute__((noinline)) int take_connections(struct h1_head *head, const char *bytes,
                                                      const struct h1_field *first)
{
    struct connection_options options = {0};
    for (const struct h1_field *field = first; field != NULL; field = h1_find_next(head, field)) {
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

/* first: the only Connection field, or the first of `count`. */
static inline int apply_connection(struct h1_head *head, const char *bytes,
                                   const struct h1_field *first, uint32_t count)
{
    const char *value = bytes + first->value.off;
    if (LIKELY(count == 1)) { /* and one of these, as nearly always */
        if (first->value.len == 10 && h1_same_word(value, "keep-alive", 10)) {
            head->keep_alive = true;
            return 0;
        }
        if (first->value.len == 5 && h1_same_word(value, "close", 5)) {
            head->close_option = true;
            return 0;
        }
    }
    return take_connections(head, bytes, first);
}

static inline bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* The value without white space around it, from behind the colon at `colon` to `end`. */
static void set_value(struct h1_field *field, const char *bytes, size_t colon, size_t end)
{
    size_t at = colon + 1;
    at += bytes[at] == ' ';
    if (UNLIKELY((unsigned char)bytes[at] <= ' ' || (unsigned char)bytes[end - 1] <= ' ')) {
        while (is_blank(bytes[at])) { /* ends at the CR, if not before */
            at++;
        }
        while (end > at && is_blank(bytes[end - 1])) {
            end--;
        }
    }
    field->value.off = (uint16_t)at;
    field->value.len = (uint16_t)(end - at);
}

/* A line, from name.off to its CRLF at value.off as the sweep left it. */
static int take_line(struct h1_head *head, const char *bytes, struct h1_field *field)
{
    static const struct h1_known_name other = {.id = H1_OTHER};
    size_t begin = field->name.off, end = field->value.off, at = begin;
    while (at < end && bytes[at] != ':') {
        at++;
    }
    const struct h1_known_name *known = h1_known(bytes + begin, at - begin);
    if (at == end || (known == NULL && !h1_is_token(bytes + begin, at - begin))) {
        return h1_refuse(head, H1_FAULT_FIELD_NAME);
    }
    (void)h1_set_name(field, at - begin, known != NULL ? known : &other);
    set_value(field, bytes, at, end);
    return 0;
}

int h1_parse_fields(struct h1_head *head, const char *bytes)
{
    struct h1_field *field = head->fields, *end = field + head->field_count;
    struct h1_notes notes = {0};
    for (; field < end; field++) {
        int rc = take_line(head, bytes, field);
        rc = rc == 0 ? h1_note_field(head, bytes, field, &notes) : rc;
        if (rc != 0) {
            return rc;
        }
    }
    return h1_settle_fields(head, bytes, &notes);
}

int h1_settle_fields(struct h1_head *head, const char *bytes, const struct h1_notes *notes)
{
    head->present = notes->present & ~H1_BIT(H1_OTHER);
    bool has_coding = (head->present & H1_BIT(H1_TRANSFER_ENCODING)) != 0;
    if (has_coding && head->length_announced) {
        return h1_refuse(head, H1_FAULT_LENGTH_AND_CODING);
    }
    if (has_coding && head->minor == 0) {
        return h1_refuse(head, H1_FAULT_CODING); /* RFC 9112 6.1 */
    }
    if (notes->connection == NULL) {
        head->keep_alive = head->minor == 1;
        return 0;
    }
    return apply_connection(head, bytes, notes->connection, notes->connections);
}
