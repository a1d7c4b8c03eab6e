/*
 * The index of certificates; see the header.
 */
#include "node/app/routing_certs.h"

#include "node/app/compile_tls.h"
#include "node/app/routing_int.h"
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = OBJECT_ID_MAX + 256, LOOK_EVERY_S = 10 };

/* ---- life ---- */

struct cert *certs_use(struct routing *routing, const char *id)
{
    struct cert *cert = NULL;
    HASH_FIND_STR(routing->certs.by_id, id, cert);
    if (cert == NULL) {
        cert = mem_new(sizeof(*cert));
        cert->id = mem_strdup(id);
        HASH_ADD_KEYPTR(hh, routing->certs.by_id, cert->id, strlen(cert->id), cert);
    }
    cert->users++;
    return cert;
}

static void names_drop(struct routing *routing, struct cert *cert)
{
    for (size_t i = 0; i < cert->name_count; i++) {
        struct cert_bucket *bucket = cert->names[i].bucket;
        DL_DELETE(bucket->names, &cert->names[i]);
        if (bucket->names == NULL) {
            HASH_DEL(routing->certs.by_name, bucket);
            mem_free(bucket->key);
            mem_free(bucket);
        }
    }
    MEM_FREE(cert->names);
    cert->name_count = 0;
}

static void cert_clear(struct routing *routing, struct cert *cert)
{
    names_drop(routing, cert);
    tls_cert_unref(cert->tls);
    cert->tls = NULL;
    MEM_FREE(cert->fault);
}

void certs_release(struct routing *routing, struct cert *cert)
{
    if (cert == NULL) {
        return;
    }
    ASSERT(cert->users > 0);
    if (--cert->users > 0) {
        return;
    }
    while (cert->hosts != NULL) {
        certs_show(cert->hosts, NULL);
    }
    ASSERT(cert->routes == NULL && cert->pools == NULL);
    cert_clear(routing, cert);
    HASH_DEL(routing->certs.by_id, cert);
    mem_free(cert->id);
    mem_free(cert);
}

void certs_set_standard(struct routing *routing, const char *id)
{
    struct cert *before = routing->certs.standard;
    routing->certs.standard = certs_use(routing, id != NULL ? id : CERT_STANDARD);
    routing->certs.standard_named = id != NULL;
    certs_release(routing, before);
}

void certs_deinit(struct routing *routing)
{
    struct cert *cert, *next;
    certs_release(routing, routing->certs.standard);
    routing->certs.standard = NULL;
    HASH_ITER (hh, routing->certs.by_id, cert, next) {
        ASSERT(cert->users == 1); /* its object's */
        certs_release(routing, cert);
    }
}

/* ---- names ---- */

static void key_of(char out[KEY_MAX], const char *namespace_, const char *name)
{
    (void)snprintf(out, KEY_MAX, "%s/%s", namespace_, name);
}

static struct cert_bucket *bucket_find(const struct routing *routing, const char *namespace_,
                                       const char *name)
{
    char key[KEY_MAX];
    struct cert_bucket *bucket = NULL;
    key_of(key, namespace_, name);
    HASH_FIND_STR(routing->certs.by_name, key, bucket);
    return bucket;
}

static void names_add(struct routing *routing, struct cert *cert)
{
    const struct tls_cert_info *info = tls_cert_info(cert->tls);
    const char *namespace_ = cert->object->message->metadata->namespace_;
    cert->names = mem_array(MAX(info->name_count, (size_t)1), sizeof(*cert->names));
    for (size_t i = 0; i < info->name_count; i++) {
        struct cert_name *name = &cert->names[cert->name_count++];
        struct cert_bucket *bucket = bucket_find(routing, namespace_, info->names[i]);
        if (bucket == NULL) {
            char key[KEY_MAX];
            key_of(key, namespace_, info->names[i]);
            bucket = mem_new(sizeof(*bucket));
            bucket->key = mem_strdup(key);
            HASH_ADD_KEYPTR(hh, routing->certs.by_name, bucket->key, strlen(bucket->key), bucket);
        }
        *name = (struct cert_name){.bucket = bucket, .cert = cert};
        DL_APPEND(bucket->names, name);
    }
}

