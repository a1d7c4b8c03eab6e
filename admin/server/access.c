/*
 * Roles; see the header.
 */
#include "admin/server/access.h"

#include "admin/server/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const access_names[] = {"admin", "editor", "viewer", "anybody"};
static const char *const via_names[] = {"nobody", "unix", "loopback", "token", "certificate"};

const char *access_name(enum access role)
{
    return (size_t)role < ARRAY_LEN(access_names) ? access_names[role] : "?";
}

const char *who_via_name(enum who_via via)
{
    return (size_t)via < ARRAY_LEN(via_names) ? via_names[via] : "?";
}

bool access_parse(const char *text, enum access *ret_role)
{
    for (size_t i = 0; i < ACCESS_OPEN; i++) {
        if (strcasecmp(text, access_names[i]) == 0) {
            *ret_role = (enum access)i;
            return true;
        }
    }
    return false;
}

/* Kinds whose objects decide about the cluster or about who may what: writing them is for admins.
 */
static bool kind_is_guarded(const struct kind *kind)
{
    return kind->descriptor == &skein__token__descriptor ||
           kind->descriptor == &skein__node__descriptor ||
           kind->descriptor == &skein__settings__descriptor;
}

static bool is_reading(const struct route *route)
{
    return strcmp(route->method, "GET") == 0;
}

static int check_role(const struct who *who, enum access least, const char *what,
                      struct err_info *err)
{
    if (who->role <= least) {
        return RC_OK;
    }
    return err_set(err, RC_AUTH, "%s needs the role %s; %.100s is %s %s", what, access_name(least),
                   who->name, least == ACCESS_ADMIN && who->role == ACCESS_EDITOR ? "an" : "a",
                   access_name(who->role));
}

static int refuse_scope(const struct who *who, const char *what, struct err_info *err)
{
    return err_set(err, RC_AUTH, "%s is of the whole cluster; %.100s may only namespace %s", what,
                   who->name, who->namespace_);
}

static int check_namespace(const struct who *who, const char *namespace_, struct err_info *err)
{
    if (strcmp(namespace_, who->namespace_) == 0) {
        return RC_OK;
    }
    return err_set(err, RC_AUTH, "namespace %.63s: %.100s may only namespace %s", namespace_,
                   who->name, who->namespace_);
}

int access_check(const struct who *who, const struct route_match *match, struct err_info *err)
{
    const struct route *route = match->route;
    const struct kind *kind = match->kind;
    enum access least = route->least;
    if (kind != NULL && !is_reading(route) && kind_is_guarded(kind)) {
        least = ACCESS_ADMIN;
    }
    char what[160];
    if (kind != NULL && !is_reading(route)) {
        (void)snprintf(what, sizeof(what), "%s of a %s", route->method, kind->name);
    } else {
        (void)snprintf(what, sizeof(what), "%s %s", route->method, route->path);
    }
    int rc = check_role(who, least, what, err);
    if (rc != RC_OK || who->namespace_[0] == '\0' || least == ACCESS_OPEN) {
        return rc;
    }
    if (!route->scoped) {
        return refuse_scope(who, what, err);
    }
    if (kind != NULL && !kind->namespaced) {
        return refuse_scope(who, kind->plural, err);
    }
    return match->namespace_[0] != '\0' ? check_namespace(who, match->namespace_, err) : RC_OK;
}

int access_check_write(const struct who *who, const struct kind *kind, const char *id,
                       struct err_info *err)
{
    char what[96];
    (void)snprintf(what, sizeof(what), "writing a %s", kind->name);
    int rc = check_role(who, kind_is_guarded(kind) ? ACCESS_ADMIN : ACCESS_EDITOR, what, err);
    if (rc != RC_OK || who->namespace_[0] == '\0') {
        return rc;
    }
    if (!kind->namespaced) {
        return refuse_scope(who, kind->name, err);
    }
    const char *slash = strchr(id, '/');
    char namespace_[64] = "";
    if (slash != NULL && (size_t)(slash - id) < sizeof(namespace_)) {
        memcpy(namespace_, id, (size_t)(slash - id));
    }
    return check_namespace(who, namespace_, err);
}

int access_namespace(const struct who *who, const char *asked, const char **ret_namespace,
                     struct err_info *err)
{
    if (asked != NULL && asked[0] == '\0') {
        asked = NULL;
    }
    if (who->namespace_[0] != '\0') {
        int rc = asked != NULL ? check_namespace(who, asked, err) : RC_OK;
        if (rc != RC_OK) {
            return rc;
        }
        asked = who->namespace_;
    }
    *ret_namespace = asked;
    return RC_OK;
}
