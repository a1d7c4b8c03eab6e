/*
 * Label selectors: a list of requirements that must all hold.
 */
#include "proto/selector.h"

#include "node/base/mem.h"

#include <ctype.h>
#include <string.h>

enum term_op {
    TERM_IN = 0, /* "=", "==", "in": the label is there with one of the values */
    TERM_NOT_IN, /* "!=", "notin": the label is not there, or has none of the values */
    TERM_EXISTS,
    TERM_MISSING,
};

struct term {
    enum term_op op;
    char *key;
    char *values[SELECTOR_VALUES_MAX];
    size_t value_count;
};

struct selector {
    struct term *terms;
    size_t count;
};

/* The text that is being parsed, and how far. */
struct cursor {
    const char *start;
    const char *at;
    struct err_info *err;
};

static int syntax_error(const struct cursor *cursor, const char *wanted)
{
    return err_set(cursor->err, RC_INVALID,
                   "selector \"%.120s\", character %zu: wants %s, as in tier=gold,zone!=a,canary,"
                   "!old,team in (x,y)",
                   cursor->start, (size_t)(cursor->at - cursor->start) + 1, wanted);
}

static void skip_blanks(struct cursor *cursor)
{
    cursor->at += strspn(cursor->at, " \t");
}

static bool take(struct cursor *cursor, const char *text)
{
    skip_blanks(cursor);
    size_t len = strlen(text);
    if (strncmp(cursor->at, text, len) != 0) {
        return false;
    }
    cursor->at += len;
    return true;
}

/* Letters, digits and "-_./": a key, a value or a word. NULL when there is none. */
static char *take_word(struct cursor *cursor)
{
    skip_blanks(cursor);
    size_t len = 0;
    while (isalnum((unsigned char)cursor->at[len]) ||
           (cursor->at[len] != '\0' && strchr("-_./", cursor->at[len]) != NULL)) {
        len++;
    }
    if (len == 0) {
        return NULL;
    }
    char *word = mem_strndup(cursor->at, len);
    cursor->at += len;
    return word;
}

static void add_value(struct term *term, char *value)
{
    term->values[term->value_count++] = value != NULL ? value : mem_strdup("");
}

/* "(a, b)" */
static int parse_values(struct cursor *cursor, struct term *term)
{
    if (!take(cursor, "(")) {
        return syntax_error(cursor, "a list in parentheses");
    }
    do {
        if (term->value_count == SELECTOR_VALUES_MAX) {
            return syntax_error(cursor, "fewer values");
        }
        add_value(term, take_word(cursor));
    } while (take(cursor, ","));
    return take(cursor, ")") ? RC_OK : syntax_error(cursor, "\")\"");
}

/* What follows a key. */
static int parse_condition(struct cursor *cursor, struct term *term)
{
    if (take(cursor, "!=")) {
        term->op = TERM_NOT_IN;
        add_value(term, take_word(cursor));
        return RC_OK;
    }
    if (take(cursor, "==") || take(cursor, "=")) {
        term->op = TERM_IN;
        add_value(term, take_word(cursor));
        return RC_OK;
    }
    const char *before = cursor->at;
    char *word = take_word(cursor);
    if (word == NULL) {
        term->op = TERM_EXISTS;
        return RC_OK;
    }
    bool in = strcmp(word, "in") == 0;
    bool not_in = strcmp(word, "notin") == 0;
    mem_free(word);
    if (!in && !not_in) {
        cursor->at = before;
        skip_blanks(cursor);
        return syntax_error(cursor, "=, !=, in, notin or a comma");
    }
    term->op = in ? TERM_IN : TERM_NOT_IN;
    return parse_values(cursor, term);
}

static int parse_term(struct cursor *cursor, struct term *term)
{
    bool negated = take(cursor, "!");
    term->key = take_word(cursor);
    if (term->key == NULL) {
        return syntax_error(cursor, "the key of a label");
    }
    if (negated) {
        term->op = TERM_MISSING;
        return RC_OK;
    }
    return parse_condition(cursor, term);
}

static int parse_terms(struct cursor *cursor, struct selector *selector)
{
    skip_blanks(cursor);
    if (*cursor->at == '\0') {
        return RC_OK;
    }
    do {
        if (selector->count == SELECTOR_TERMS_MAX) {
            return syntax_error(cursor, "fewer requirements");
        }
        selector->terms = mem_grow(selector->terms, selector->count + 1, sizeof *selector->terms);
        struct term *term = &selector->terms[selector->count++];
        memset(term, 0, sizeof *term);
        int rc = parse_term(cursor, term);
        if (rc != RC_OK) {
            return rc;
        }
    } while (take(cursor, ","));
    skip_blanks(cursor);
    return *cursor->at == '\0' ? RC_OK : syntax_error(cursor, "a comma");
}

int selector_parse(const char *text, struct selector **ret_selector, struct err_info *err)
{
    if (strlen(text) > SELECTOR_BYTES_MAX) {
        return err_set(err, RC_INVALID, "selector of %zu bytes; at most %d are accepted",
                       strlen(text), SELECTOR_BYTES_MAX);
    }
    struct cursor cursor = {.start = text, .at = text, .err = err};
    struct selector *selector = mem_new(sizeof *selector);
    int rc = parse_terms(&cursor, selector);
    if (rc != RC_OK) {
        selector_free(selector);
        return rc;
    }
    *ret_selector = selector;
    return RC_OK;
}

void selector_free(struct selector *selector)
{
    if (selector == NULL) {
        return;
    }
    for (size_t i = 0; i < selector->count; i++) {
        MEM_FREE(selector->terms[i].key);
        for (size_t j = 0; j < selector->terms[i].value_count; j++) {
            MEM_FREE(selector->terms[i].values[j]);
        }
    }
    mem_free(selector->terms);
    mem_free(selector);
}

const char *labels_find(Skein__Pair *const *labels, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (labels[i]->key != NULL && strcmp(labels[i]->key, key) == 0) {
            return labels[i]->value != NULL ? labels[i]->value : "";
        }
    }
    return NULL;
}

static bool has_value(const struct term *term, const char *value)
{
    for (size_t i = 0; i < term->value_count; i++) {
        if (strcmp(term->values[i], value) == 0) {
            return true;
        }
    }
    return false;
}

static bool term_matches(const struct term *term, const char *value)
{
    switch (term->op) {
    case TERM_IN:
        return value != NULL && has_value(term, value);
    case TERM_NOT_IN:
        return value == NULL || !has_value(term, value);
    case TERM_EXISTS:
        return value != NULL;
    case TERM_MISSING:
        return value == NULL;
    }
    return false;
}

bool selector_matches(const struct selector *selector, Skein__Pair *const *labels, size_t count)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct term *term = &selector->terms[i];
        if (!term_matches(term, labels_find(labels, count, term->key))) {
            return false;
        }
    }
    return true;
}
