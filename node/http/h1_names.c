/*
 * Byte classes, known field names, and lists of tokens.
 */
#include "node/http/h1_int.h"

#include <string.h>

#define T H1_CLASS_TOKEN
#define V H1_CLASS_TARGET
#define D H1_CLASS_DIGIT
#define X H1_CLASS_HEX

const uint8_t h1_class[256] = {
    ['!'] = T | V,
    ['"'] = V,
    ['$'] = T | V,
    ['%'] = T | V,
    ['&'] = T | V,
    ['\''] = T | V,
    ['('] = V,
    [')'] = V,
    ['*'] = T | V,
    ['+'] = T | V,
    [','] = V,
    ['-'] = T | V,
    ['.'] = T | V,
    ['/'] = V,
    ['0'] = T | V | D | X,
    ['1'] = T | V | D | X,
    ['2'] = T | V | D | X,
    ['3'] = T | V | D | X,
    ['4'] = T | V | D | X,
    ['5'] = T | V | D | X,
    ['6'] = T | V | D | X,
    ['7'] = T | V | D | X,
    ['8'] = T | V | D | X,
    ['9'] = T | V | D | X,
    [':'] = V,
    [';'] = V,
    ['<'] = V,
    ['='] = V,
    ['>'] = V,
    ['?'] = V,
    ['@'] = V,
    ['A'] = T | V | X,
    ['B'] = T | V | X,
    ['C'] = T | V | X,
    ['D'] = T | V | X,
    ['E'] = T | V | X,
    ['F'] = T | V | X,
    ['G'] = T | V,
    ['H'] = T | V,
    ['I'] = T | V,
    ['J'] = T | V,
    ['K'] = T | V,
    ['L'] = T | V,
    ['M'] = T | V,
    ['N'] = T | V,
    ['O'] = T | V,
    ['P'] = T | V,
    ['Q'] = T | V,
    ['R'] = T | V,
    ['S'] = T | V,
    ['T'] = T | V,
    ['U'] = T | V,
    ['V'] = T | V,
    ['W'] = T | V,
    ['X'] = T | V,
    ['Y'] = T | V,
    ['Z'] = T | V,
    ['['] = V,
    ['\\'] = V,
    [']'] = V,
    ['^'] = T | V,
    ['_'] = T | V,
    ['`'] = T | V,
    ['a'] = T | V | X,
    ['b'] = T | V | X,
    ['c'] = T | V | X,
    ['d'] = T | V | X,
    ['e'] = T | V | X,
    ['f'] = T | V | X,
    ['g'] = T | V,
    ['h'] = T | V,
    ['i'] = T | V,
    ['j'] = T | V,
    ['k'] = T | V,
    ['l'] = T | V,
    ['m'] = T | V,
    ['n'] = T | V,
    ['o'] = T | V,
    ['p'] = T | V,
    ['q'] = T | V,
    ['r'] = T | V,
    ['s'] = T | V,
    ['t'] = T | V,
    ['u'] = T | V,
    ['v'] = T | V,
    ['w'] = T | V,
    ['x'] = T | V,
    ['y'] = T | V,
    ['z'] = T | V,
    ['{'] = V,
    ['|'] = T | V,
    ['}'] = V,
    ['~'] = T | V,
    ['#'] = T,
};

#undef T
#undef V
#undef D
#undef X

/*
 * Names by a hash of length, first and last two bytes, found by search so that no two collide (a
 * test looks every name up). Those that nobody asks for are in it because a name that is found here
 * needs no look at its single bytes.
 */
