/*
 * Start lines, targets, and the order in which a head is judged: sweep, start line, fields, then
 * what only the whole of it can tell.
 */
#include "node/http/h1_head.h"

#include "node/http/h1_int.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { METHOD_BYTES_MAX = 48 }; /* the longest registered one has 17 */

void h1_head_init(struct h1_head *head, struct h1_field *fields, uint32_t fields_cap)
{
    memset(head, 0, sizeof(*head));
    head->fields = fields;
    head->fields_cap = MIN(fields_cap, (uint32_t)H1_FIELDS_MAX);
}

/* Forget the last head; host_name is cut, not cleared, since it is most of the structure. */
static void reset(struct h1_head *head)
{
    head->field_count = 0;
    head->len = 0;
    head->fault = H1_FAULT_NONE;
    head->present = 0;
    head->framing = H1_BODY_NONE;
    head->content_length = 0;
    head->minor = 0;
    head->keep_alive = head->close_option = head->length_announced = false;
    head->method_id = H1_METHOD_OTHER;
    head->form = H1_FORM_ORIGIN;
    const struct h1_span none = {0, 0};
    head->method = head->target = head->path = head->query = none;
    head->authority = head->host = head->reason = none;
    head->has_query = false;
    head->host_name[0] = '\0';
    head->host_name_len = 0;
    head->expect_continue = head->expect_other = head->te_trailers = head->upgrade = false;
    head->status = 0;
}

/* Case matters in methods (RFC 9110 9.1). */
static enum h1_method method_id(const char *name, size_t len)
{
    static const struct {
        const char *name;
        enum h1_method id;
    } methods[8][2] = {
        [3] = {{"GET", H1_GET}, {"PUT", H1_PUT}},
        [4] = {{"POST", H1_POST}, {"HEAD", H1_HEAD}},
        [5] = {{"PATCH", H1_PATCH}, {"TRACE", H1_TRACE}},
        [6] = {{"DELETE", H1_DELETE}},
        [7] = {{"OPTIONS", H1_OPTIONS}, {"CONNECT", H1_CONNECT}},
    };
    if (len >= ARRAY_LEN(methods)) {
        return H1_METHOD_OTHER;
    }
    for (size_t i = 0; i < 2; i++) {
        if (methods[len][i].name != NULL && memcmp(methods[len][i].name, name, len) == 0) {
            return methods[len][i].id;
        }
    }
    return H1_METHOD_OTHER;
}

/* "HTTP/1.0" or "HTTP/1.1", exactly. */
static int take_version(struct h1_head *head, const char *at)
{
    if (LIKELY(memcmp(at, "HTTP/1.1", 8) == 0)) {
        head->minor = 1;
        return 0;
    }
    if (memcmp(at, "HTTP/", 5) != 0 || !h1_is_class(at[5], H1_CLASS_DIGIT) || at[6] != '.' ||
        !h1_is_class(at[7], H1_CLASS_DIGIT)) {
        return h1_refuse(head, H1_FAULT_START_LINE);
    }
    if (at[5] != '1' || at[7] > '1') {
        return h1_refuse(head, H1_FAULT_VERSION);
    }
    head->minor = (uint8_t)(at[7] - '0');
    return 0;
}

static struct h1_span span_of(size_t begin, size_t end)
{
    return (struct h1_span){.off = (uint16_t)begin, .len = (uint16_t)(end - begin)};
}

/* Offset of the first byte in [at, end) that no target holds, or of a '?'; else end. The version
 * and a line end follow, so eleven bytes more may be read. */
static inline size_t skip_target(const char *bytes, size_t at, size_t end)
{
#ifdef __SSE2__
    for (; at < end && end + 11 - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(bytes + at));
        /* signed: bytes from 0x80 on are below, too; DEL cannot occur after the sweep */
        __m128i low = _mm_cmplt_epi8(block, _mm_set1_epi8('!'));
        __m128i hash = _mm_cmpeq_epi8(block, _mm_set1_epi8('#'));
        __m128i query = _mm_cmpeq_epi8(block, _mm_set1_epi8('?'));
        int bits = _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(hash, query)));
        if (bits != 0) {
            return MIN(at + (unsigned)__builtin_ctz((unsigned)bits), end);
        }
    }
