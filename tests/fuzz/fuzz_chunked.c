/* unit: node_http */
/*
 * Chunked bodies: cutting the input anywhere gives the same data, end and verdict; what was decoded
 * and is framed anew decodes to the same; nothing is taken from behind the end.
 */
#include "node/base/check.h"
#include "node/http/h1_body.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    int rc;
    bool done;
    size_t used;
    struct buf data;
    struct buf trailers;
};

static void decode(struct result *result, const char *bytes, size_t len, size_t step)
{
    static const struct h1_body_limits limits = {
        .body_bytes = 1 << 20, .overhead_bytes = 256, .trailer_bytes = 512, .trailer_count = 8};
    struct h1_body body;
    *result = (struct result){0};
    buf_init(&result->data, len + 1);
    buf_init(&result->trailers, 1024);
    h1_body_init(&body, H1_BODY_CHUNKED, 0, &limits, &result->trailers);
    size_t at = 0;
    while (at < len && result->rc == 0 && !h1_body_done(&body)) {
        struct h1_piece piece;
        size_t part = MIN(step, len - at);
        result->rc = h1_body_next(&body, bytes + at, part, &piece);
        if (result->rc != 0) {
            ASSERT(body.fault != H1_FAULT_NONE);
            break;
        }
        ASSERT(piece.used > 0 && piece.used <= part && piece.data_len <= piece.used);
        ASSERT(buf_put(&result->data, piece.data, piece.data_len) == 0);
        at += piece.used;
    }
    result->done = h1_body_done(&body);
    result->used = at;
    ASSERT(result->rc != 0 || body.received == result->data.len);
    ASSERT(h1_body_end(&body) == (result->done ? 0 : RC_CLOSED));
}

static void drop(struct result *result)
{
    buf_deinit(&result->data);
    buf_deinit(&result->trailers);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct result whole, pieces;
    decode(&whole, bytes, size, size);
    static const size_t steps[] = {1, 2, 3, 7};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        decode(&pieces, bytes, size, steps[i]);
        ASSERT(pieces.rc == whole.rc && pieces.done == whole.done);
        ASSERT(whole.rc != 0 || (pieces.used == whole.used && is_same(&pieces.data, &whole.data) &&
                                 is_same(&pieces.trailers, &whole.trailers)));
        drop(&pieces);
    }
    if (whole.done) {
        struct buf out;
        buf_init(&out, size + 4096);
        ASSERT(h1_chunk_put(&out, whole.data.data, whole.data.len) == 0);
        ASSERT(h1_chunk_end(&out, whole.trailers.data, whole.trailers.len) == 0);
        decode(&pieces, out.data, out.len, 5);
        ASSERT(pieces.done && pieces.used == out.len && is_same(&pieces.data, &whole.data) &&
               is_same(&pieces.trailers, &whole.trailers));
        drop(&pieces);
        buf_deinit(&out);
    }
    drop(&whole);
    return 0;
}
