/*
 * From bytes to a result: head by head, then the body if its text counts.
 */
#include "node/health/judge.h"

#include "node/base/check.h"

#include <stdio.h>
#include <string.h>

const char *look_result_label(enum look_result result)
{
    static const char *const labels[LOOK_RESULT_COUNT] = {
        [LOOK_PENDING] = "pending", [LOOK_GOOD] = "good",         [LOOK_CONNECT] = "connect",
        [LOOK_TIMEOUT] = "timeout", [LOOK_CLOSED] = "closed",     [LOOK_STATUS] = "status",
        [LOOK_BODY] = "body",       [LOOK_PROTOCOL] = "protocol", [LOOK_TLS] = "tls",
        [LOOK_LOCAL] = "local",
    };
    return (size_t)result < ARRAY_LEN(labels) ? labels[result] : "?";
}

void judge_init(struct judge *judge, const struct check_spec *spec)
{
    *judge = (struct judge){.spec = spec};
    /* Room for a head at its limit and for what came with it in one read. */
    buf_init(&judge->head, (size_t)2 * JUDGE_HEAD_BYTES_MAX);
    buf_init(&judge->text, CHECK_BODY_SEARCH_BYTES);
}

void judge_deinit(struct judge *judge)
{
    buf_deinit(&judge->head);
    buf_deinit(&judge->text);
}

static enum look_result say(char why[LOOK_TEXT_MAX], enum look_result result, const char *text)
{
    (void)snprintf(why, LOOK_TEXT_MAX, "%s", text);
    return result;
}

static enum look_result malformed(enum h1_fault fault, char why[LOOK_TEXT_MAX])
{
    (void)snprintf(why, LOOK_TEXT_MAX, "no valid HTTP response: %s", h1_fault_text(fault));
    return LOOK_PROTOCOL;
}

static enum look_result body_missing(const struct judge *judge, char why[LOOK_TEXT_MAX])
{
    (void)snprintf(why, LOOK_TEXT_MAX, "body does not contain \"%.60s\"%s", judge->spec->body,
                   judge->text.len == CHECK_BODY_SEARCH_BYTES ? " in its first 64 kB" : "");
    return LOOK_BODY;
}

/* Append what fits and look where the new bytes may have completed the text. */
static bool found_in(struct judge *judge, const char *data, size_t len)
{
    size_t need = judge->spec->body_len;
    size_t before = judge->text.len;
    size_t room = CHECK_BODY_SEARCH_BYTES - before;
    (void)buf_put(&judge->text, data, MIN(len, room)); /* fits */
    size_t from = before - MIN(before, need - MIN(need, (size_t)1));
    return judge->text.len - from >= need &&
           memmem(judge->text.data + from, judge->text.len - from, judge->spec->body, need) != NULL;
}

static enum look_result feed_body(struct judge *judge, const char *bytes, size_t len,
                                  char why[LOOK_TEXT_MAX])
{
    size_t used = 0;
    while (used < len && !h1_body_done(&judge->body)) {
        struct h1_piece piece;
        int rc = h1_body_next(&judge->body, bytes + used, len - used, &piece);
        if (rc != RC_OK) {
            return malformed(judge->body.fault, why);
        }
        if (piece.data_len > 0 && found_in(judge, piece.data, piece.data_len)) {
            return say(why, LOOK_GOOD, "");
        }
        if (judge->text.len == CHECK_BODY_SEARCH_BYTES) {
            return body_missing(judge, why);
        }
        used += piece.used;
    }
    return h1_body_done(&judge->body) ? body_missing(judge, why) : LOOK_PENDING;
}

/* A complete head: the result, or LOOK_PENDING with in_body or for the next head. */
static enum look_result judge_head(struct judge *judge, const struct h1_head *head,
                                   char why[LOOK_TEXT_MAX])
{
    if (head->status < 200 && head->status != 101) {
        judge->interims++;
        return judge->interims > JUDGE_INTERIM_MAX
                   ? say(why, LOOK_PROTOCOL, "too many interim responses")
                   : LOOK_PENDING;
    }
    if (!check_spec_wants_status(judge->spec, head->status)) {
        (void)snprintf(why, LOOK_TEXT_MAX, "status %u", (unsigned)head->status);
        return LOOK_STATUS;
    }
    if (judge->spec->body == NULL) {
        return say(why, LOOK_GOOD, "");
    }
    judge->in_body = true;
    h1_body_init(&judge->body, head->framing, head->content_length, NULL, NULL);
    return h1_body_done(&judge->body) ? body_missing(judge, why) : LOOK_PENDING;
}

/* Heads stand at the front of judge->head, with what follows them. */
static enum look_result take_heads(struct judge *judge, char why[LOOK_TEXT_MAX])
{
    static const struct h1_limits limits = {.head_bytes = JUDGE_HEAD_BYTES_MAX,
                                            .field_count = JUDGE_FIELDS_MAX,
                                            .target_bytes = JUDGE_HEAD_BYTES_MAX};
    while (!judge->in_body && judge->head.len > 0) {
        struct h1_field fields[JUDGE_FIELDS_MAX];
        struct h1_head head;
        h1_head_init(&head, fields, JUDGE_FIELDS_MAX);
        int rc = h1_parse_response(&judge->scan, judge->head.data, judge->head.len,
                                   judge->spec->method, &limits, &head);
        if (rc == RC_AGAIN) {
            return LOOK_PENDING;
        }
        if (rc != RC_OK) {
            return malformed(head.fault, why);
        }
        enum look_result result = judge_head(judge, &head, why);
        if (result != LOOK_PENDING) {
            return result;
        }
        buf_drop(&judge->head, head.len);
        judge->scan = (struct h1_scan){0};
    }
    return LOOK_PENDING;
}

enum look_result judge_feed(struct judge *judge, const char *bytes, size_t len,
                            char why[LOOK_TEXT_MAX])
{
    while (len > 0) {
        if (judge->in_body) {
            return feed_body(judge, bytes, len, why);
        }
        /* A head is found in 16 kB or refused, so the buffer never fills with one. */
        size_t part = MIN(len, judge->head.cap_bytes - judge->head.len);
        ASSERT(part > 0);
        ASSERT(buf_put(&judge->head, bytes, part) == RC_OK);
        bytes += part;
        len -= part;
        enum look_result result = take_heads(judge, why);
        if (result == LOOK_PENDING && judge->in_body) {
            result = feed_body(judge, judge->head.data, judge->head.len, why);
            buf_reset(&judge->head);
        }
        if (result != LOOK_PENDING) {
            return result;
        }
    }
    return LOOK_PENDING;
}

enum look_result judge_end(struct judge *judge, char why[LOOK_TEXT_MAX])
{
    if (!judge->in_body) {
        return say(why, LOOK_CLOSED,
                   judge->head.len > 0 ? "connection closed within the response"
                                       : "connection closed without a response");
    }
    if (h1_body_end(&judge->body) != RC_OK) {
        return say(why, LOOK_CLOSED, "connection closed within the body");
    }
    return body_missing(judge, why);
}