const struct h1_known_name h1_known_names[256] = {
    [0] = {"x-requested-with", 16, H1_OTHER, 0},
    [1] = {"keep-alive", 10, H1_KEEP_ALIVE, H1_KNOWN_HOP},
    [3] = {"sec-websocket-key", 17, H1_OTHER, 0},
    [5] = {"expect", 6, H1_EXPECT, H1_KNOWN_SPECIAL},
    [11] = {"alt-svc", 7, H1_ALT_SVC, 0},
    [12] = {"referer", 7, H1_OTHER, 0},
    [14] = {"x-real-ip", 9, H1_OTHER, 0},
    [15] = {"content-disposition", 19, H1_OTHER, 0},
    [16] = {"x-forwarded-proto", 17, H1_X_FORWARDED_PROTO, 0},
    [17] = {"if-modified-since", 17, H1_OTHER, 0},
    [19] = {"server", 6, H1_SERVER, 0},
    [20] = {"date", 4, H1_DATE, 0},
    [23] = {"accept", 6, H1_ACCEPT, 0},
    [24] = {"forwarded", 9, H1_FORWARDED, 0},
    [29] = {"content-length", 14, H1_CONTENT_LENGTH, H1_KNOWN_SPECIAL},
    [30] = {"x-request-id", 12, H1_X_REQUEST_ID, 0},
    [33] = {"allow", 5, H1_OTHER, 0},
    [34] = {"last-modified", 13, H1_OTHER, 0},
    [36] = {"te", 2, H1_TE, H1_KNOWN_HOP | H1_KNOWN_SPECIAL},
    [38] = {"vary", 4, H1_OTHER, 0},
    [45] = {"sec-fetch-site", 14, H1_OTHER, 0},
    [47] = {"content-language", 16, H1_OTHER, 0},
    [52] = {"x-forwarded-port", 16, H1_X_FORWARDED_PORT, 0},
    [61] = {"access-control-allow-origin", 27, H1_OTHER, 0},
    [72] = {"proxy-authenticate", 18, H1_PROXY_AUTHENTICATE, 0},
    [74] = {"proxy-connection", 16, H1_PROXY_CONNECTION, H1_KNOWN_HOP},
    [76] = {"x-frame-options", 15, H1_OTHER, 0},
    [79] = {"origin", 6, H1_ORIGIN, 0},
    [80] = {"transfer-encoding", 17, H1_TRANSFER_ENCODING, H1_KNOWN_HOP | H1_KNOWN_SPECIAL},
    [81] = {"age", 3, H1_OTHER, 0},
    [82] = {"x-forwarded-for", 15, H1_X_FORWARDED_FOR, 0},
    [88] = {"range", 5, H1_OTHER, 0},
    [90] = {"x-forwarded-host", 16, H1_X_FORWARDED_HOST, 0},
    [95] = {"connection", 10, H1_CONNECTION, H1_KNOWN_HOP},
    [97] = {"expires", 7, H1_OTHER, 0},
    [103] = {"content-security-policy", 23, H1_OTHER, 0},
    [105] = {"www-authenticate", 16, H1_OTHER, 0},
    [107] = {"upgrade-insecure-requests", 25, H1_OTHER, 0},
    [121] = {"content-encoding", 16, H1_CONTENT_ENCODING, 0},
    [122] = {"trailer", 7, H1_TRAILER, 0},
    [126] = {"pragma", 6, H1_OTHER, 0},
    [129] = {"authorization", 13, H1_AUTHORIZATION, 0},
    [145] = {"accept-language", 15, H1_OTHER, 0},
    [147] = {"sec-fetch-user", 14, H1_OTHER, 0},
    [149] = {"sec-websocket-accept", 20, H1_OTHER, 0},
    [155] = {"cookie", 6, H1_COOKIE, 0},
    [156] = {"x-content-type-options", 22, H1_OTHER, 0},
    [159] = {"content-range", 13, H1_OTHER, 0},
    [160] = {"via", 3, H1_VIA, 0},
    [162] = {"http2-settings", 14, H1_HTTP2_SETTINGS, H1_KNOWN_HOP},
    [164] = {"tracestate", 10, H1_OTHER, 0},
    [165] = {"accept-ranges", 13, H1_OTHER, 0},
    [168] = {"link", 4, H1_OTHER, 0},
    [170] = {"host", 4, H1_HOST, H1_KNOWN_SPECIAL},
    [175] = {"cache-control", 13, H1_OTHER, 0},
    [177] = {"if-none-match", 13, H1_IF_NONE_MATCH, 0},
    [180] = {"x-powered-by", 12, H1_OTHER, 0},
    [185] = {"etag", 4, H1_OTHER, 0},
    [189] = {"strict-transport-security", 25, H1_STRICT_TRANSPORT_SECURITY, 0},
    [193] = {"if-match", 8, H1_IF_MATCH, 0},
    [197] = {"content-type", 12, H1_CONTENT_TYPE, 0},
    [203] = {"set-cookie", 10, H1_SET_COOKIE, 0},
    [204] = {"retry-after", 11, H1_RETRY_AFTER, 0},
    [205] = {"sec-fetch-mode", 14, H1_OTHER, 0},
    [208] = {"traceparent", 11, H1_OTHER, 0},
    [215] = {"user-agent", 10, H1_USER_AGENT, 0},
    [218] = {"proxy-authorization", 19, H1_PROXY_AUTHORIZATION, 0},
    [219] = {"accept-encoding", 15, H1_ACCEPT_ENCODING, 0},
    [223] = {"sec-websocket-version", 21, H1_OTHER, 0},
    [227] = {"max-forwards", 12, H1_MAX_FORWARDS, 0},
    [231] = {"sec-fetch-dest", 14, H1_OTHER, 0},
    [232] = {"priority", 8, H1_OTHER, 0},
    [235] = {"upgrade", 7, H1_UPGRADE, H1_KNOWN_HOP},
    [238] = {"location", 8, H1_LOCATION, 0},
    [240] = {"proxy", 5, H1_PROXY, H1_KNOWN_HOP},
    [245] = {"accept-charset", 14, H1_OTHER, 0},
    [249] = {"if-range", 8, H1_OTHER, 0},
};