#endif
    while (at < end && bytes[at] != '?' && h1_is_class(bytes[at], H1_CLASS_TARGET)) {
        at++;
    }
    return MIN(at, end);
}

/* Path and query between at and the end of the target; every byte is looked at. */
static int take_path(struct h1_head *head, const char *bytes, size_t begin, size_t end)
{
    size_t at = skip_target(bytes, begin, end);
    head->path = span_of(begin, at);
    head->query = span_of(at, at);
    head->has_query = at < end && bytes[at] == '?';
    if (head->has_query) {
        size_t query = ++at;
        do { /* more question marks are part of it */
            at = skip_target(bytes, at, end);
        } while (at < end && bytes[at] == '?' && ++at < end);
        head->query = span_of(query, at);
    }
    return at < end ? h1_refuse(head, H1_FAULT_TARGET) : 0;
}

/* The port that stands for an absent one; 0: not a scheme that is served here. */
static int32_t scheme_port(const char *target, size_t len, size_t *ret_authority)
{
    if (len > 7 && h1_same_word(target, "http://", 7)) {
        *ret_authority = 7;
        return 80;
    }
    if (len > 8 && h1_same_word(target, "https://", 8)) {
        *ret_authority = 8;
        return 443;
    }
    return 0;
}

/* RFC 9112 3.2 */
static int take_target(struct h1_head *head, const char *bytes, size_t begin, size_t end)
{
    size_t skip = 0;
    head->target = span_of(begin, end);
    if (begin == end) {
        return h1_refuse(head, H1_FAULT_TARGET);
    }
    if (head->method_id == H1_CONNECT) {
        head->form = H1_FORM_AUTHORITY;
        head->authority = head->target;
        return 0;
    }
    if (bytes[begin] == '/') {
        return take_path(head, bytes, begin, end);
    }
    if (head->method_id == H1_OPTIONS && end - begin == 1 && bytes[begin] == '*') {
        head->form = H1_FORM_ASTERISK;
        head->path = head->target;
        return 0;
    }
    if (scheme_port(bytes + begin, end - begin, &skip) == 0) {
        return h1_refuse(head, H1_FAULT_TARGET);
    }
    size_t at = begin + skip;
    while (at < end && bytes[at] != '/' && bytes[at] != '?') {
        at++;
    }
    head->form = H1_FORM_ABSOLUTE;
    head->authority = span_of(begin + skip, at);
    return take_path(head, bytes, at, end);
}

/* [begin, end) is the line without its CRLF. */
static int take_request_line(struct h1_head *head, const char *bytes, size_t begin, size_t end,
                             uint32_t target_max)
{
    size_t at = begin;
    if (LIKELY(end - begin >= 4 && memcmp(bytes + begin, "GET ", 4) == 0)) {
        at += 3;
        head->method_id = H1_GET;
    } else {
        while (h1_is_class(bytes[at], H1_CLASS_TOKEN)) {
            at++;
        }
        if (at == begin || bytes[at] != ' ' || at - begin > METHOD_BYTES_MAX) {
            return h1_refuse(head, H1_FAULT_METHOD);
        }
        head->method_id = method_id(bytes + begin, at - begin);
    }
    head->method = span_of(begin, at);
    size_t target = at + 1;
    if (end < target + 9 || bytes[end - 9] != ' ') {
        return h1_refuse(head, H1_FAULT_START_LINE);
    }
    int rc = take_version(head, bytes + end - 8);
    if (rc != 0) {
        return rc;
    }
    if (end - 9 - target > target_max) {
        head->fault = H1_FAULT_TARGET_TOO_LONG;
        return RC_TOO_BIG;
    }
    return take_target(head, bytes, target, end - 9);
}

