/*
 * A thread's OpenSSL: its library context, and what is built in it at first use. Contexts stand for
 * a policy or a target, found by digest; certificates are parsed once and attached to each
 * connection, so their number does not multiply that of the contexts. Both are kept in the order of
 * their last use, within bounds.
 */
#include "node/tls/tls_lib.h"

#include "node/base/check.h"
#include "node/base/hashtable.h"
#include "node/base/mem.h"
#include "node/tls/tls_err.h"
#include "node/tls/tls_lib_int.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

enum { CERTS_MAX = 1024, CONTEXTS_MAX = 256 };

/* ---- life ---- */

int tls_lib_new(const struct tls_lib_config *config, struct tls_lib **ret_lib, struct err_info *err)
{
    struct tls_lib *lib = mem_new(sizeof(*lib));
    lib->config = *config;
    lib->certs.max = config->certs_max != 0 ? config->certs_max : CERTS_MAX;
    lib->servers.max = config->contexts_max != 0 ? config->contexts_max : CONTEXTS_MAX;
    lib->clients.max = lib->servers.max;
    tls_err_clear();
    lib->libctx = OSSL_LIB_CTX_new();
    lib->provider = lib->libctx != NULL ? OSSL_PROVIDER_load(lib->libctx, "default") : NULL;
    if (lib->provider == NULL || !tls_ticket_begin(lib)) {
        int rc = tls_err_take(err, RC_UNSUPPORTED, "OpenSSL cannot be set up");
        tls_lib_free(lib);
        return rc;
    }
    *ret_lib = lib;
    return RC_OK;
}

static void item_free(struct tls_cache *cache, struct tls_item *item)
{
    HASH_DEL(cache->items, item);
    DL_DELETE(cache->order, item);
    cache->count--;
    SSL_CTX_free(item->ctx);
    for (size_t i = 0; i < item->pair_count; i++) {
        X509_free(item->pairs[i].leaf);
        sk_X509_pop_free(item->pairs[i].chain, X509_free);
        EVP_PKEY_free(item->pairs[i].key);
    }
    mem_free(item);
}

static void cache_clear(struct tls_cache *cache)
{
    while (cache->order != NULL) {
        item_free(cache, cache->order);
    }
}

void tls_lib_free(struct tls_lib *lib)
{
    if (lib == NULL) {
        return;
    }
    cache_clear(&lib->servers);
    cache_clear(&lib->clients);
    cache_clear(&lib->certs);
    X509_STORE_free(lib->system);
    tls_ticket_end(lib);
    if (lib->provider != NULL) {
        (void)OSSL_PROVIDER_unload(lib->provider); /* nothing is left that uses it */
    }
    OSSL_LIB_CTX_free(lib->libctx);
    mem_free(lib);
}

/* ---- what is kept ---- */

static struct tls_item *cache_find(struct tls_cache *cache, const void *key, size_t len)
{
    struct tls_item *item = NULL;
    HASH_FIND(hh, cache->items, key, len, item);
    if (item != NULL && item != cache->order) {
        DL_DELETE(cache->order, item);
        DL_PREPEND(cache->order, item);
    }
    return item;
}

/* A new one, in front; connections keep what they need of one that is dropped. */
static struct tls_item *cache_add(struct tls_cache *cache, const void *key, size_t len)
{
    if (cache->count == cache->max) {
        item_free(cache, cache->order->prev); /* the tail */
    }
    struct tls_item *item = mem_new(sizeof(*item));
    ASSERT(len <= sizeof(item->key));
    memcpy(item->key, key, len);
    HASH_ADD(hh, cache->items, key, (unsigned)len, item);
    DL_PREPEND(cache->order, item);
    cache->count++;
    return item;
}

/* ---- certificates ---- */

static bool parse_pair(struct tls_lib *lib, const struct tls_pair *from, struct tls_parsed *to)
{
    to->chain = sk_X509_new_null();
    for (size_t i = 0; to->chain != NULL && i < from->chain_count; i++) {
        const unsigned char *der = from->chain[i];
        X509 *x509 = X509_new_ex(lib->libctx, NULL);
        if (x509 == NULL || d2i_X509(&x509, &der, (long)from->chain_len[i]) == NULL ||
            (i > 0 && sk_X509_push(to->chain, x509) == 0)) {
            X509_free(x509); /* NULL after a failed d2i */
            return false;
        }
        if (i == 0) {
            to->leaf = x509;
        }
    }
    const unsigned char *der = from->key;
    to->key = d2i_PrivateKey_ex(from->key_type, NULL, &der, (long)from->key_len, lib->libctx, NULL);
    return to->leaf != NULL && to->key != NULL;
}

