/*
 * Query parameters, percent-decoding and entity tags; see the header.
 */
#include "admin/server/query.h"

#include "node/base/mem.h"

#include <inttypes.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int percent_decode(const char *text, size_t len, bool plus_is_space, char **ret_text,
                   struct err_info *err)
{
    char *out = mem_new(len + 1); /* the caller's text is bounded by the head's limit */
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
            int low = high >= 0 ? hex_value(text[i + 2]) : -1;
            if (low < 0) {
                mem_free(out);
                return err_set(err, RC_INVALID, "\"%.*s\": %% must be followed by two hex digits",
                               (int)MIN(len, 80), text);
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f) {
            mem_free(out);
            return err_set(err, RC_INVALID, "\"%.*s\": control characters are not accepted",
                           (int)MIN(len, 80), text);
        }
        out[used++] = c;
    }
    *ret_text = out;
    return RC_OK;
}

static int query_add(struct query *query, const char *text, size_t len, struct err_info *err)
{
    if (query->count == QUERY_PARAMS_MAX) {
        return err_set(err, RC_INVALID, "more than %d query parameters", QUERY_PARAMS_MAX);
    }
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - text) : len;
    const char *value = equals != NULL ? equals + 1 : text + len;
    struct query_param param = {0};
    int rc = percent_decode(text, name_len, true, &param.name, err);
    if (rc == RC_OK) {
        rc = percent_decode(value, (size_t)(text + len - value), true, &param.value, err);
    }
    if (rc == RC_OK && query_find(query, param.name) != NULL) {
        rc = err_set(err, RC_INVALID, "query parameter \"%.80s\" is given twice", param.name);
    }
    if (rc != RC_OK) {
        mem_free(param.name);
        mem_free(param.value);
        return rc;
    }
    query->params[query->count++] = param;
    return RC_OK;
}

int query_parse(const char *text, size_t len, struct query *ret_query, struct err_info *err)
{
    struct query query = {.count = 0};
    const char *end = text + len;
    while (text < end) {
        const char *amp = memchr(text, '&', (size_t)(end - text));
        size_t part = (size_t)((amp != NULL ? amp : end) - text);
        int rc = part > 0 ? query_add(&query, text, part, err) : RC_OK;
        if (rc != RC_OK) {
            query_deinit(&query);
            return rc;
        }
        text += part + 1;
    }
    *ret_query = query;
    return RC_OK;
}

void query_deinit(struct query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        MEM_FREE(query->params[i].name);
        MEM_FREE(query->params[i].value);
    }
    query->count = 0;
}

const char *query_find(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++) {
        if (strcmp(query->params[i].name, name) == 0) {
            return query->params[i].value;
        }
    }
    return NULL;
}

static bool word_in(const char *word, const char *list)
{
    size_t len = strlen(word);
    for (const char *at = list; len > 0 && (at = strstr(at, word)) != NULL; at += len) {
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

int query_bool(const struct query *query, const char *name, bool *ret_value, struct err_info *err)
{
    const char *text = query_find(query, name);
    if (text == NULL || word_in(text, "false 0 no")) {
        *ret_value = false;
    } else if (text[0] == '\0' || word_in(text, "true 1 yes")) {
        *ret_value = true;
    } else {
        return err_set(err, RC_INVALID, "%s: \"%.80s\" is neither true nor false", name, text);
    }
    return RC_OK;
}

int query_number(const struct query *query, const char *name, uint64_t min, uint64_t max,
                 uint64_t *ret_value, struct err_info *err)
{
    const char *text = query_find(query, name);
    if (text == NULL) {
        return RC_OK;
    }
    size_t digits = strspn(text, "0123456789");
    uint64_t value = 0;
    for (size_t i = 0; i < digits && digits <= 18; i++) {
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (digits == 0 || digits > 18 || text[digits] != '\0' || value < min || value > max) {
        return err_set(err, RC_INVALID,
                       "%s: \"%.80s\" is not a number from %" PRIu64 " to %" PRIu64, name, text,
                       min, max);
    }
    *ret_value = value;
    return RC_OK;
}

int query_check(const struct query *query, const char *accepted, struct err_info *err)
{
    for (size_t i = 0; i < query->count; i++) {
        if (!word_in(query->params[i].name, accepted)) {
            return err_set(err, RC_INVALID, "unknown query parameter \"%.80s\"; accepted: %s",
                           query->params[i].name, accepted[0] != '\0' ? accepted : "none");
        }
    }
    return RC_OK;
}

bool etag_matches(const char *header, const char *etag)
{
    if (etag == NULL) {
        return false;
    }
    const char *at = header + strspn(header, " \t");
    if (at[0] == '*' && at[1 + strspn(at + 1, " \t")] == '\0') {
        return true;
    }
    size_t len = strlen(etag);
    while (*at != '\0') {
        at += strspn(at, " \t,");
        bool weak = at[0] == 'W' && at[1] == '/';
        at += weak ? 2 : 0;
        if (*at != '"') {
            return false;
        }
        const char *close = strchr(at + 1, '"');
        if (close == NULL) {
            return false;
        }
        if (!weak && (size_t)(close - at - 1) == len && memcmp(at + 1, etag, len) == 0) {
            return true;
        }
        at = close + 1;
    }
    return false;
}