bool cert_is_valid(const struct cert *cert, int64_t now_s)
{
    const struct tls_cert_info *info = tls_cert_info(cert->tls);
    return info->not_before <= now_s && now_s < info->not_after;
}

/* A new one takes over from the one that it renews, once it is valid. */
static bool is_better(const struct cert *cert, const struct cert *than, int64_t now_s)
{
    bool valid = cert_is_valid(cert, now_s);
    if (valid != cert_is_valid(than, now_s)) {
        return valid;
    }
    int64_t left = tls_cert_info(cert->tls)->not_before;
    int64_t right = tls_cert_info(than->tls)->not_before;
    return left != right ? left > right : strcmp(cert->id, than->id) < 0;
}

static struct cert *best_of(const struct cert_bucket *bucket)
{
    struct cert *best = NULL;
    const struct cert_name *name;
    int64_t now_s = (int64_t)(time_wall_ms() / 1000);
    for (name = bucket != NULL ? bucket->names : NULL; name != NULL; name = name->next) {
        if (best == NULL || is_better(name->cert, best, now_s)) {
            best = name->cert;
        }
    }
    return best;
}

struct cert *certs_choose(const struct routing *routing, const char *namespace_, const char *host)
{
    struct cert *cert = best_of(bucket_find(routing, namespace_, host));
    const char *dot = strchr(host, '.');
    if (cert == NULL && dot != NULL && host[0] != '*') {
        char wildcard[256];
        (void)snprintf(wildcard, sizeof(wildcard), "*%s", dot);
        cert = best_of(bucket_find(routing, namespace_, wildcard));
    }
    return cert;
}

void certs_show(struct host *host, struct cert *cert)
{
    if (host->cert == cert) {
        return;
    }
    if (host->cert != NULL) {
        DL_DELETE2(host->cert->hosts, host, cert_prev, cert_next);
    }
    host->cert = cert;
    if (cert != NULL) {
        DL_APPEND2(cert->hosts, host, cert_prev, cert_next);
    }
}

/* ---- marks ---- */

static void mark_users(struct routing *routing, const struct cert *cert)
{
    struct route *route;
    for (route = cert->routes; route != NULL; route = route->cert_next) {
        mark_host(routing, route->host);
    }
    struct host *host;
    for (host = cert->hosts; host != NULL; host = host->cert_next) {
        mark_host(routing, host);
    }
    struct pool *pool;
    for (pool = cert->pools; pool != NULL; pool = pool->own_next) {
        pool->target_stale = true;
        mark_pool(routing, pool);
    }
    if (cert == routing->certs.standard) {
        routing->tls_marked = true;
    }
}

static bool is_below(const char *host, const char *wildcard)
{
    const char *dot = strchr(host, '.');
    return dot != NULL && host[0] != '*' && strcmp(dot, wildcard + 1) == 0;
}

/* Hosts that it may be shown for from now on. Wildcards cost a walk over all hosts. */
static void mark_covered(struct routing *routing, const struct cert *cert)
{
    const struct tls_cert_info *info = tls_cert_info(cert->tls);
    for (size_t i = 0; i < info->name_count && routing->proxy != NULL; i++) {
        struct host *host = NULL, *next;
        HASH_FIND_STR(routing->hosts, info->names[i], host);
        if (host != NULL) {
            mark_host(routing, host);
        }
        if (info->names[i][0] != '*') {
            continue;
        }
        HASH_ITER (hh, routing->hosts, host, next) {
            if (is_below(host->name, info->names[i])) {
                mark_host(routing, host);
            }
        }
    }
}

