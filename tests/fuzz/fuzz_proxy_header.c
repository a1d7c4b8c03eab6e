/* unit: node_net */
/*
 * PROXY headers: what is taken lies within what is there, less of it is never taken and never
 * wrong, and what it tells, written in both versions, is read back.
 */
#include "node/base/check.h"
#include "node/net/proxy_header.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct proxy_header *header, const char *bytes, size_t len)
{
    struct proxy_header again;
    ASSERT(len <= PROXY_HEADER_OUT_MAX);
    ASSERT(proxy_header_parse(bytes, len, &again) == RC_OK);
    ASSERT(again.told && again.len == len);
    /* An IPv4-mapped end may have become IPv4; its port stays. */
    ASSERT(addr_port(&again.source) == addr_port(&header->source));
    ASSERT(addr_port(&again.destination) == addr_port(&header->destination));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct proxy_header header;
    int rc = proxy_header_parse(bytes, size, &header);
    ASSERT(rc == RC_OK || rc == RC_AGAIN || rc == RC_INVALID || rc == RC_TOO_BIG);
    if (rc != RC_OK) {
        return 0;
    }
    ASSERT(header.len != 0 && header.len <= size && header.len <= PROXY_HEADER_MAX);
    struct proxy_header less;
    for (size_t i = 0; i < header.len; i++) {
        ASSERT(proxy_header_parse(bytes, i, &less) == RC_AGAIN);
    }
    if (header.told) {
        char out[PROXY_HEADER_OUT_MAX + 1];
        check_written(&header, out, proxy_header_v1(out, &header.source, &header.destination));
        check_written(&header, out, proxy_header_v2(out, &header.source, &header.destination));
    }
    return 0;
}
