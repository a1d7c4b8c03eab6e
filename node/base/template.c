/*
 * Templates: one pass over the text, then parts that point into one copy of it; see template.h.
 */
#include "node/base/template.h"

#include "node/base/mem.h"

#include <string.h>

enum { IN_ALL = 7, IN_REQUEST = 1 << TEMPLATE_IN_REQUEST, IN_RESPONSE = 1 << TEMPLATE_IN_RESPONSE };

static const struct variable {
    const char *name; /* with a dot at its end: a header's name follows */
    enum template_var var;
    unsigned places;
} variables[] = {
    {"client.address", TEMPLATE_CLIENT_ADDRESS, IN_ALL},
    {"client.port", TEMPLATE_CLIENT_PORT, IN_ALL},
    {"host", TEMPLATE_HOST, IN_ALL},
    {"path", TEMPLATE_PATH, IN_ALL},
    {"query", TEMPLATE_QUERY, IN_ALL},
    {"method", TEMPLATE_METHOD, IN_ALL},
    {"request.id", TEMPLATE_REQUEST_ID, IN_REQUEST | IN_RESPONSE},
    {"route", TEMPLATE_ROUTE, IN_REQUEST | IN_RESPONSE},
    {"namespace", TEMPLATE_NAMESPACE, IN_REQUEST | IN_RESPONSE},
    {"backend", TEMPLATE_BACKEND, IN_REQUEST | IN_RESPONSE},
    {"endpoint", TEMPLATE_ENDPOINT, IN_RESPONSE},
    {"node", TEMPLATE_NODE, IN_ALL},
    {"scheme", TEMPLATE_SCHEME, IN_ALL},
    {"listener.port", TEMPLATE_LISTENER_PORT, IN_ALL},
    {"time", TEMPLATE_TIME, IN_ALL},
    {"random", TEMPLATE_RANDOM, IN_ALL},
    {"request.header.", TEMPLATE_REQUEST_HEADER, IN_ALL},
    {"response.header.", TEMPLATE_RESPONSE_HEADER, IN_RESPONSE},
};

/* RFC 9110 5.6.2 */
static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return len != 0 && len <= TEMPLATE_NAME_MAX;
}

static bool is_named(const struct variable *variable, const char *name, size_t len)
{
    size_t want = strlen(variable->name);
    bool takes_header = variable->name[want - 1] == '.';
    return takes_header ? len > want && memcmp(name, variable->name, want) == 0
                        : len == want && memcmp(name, variable->name, want) == 0;
}

static int unknown(const char *name, size_t len, enum template_place place, struct err_info *err)
{
    char list[400];
    size_t used = 0;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        size_t name_len = strlen(variables[i].name);
        if ((variables[i].places & 1U << place) == 0 || used + name_len + 8 > sizeof(list)) {
            continue;
        }
        if (used != 0) {
            list[used++] = ',';
            list[used++] = ' ';
        }
        memcpy(list + used, variables[i].name, name_len);
        used += name_len;
        if (variables[i].name[name_len - 1] == '.') {
            memcpy(list + used, "NAME", 4);
            used += 4;
        }
    }
    list[used] = '\0';
    return err_set(err, RC_INVALID, "%%{%.*s} is no variable here; accepted are %s",
                   (int)MIN(len, (size_t)60), name, list);
}

/* The variable between the braces. */
static int take_variable(const char *name, size_t len, enum template_place place,
                         struct template_part *part, struct err_info *err)
{
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const struct variable *variable = &variables[i];
        if (!is_named(variable, name, len) || (variable->places & 1U << place) == 0) {
            continue;
        }
        size_t prefix = strlen(variable->name);
        *part = (struct template_part){.var = variable->var};
        if (len > prefix) {
            if (!is_token(name + prefix, len - prefix)) {
                return err_set(err, RC_INVALID, "\"%.*s\" is no header name",
                               (int)MIN(len - prefix, (size_t)60), name + prefix);
            }
            part->text = name + prefix;
            part->len = len - prefix;
        }
        return RC_OK;
    }
    return unknown(name, len, place, err);
}