enum h1_name h1_name_id(const char *name, size_t len)
{
    const struct h1_known_name *known = h1_known(name, len, len);
    return known != NULL ? (enum h1_name)known->id : H1_OTHER;
}

bool h1_is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!h1_is_class(text[i], H1_CLASS_TOKEN)) {
            return false;
        }
    }
    return len > 0;
}

bool h1_is_field_value(const char *text, size_t len)
{
    return h1_next_control(text, 0, len) == len;
}

bool h1_list_next(const char *list, size_t len, size_t *cursor, struct h1_span *ret)
{
    size_t at = *cursor;
    while (at < len && (list[at] == ',' || list[at] == ' ' || list[at] == '\t')) {
        at++;
    }
    if (at == len) {
        *cursor = at;
        return false;
    }
    const char *comma = memchr(list + at, ',', len - at);
    size_t end = comma != NULL ? (size_t)(comma - list) : len;
    *cursor = end;
    while (list[end - 1] == ' ' || list[end - 1] == '\t') {
        end--;
    }
    *ret = (struct h1_span){.off = (uint16_t)at, .len = (uint16_t)(end - at)};
    return true;
}

bool h1_list_has(const char *list, size_t len, const char *token)
{
    size_t cursor = 0, token_len = strlen(token);
    struct h1_span item;
    while (h1_list_next(list, MIN(len, (size_t)H1_HEAD_BYTES_MAX), &cursor, &item)) {
        if (item.len == token_len && h1_same_word(list + item.off, token, token_len)) {
            return true;
        }
    }
    return false;
}

const struct h1_field *h1_find(const struct h1_head *head, enum h1_name id)
{
    if ((head->present & H1_BIT(id)) == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id == id) {
            return &head->fields[i];
        }
    }
    return NULL;
}

const struct h1_field *h1_find_next(const struct h1_head *head, const struct h1_field *field)
{
    const struct h1_field *end = head->fields + head->field_count;
    for (const struct h1_field *next = field + 1; next < end; next++) {
        if (next->id == field->id) {
            return next;
        }
    }
    return NULL;
}

const struct h1_field *h1_find_named(const struct h1_head *head, const char *bytes,
                                     const char *name, size_t len)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        if (field->name.len == len && h1_same_word(bytes + field->name.off, name, len)) {
            return field;
        }
    }
    return NULL;
}
