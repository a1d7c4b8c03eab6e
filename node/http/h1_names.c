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

/* Names by h1_known_slot. Those that nobody asks for are in it because a name that is found here
 * needs no look at its single bytes. */
const struct h1_known_name h1_known_names[256] = {
    [0] = {"cookie:", H1_COOKIE, false, false, false},
    [2] = {"x-request-id:", H1_X_REQUEST_ID, false, false, false},
    [3] = {"connection:", H1_CONNECTION, true, false, true},
    [4] = {"accept:", H1_ACCEPT, false, false, false},
    [9] = {"origin:", H1_ORIGIN, false, false, false},
    [11] = {"proxy-connection:", H1_PROXY_CONNECTION, true, false, false},
    [12] = {"content-range:", H1_OTHER, false, false, false},
    [13] = {"x-forwarded-for:", H1_X_FORWARDED_FOR, false, false, false},
    [14] = {"x-forwarded-port:", H1_X_FORWARDED_PORT, false, false, false},
    [15] = {"last-modified:", H1_OTHER, false, false, false},
    [26] = {"sec-websocket-accept:", H1_OTHER, false, false, false},
    [30] = {"x-forwarded-proto:", H1_X_FORWARDED_PROTO, false, false, false},
    [33] = {"etag:", H1_OTHER, false, false, false},
    [34] = {"content-type:", H1_CONTENT_TYPE, false, false, false},
    [36] = {"expect:", H1_EXPECT, false, false, true},
    [44] = {"http2-settings:", H1_HTTP2_SETTINGS, true, false, false},
    [47] = {"sec-fetch-user:", H1_OTHER, false, false, false},
    [48] = {"strict-transport-security:", H1_STRICT_TRANSPORT_SECURITY, false, false, false},
    [49] = {"accept-encoding:", H1_ACCEPT_ENCODING, false, false, false},
    [50] = {"accept-charset:", H1_OTHER, false, false, false},
    [64] = {"sec-websocket-version:", H1_OTHER, false, false, false},
    [67] = {"vary:", H1_OTHER, false, false, false},
    [73] = {"date:", H1_DATE, false, false, false},
    [75] = {"retry-after:", H1_RETRY_AFTER, false, false, false},
    [82] = {"keep-alive:", H1_KEEP_ALIVE, true, false, false},
    [84] = {"link:", H1_OTHER, false, false, false},
    [85] = {"sec-fetch-dest:", H1_OTHER, false, false, false},
    [86] = {"set-cookie:", H1_SET_COOKIE, false, false, false},
    [87] = {"if-none-match:", H1_IF_NONE_MATCH, false, false, false},
    [90] = {"sec-websocket-key:", H1_OTHER, false, false, false},
    [92] = {"upgrade:", H1_UPGRADE, true, false, false},
    [93] = {"content-encoding:", H1_CONTENT_ENCODING, false, false, false},
    [96] = {"range:", H1_OTHER, false, false, false},
    [100] = {"max-forwards:", H1_MAX_FORWARDS, false, false, false},
    [101] = {"expires:", H1_OTHER, false, false, false},
    [102] = {"proxy-authorization:", H1_PROXY_AUTHORIZATION, false, false, false},
    [107] = {"content-disposition:", H1_OTHER, false, false, false},
    [110] = {"x-content-type-options:", H1_OTHER, false, false, false},
    [113] = {"content-length:", H1_CONTENT_LENGTH, false, false, true},
    [123] = {"user-agent:", H1_USER_AGENT, false, false, false},
    [124] = {"alt-svc:", H1_ALT_SVC, false, false, false},
    [133] = {"pragma:", H1_OTHER, false, false, false},
    [137] = {"proxy:", H1_PROXY, true, false, false},
    [138] = {"upgrade-insecure-requests:", H1_OTHER, false, false, false},
    [141] = {"if-range:", H1_OTHER, false, false, false},
    [146] = {"www-authenticate:", H1_OTHER, false, false, false},
    [148] = {"location:", H1_LOCATION, false, false, false},
    [149] = {"if-modified-since:", H1_OTHER, false, false, false},
    [151] = {"server:", H1_SERVER, false, false, false},
    [153] = {"x-frame-options:", H1_OTHER, false, false, false},
    [162] = {"traceparent:", H1_OTHER, false, false, false},
    [164] = {"forwarded:", H1_FORWARDED, false, false, false},
    [170] = {"sec-fetch-mode:", H1_OTHER, false, false, false},
    [175] = {"x-requested-with:", H1_OTHER, false, false, false},
    [177] = {"if-match:", H1_IF_MATCH, false, false, false},
    [180] = {"transfer-encoding:", H1_TRANSFER_ENCODING, true, false, true},
    [183] = {"authorization:", H1_AUTHORIZATION, false, false, false},
    [184] = {"trailer:", H1_TRAILER, false, false, false},
    [188] = {"accept-language:", H1_OTHER, false, false, false},
    [189] = {"accept-ranges:", H1_OTHER, false, false, false},
    [190] = {"sec-fetch-site:", H1_OTHER, false, false, false},
    [192] = {"x-real-ip:", H1_OTHER, false, false, false},
    [199] = {"x-powered-by:", H1_OTHER, false, false, false},
    [200] = {"cache-control:", H1_OTHER, false, false, false},
    [205] = {"referer:", H1_OTHER, false, false, false},
    [208] = {"priority:", H1_OTHER, false, false, false},
    [214] = {"tracestate:", H1_OTHER, false, false, false},
    [218] = {"allow:", H1_OTHER, false, false, false},
    [226] = {"access-control-allow-origin:", H1_OTHER, false, false, false},
    [231] = {"content-language:", H1_OTHER, false, false, false},
    [232] = {"proxy-authenticate:", H1_PROXY_AUTHENTICATE, false, false, false},
    [236] = {"host:", H1_HOST, false, false, true},
    [243] = {"content-security-policy:", H1_OTHER, false, false, false},
    [252] = {"x-forwarded-host:", H1_X_FORWARDED_HOST, false, false, false},
};

/* Names that are too short for the table. */
static const struct h1_known_name short_names[] = {
    {"te:", H1_TE, true, false, true},
    {"age:", H1_OTHER, false, false, false},
    {"via:", H1_VIA, false, false, false},
};

const struct h1_known_name *h1_known(const char *name, size_t len)
{
    const struct h1_known_name *from = short_names, *end = from + ARRAY_LEN(short_names);
    if (len >= sizeof(from->text) || len == 0) {
        return NULL;
    }
    if (len >= 4) {
        from = h1_known_slot(name, len);
        end = from + 1;
    }
    for (; from < end; from++) {
        if (from->text[len] == ':' && h1_same_word(name, from->text, len)) {
            return from;
        }
    }
    return NULL;
}

enum h1_name h1_name_id(const char *name, size_t len)
{
    const struct h1_known_name *known = h1_known(name, len);
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
