/* unit: node_health */
/*
 * Responses to health checks: however they are cut, the result is the same (but for a text found
 * right before malformed chunking, where it may be either), and what is held stays bounded. The
 * first byte chooses the check.
 */
#include "node/base/check.h"
#include "node/health/judge.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum look_result judged(const struct check_spec *spec, const char *bytes, size_t len,
                               size_t step)
{
    struct judge judge;
    enum look_result result = LOOK_PENDING;
    char why[LOOK_TEXT_MAX] = "";
    judge_init(&judge, spec);
    for (size_t at = 0; at < len && result == LOOK_PENDING; at += step) {
        result = judge_feed(&judge, bytes + at, MIN(step, len - at), why);
        ASSERT(judge.text.len <= CHECK_BODY_SEARCH_BYTES);
        ASSERT(judge.head.len <= JUDGE_HEAD_BYTES_MAX || result != LOOK_PENDING);
    }
    if (result == LOOK_PENDING) {
        result = judge_end(&judge, why);
    }
    ASSERT(result != LOOK_PENDING && result < LOOK_RESULT_COUNT);
    ASSERT((result == LOOK_GOOD) == (why[0] == '\0'));
    judge_deinit(&judge);
    return result;
}

/* A decoder that sees data and the fault behind it at once has only the fault to tell of. */
static bool is_found_before_fault(const struct check_spec *spec, enum look_result a,
                                  enum look_result b)
{
    return spec->body != NULL && MIN(a, b) == LOOK_GOOD && MAX(a, b) == LOOK_PROTOCOL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct check_config config = {
        .type = CHECK_HTTP,
        .pace = {.interval_ms = 1, .interval_down_ms = 1, .timeout_ms = 1, .rise = 1, .fall = 1},
        .method = (data[0] & 1) != 0 ? "HEAD" : "GET",
        .body = (data[0] & 2) != 0 ? "aab" : NULL,
    };
    struct check_spec *spec = NULL;
    ASSERT(check_spec_new(&config, &spec) == RC_OK);
    const char *bytes = (const char *)data + 1;
    size_t len = size - 1;
    enum look_result whole = judged(spec, bytes, len, MAX(len, (size_t)1));
    static const size_t steps[] = {1, 2, 3, 7, 1000};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        enum look_result pieces = judged(spec, bytes, len, steps[i]);
        ASSERT(pieces == whole || is_found_before_fault(spec, pieces, whole));
    }
    check_spec_unref(spec);
    return 0;
}
