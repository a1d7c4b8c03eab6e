/*
 * Canonical forms of names, hosts, paths, addresses and networks.
 *
 * Every canonical form is a fixed point: canonicalising it again changes nothing. Two texts mean
 * the same exactly when their canonical forms have the same bytes, so all comparisons are strcmp.
 */
#include "proto/validate.h"

#include "proto/scalar.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool name_is_label(const char *text, size_t len)
{
    if (len == 0 || len > NAME_MAX_BYTES || !is_lower_alnum(text[0]) ||
        !is_lower_alnum(text[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_lower_alnum(text[i]) && text[i] != '-') {
            return false;
        }
    }
    return true;
}

bool name_is_dns(const char *text, size_t len)
{
    if (len > NAME_LONG_MAX_BYTES) {
        return false;
    }
    for (;;) {
        const char *dot = memchr(text, '.', len);
        size_t label_len = dot != NULL ? (size_t)(dot - text) : len;
        if (!name_is_label(text, label_len)) {
            return false;
        }
        if (dot == NULL) {
            return true;
        }
        text += label_len + 1;
        len -= label_len + 1;
    }
}

/* Every byte of out is written from text, in lower case. False: too long. */
static bool copy_lower(const char *text, size_t len, char *out)
{
    if (len > NAME_LONG_MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)tolower((unsigned char)text[i]);
    }
    out[len] = '\0';
    return true;
}

int host_canonical(const char *text, char *out, struct err_info *err)
{
    size_t len = strlen(text);
    if (len > 1 && text[len - 1] == '.') {
        len--;
    }
    char lower[NAME_LONG_MAX_BYTES + 1];
    if (!copy_lower(text, len, lower)) {
        return err_set(err, RC_INVALID, "is %zu bytes long; a host has at most %d", len,
                       NAME_LONG_MAX_BYTES);
    }
    if (strchr(lower, ':') != NULL) {
        return err_set(err, RC_INVALID, "\"%.80s\" has a port; a host has none", text);
    }
    const char *name = strncmp(lower, "*.", 2) == 0 ? lower + 2 : lower;
    if (!name_is_dns(name, strlen(name))) {
        return err_set(err, RC_INVALID,
                       "\"%.80s\" is no host such as shop.example.com or *.example.com (one label)",
                       text);
    }
    memcpy(out, lower, len + 1);
    return RC_OK;
}

