/* unit: node_http */
/*
 * Response heads: cutting the input anywhere gives the same result, an accepted head is rewritten
 * into one that is framed as was decided, and llhttp takes
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

static int parse(const char *bytes, size_t len, size_t cut, enum h1_method method,
                 struct h1_head *head)
{
    struct h1_scan scan = {0};
    int rc = RC_AGAIN;
    if (cut < len) {
        rc = h1_parse_response(&scan, bytes, cut, method, &limits, head);
    }
    rc = rc == RC_AGAIN ? h1_parse_response(&scan, bytes, len, method, &limits, head) : rc;
    ASSERT(rc != 0 || h1_oracle_agrees(head, bytes, scan.start, false));
    return rc;
}

static void check_rewrite(const struct h1_head *head, const char *bytes, enum h1_method method)
{
    static struct h1_field fields[FIELDS + 16];
    const struct h1_limits wide = {
        .head_bytes = 65535, .field_count = FIELDS + 16, .target_bytes = 4096};
    struct h1_head again;
    struct h1_scan scan = {0};
    struct buf out;
    buf_init(&out, (size_t)head->len + 1024);
    const struct h1_out how = {
        .framing = head->framing,
        .content_length = head->content_length,
        .connection = head->upgrade ? H1_CONNECTION_UPGRADE : H1_CONNECTION_CLOSE,
        .date = "Sun, 06 Nov 1994 08:49:37 GMT",
    };
    ASSERT(h1_write_response(&out, head, bytes, &how) == 0);
    h1_head_init(&again, fields, FIELDS + 16);
    ASSERT(h1_parse_response(&scan, out.data, out.len, method, &wide, &again) == 0);
    ASSERT(again.len == out.len && again.status == head->status);
    ASSERT(again.framing == head->framing);
    ASSERT(again.framing != H1_BODY_LENGTH || again.content_length == head->content_length);
    ASSERT(again.upgrade == head->upgrade);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct h1_field fields[FIELDS], other_fields[FIELDS];
    const char *bytes = (const char *)data;
    enum h1_method method = size % 2 == 0 ? H1_GET : H1_HEAD;
    struct h1_head head, other;
    h1_head_init(&head, fields, FIELDS);
    h1_head_init(&other, other_fields, FIELDS);
    int rc = parse(bytes, size, size, method, &head);
    ASSERT(rc == 0 || rc == RC_AGAIN || head.fault != H1_FAULT_NONE);
    size_t step = size / 16 + 1;
    for (size_t cut = 0; cut < size; cut += step) {
        int again = parse(bytes, size, cut, method, &other);
        ASSERT((again == 0) == (rc == 0) && (again == RC_AGAIN) == (rc == RC_AGAIN));
        ASSERT(rc != 0 || (other.len == head.len && other.framing == head.framing));
        /* one in one piece may take the quick way, one in two does not */
        ASSERT(rc != 0 ||
               (other.present == head.present && other.field_count == head.field_count &&
                memcmp(fields, other_fields, head.field_count * sizeof(fields[0])) == 0));
    }
    if (rc == 0) {
        check_rewrite(&head, bytes, method);
    }
    return 0;
}
