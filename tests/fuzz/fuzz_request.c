/* unit: node_http */
/*
 * Request heads: cutting the input anywhere gives the same result; an accepted head is rewritten
 * into one that is accepted again and says the same; and llhttp takes
 * every head that is accepted and sees the same framing.
 */
#include "node/base/check.h"
#include "node/http/h1_write.h"
#include "tests/support/h1_oracle.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64 };

static const struct h1_limits limits = {
    .head_bytes = 8192, .field_count = FIELDS, .target_bytes = 2048};

static int parse(const char *bytes, size_t len, size_t cut, struct h1_head *head)
{
    struct h1_scan scan = {0};
    int rc = RC_AGAIN;
    if (cut < len) {
        rc = h1_parse_request(&scan, bytes, cut, &limits, head);
    }
    rc = rc == RC_AGAIN ? h1_parse_request(&scan, bytes, len, &limits, head) : rc;
    ASSERT(rc != 0 || h1_oracle_agrees(head, bytes, scan.start, true));
    return rc;
}

static void check_span(const struct h1_head *head, struct h1_span span)
{
    ASSERT((uint32_t)span.off + span.len <= head->len);
}

static void check_head(const struct h1_head *head, const char *bytes)
{
    ASSERT(head->len >= 16 && memcmp(bytes + head->len - 4, "\r\n\r\n", 4) == 0);
    check_span(head, head->method);
    check_span(head, head->target);
    check_span(head, head->path);
    check_span(head, head->query);
    check_span(head, head->host);
    ASSERT(head->method.len > 0 && head->target.len > 0);
    ASSERT(head->framing != H1_BODY_UNTIL_CLOSE);
    ASSERT(strlen(head->host_name) == head->host_name_len);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->fields[i];
        check_span(head, field->name);
        check_span(head, field->value);
        ASSERT(h1_is_token(bytes + field->name.off, field->name.len));
        ASSERT(h1_is_field_value(bytes + field->value.off, field->value.len));
    }
}

static void check_rewrite(const struct h1_head *head, const char *bytes, enum fwd_policy policy)
{
    static struct h1_field fields[FIELDS + 16];
    const struct h1_limits wide = {
        .head_bytes = 65535, .field_count = FIELDS + 16, .target_bytes = 4096};
    struct addr client = {0};
    struct fwd_peer peer;
    struct h1_head again;
    struct h1_scan scan = {0};
    struct buf out;
    fwd_peer_init(&peer, &client, 80, false);
    buf_init(&out, 2 * (size_t)head->len + 2048);
    const struct h1_out how = {
        .framing = head->framing,
        .content_length = head->content_length,
        .connection = head->upgrade ? H1_CONNECTION_UPGRADE : H1_CONNECTION_SILENT,
        .peer = &peer,
        .policy = policy,
    };
    int rc = h1_write_request(&out, head, bytes, &how);
    ASSERT(rc == 0 || (rc == RC_INVALID && (head->host.len == 0 || head->method_id == H1_CONNECT)));
    if (rc == 0) {
        h1_head_init(&again, fields, FIELDS + 16);
        ASSERT(h1_parse_request(&scan, out.data, out.len, &wide, &again) == 0);
        ASSERT(again.len == out.len);
        ASSERT(again.framing == head->framing);
        ASSERT(again.content_length == head->content_length);
        ASSERT(again.upgrade == head->upgrade);
        ASSERT(strcmp(again.host_name, head->host_name) == 0);
        ASSERT((again.present & (H1_BIT(H1_PROXY) | H1_BIT(H1_KEEP_ALIVE) | H1_BIT(H1_TE))) == 0);
    }
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct h1_field fields[FIELDS], other_fields[FIELDS];
    const char *bytes = (const char *)data;
    struct h1_head head, other;
    h1_head_init(&head, fields, FIELDS);
    h1_head_init(&other, other_fields, FIELDS);
    int rc = parse(bytes, size, size, &head);
    ASSERT(rc == 0 || rc == RC_AGAIN || head.fault != H1_FAULT_NONE);
    size_t step = size / 16 + 1;
    for (size_t cut = 0; cut < size; cut += step) {
        int again = parse(bytes, size, cut, &other);
        /* of two faults in one head, the cut decides which is met first */
        ASSERT((again == 0) == (rc == 0) && (again == RC_AGAIN) == (rc == RC_AGAIN));
        ASSERT(rc != 0 || (other.len == head.len && other.field_count == head.field_count));
        /* one in one piece may take the quick way, one in two does not */
        ASSERT(rc != 0 ||
               (other.present == head.present && other.field_count == head.field_count &&
                memcmp(fields, other_fields, head.field_count * sizeof(fields[0])) == 0));
    }
    if (rc == 0) {
        check_head(&head, bytes);
        check_rewrite(&head, bytes, (enum fwd_policy)(size % FWD_POLICY_COUNT));
    }
    return 0;
}