static struct tls_item *parsed_cert(struct tls_lib *lib, const struct tls_cert *cert)
{
    struct tls_item *item = cache_find(&lib->certs, &cert->id, sizeof(cert->id));
    if (item != NULL) {
        return item;
    }
    item = cache_add(&lib->certs, &cert->id, sizeof(cert->id));
    for (size_t i = 0; i < cert->pair_count; i++) {
        item->pair_count++; /* freed with it */
        if (!parse_pair(lib, &cert->pairs[i], &item->pairs[i])) {
            item_free(&lib->certs, item);
            return NULL;
        }
    }
    return item;
}

/* ---- contexts ---- */

static bool set_policy(SSL_CTX *ctx, const struct tls_policy *policy)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    return SSL_CTX_set_cipher_list(ctx, policy->ciphers) == 1 &&
           SSL_CTX_set_ciphersuites(ctx, policy->ciphersuites) == 1 &&
           SSL_CTX_set1_groups_list(ctx, policy->groups) == 1 &&
           SSL_CTX_set_min_proto_version(ctx, policy->min_version) == 1 &&
           SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

/* Authorities, and lists of what they revoked, from PEM. */
static X509_STORE *make_store(struct tls_lib *lib, const char *ca, const char *crl)
{
    X509_STORE *store = X509_STORE_new();
    BIO *bio = BIO_new_mem_buf(ca, -1);
    bool good = store != NULL && bio != NULL;
    while (good) {
        X509 *x509 = X509_new_ex(lib->libctx, NULL);
        if (PEM_read_bio_X509(bio, &x509, NULL, NULL) == NULL) {
            X509_free(x509);
            break; /* the end: the texts were checked */
        }
        good = X509_STORE_add_cert(store, x509) == 1;
        X509_free(x509);
    }
    BIO_free(bio);
    bio = crl != NULL ? BIO_new_mem_buf(crl, -1) : NULL;
    X509_CRL *list;
    while (good && bio != NULL && (list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        good = X509_STORE_add_crl(store, list) == 1;
        X509_CRL_free(list);
    }
    BIO_free(bio);
    if (good && crl != NULL) {
        good = X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) == 1;
    }
    tls_err_clear();
    if (!good) {
        X509_STORE_free(store);
        return NULL;
    }
    return store;
}

/* Of the system, read once. */
static X509_STORE *system_store(struct tls_lib *lib)
{
    if (lib->system == NULL) {
        X509_STORE *store = X509_STORE_new();
        if (store != NULL) {
            (void)X509_STORE_load_file_ex(store, X509_get_default_cert_file(), lib->libctx, NULL);
            (void)X509_STORE_load_file_ex(store, "/etc/ssl/certs/ca-certificates.crt", lib->libctx,
                                          NULL); /* without any, nothing verifies */
        }
        tls_err_clear();
        lib->system = store;
    }
    return lib->system;
}

static void on_key_line(const SSL *ssl, const char *line)
{
    const struct tls_session *own = SSL_get_app_data(ssl);
    const struct iovec parts[] = {{.iov_base = unconst(line), .iov_len = strlen(line)},
                                  {.iov_base = unconst("\n"), .iov_len = 1}};
    if (writev(own->lib->config.keylog_fd, parts, 2) < 0) {
        return; /* a help for debugging: nobody is served worse without it */
    }
}

/* HTTP/1.1, or no agreement at all (RFC 7301 3.2). */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char http11[] = "\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, http11, sizeof(http11) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* The response for the leaf that was chosen, if there is one. */
static int on_status(SSL *ssl, void *arg)
{
    (void)arg;
    const struct tls_session *own = SSL_get_app_data(ssl);
    const X509 *leaf = SSL_get_certificate(ssl);
    const struct tls_item *item = own->cert != NULL ? parsed_cert(own->lib, own->cert) : NULL;
    for (size_t i = 0; item != NULL && i < item->pair_count; i++) {
        const struct tls_pair *pair = &own->cert->pairs[i];
        if (pair->ocsp == NULL || X509_cmp(item->pairs[i].leaf, leaf) != 0) {
            continue;
        }
        void *copy = OPENSSL_memdup(pair->ocsp, pair->ocsp_len);
        if (copy != NULL && SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)pair->ocsp_len) == 1) {
            return SSL_TLSEXT_ERR_OK;
        }
        OPENSSL_free(copy);
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static bool ask_client(struct tls_lib *lib, SSL_CTX *ctx, const struct tls_policy *policy)
{
    if (policy->client_auth == TLS_CLIENT_AUTH_OFF) {
        return true;
    }
    X509_STORE *store = make_store(lib, policy->client_ca, policy->client_crl);
    if (store == NULL) {
        return false;
    }
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);
    for (int i = 0; names != NULL && i < sk_X509_OBJECT_num(objects); i++) {
        X509 *x509 = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        X509_NAME *name = x509 != NULL ? X509_NAME_dup(X509_get_subject_name(x509)) : NULL;
        if (name != NULL && sk_X509_NAME_push(names, name) == 0) {
            X509_NAME_free(name);
        }
    }
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_cert_store(ctx, store); /* takes it */
    int mode = SSL_VERIFY_PEER;
    mode |= policy->client_auth == TLS_CLIENT_AUTH_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(ctx, mode, NULL);
    return true;
}

