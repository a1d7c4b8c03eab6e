/*
 * Checks of single values. See checks.h.
 */
#include "proto/checks.h"

#include "proto/scalar.h"

#include <ctype.h>
#include <string.h>

void check_u32(struct faults *faults, const char *field, bool has, uint32_t value, uint32_t low,
               uint32_t high)
{
    if (has && value < low) {
        fault_field(faults, field, "%u is below %u", value, low);
    } else if (has && value > high) {
        fault_field(faults, field, "%u is above %u", value, high);
    }
}

void check_duration(struct faults *faults, const char *field, const Skein__Duration *value,
                    uint64_t low_ms, uint64_t high_ms)
{
    if (value == NULL) {
        return;
    }
    char found[DURATION_TEXT_MAX];
    char limit[DURATION_TEXT_MAX];
    (void)duration_format(value->ms, found);
    if (!value->has_ms) {
        fault_field(faults, field, "is empty; wants a duration such as 30s");
    } else if (value->ms < low_ms) {
        fault_field(faults, field, "%s is below %s", found, duration_format(low_ms, limit));
    } else if (value->ms > high_ms) {
        fault_field(faults, field, "%s is above %s", found, duration_format(high_ms, limit));
    }
}

void check_people_text(struct faults *faults, const char *field, const char *text, size_t max)
{
    if (text == NULL) {
        return;
    }
    if (strlen(text) > max) {
        fault_field(faults, field, "is %zu bytes long; at most %zu are accepted", strlen(text),
                    max);
        return;
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (iscntrl((unsigned char)*c) && *c != '\n' && *c != '\t' && *c != '\r') {
            fault_field(faults, field, "has the control byte 0x%02X", (unsigned char)*c);
            return;
        }
    }
}

bool is_token(const char *text)
{
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80 || (!isalnum(c) && strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return true;
}

void check_token(struct faults *faults, const char *field, const char *text, const char *what)
{
    if (text != NULL && (!is_token(text) || strlen(text) > 256)) {
        fault_field(faults, field, "\"%.60s\" is no %s: letters, digits and - _ . are usual", text,
                    what);
    }
}

void check_cidrs(struct faults *faults, const char *field, char *const *texts, size_t count)
{
    check_count(faults, field, count, CIDRS_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)CIDRS_MAX); i++) {
        struct cidr cidr;
        struct err_info err;
        if (cidr_parse(texts[i], &cidr, &err) != RC_OK) {
            size_t mark = faults_enter_item(faults, field, i);
            fault_add(faults, "%s", err.text);
            faults_leave(faults, mark);
        }
    }
}

void check_pem(struct faults *faults, const char *field, const char *text, const char *label)
{
    if (text == NULL) {
        return;
    }
    if (strlen(text) > PEM_MAX_BYTES) {
        fault_field(faults, field, "is %zu bytes long; at most %d are accepted", strlen(text),
                    PEM_MAX_BYTES);
        return;
    }
    const char *begin = strstr(text, "-----BEGIN ");
    if (begin == NULL || strstr(begin, "-----END ") == NULL ||
        strncmp(begin + strlen("-----BEGIN "), label, strlen(label)) != 0) {
        fault_field(faults, field, "is no PEM text that starts with -----BEGIN %s-----", label);
    }
}

void check_name(struct faults *faults, const char *field, const char *text, size_t max)
{
    if (text == NULL) {
        return;
    }
    if (strlen(text) > max) {
        fault_field(faults, field, "is %zu bytes long; at most %zu are accepted", strlen(text),
                    max);
    } else if (!name_is_dns(text, strlen(text))) {
        fault_field(faults, field,
                    "\"%.80s\" is no name: lower-case letters, digits, '-' and '.', starting and "
                    "ending with a letter or digit",
                    text);
    }
}

void check_server_name(struct faults *faults, const char *field, const char *text)
{
    char canonical[NAME_LONG_MAX_BYTES + 1];
    struct err_info err;
    if (text == NULL) {
        return;
    }
    if (host_canonical(text, canonical, &err) != RC_OK) {
        fault_field(faults, field, "%s", err.text);
    } else if (canonical[0] == '*') {
        fault_field(faults, field, "\"%.80s\" is a wildcard; wants one name", text);
    }
}

void check_path(struct faults *faults, const char *field, const char *text)
{
    char canonical[PATH_MAX_BYTES + 1];
    struct err_info err;
    if (text == NULL) {
        return;
    }
    if (text[0] == '\0') {
        fault_field(faults, field, "is empty; wants a path such as /healthz");
    } else if (path_canonical(text, true, canonical, &err) != RC_OK) {
        fault_field(faults, field, "%s", err.text);
    }
}

/* The name part of a label's key, or a label's value: as Kubernetes has them. */
static bool is_label_text(const char *text, size_t len)
{
    if (len == 0 || len > 63 || !isalnum((unsigned char)text[0]) ||
        !isalnum((unsigned char)text[len - 1])) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || (!isalnum(c) && c != '-' && c != '_' && c != '.')) {
            return false;
        }
    }
    return true;
}

static bool is_label_key(const char *key)
{
    const char *slash = strchr(key, '/');
    if (slash == NULL) {
        return is_label_text(key, strlen(key));
    }
    return name_is_dns(key, (size_t)(slash - key)) && is_label_text(slash + 1, strlen(slash + 1));
}

void check_labels(struct faults *faults, const char *field, Skein__Pair *const *pairs, size_t count,
                  bool annotations)
{
    check_count(faults, field, count, LABEL_COUNT_MAX);
    size_t mark = faults_enter(faults, field);
    for (size_t i = 0; i < MIN(count, (size_t)LABEL_COUNT_MAX); i++) {
        const char *key = pairs[i]->key != NULL ? pairs[i]->key : "";
        const char *value = pairs[i]->value != NULL ? pairs[i]->value : "";
        size_t item = faults_enter_key(faults, key);
        if (!is_label_key(key)) {
            fault_add(faults,
                      "\"%.80s\" is no key: up to 63 letters, digits, '-', '_' and '.', with or "
                      "without example.com/ before it",
                      key);
        }
        for (size_t j = 0; j < i; j++) {
            if (pairs[j]->key != NULL && strcmp(pairs[j]->key, key) == 0) {
                fault_add(faults, "is there twice");
                break;
            }
        }
        if (annotations && strlen(value) > HEADER_VALUE_MAX) {
            fault_add(faults, "is %zu bytes long; at most %d are accepted", strlen(value),
                      HEADER_VALUE_MAX);
        } else if (!annotations && value[0] != '\0' && !is_label_text(value, strlen(value))) {
            fault_add(faults,
                      "\"%.80s\" is no value of a label: up to 63 letters, digits, '-', '_' and "
                      "'.', starting and ending with a letter or digit",
                      value);
        }
        faults_leave(faults, item);
    }
    faults_leave(faults, mark);
}

void check_count(struct faults *faults, const char *field, size_t count, size_t max)
{
    if (count > max) {
        fault_field(faults, field, "has %zu elements; at most %zu are accepted", count, max);
    }
}

void check_absent(struct faults *faults, const char *field, bool present, const char *why)
{
    if (present) {
        fault_field(faults, field, "has no place %s", why);
    }
}
