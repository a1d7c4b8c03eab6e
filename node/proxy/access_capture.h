/*
 * Which fields and cookies the access log carries besides its own: a list of names, compiled from
 * proxy_captures and immutable. Only what is named is taken; Authorization and Cookie too.
 * Thread: made and freed by the control thread, read by all.
 */
#ifndef SKEIN_NODE_PROXY_ACCESS_CAPTURE_H
#define SKEIN_NODE_PROXY_ACCESS_CAPTURE_H

#include "node/proxy/proxy_policy.h"

enum {
    CAPTURES_MAX = 64,        /* of each kind */
    CAPTURE_NAME_MAX = 255,   /* bytes */
    CAPTURE_LENGTH = 256,     /* bytes of a value unless maxLength says otherwise */
    CAPTURE_LENGTH_MAX = 4096 /* whatever it says */
};

struct capture {
    const char *name; /* lower-case, but for cookies */
    uint8_t name_len;
    uint16_t max_length;
};

struct captures {
    const struct capture *request;
    const struct capture *response;
    const struct capture *cookies;
    uint16_t request_count;
    uint16_t response_count;
    uint16_t cookie_count;
};

/* A copy, released with mem_free; NULL when nothing is asked for. What is above the limits is left
 * out: the object model refuses it. */
struct captures *captures_new(const struct proxy_captures *from);

#endif
