/*
 * Problem documents; see the header.
 */
#include "admin/server/problem.h"

#include "node/base/mem.h"
#include "node/http/status.h"

#include <stdarg.h>
#include <stdio.h>

void problem_deinit(struct problem *problem)
{
    json_decref(problem->errors);
    *problem = (struct problem){0};
}

json_t *problem_string(const char *text)
{
    json_t *string = json_string(text);
    if (string == NULL) {
        char *ascii = mem_strdup(text);
        for (char *at = ascii; *at != '\0'; at++) {
            if ((unsigned char)*at >= 0x80) {
                *at = '?';
            }
        }
        string = json_string(ascii);
        mem_free(ascii);
    }
    return string;
}

static void add_entry(struct problem *problem, const char *path, json_t *members, const char *text)
{
    problem->total++;
    if (problem->total > PROBLEM_ERRORS_MAX) {
        return;
    }
    if (problem->errors == NULL) {
        problem->errors = json_array();
    }
    json_t *entry = json_object();
    (void)json_object_set_new(entry, "path", problem_string(path));
    (void)json_object_set_new(entry, "message", problem_string(text));
    if (members != NULL) {
        (void)json_object_update_missing(entry, members);
    }
    (void)json_array_append_new(problem->errors, entry);
}

void problem_add(struct problem *problem, const char *path, json_t *members, const char *fmt, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut text is still text */
    va_end(args);
    add_entry(problem, path, members, text);
    json_decref(members);
}

void problem_add_faults(struct problem *problem, const char *prefix, json_t *members,
                        const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->items[i];
        char path[FAULT_PATH_MAX + 512];
        (void)snprintf(path, sizeof(path), "%s%s%s", prefix != NULL ? prefix : "",
                       prefix != NULL && fault->path[0] != '\0' ? ": " : "", fault->path);
        add_entry(problem, path, members, fault->text);
    }
    problem->total += faults->total - faults->count;
}

json_t *problem_to_json(struct problem *problem, int status, const char *detail)
{
    char text[64];
    if (detail == NULL || detail[0] == '\0') {
        (void)snprintf(text, sizeof(text), "%zu fault%s", problem->total,
                       problem->total == 1 ? "" : "s");
        detail = problem->total > 0 ? text : status_reason(status);
    }
    json_t *document = json_object();
    (void)json_object_set_new(document, "type", json_string("about:blank"));
    (void)json_object_set_new(document, "title", json_string(status_reason(status)));
    (void)json_object_set_new(document, "status", json_integer(status));
    (void)json_object_set_new(document, "detail", problem_string(detail));
    if (problem->errors != NULL) {
        (void)json_object_set_new(document, "errors", problem->errors);
        problem->errors = NULL;
        if (problem->total > PROBLEM_ERRORS_MAX) {
            (void)json_object_set_new(document, "errorsTotal",
                                      json_integer((json_int_t)problem->total));
        }
    }
    return document;
}

int problem_status(int rc)
{
    switch (rc) {
    case RC_INVALID:
        return 422;
    case RC_NOT_FOUND:
        return 404;
    case RC_EXISTS:
        return 409;
    case RC_CONFLICT:
        return 412;
    case RC_TOO_BIG:
    case RC_FULL:
        return 413;
    case RC_NO_SPACE:
        return 507;
    case RC_BUSY:
    case RC_AGAIN:
    case RC_CLOCK:
    case RC_CLOSED:
    case RC_NO_MEMORY:
        return 503;
    case RC_TIMEOUT:
        return 504;
    case RC_UNSUPPORTED:
        return 501;
    case RC_AUTH:
        return 403;
    default:
        return 500;
    }
}
