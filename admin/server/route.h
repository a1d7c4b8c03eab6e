/*
 * The table of the API's endpoints: one row says method, path, parameters, handler and purpose.
 *
 * Paths are matched on raw segments and decoded afterwards, so that an escaped slash never makes a
 * segment. {kinds} is a plural of the table of kinds; {name} takes the rest of the path, because an
 * Endpoint's name has a slash in it ("web/10.0.0.1:80"), escaped or not.
 * Pure, any thread.
 */
#ifndef SKEIN_ADMIN_SERVER_ROUTE_H
#define SKEIN_ADMIN_SERVER_ROUTE_H

#include "admin/server/access.h"
#include "node/base/errors.h"
#include "proto/object.h"

struct call;

struct route {
    const char *method;
    const char *path;
    void (*handler)(struct call *call);
    const char *params; /* accepted query parameters, space-separated */
    const char *doc;    /* one line */
    enum access least;  /* the least role; 0: admins alone */
    bool scoped;        /* open to users of one namespace: it shows and touches only that */
};

enum { ROUTE_ALLOW_MAX = 64 };

struct route_match {
    const struct route *route;
    const struct kind *kind;     /* NULL: the path names none */
    char namespace_[64];         /* "" when the path names none */
    char id[OBJECT_ID_MAX + 1];  /* "" when the path names no object */
    char allow[ROUTE_ALLOW_MAX]; /* methods of the path, "GET, HEAD, PUT": for 405 */
};

extern const struct route routes[]; /* ends with a row whose method is NULL */

/*
 * The row for a method and a raw path (borrowed, without query). HEAD finds the row of GET.
 * RC_NOT_FOUND: no such path (err says what would be accepted). RC_UNSUPPORTED: not with this
 * method; ret_match->allow is set. RC_INVALID: a malformed escape or name.
 */
MUST_CHECK int route_find(const char *method, const char *path, size_t len,
                          struct route_match *ret_match, struct err_info *err);

/* Handlers, by file. */
void handle_list(struct call *call);   /* h_list.c */
void handle_export(struct call *call); /* h_list.c */
void handle_get(struct call *call);    /* h_objects.c */
void handle_put(struct call *call);
void handle_patch(struct call *call);
void handle_delete(struct call *call);
void handle_apply(struct call *call);
void handle_watch(struct call *call);   /* h_watch.c */
void handle_cluster(struct call *call); /* h_node.c */
void handle_forget(struct call *call);
void handle_metrics(struct call *call);
void handle_healthz(struct call *call);
void handle_readyz(struct call *call);
void handle_index(struct call *call);
void handle_token_create(struct call *call); /* h_tokens.c */
void handle_openapi(struct call *call);      /* h_openapi.c */
void handle_audit(struct call *call);        /* h_audit.c */
void handle_tickets(struct call *call);      /* h_tickets.c */
void handle_tickets_rotate(struct call *call);

#endif
