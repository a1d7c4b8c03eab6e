/*
 * Certificates by id and by the names that they cover, and who shows them.
 *
 * A certificate is known while there is an object of it, or something that names it; a named one
 * without object is a missing certificate. One that changes marks those that show it, and the hosts
 * that its names cover now: nobody else. Thread: the control thread.
 */
#ifndef SKEIN_NODE_APP_ROUTING_CERTS_H
#define SKEIN_NODE_APP_ROUTING_CERTS_H

#include "node/base/hashtable.h"
#include "node/tls/tls_cert.h"
#include "proto/object.h"

struct host;
struct pool;
struct route;
struct routing;

struct cert {
    char *id;                    /* namespace/name */
    const struct object *object; /* NULL: missing */
    struct tls_cert *tls;        /* NULL: missing, or cannot be used */
    char *fault;                 /* why it cannot be used; NULL: it can, or is missing */
    struct cert_name *names;     /* that it is found by */
    size_t name_count;
    struct route *routes; /* that name it */
    struct host *hosts;   /* that show it */
    struct pool *pools;   /* that show it to endpoints */
    uint32_t users;       /* the object, and all who name it */
    UT_hash_handle hh;
};

/* One name of one certificate. */
struct cert_name {
    struct cert_bucket *bucket;
    struct cert *cert;
    struct cert_name *prev, *next; /* in the bucket */
};

/* All certificates of a namespace with one name. */
struct cert_bucket {
    char *key; /* "namespace/name of the certificate" */
    struct cert_name *names;
    UT_hash_handle hh;
};

/* All zero is empty. */
struct certs {
    struct cert *by_id;
    struct cert_bucket *by_name;
    struct cert *standard; /* that Settings name, or CERT_STANDARD */
    bool standard_named;   /* Settings name it */
    int64_t looked_s;      /* which ones were valid was looked at then; unix time */
};

#define CERT_STANDARD "default/skein-default"

/* An object came, changed or went. */
void certs_change(struct routing *routing, const struct object *now, const struct object *before);

/* Find or make; one user more, or less. NULL is accepted by certs_release. */
struct cert *certs_use(struct routing *routing, const char *id);
void certs_release(struct routing *routing, struct cert *cert);

/* Of the usable certificates of the namespace the one that a host is served with: one of its name
 * before one of a wildcard, of several a valid one, of those the one issued last. NULL: none covers
 * it. */
struct cert *certs_choose(const struct routing *routing, const char *namespace_, const char *host);

/* It has begun and has not expired; it is usable. now_s: unix time. */
bool cert_is_valid(const struct cert *cert, int64_t now_s);

/* Have the host on the list of this certificate and no other; NULL: of none. */
void certs_show(struct host *host, struct cert *cert);

/* Which one is for no server name; NULL: CERT_STANDARD. */
void certs_set_standard(struct routing *routing, const char *id);

/* When nothing uses certificates any more. */
void certs_deinit(struct routing *routing);

#endif
