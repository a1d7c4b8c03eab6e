/*
 * Objects as the API shows them: JSON with status, server-set metadata and, for a Backend, the
 * endpoints that belong to it.
 *
 * A Backend is stored without endpoints; each is an Endpoint object of its own. What is shown as
 * spec.endpoints, in the order of their ids, is what PUT and apply take back. Its entity tag covers
 * the endpoints too, so that If-Match guards all that was shown.
 * Pure against struct admin_ops. Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_SHOW_H
#define SKEIN_ADMIN_SERVER_SHOW_H

#include "admin/server/admin.h"

#include <jansson.h>

enum { SHOW_ETAG_MAX = 40 };

/* The table and its context travel together. */
struct view {
    const struct admin_ops *ops;
    void *ctx;
};

bool kind_is_backend(const struct kind *kind);
bool kind_is_endpoint(const struct kind *kind);
bool kind_is_token(const struct kind *kind);

const struct object *view_find(const struct view *view, const struct kind *kind, const char *id);

/* Objects of a kind from the first id not below `from` ("" or NULL: all), in ascending order. */
void view_each(const struct view *view, const struct kind *kind, const char *from,
               bool (*visit)(void *arg, const struct object *object), void *arg);

/* The Endpoint objects of the Backend with this id, in ascending order of id. */
void view_endpoints(const struct view *view, const char *backend_id,
                    bool (*visit)(void *arg, const struct object *object), void *arg);

/* The configuration revision of this node, which compares with those of other members. */
uint64_t view_revision(const struct view *view);

/* Everything: a new reference. */
json_t *show_object(const struct view *view, const struct object *object);

/* Without status and server-set metadata: what export gives and apply takes. A new reference. */
json_t *show_bare(const struct view *view, const struct object *object);

/* Take out what is never shown: the secrets of the kind. */
void show_hide(const struct kind *kind, json_t *shown);

/* Take status and server-set metadata out of a shown object. */
void show_strip(json_t *shown);

/* The entity tag, without quotes. Returns out. */
const char *show_etag(const struct view *view, const struct object *object,
                      char out[SHOW_ETAG_MAX]);

/* One entry of spec.endpoints: a new reference. */
json_t *show_endpoint(const Skein__EndpointSpec *spec);

#endif