static SSL_CTX *make_server(struct tls_lib *lib, const struct tls_policy *policy)
{
    SSL_CTX *ctx = SSL_CTX_new_ex(lib->libctx, NULL, TLS_server_method());
    if (ctx == NULL || !set_policy(ctx, policy) || !ask_client(lib, ctx, policy)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* returns the old mode */
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, tls_ticket_callback);
    SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    (void)SSL_CTX_set_tlsext_status_cb(ctx, on_status);
    if (lib->config.keylog_fd >= 0) {
        SSL_CTX_set_keylog_callback(ctx, on_key_line);
    }
    return ctx;
}

static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    const struct tls_session *own = SSL_get_app_data(ssl);
    if (own->resume == NULL || SSL_SESSION_is_resumable(session) != 1) {
        return 0;
    }
    tls_resume_clear(own->resume);
    own->resume->session = session;
    return 1; /* it is ours */
}

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static bool check_server(struct tls_lib *lib, SSL_CTX *ctx, const struct tls_target *target)
{
    if (target->verify == TLS_VERIFY_NONE) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
        return true;
    }
    X509_STORE *store = target->ca != NULL ? make_store(lib, target->ca, NULL) : system_store(lib);
    if (store == NULL) {
        return false;
    }
    SSL_CTX_set1_cert_store(ctx, store);
    if (target->ca != NULL) {
        X509_STORE_free(store); /* the context has its own reference */
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (target->verify == TLS_VERIFY_CA_ONLY) {
        return true;
    }
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return is_address(target->server_name)
               ? X509_VERIFY_PARAM_set1_ip_asc(param, target->server_name) == 1
               : X509_VERIFY_PARAM_set1_host(param, target->server_name, 0) == 1;
}

static SSL_CTX *make_client(struct tls_lib *lib, const struct tls_target *target)
{
    static const unsigned char http11[] = "\x08http/1.1";
    SSL_CTX *ctx = SSL_CTX_new_ex(lib->libctx, NULL, TLS_client_method());
    bool good = ctx != NULL && set_policy(ctx, target->policy) && check_server(lib, ctx, target) &&
                SSL_CTX_set_alpn_protos(ctx, http11, sizeof(http11) - 1) == 0;
    const struct tls_item *cert =
        good && target->client_cert != NULL ? parsed_cert(lib, target->client_cert) : NULL;
    good = good && (cert != NULL || target->client_cert == NULL);
    for (size_t i = 0; good && cert != NULL && i < cert->pair_count; i++) {
        const struct tls_parsed *pair = &cert->pairs[i];
        good = SSL_CTX_use_cert_and_key(ctx, pair->leaf, pair->key, pair->chain, 1) == 1;
    }
    if (!good) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_new_session);
    if (lib->config.keylog_fd >= 0) {
        SSL_CTX_set_keylog_callback(ctx, on_key_line);
    }
    return ctx;
}

/* ---- connections ---- */

static bool attach_cert(SSL *ssl, const struct tls_item *cert)
{
    for (size_t i = 0; i < cert->pair_count; i++) {
        const struct tls_parsed *pair = &cert->pairs[i];
        if (SSL_use_cert_and_key(ssl, pair->leaf, pair->key, pair->chain, 1) != 1) {
            return false;
        }
    }
    return true;
}