/* The target's authority: the host itself, or what it must agree with (RFC 9112 3.2.2). */
static int judge_authority(struct h1_head *head, const char *bytes, const struct uri_host *host)
{
    struct uri_host other;
    char name[URI_HOST_MAX + 1];
    const char *at = bytes + head->authority.off;
    if (uri_host_canon(at, head->authority.len, name, &other) != 0 ||
        (head->form == H1_FORM_AUTHORITY && other.port < 0)) {
        return h1_refuse(head, H1_FAULT_TARGET);
    }
    if ((head->present & H1_BIT(H1_HOST)) == 0) {
        head->host = head->authority;
        memcpy(head->host_name, name, other.name_len + 1);
        head->host_name_len = (uint16_t)other.name_len;
        return 0;
    }
    size_t ignored;
    int32_t implied = scheme_port(bytes + head->target.off, head->target.len, &ignored);
    int32_t want = other.port < 0 ? implied : other.port;
    int32_t have = host->port < 0 ? implied : host->port;
    if (want != have || host->name_len != other.name_len ||
        memcmp(name, head->host_name, other.name_len) != 0) {
        return h1_refuse(head, H1_FAULT_HOST);
    }
    return 0;
}

/* RFC 9112 3.2, RFC 9110 7.2: one name for the host, whoever is asked. */
static int judge_host(struct h1_head *head, const char *bytes)
{
    struct uri_host host = {0};
    if ((head->present & H1_BIT(H1_HOST)) == 0) {
        if (head->minor == 1) {
            return h1_refuse(head, H1_FAULT_HOST);
        }
    } else if (uri_host_canon(bytes + head->host.off, head->host.len, head->host_name, &host) !=
               0) {
        return h1_refuse(head, H1_FAULT_HOST);
    }
    head->host_name_len = (uint16_t)host.name_len;
    if (LIKELY(head->form != H1_FORM_ABSOLUTE && head->form != H1_FORM_AUTHORITY)) {
        return 0;
    }
    return judge_authority(head, bytes, &host);
}

/*
 * Sweep from where the last call ended. A head that came in pieces is swept once more as a whole
 * when its end is known, because the lines of earlier calls were not kept.
 */
static int find_head(struct h1_scan *scan, const char *bytes, size_t len,
                     const struct h1_limits *limits, struct h1_head *head)
{
    bool resumed = scan->pos > 0;
    reset(head);
    int rc = h1_sweep(scan, bytes, len, limits, head);
    if (rc == 0 && resumed) {
        *scan = (struct h1_scan){0};
        reset(head);
        rc = h1_sweep(scan, bytes, len, limits, head);
    }
    return rc;
}

/* The usual request in one pass. False: nothing is said about it. */
static bool take_quick_request(const char *bytes, size_t len, const struct h1_limits *limits,
                               struct h1_head *head)
{
    size_t end = h1_quick_line(bytes, len);
    reset(head);
    return end != 0 && take_request_line(head, bytes, 0, end, limits->target_bytes) == 0 &&
           h1_quick_fields(head, bytes, end + 2, len, limits->field_count) &&
           head->len <= limits->head_bytes && judge_host(head, bytes) == 0;
}

/* Any request, or a part of one. */
static int take_request(struct h1_scan *scan, const char *bytes, size_t len,
                        const struct h1_limits *limits, struct h1_head *head)
{
    int rc = find_head(scan, bytes, len, limits, head);
    if (rc == RC_AGAIN && scan->start_end != 0 && !scan->start_is_sound) {
        /* Do not wait for fields that may never come: HTTP/0.9 has none. */
        int early =
            take_request_line(head, bytes, scan->start, scan->start_end, limits->target_bytes);
        scan->start_is_sound = early == 0;
        return early != 0 ? early : RC_AGAIN;
    }
    if (rc != 0) {
        return rc;
    }
    rc = take_request_line(head, bytes, scan->start, scan->start_end, limits->target_bytes);
    if (rc == 0) {
        rc = h1_parse_fields(head, bytes);
    }
    return rc == 0 ? judge_host(head, bytes) : rc;
}