/* The part at text[*pos], which is before the end; parts may be NULL to look only. */
static int take_part(const char *text, size_t len, size_t *pos, enum template_place place,
                     struct template_part *part, struct err_info *err)
{
    const char *at = text + *pos;
    if (*at != '%') {
        const char *percent = memchr(at, '%', len - *pos);
        size_t run = percent != NULL ? (size_t)(percent - at) : len - *pos;
        *part = (struct template_part){.text = at, .len = run};
        *pos += run;
        return RC_OK;
    }
    if (at[1] == '%') {
        *part = (struct template_part){.text = at, .len = 1};
        *pos += 2;
        return RC_OK;
    }
    const char *end = at[1] == '{' ? memchr(at, '}', len - *pos) : NULL;
    if (end == NULL) {
        return err_set(err, RC_INVALID,
                       "has a %% at byte %zu that begins no variable such as %%{host}; write %%%% "
                       "for the character itself",
                       *pos + 1);
    }
    *pos += (size_t)(end - at) + 1;
    return take_variable(at + 2, (size_t)(end - at) - 2, place, part, err);
}

static void lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
    }
}

int template_new(const char *text, enum template_place place, struct template **ret_template,
                 struct err_info *err)
{
    size_t len = strlen(text);
    if (len > TEMPLATE_TEXT_MAX) {
        return err_set(err, RC_TOO_BIG, "is %zu bytes long; at most %d are accepted", len,
                       TEMPLATE_TEXT_MAX);
    }
    struct template *template = mem_new(sizeof(*template));
    template->store = mem_strdup(text);
    template->parts = mem_array(TEMPLATE_PARTS_MAX, sizeof(*template->parts));
    int rc = RC_OK;
    for (size_t pos = 0; pos < len && rc == RC_OK;) {
        if (template->count == TEMPLATE_PARTS_MAX) {
            rc = err_set(err, RC_TOO_BIG, "has more than %d variables and texts between them",
                         TEMPLATE_PARTS_MAX);
            break;
        }
        struct template_part *part = &template->parts[template->count];
        rc = take_part(template->store, len, &pos, place, part, err);
        template->count++;
        template->has_vars = template->has_vars || part->var != TEMPLATE_LITERAL;
    }
    if (rc != RC_OK) {
        template_free(template);
        return rc;
    }
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];
        if (part->var != TEMPLATE_LITERAL && part->text != NULL) {
            lower(template->store + (part->text - template->store), part->len);
        }
    }
    template->parts =
        mem_grow(template->parts, MAX(template->count, (size_t)1), sizeof(*template->parts));
    *ret_template = template;
    return RC_OK;
}

void template_free(struct template *template)
{
    if (template != NULL) {
        mem_free(template->parts);
        mem_free(template->store);
        mem_free(template);
    }
}

int template_check(const char *text, enum template_place place, struct err_info *err)
{
    struct template *template = NULL;
    int rc = template_new(text, place, &template, err);
    if (rc == RC_OK) {
        template_free(template);
    }
    return rc;
}

/* A control byte in a header ends it or worse (RFC 9110 5.5). */
static void put_clean(struct buf *out, const char *bytes, size_t len)
{
    char *room = len != 0 ? buf_reserve(out, len) : NULL;
    if (room == NULL) {
        return; /* out->full tells */
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        room[i] = (c < 0x20 && c != '\t') || c == 0x7f ? ' ' : bytes[i];
    }
    buf_grow(out, len);
}

void template_render(const struct template *template, template_source_fn *source, void *ctx,
                     struct buf *out)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct template_part *part = &template->parts[i];
        if (part->var == TEMPLATE_LITERAL) {
            put_clean(out, part->text, part->len);
        } else {
            struct template_value value = source(ctx, part);
            put_clean(out, value.at, value.len);
        }
    }
}