static bool is_unreserved(unsigned char c)
{
    return c < 0x80 && (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~');
}

/* RFC 3986 3.3: pchar, and the slash between segments. */
static bool is_path_byte(unsigned char c)
{
    return is_unreserved(c) || (c != '\0' && strchr("/!$&'()*+,;=:@", c) != NULL);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool has_dot_segment(const char *path)
{
    while (path != NULL) {
        path++; /* the slash */
        size_t len = strcspn(path, "/");
        if ((len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.')) {
            return true;
        }
        path = strchr(path, '/');
    }
    return false;
}

/* One escape at text ("%41"); writes one or three bytes. */
static int decode_escape(const char *text, char *out, size_t *ret_used, struct err_info *err)
{
    int high = text[1] != '\0' ? hex_value(text[1]) : -1;
    int low = high >= 0 && text[2] != '\0' ? hex_value(text[2]) : -1;
    if (low < 0) {
        return err_set(err, RC_INVALID, "\"%.3s\" is no escape; %% is followed by two hex digits",
                       text);
    }
    unsigned char byte = (unsigned char)(high * 16 + low);
    if (byte == 0) {
        return err_set(err, RC_INVALID, "%%00 is not accepted in a path");
    }
    if (is_unreserved(byte)) {
        out[0] = (char)byte;
        *ret_used = 1;
        return RC_OK;
    }
    static const char digits[] = "0123456789ABCDEF";
    out[0] = '%';
    out[1] = digits[high];
    out[2] = digits[low];
    *ret_used = 3;
    return RC_OK;
}

int path_canonical(const char *text, bool exact, char *out, struct err_info *err)
{
    if (strlen(text) > PATH_MAX_BYTES) {
        return err_set(err, RC_INVALID, "is %zu bytes long; at most %d are accepted", strlen(text),
                       PATH_MAX_BYTES);
    }
    if (text[0] != '/' && text[0] != '\0') {
        return err_set(err, RC_INVALID, "\"%.80s\" does not start with /", text);
    }
    char path[PATH_MAX_BYTES + 1] = "/";
    size_t len = 0;
    for (const char *c = text; *c != '\0';) {
        if (*c == '%') {
            size_t used = 0;
            int rc = decode_escape(c, path + len, &used, err);
            if (rc != RC_OK) {
                return rc;
            }
            len += used;
            c += 3;
        } else if (is_path_byte((unsigned char)*c)) {
            path[len++] = *c++;
        } else if (*c == '?' || *c == '#') {
            return err_set(err, RC_INVALID, "has a %c; a path has no query and no fragment", *c);
        } else {
            return err_set(err, RC_INVALID, "has the byte 0x%02X, which must be written as %%%02X",
                           (unsigned char)*c, (unsigned char)*c);
        }
    }
    len = MAX(len, 1);
    while (!exact && len > 1 && path[len - 1] == '/') {
        len--;
    }
    path[len] = '\0';
    if (has_dot_segment(path)) {
        return err_set(err, RC_INVALID, "\"%.80s\" has a . or .. segment", text);
    }
    memcpy(out, path, len + 1);
    return RC_OK;
}

static int address_error(const char *text, struct err_info *err)
{
    return err_set(err, RC_INVALID,
                   "\"%.80s\" is no address such as 10.1.0.4:8080, [2001:db8::1]:8080 or "
                   "name.example:8080",
                   text);
}

static bool is_any_or_multicast(const uint8_t *addr, size_t len)
{
    static const uint8_t zero[16];
    if (memcmp(addr, zero, len) == 0) {
        return true;
    }
    return len == 4 ? addr[0] >= 224 : addr[0] == 0xff;
}

/* The 4 bytes in a v4-mapped address, else NULL. RFC 4291 2.5.5.2. */
static const uint8_t *mapped_v4(const uint8_t addr[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(addr, prefix, sizeof prefix) == 0 ? addr + 12 : NULL;
}

/* host is without brackets. */
static int ip_canonical(const char *text, const char *host, bool v6, char out[INET6_ADDRSTRLEN + 2],
                        struct err_info *err)
{
    uint8_t addr[16];
    size_t len = v6 ? 16 : 4;
    if (inet_pton(v6 ? AF_INET6 : AF_INET, host, addr) != 1) {
        return address_error(text, err);
    }
    const uint8_t *v4 = v6 ? mapped_v4(addr) : addr;
    if (is_any_or_multicast(v4 != NULL ? v4 : addr, v4 != NULL ? 4 : len)) {
        return err_set(err, RC_INVALID, "\"%.80s\" is no address of one machine", text);
    }
    char plain[INET6_ADDRSTRLEN];
    (void)inet_ntop(v4 != NULL ? AF_INET : AF_INET6, v4 != NULL ? v4 : addr, plain, sizeof plain);
    (void)snprintf(out, INET6_ADDRSTRLEN + 2, v4 != NULL ? "%s" : "[%s]", plain);
    return RC_OK;
}

/* A name whose last label is all digits is a mistyped IPv4 address, and resolvers take it as one.
 */
static bool looks_like_v4(const char *host)
{
    const char *last = strrchr(host, '.');
    last = last != NULL ? last + 1 : host;
    return last[strspn(last, "0123456789")] == '\0';
}

int endpoint_address_canonical(const char *text, char out[ENDPOINT_ADDRESS_MAX],
                               struct err_info *err)
{
    const char *colon = strrchr(text, ':');
    size_t host_len = colon != NULL ? (size_t)(colon - text) : 0;
    uint64_t port = 0;
    if (host_len == 0 || host_len > NAME_LONG_MAX_BYTES) {
        return address_error(text, err);
    }
    if (!u64_parse(colon + 1, strlen(colon + 1), &port) || colon[1] == '0' || port > 65535) {
        return err_set(err, RC_INVALID, "\"%.80s\" has no port from 1 to 65535", text);
    }
    char host[NAME_LONG_MAX_BYTES + 1];
    (void)copy_lower(text, host_len, host); /* the length was checked */
    char canonical[NAME_LONG_MAX_BYTES + 1];
    int rc = RC_OK;
    if (host[0] == '[' && host[host_len - 1] == ']') {
        host[host_len - 1] = '\0';
        rc = ip_canonical(text, host + 1, true, canonical, err);
    } else if (looks_like_v4(host)) {
        rc = ip_canonical(text, host, false, canonical, err);
    } else if (name_is_dns(host, host_len)) {
        memcpy(canonical, host, host_len + 1);
    } else {
        return address_error(text, err);
    }
    if (rc == RC_OK) {
        (void)snprintf(out, ENDPOINT_ADDRESS_MAX, "%s:%u", canonical, (unsigned)port);
    }
    return rc;
}

bool endpoint_address_is_ip(const char *address)
{
    char host[NAME_LONG_MAX_BYTES + 1];
    const char *colon = strrchr(address, ':');
    size_t len = colon != NULL ? (size_t)(colon - address) : strlen(address);
    return address[0] == '[' || (copy_lower(address, len, host) && looks_like_v4(host));
}
