/*
 * What binds a request to an endpoint: a sticky cookie, or the key that a backend hashes.
 *
 * The cookie's value is the token of an endpoint, which node/app makes of the cluster's key: it is
 * the same on every node, tells nothing of the address and cannot be guessed. Its holder stays with
 * that endpoint, and so with its backend, whatever the weights say, as long as the endpoint is
 * there and can serve. The cookie is taken out of what goes to the endpoint, and set anew when the
 * response comes from another endpoint than the one it stands for. Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_AFFINITY_H
#define SKEIN_NODE_PROXY_AFFINITY_H

#include "node/proxy/exchange.h"

/* The sticky cookie of a rule, compiled; immutable. */
struct sticky {
    char *cookie;
    size_t cookie_len;
    char *attributes;      /* "; Path=/; HttpOnly..." */
    bool secure_by_scheme; /* Secure when the client came over TLS */
};

/* NULL for NULL. Texts are copied. */
struct sticky *sticky_new(const struct proxy_sticky *from);
void sticky_free(struct sticky *sticky); /* NULL is accepted */

/* The backend of the exchange's rule that gets it: that of the cookie's endpoint, which becomes
 * exchange->wanted; else one by weight, and if that has nobody to ask, another one that has. NULL:
 * the rule has none. */
struct backend *affinity_backend(struct exchange *exchange, const struct exchange_request *request);

/* exchange->hash, where the backend wants one. path: as rules are matched on it. What has no such
 * header, cookie or parameter goes by the client's address. */
void affinity_key(struct exchange *exchange, const struct exchange_request *request,
                  const struct uri_path *path);

/* The key of a client: its whole address, without the port. */
uint64_t affinity_client_key(const struct addr *client);

/* Take the cookie out of the request; other cookies stay. Changes marks of the head and how->extra,
 * which is in worker->lines afterwards. */
void affinity_hide_cookie(struct exchange *exchange, const struct exchange_request *request,
                          struct h1_out *how);

/* Append the field lines that set the cookie, if it has to be set. */
void affinity_set_cookie(const struct exchange *exchange, struct buf *lines);

#endif