int h1_parse_request(struct h1_scan *scan, const char *bytes, size_t len,
                     const struct h1_limits *limits, struct h1_head *head)
{
    len = MIN(len, (size_t)H1_HEAD_BYTES_MAX);
    if (scan->pos != 0 || UNLIKELY(!take_quick_request(bytes, len, limits, head))) {
        int rc = take_request(scan, bytes, len, limits, head);
        if (rc != 0) {
            return rc;
        }
    }
    bool has_body = head->framing == H1_BODY_CHUNKED || head->content_length > 0;
    head->upgrade = head->upgrade && !has_body;
    return 0;
}

/* "HTTP/1.1 200 OK"; the reason may be empty, and then the space before it may be missing. */
static int take_status_line(struct h1_head *head, const char *bytes, size_t begin, size_t end)
{
    if (end < begin + 12 || bytes[begin + 8] != ' ') {
        return h1_refuse(head, H1_FAULT_START_LINE);
    }
    int rc = take_version(head, bytes + begin);
    if (rc != 0) {
        return rc;
    }
    const char *digits = bytes + begin + 9;
    for (size_t i = 0; i < 3; i++) {
        if (!h1_is_class(digits[i], H1_CLASS_DIGIT)) {
            return h1_refuse(head, H1_FAULT_STATUS);
        }
    }
    if (digits[0] == '0' || (end > begin + 12 && bytes[begin + 12] != ' ')) {
        return h1_refuse(head, H1_FAULT_STATUS);
    }
    head->status = (uint16_t)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0'));
    head->reason = span_of(MIN(begin + 13, end), end);
    return 0;
}

/* RFC 9112 6.3 */
static void judge_response(struct h1_head *head, enum h1_method method)
{
    bool is_bodiless =
        method == H1_HEAD || head->status < 200 || head->status == 204 || head->status == 304;
    if (is_bodiless) {
        head->framing = H1_BODY_NONE;
    } else if (head->framing == H1_BODY_NONE) {
        head->framing = H1_BODY_UNTIL_CLOSE;
        head->keep_alive = false;
    }
    head->upgrade = head->upgrade && head->status == 101;
    if (head->status == 101) {
        head->keep_alive = false;
    }
}

static bool take_quick_response(const char *bytes, size_t len, const struct h1_limits *limits,
                                struct h1_head *head)
{
    size_t end = h1_quick_line(bytes, len);
    reset(head);
    return end != 0 && take_status_line(head, bytes, 0, end) == 0 &&
           h1_quick_fields(head, bytes, end + 2, len, limits->field_count) &&
           head->len <= limits->head_bytes;
}

static int take_response(struct h1_scan *scan, const char *bytes, size_t len,
                         const struct h1_limits *limits, struct h1_head *head)
{
    struct h1_limits own = *limits;
    own.target_bytes = own.head_bytes; /* a status line has no target */
    int rc = find_head(scan, bytes, len, &own, head);
    if (rc == RC_AGAIN && scan->start_end != 0 && !scan->start_is_sound) {
        int early = take_status_line(head, bytes, scan->start, scan->start_end);
        scan->start_is_sound = early == 0;
        return early != 0 ? early : RC_AGAIN;
    }
    if (rc == 0 && scan->start != 0) {
        rc = h1_refuse(head, H1_FAULT_START_LINE); /* only requests may be preceded by CRLF */
    }
    if (rc == 0) {
        rc = take_status_line(head, bytes, scan->start, scan->start_end);
    }
    return rc == 0 ? h1_parse_fields(head, bytes) : rc;
}

int h1_parse_response(struct h1_scan *scan, const char *bytes, size_t len, enum h1_method method,
                      const struct h1_limits *limits, struct h1_head *head)
{
    len = MIN(len, (size_t)H1_HEAD_BYTES_MAX);
    if (scan->pos != 0 || UNLIKELY(!take_quick_response(bytes, len, limits, head))) {
        int rc = take_response(scan, bytes, len, limits, head);
        if (rc != 0) {
            return rc;
        }
    }
    judge_response(head, method);
    return 0;
}