void routing_certs_tick(struct routing *routing)
{
    struct certs *certs = &routing->certs;
    int64_t now_s = (int64_t)(time_wall_ms() / 1000), before_s = certs->looked_s;
    if (now_s >= before_s && now_s - before_s < LOOK_EVERY_S) {
        return;
    }
    certs->looked_s = now_s;
    const struct cert *cert;
    for (cert = certs->by_id; cert != NULL; cert = cert->hh.next) {
        if (cert->tls != NULL && cert_is_valid(cert, now_s) != cert_is_valid(cert, before_s)) {
            mark_users(routing, cert);
            mark_covered(routing, cert);
        }
    }
}

/* ---- changes ---- */

static void cert_read(struct routing *routing, struct cert *cert)
{
    static const Skein__CertificateSpec empty = SKEIN__CERTIFICATE_SPEC__INIT;
    const Skein__CertificateSpec *spec = (const void *)cert->object->message->spec;
    struct err_info err = {0};
    if (compile_certificate(spec != NULL ? spec : &empty, &cert->tls, &err) != RC_OK) {
        cert->tls = NULL;
        cert->fault = mem_strdup(err.text);
        log_error("a certificate cannot be used", "certificate=%s reason=\"%s\"", cert->id,
                  err.text);
        return;
    }
    names_add(routing, cert);
    mark_covered(routing, cert);
}

void certs_change(struct routing *routing, const struct object *now, const struct object *before)
{
    struct cert *cert = certs_use(routing, now != NULL ? now->id : before->id);
    mark_users(routing, cert);
    cert_clear(routing, cert);
    cert->object = now;
    if (now != NULL) {
        cert_read(routing, cert);
    }
    if (before != NULL) {
        certs_release(routing, cert); /* the user that `before` was */
    }
    if (now == NULL) {
        certs_release(routing, cert); /* that of this function */
    }
}

/* ---- what people are told ---- */

bool routing_cert_view(const struct routing *routing, const char *id,
                       struct routing_cert_view *ret_view)
{
    struct cert *cert = NULL;
    HASH_FIND_STR(routing->certs.by_id, id, cert);
    if (cert == NULL) {
        return false;
    }
    *ret_view = (struct routing_cert_view){
        .info = cert->tls != NULL ? tls_cert_info(cert->tls) : NULL,
        .fault = cert->fault,
    };
    const struct host *host;
    for (host = cert->hosts; host != NULL; host = host->cert_next) {
        const struct route *route;
        for (route = host->routes; route != NULL; route = route->next) {
            const Skein__RouteTls *tls = route_spec(route->object)->tls;
            bool ended = tls != NULL && tls->has_termination &&
                         (tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Edge ||
                          tls->termination == SKEIN__ROUTE_TLS__TERMINATION__Reencrypt);
            ret_view->routes += route->admitted && ended;
        }
    }
    return true;
}

const char *routing_missing_standard(const struct routing *routing)
{
    const struct certs *certs = &routing->certs;
    return certs->standard_named && certs->standard->tls == NULL ? certs->standard->id : NULL;
}

void routing_certs_metrics(const struct routing *routing, struct buf *out)
{
    (void)buf_puts(out, "# HELP skein_certificate_not_after_seconds When a Certificate ends.\n"
                        "# TYPE skein_certificate_not_after_seconds gauge\n");
    const struct cert *cert;
    size_t unusable = 0;
    for (cert = routing->certs.by_id; cert != NULL; cert = cert->hh.next) {
        unusable += cert->fault != NULL;
        if (cert->tls != NULL) {
            (void)buf_printf(
                out, "skein_certificate_not_after_seconds{certificate=\"%s\"} %" PRId64 "\n",
                cert->id, tls_cert_info(cert->tls)->not_after);
        }
    }
    (void)buf_printf(out,
                     "# HELP skein_certificates_unusable Certificates that cannot be used.\n"
                     "# TYPE skein_certificates_unusable gauge\nskein_certificates_unusable %zu\n",
                     unusable);
}
