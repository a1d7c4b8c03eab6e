/*
 * From what routes and Settings ask for to the plain structures of the data plane: lists and texts
 * that a struct cannot hold by itself are made in a store, which the caller keeps until the data
 * plane has copied them.
 *
 * Thread: the control thread's. Objects were validated; what is unset asks for nothing.
 */
#ifndef SKEIN_NODE_APP_COMPILE_ROUTE_H
#define SKEIN_NODE_APP_COMPILE_ROUTE_H

#include "node/proxy/proxy.h"
#include "proto/object.h"

/* Memory that goes together. All zero is an empty one. */
struct compile_store {
    void **items;
    size_t count;
};

/* Zeroed memory for count elements. */
void *compile_make(struct compile_store *store, size_t count, size_t size);
/* Have the store free what mem_new gave. Returns text. */
char *compile_own(struct compile_store *store, char *text);
void compile_store_free(struct compile_store *store);

/* What the route asks for; NULL: nothing. id is "namespace/name"; texts of spec are borrowed. */
const struct proxy_policy *compile_policy(const char *id, const Skein__RouteSpec *spec,
                                          struct compile_store *store);

/* The same parts of Settings, laid over defaults; spec may be NULL. */
void compile_settings(const Skein__SettingsSpec *spec, struct compile_store *store,
                      struct proxy_defaults *defaults);

/* ---- parts, for other kinds of routes ---- */

struct proxy_texts compile_texts(char *const *items, size_t count);
struct proxy_rate compile_rate(const Skein__RateLimit *limit); /* NULL is accepted */

#endif
