/*
 * Walking forwarded fields from the right; see fwd_client.h.
 *
 * Elements are found from the left, since quotes can only be read in that direction, and the last
 * few are kept in a ring.
 */
#include "node/http/fwd_client.h"

#include "node/http/h1_int.h"

struct hop {
    const char *at;
    size_t len; /* 0: nothing that can be an address */
};

struct hops {
    struct hop ring[FWD_HOPS_MAX];
    size_t count; /* of all, also of those that left the ring */
};

static void add_hop(struct hops *hops, const char *at, size_t len)
{
    while (len != 0 && (*at == ' ' || *at == '\t')) {
        at++;
        len--;
    }
    while (len != 0 && (at[len - 1] == ' ' || at[len - 1] == '\t')) {
        len--;
    }
    hops->ring[hops->count++ % FWD_HOPS_MAX] = (struct hop){.at = at, .len = len};
}

/* The elements of one line. quotes: commas inside of them separate nothing. */
static void add_line(struct hops *hops, const char *line, size_t len, bool quotes)
{
    bool quoted = false;
    size_t begin = 0;
    for (size_t i = 0; i < len; i++) {
        if (quotes && line[i] == '"') {
            quoted = !quoted;
        } else if (quoted && line[i] == '\\') {
            i++;
        } else if (line[i] == ',' && !quoted) {
            add_hop(hops, line + begin, i - begin);
            begin = i + 1;
        }
    }
    if (quoted) {
        add_hop(hops, line, 0); /* nobody knows where its elements end */
    } else {
        add_hop(hops, line + begin, len - begin);
    }
}

static void add_lines(struct hops *hops, const struct h1_head *head, const char *bytes,
                      enum h1_name id)
{
    const struct h1_field *field = h1_find(head, id);
    for (; field != NULL; field = h1_find_next(head, field)) {
        add_line(hops, bytes + field->value.off, field->value.len, id == H1_FORWARDED);
    }
}

static bool parse_port(const char *text, size_t len, struct addr *addr)
{
    unsigned port = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 5) {
            return false;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    addr_set_port(addr, port <= 65535 ? (uint16_t)port : 0);
    return len != 0 && port <= 65535;
}

/* "10.0.0.1", "10.0.0.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80" */
static bool parse_node(const char *text, size_t len, struct addr *ret_addr)
{
    const char *colon = memchr(text, ':', len);
    if (len != 0 && text[0] == '[') {
        const char *end = memchr(text, ']', len);
        if (end == NULL || addr_parse_ip(text + 1, (size_t)(end - text) - 1, ret_addr) != RC_OK ||
            ret_addr->sa.sa_family != AF_INET6) {
            return false;
        }
        size_t left = len - (size_t)(end - text) - 1;
        return left == 0 || (end[1] == ':' && parse_port(end + 2, left - 1, ret_addr));
    }
    if (colon != NULL && memchr(colon + 1, ':', len - (size_t)(colon - text) - 1) == NULL) {
        size_t host = (size_t)(colon - text);
        return addr_parse_ip(text, host, ret_addr) == RC_OK &&
               parse_port(colon + 1, len - host - 1, ret_addr);
    }
    return addr_parse_ip(text, len, ret_addr) == RC_OK;
}

/* RFC 7239 4: the "for" of an element, whose parameters are separated by semicolons. */
static bool parse_element(const char *text, size_t len, struct addr *ret_addr)
{
    for (size_t at = 0; at < len;) {
        size_t end = at;
        bool quoted = false;
        while (end < len && (quoted || text[end] != ';')) {
            if (text[end] == '\\') {
                return false; /* no address needs it */
            }
            quoted = text[end] == '"' ? !quoted : quoted;
            end++;
        }
        while (at < end && (text[at] == ' ' || text[at] == '\t')) {
            at++;
        }
        if (end - at > 4 && h1_same_word(text + at, "for=", 4)) {
            const char *value = text + at + 4;
            size_t value_len = end - at - 4;
            if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
                value++;
                value_len -= 2;
            }
            return parse_node(value, value_len, ret_addr);
        }
        at = end + 1;
    }
    return false;
}

struct addr fwd_client(const struct cidr_set *trusted, const struct addr *peer,
                       const struct h1_head *head, const char *bytes)
{
    struct addr client = *peer;
    if (!cidr_set_has(trusted, peer)) {
        return client;
    }
    bool plain = (head->present & H1_BIT(H1_X_FORWARDED_FOR)) != 0;
    struct hops hops = {.count = 0};
    add_lines(&hops, head, bytes, plain ? H1_X_FORWARDED_FOR : H1_FORWARDED);
    for (size_t i = 0; i < MIN(hops.count, (size_t)FWD_HOPS_MAX); i++) {
        const struct hop *hop = &hops.ring[(hops.count - 1 - i) % FWD_HOPS_MAX];
        struct addr addr;
        bool good =
            plain ? parse_node(hop->at, hop->len, &addr) : parse_element(hop->at, hop->len, &addr);
        if (!good) {
            break;
        }
        client = addr;
        if (!cidr_set_has(trusted, &addr)) {
            break;
        }
    }
    return client;
}

bool fwd_is_https(const struct h1_head *head, const char *bytes)
{
    struct hops hops = {.count = 0};
    add_lines(&hops, head, bytes, H1_X_FORWARDED_PROTO);
    if (hops.count == 0) {
        return false;
    }
    const struct hop *last = &hops.ring[(hops.count - 1) % FWD_HOPS_MAX];
    return last->len == 5 && h1_same_word(last->at, "https", 5);
}
