/* unit: node_http */
/*
 * Forwarded fields: whatever lines a client sends, under append and replace the router's own
 * element is the last one that a recipient sees, and each field goes out on one line.
 */
#include "node/base/check.h"
#include "node/http/h1_write.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64 };

static const struct h1_limits limits = {
    .head_bytes = 65535, .field_count = FIELDS, .target_bytes = 2048};

/* The last element of a list with quoted strings (RFC 7239 4). */
static void last_element(const char *value, size_t len, const char **ret, size_t *ret_len)
{
    size_t begin = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] == '"') {
            quoted = !quoted;
        } else if (value[i] == '\\' && quoted) {
            i++;
        } else if (value[i] == ',' && !quoted) {
            begin = i + 1;
        }
    }
    while (begin < len && value[begin] == ' ') {
        begin++;
    }
    *ret = value + begin;
    *ret_len = len - begin;
}

static void check_last(const struct h1_head *head, const char *bytes, enum h1_name id,
                       const char *want)
{
    const struct h1_field *field = h1_find(head, id);
    const char *element = NULL;
    size_t len = 0;
    ASSERT(field != NULL && h1_find_next(head, field) == NULL);
    last_element(bytes + field->value.off, field->value.len, &element, &len);
    if (id != H1_FORWARDED) { /* no quoting there */
        while (len > 0 && memchr(element, ',', len) != NULL) {
            const char *comma = memchr(element, ',', len);
            len -= (size_t)(comma + 2 - element);
            element = comma + 2;
        }
        const char *value_end = bytes + field->value.off + field->value.len;
        ASSERT(field->value.len >= strlen(want));
        ASSERT(memcmp(value_end - strlen(want), want, strlen(want)) == 0);
        return;
    }
    ASSERT(len == strlen(want) && memcmp(element, want, len) == 0);
}

static void check(const char *raw, size_t len, enum fwd_policy policy)
{
    static struct h1_field fields[FIELDS], out_fields[FIELDS + 16];
    struct h1_head head, again;
    struct h1_scan scan = {0};
    h1_head_init(&head, fields, FIELDS);
    if (h1_parse_request(&scan, raw, len, &limits, &head) != 0) {
        return;
    }
    struct addr client = {0};
    struct fwd_peer peer;
    struct buf out;
    ASSERT(addr_parse("[2001:db8::1]:4000", &client, NULL) == 0);
    fwd_peer_init(&peer, &client, 8080, true);
    buf_init(&out, 2 * (size_t)head.len + 2048);
    const struct h1_out how = {.peer = &peer, .policy = policy};
    ASSERT(h1_write_request(&out, &head, raw, &how) == 0);
    const struct h1_limits wide = {
        .head_bytes = 65535, .field_count = FIELDS + 16, .target_bytes = 2048};
    scan = (struct h1_scan){0};
    h1_head_init(&again, out_fields, FIELDS + 16);
    int rc = h1_parse_request(&scan, out.data, out.len, &wide, &again);
    ASSERT(rc == 0 || rc == RC_TOO_BIG);
    if (rc == 0 && (policy == FWD_APPEND || policy == FWD_REPLACE)) {
        check_last(&again, out.data, H1_X_FORWARDED_FOR, "2001:db8::1");
        check_last(&again, out.data, H1_X_FORWARDED_HOST, "a.test:80");
        check_last(&again, out.data, H1_X_FORWARDED_PORT, "8080");
        check_last(&again, out.data, H1_X_FORWARDED_PROTO, "https");
        check_last(&again, out.data, H1_FORWARDED,
                   "for=\"[2001:db8::1]\";host=\"a.test:80\";proto=https");
    }
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char begin[] = "GET / HTTP/1.1\r\nHost: a.test:80\r\n";
    if (size > 16384) {
        return 0;
    }
    size_t len = sizeof(begin) - 1 + size + 4;
    char *raw = malloc(len);
    memcpy(raw, begin, sizeof(begin) - 1);
    if (size > 0) {
        memcpy(raw + sizeof(begin) - 1, data, size);
    }
    memcpy(raw + len - 4, "\r\n\r\n", 4);
    for (int policy = 0; policy < FWD_POLICY_COUNT; policy++) {
        check(raw, len, (enum fwd_policy)policy);
    }
    free(raw);
    return 0;
}
