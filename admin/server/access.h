/*
 * Who asks, and what the roles may do: one least role per endpoint (the table in route.c) and per
 * kind (here).
 *
 * Roles are ordered: an admin may what an editor may, an editor what a viewer may. A user with a
 * namespace may only what is in it: endpoints that are not marked as scoped are closed to it, and
 * so are objects of the whole cluster. What no table mentions is for admins.
 * Pure. Thread: any.
 */
#ifndef SKEIN_ADMIN_SERVER_ACCESS_H
#define SKEIN_ADMIN_SERVER_ACCESS_H

#include "node/base/errors.h"
#include "proto/object.h"

struct route_match;

/* A user's role, and the least role that something asks for. */
enum access {
    ACCESS_ADMIN = 0,
    ACCESS_EDITOR, /* writes objects, but no Token, Node or Settings */
    ACCESS_VIEWER, /* reads, never secrets */
    ACCESS_OPEN,   /* of an endpoint: nobody is asked who it is */
};

enum who_via {
    WHO_NOBODY = 0,
    WHO_UNIX,        /* by the permissions of the socket: always an admin */
    WHO_LOOPBACK,    /* plain TCP on this machine: an admin */
    WHO_TOKEN,       /* name is the Token's */
    WHO_CERTIFICATE, /* name is the certificate's subject */
};

enum { WHO_NAME_MAX = 512, WHO_FROM_MAX = 64 };

struct who {
    enum who_via via;
    enum access role;
    char namespace_[64];     /* the only one it may touch; "": all */
    char name[WHO_NAME_MAX]; /* "uid 1000" over the unix socket */
    char from[WHO_FROM_MAX]; /* address without port, or "unix" */
    uint64_t created_hlc;    /* of the token */
};

const char *access_name(enum access role);  /* "editor" */
const char *who_via_name(enum who_via via); /* "token" */

/* "viewer", "Editor" ... in any case. False: no role. */
bool access_parse(const char *text, enum access *ret_role);

/* RC_AUTH: err says which role or namespace is missing. */
MUST_CHECK int access_check(const struct who *who, const struct route_match *match,
                            struct err_info *err);

/* Whether it may write this object, for requests whose path does not name it. RC_AUTH. */
MUST_CHECK int access_check_write(const struct who *who, const struct kind *kind, const char *id,
                                  struct err_info *err);

/*
 * The namespace to look in: that asked for, or that of the user when none is (NULL: all). RC_AUTH:
 * another than the user's.
 */
MUST_CHECK int access_namespace(const struct who *who, const char *asked,
                                const char **ret_namespace, struct err_info *err);

#endif