int tls_lib_accept(struct tls_lib *lib, const struct tls_accept *accept, struct buf *cipher,
                   struct tls_engine **ret_eng, struct err_info *err)
{
    tls_err_clear();
    const uint8_t *digest = tls_policy_digest(accept->policy);
    struct tls_item *server = cache_find(&lib->servers, digest, TLS_DIGEST_BYTES);
    if (server == NULL) {
        SSL_CTX *ctx = make_server(lib, accept->policy);
        if (ctx == NULL) {
            return tls_err_take(err, RC_INVALID, "the policy cannot be used");
        }
        server = cache_add(&lib->servers, digest, TLS_DIGEST_BYTES);
        server->ctx = ctx;
    }
    const struct tls_item *cert = parsed_cert(lib, accept->cert);
    SSL *ssl = cert != NULL ? SSL_new(server->ctx) : NULL;
    if (ssl == NULL || !attach_cert(ssl, cert)) {
        SSL_free(ssl);
        return tls_err_take(err, RC_INVALID, "the certificate cannot be used");
    }
    const struct ticket_ring *ring = accept->domain != NULL && lib->config.tickets != NULL
                                         ? lib->config.tickets(lib->config.arg)
                                         : NULL;
    if (ring == NULL) {
        SSL_set_options(ssl, SSL_OP_NO_TICKET);
    } else {
        (void)SSL_CTX_set_timeout(server->ctx, (long)ticket_ring_life_s(ring));
        ASSERT(SSL_set_session_id_context(ssl, accept->domain, TLS_DIGEST_BYTES) == 1);
    }
    if (tls_engine_wrap(ssl, TLS_SERVER, cipher, ret_eng) != RC_OK) {
        return err_set(err, RC_NO_MEMORY, "no memory for a TLS connection");
    }
    struct tls_session *own = tls_engine_session(*ret_eng);
    own->lib = lib;
    own->cert = accept->cert;
    tls_cert_ref(accept->cert);
    if (ring != NULL) {
        own->tickets = true;
        memcpy(own->domain, accept->domain, TLS_DIGEST_BYTES);
    }
    return RC_OK;
}

/* TLS 1.3 tickets are for one use (RFC 8446 C.4). */
static void offer_session(SSL *ssl, struct tls_resume *resume)
{
    SSL_SESSION *session = resume->session;
    if (session == NULL) {
        return;
    }
    (void)SSL_set_session(ssl, session); /* else a full handshake */
    if (SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION) {
        tls_resume_clear(resume);
    }
}

int tls_lib_connect(struct tls_lib *lib, struct tls_target *target, struct tls_resume *resume,
                    struct buf *cipher, struct tls_engine **ret_eng, struct err_info *err)
{
    tls_err_clear();
    const uint8_t *digest = tls_target_digest(target);
    struct tls_item *client = cache_find(&lib->clients, digest, TLS_DIGEST_BYTES);
    if (client == NULL) {
        SSL_CTX *ctx = make_client(lib, target);
        if (ctx == NULL) {
            return tls_err_take(err, RC_INVALID, "TLS towards the endpoint cannot be set up");
        }
        client = cache_add(&lib->clients, digest, TLS_DIGEST_BYTES);
        client->ctx = ctx;
    }
    SSL *ssl = SSL_new(client->ctx);
    if (ssl == NULL) {
        return tls_err_take(err, RC_NO_MEMORY, "no memory for a TLS connection");
    }
    if (target->server_name != NULL && !is_address(target->server_name)) {
        (void)SSL_set_tlsext_host_name(ssl, target->server_name); /* its length was checked */
    }
    if (resume != NULL) {
        offer_session(ssl, resume);
    }
    if (tls_engine_wrap(ssl, TLS_CLIENT, cipher, ret_eng) != RC_OK) {
        return err_set(err, RC_NO_MEMORY, "no memory for a TLS connection");
    }
    struct tls_session *own = tls_engine_session(*ret_eng);
    own->lib = lib;
    own->resume = resume;
    own->target = target;
    tls_target_ref(target);
    return RC_OK;
}

void tls_resume_clear(struct tls_resume *resume)
{
    SSL_SESSION_free(resume->session);
    resume->session = NULL;
}

void tls_lib_connected(SSL *ssl)
{
    const struct tls_session *own = SSL_get_app_data(ssl);
    if (own->resume == NULL || SSL_session_reused(ssl) != 1 || SSL_version(ssl) == TLS1_3_VERSION) {
        return;
    }
    SSL_SESSION *session = SSL_get1_session(ssl);
    if (session == own->resume->session) {
        SSL_SESSION_free(session); /* one reference is enough */
        return;
    }
    tls_resume_clear(own->resume);
    own->resume->session = session;
}

bool tls_lib_admits(SSL *ssl)
{
    if (SSL_session_reused(ssl) != 1) {
        return true;
    }
    /* The library verified it when the ticket was made. What was revoked since has changed the
     * policy, and with it the domain. */
    const X509 *peer = SSL_get0_peer_certificate(ssl);
    return peer == NULL || X509_cmp_current_time(X509_get0_notAfter(peer)) > 0;
}
