/*
 * Host names: one spelling for each.
 */
#include "node/http/uri.h"

#include "node/http/h1_int.h"

#include <arpa/inet.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* What a byte of a host name becomes: lower-case letter, digit, '-', '_' or '.'; 0: refused. */
static const char host_bytes[256] = {
    ['-'] = '-', ['.'] = '.', ['_'] = '_', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3',
    ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['A'] = 'a',
    ['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h',
    ['I'] = 'i', ['J'] = 'j', ['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o',
    ['P'] = 'p', ['Q'] = 'q', ['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v',
    ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y', ['Z'] = 'z', ['a'] = 'a', ['b'] = 'b', ['c'] = 'c',
    ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i', ['j'] = 'j',
    ['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q',
    ['r'] = 'r', ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x',
    ['y'] = 'y', ['z'] = 'z',
};

/* text is what stands behind the name: nothing, or ':' and a port that may be empty. */
static int take_port(const char *text, size_t len, int32_t *ret_port)
{
    *ret_port = -1;
    if (len == 0) {
        return 0;
    }
    if (text[0] != ':' || len > 6) {
        return RC_INVALID;
    }
    int32_t port = 0;
    for (size_t i = 1; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return RC_INVALID;
        }
        port = port * 10 + (text[i] - '0');
    }
    if (port > 65535) {
        return RC_INVALID;
    }
    if (len > 1) {
        *ret_port = port;
    }
    return 0;
}

/* "[...]" in the shortest form, so that ::1 and 0:0::1 are one host. No zone identifiers. */
static int take_ipv6(const char *host, size_t len, char *out, struct uri_host *ret_host)
{
    const char *end = memchr(host, ']', len);
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ip;
    if (end == NULL || (size_t)(end - host) > sizeof(text)) {
        return RC_INVALID;
    }
    size_t inner = (size_t)(end - host) - 1;
    memcpy(text, host + 1, inner);
    text[inner] = '\0';
    if (memchr(text, '\0', inner) != NULL || inet_pton(AF_INET6, text, &ip) != 1 ||
        inet_ntop(AF_INET6, &ip, out + 1, INET6_ADDRSTRLEN) == NULL) {
        return RC_INVALID;
    }
    out[0] = '[';
    size_t out_len = strlen(out);
    out[out_len++] = ']';
    out[out_len] = '\0';
    ret_host->name_len = out_len;
    ret_host->is_ip = true;
    return take_port(end + 1, len - inner - 2, &ret_host->port);
}

/* Four numbers: RFC 3986 7.4 names the other spellings as a way round filters. */
static bool is_ipv4(const char *name, size_t len)
{
    if (len > 15 || name[len - 1] > '9') {
        return false;
    }
    struct in_addr ip;
    return inet_pton(AF_INET, name, &ip) == 1;
}

#ifdef __SSE2__
/* Bits of those of 16 bytes that lie from..to; none is above 0x7f. */
static inline __m128i in_range(__m128i bytes, char from, char to)
{
    __m128i above = _mm_cmpgt_epi8(bytes, _mm_set1_epi8((char)(from - 1)));
    return _mm_and_si128(above, _mm_cmpgt_epi8(_mm_set1_epi8((char)(to + 1)), bytes));
}

/*
 * The usual name: letters, digits, '-' and single dots between them, of at most 48 bytes, without a
 * port, and no IPv4 address. False: nothing is said.
 */
static bool take_plain(const char *host, size_t len, char *out)
{
    if (len > 48) {
        return false;
    }
    char padded[48];
    const __m128i bit = _mm_set1_epi8(0x20);
    uint64_t dots = 0, sound = 0;
    (void)h1_put(padded, host, len);
    for (size_t at = 0; at < len; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(padded + at));
        __m128i letter = in_range(_mm_or_si128(bytes, bit), 'a', 'z');
        __m128i other = in_range(bytes, '-', '9'); /* with '.' and '/' */
        __m128i dot = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('.'));
        __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('/'));
        __m128i good = _mm_or_si128(letter, _mm_andnot_si128(slash, other));
        sound |= (uint64_t)(unsigned)_mm_movemask_epi8(good) << at;
        dots |= (uint64_t)(unsigned)_mm_movemask_epi8(dot) << at;
        bytes = _mm_or_si128(bytes, _mm_and_si128(letter, bit));
        _mm_storeu_si128((__m128i *)(void *)(out + at), bytes);
    }
    uint64_t all = (UINT64_C(1) << len) - 1;
    bool has_empty_label = (dots & (dots << 1 | 1) & all) != 0;
    return (sound & all) == all && !has_empty_label && out[len - 1] > '9';
}
#else
static bool take_plain(const char *host, size_t len, char *out)
{
    (void)host;
    (void)len;
    (void)out;
    return false;
}
#endif

int uri_host_canon(const char *host, size_t len, char out[URI_HOST_MAX + 1],
                   struct uri_host *ret_host)
{
    if (len == 0) {
        return RC_INVALID;
    }
    if (LIKELY(take_plain(host, len, out))) {
        out[len] = '\0';
        *ret_host = (struct uri_host){.name_len = len, .port = -1};
        return 0;
    }
    if (host[0] == '[') {
        return take_ipv6(host, len, out, ret_host);
    }
    /* One more than the longest name: it can only be a trailing dot, which goes again below. */
    size_t at = 0, label = 0, end = MIN(len, (size_t)URI_HOST_MAX + 1);
    for (; at < end; at++) {
        char byte = host_bytes[(unsigned char)host[at]];
        if (byte == '\0') {
            break;
        }
        out[at] = byte;
        if (byte == '.') {
            if (at == label || at - label > URI_LABEL_MAX) {
                return RC_INVALID;
            }
            label = at + 1;
        }
    }
    if (at < len && host[at] != ':') {
        return RC_INVALID;
    }
    size_t name_len = at;
    if (name_len > 0 && label == name_len) {
        name_len--; /* one trailing dot; its label was checked */
    } else if (at - label > URI_LABEL_MAX) {
        return RC_INVALID;
    }
    if (name_len == 0 || name_len > URI_HOST_MAX) {
        return RC_INVALID;
    }
    out[name_len] = '\0';
    ret_host->name_len = name_len;
    ret_host->is_ip = is_ipv4(out, name_len);
    return take_port(host + at, len - at, &ret_host->port);
}
