/*
 * IP address and port over inet_pton and inet_ntop.
 */
#include "node/base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_port(const char *text, uint16_t *ret_port)
{
    if (*text < '0' || *text > '9' || strlen(text) > 5) {
        return RC_INVALID;
    }
    char *end = NULL;
    unsigned long port = strtoul(text, &end, 10);
    if (*end != '\0' || port > 65535) {
        return RC_INVALID;
    }
    *ret_port = (uint16_t)port;
    return RC_OK;
}

int addr_parse(const char *text, struct addr *ret_addr, struct err_info *err)
{
    static const char *const accepted = "accepted are 10.0.0.1:80, [::1]:80 and :80";
    const char *colon = strrchr(text, ':');
    uint16_t port = 0;
    if (colon == NULL || parse_port(colon + 1, &port) != RC_OK) {
        return err_set(err, RC_INVALID, "\"%.80s\" has no valid port (0 to 65535): %s", text,
                       accepted);
    }
    size_t len = (size_t)(colon - text);
    char host[INET6_ADDRSTRLEN + 2];
    if (len >= sizeof(host)) {
        return err_set(err, RC_INVALID, "\"%.80s\" is too long for an address: %s", text, accepted);
    }
    memcpy(host, text, len);
    host[len] = '\0';

    struct addr addr = {0};
    if (len == 0 || strcmp(host, "*") == 0) {
        addr.in4.sin_family = AF_INET;
    } else if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        addr.in6.sin6_family = AF_INET6;
        if (inet_pton(AF_INET6, host + 1, &addr.in6.sin6_addr) != 1) {
            return err_set(err, RC_INVALID, "\"%.80s\" is not an IPv6 address: %s", text, accepted);
        }
    } else {
        addr.in4.sin_family = AF_INET;
        if (inet_pton(AF_INET, host, &addr.in4.sin_addr) != 1) {
            return err_set(err, RC_INVALID, "\"%.80s\" is not an IP address: %s", text, accepted);
        }
    }
    addr_set_port(&addr, port);
    *ret_addr = addr;
    return RC_OK;
}

const char *addr_format_ip(const struct addr *addr, char out[ADDR_TEXT_MAX])
{
    const void *bytes = addr->sa.sa_family == AF_INET6 ? (const void *)&addr->in6.sin6_addr
                                                       : (const void *)&addr->in4.sin_addr;
    if ((addr->sa.sa_family != AF_INET && addr->sa.sa_family != AF_INET6) ||
        inet_ntop(addr->sa.sa_family, bytes, out, ADDR_TEXT_MAX) == NULL) {
        out[0] = '-';
        out[1] = '\0';
    }
    return out;
}

const char *addr_format(const struct addr *addr, char out[ADDR_TEXT_MAX])
{
    char ip[ADDR_TEXT_MAX];
    addr_format_ip(addr, ip);
    if (addr->sa.sa_family == AF_INET6) {
        (void)snprintf(out, ADDR_TEXT_MAX, "[%.46s]:%u", ip, addr_port(addr)); /* fits by size */
    } else if (addr->sa.sa_family == AF_INET) {
        (void)snprintf(out, ADDR_TEXT_MAX, "%.46s:%u", ip, addr_port(addr)); /* fits by size */
    } else {
        memcpy(out, "-", 2);
    }
    return out;
}

uint16_t addr_port(const struct addr *addr)
{
    return ntohs(addr->sa.sa_family == AF_INET6 ? addr->in6.sin6_port : addr->in4.sin_port);
}

void addr_set_port(struct addr *addr, uint16_t port)
{
    if (addr->sa.sa_family == AF_INET6) {
        addr->in6.sin6_port = htons(port);
    } else {
        addr->in4.sin_port = htons(port);
    }
}

socklen_t addr_len(const struct addr *addr)
{
    return addr->sa.sa_family == AF_INET6 ? (socklen_t)sizeof(addr->in6)
                                          : (socklen_t)sizeof(addr->in4);
}

int addr_compare(const struct addr *a, const struct addr *b)
{
    if (a->sa.sa_family != b->sa.sa_family) {
        return a->sa.sa_family < b->sa.sa_family ? -1 : 1;
    }
    int order = a->sa.sa_family == AF_INET6
                    ? memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr))
                    : memcmp(&a->in4.sin_addr, &b->in4.sin_addr, sizeof(a->in4.sin_addr));
    if (order != 0) {
        return order;
    }
    return (int)addr_port(a) - (int)addr_port(b);
}

void addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret_addr)
{
    *ret_addr = (struct addr){0};
    if (sa->sa_family == AF_INET) {
        memcpy(&ret_addr->in4, sa, sizeof(ret_addr->in4));
    } else if (sa->sa_family == AF_INET6) {
        memcpy(&ret_addr->in6, sa, sizeof(ret_addr->in6));
    }
}

bool addr_is_loopback(const struct addr *addr)
{
    if (addr->sa.sa_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
    }
    return addr->sa.sa_family == AF_INET && (ntohl(addr->in4.sin_addr.s_addr) >> 24) == 127;
}

bool addr_is_any(const struct addr *addr)
{
    if (addr->sa.sa_family == AF_INET6) {
        return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
    }
    return addr->sa.sa_family == AF_INET && addr->in4.sin_addr.s_addr == 0;
}
