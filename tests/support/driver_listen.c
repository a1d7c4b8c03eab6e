/*
 * See driver_listen.h.
 */
#include "tests/support/driver_listen.h"

#include "node/base/buf.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 64 };

static struct named {
    char *name;
    struct tls_cert *cert;
    struct tls_policy *policy;
} named[NAMED_MAX];
static size_t named_count;

static const struct proxy_client_cert any_cert = {.required = true, .tell = true};

static struct named *find(const char *name)
{
    for (size_t i = 0; i < named_count; i++) {
        if (strcmp(named[i].name, name) == 0) {
            return &named[i];
        }
    }
    return NULL;
}

static void keep(const char *name, struct tls_cert *cert, struct tls_policy *policy)
{
    struct named *at = find(name);
    if (at == NULL && named_count < NAMED_MAX) {
        at = &named[named_count++];
        *at = (struct named){.name = mem_strdup(name)};
    }
    if (at != NULL) {
        tls_cert_unref(at->cert);
        tls_policy_unref(at->policy);
        at->cert = cert;
        at->policy = policy;
    }
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = mem_new(100001);
    if (file != NULL) {
        text[fread(text, 1, 100000, file)] = '\0';
        (void)fclose(file);
    }
    return text;
}

static int make_cert(char **words, struct err_info *err)
{
    struct tls_cert *cert = NULL;
    char *chain = read_file(words[2]), *key = read_file(words[3]);
    const struct tls_cert_source source = {.chain = chain, .key = key};
    int rc = tls_cert_read(&source, 1, &cert, err);
    mem_free(chain);
    mem_free(key);
    if (rc == RC_OK) {
        keep(words[1], cert, NULL);
    }
    return rc;
}

static int make_policy(char **words, size_t count, struct err_info *err)
{
    struct tls_policy_spec spec = {0};
    struct tls_policy *policy = NULL;
    char *ca = NULL;
    for (size_t i = 2; i < count; i++) {
        if (strncmp(words[i], "profile=", 8) == 0) {
            spec.profile = (enum tls_profile)atoi(words[i] + 8);
        } else if (strncmp(words[i], "auth=", 5) == 0) {
            spec.client_auth = strcmp(words[i] + 5, "required") == 0 ? TLS_CLIENT_AUTH_REQUIRED
                                                                     : TLS_CLIENT_AUTH_OPTIONAL;
        } else if (strncmp(words[i], "ca=", 3) == 0) {
            ca = read_file(words[i] + 3);
        }
    }
    spec.client_ca = ca;
    int rc = tls_policy_new(&spec, &policy, err);
    mem_free(ca);
    if (rc == RC_OK) {
        keep(words[1], NULL, policy);
    }
    return rc;
}

static int set_tls(struct proxy *proxy, char **words, size_t count, struct err_info *err)
{
    const struct named *cert = find(words[1]), *policy = find(words[2]);
    if (policy == NULL || (cert == NULL && strcmp(words[1], "-") != 0)) {
        return err_set(err, RC_INVALID, "no such certificate or policy");
    }
    struct proxy_tls tls = {.cert = cert != NULL ? cert->cert : NULL,
                            .policy = policy->policy,
                            .inspect_ms = 5000,
                            .handshakes_max = 4096};
    for (size_t i = 3; i < count; i++) {
        if (strcmp(words[i], "strict") == 0) {
            tls.strict_sni = true;
        } else if (strncmp(words[i], "handshakes=", 11) == 0) {
            tls.handshakes_max = (uint32_t)atoi(words[i] + 11);
        } else if (strncmp(words[i], "inspect=", 8) == 0) {
            tls.inspect_ms = (uint32_t)atoi(words[i] + 8);
        }
    }
    proxy_set_tls(proxy, &tls);
    return RC_OK;
}

static int set_tickets(struct proxy *proxy, char **words, size_t count)
{
    struct ticket_key keys[TICKET_KEYS_MAX] = {0};
    size_t key_count = MIN(count - 1, (size_t)TICKET_KEYS_MAX);
    for (size_t i = 0; i < key_count; i++) {
        memset(keys[i].name, atoi(words[i + 1]), sizeof(keys[i].name));
        memset(keys[i].secret, atoi(words[i + 1]) + 1, sizeof(keys[i].secret));
        keys[i].state = i == 0 ? TICKET_ACTIVE : TICKET_RETIRING;
    }
    struct ticket_ring *ring = ticket_ring_new(keys, key_count, 3600);
    proxy_set_tickets(proxy, ring);
    ticket_ring_unref(ring);
    return RC_OK;
}

bool driver_listen_run(struct proxy *proxy, char **words, size_t count, int *ret_rc,
                       struct err_info *err)
{
    if (strcmp(words[0], "cert") == 0 && count == 4) {
        *ret_rc = make_cert(words, err);
    } else if (strcmp(words[0], "policy") == 0 && count >= 2) {
        *ret_rc = make_policy(words, count, err);
    } else if (strcmp(words[0], "tls") == 0 && count >= 3) {
        *ret_rc = set_tls(proxy, words, count, err);
    } else if (strcmp(words[0], "tickets") == 0) {
        *ret_rc = set_tickets(proxy, words, count);
    } else {
        return false;
    }
    return true;
}

int driver_listen_host(char **words, size_t count, struct proxy_host_tls *ret_tls,
                       struct err_info *err)
{
    *ret_tls = (struct proxy_host_tls){0};
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        const struct named *at = equals != NULL ? find(equals + 1) : NULL;
        if (at == NULL) {
            return err_set(err, RC_INVALID, "no such thing: %s", words[i]);
        }
        ret_tls->cert = at->cert != NULL ? at->cert : ret_tls->cert;
        ret_tls->policy = at->policy != NULL ? at->policy : ret_tls->policy;
    }
    return RC_OK;
}

bool driver_listen_rule(const char *word, const char *value, struct proxy_rule_tls *tls)
{
    if (value == NULL) {
        tls->client_cert = &any_cert;
        return strcmp(word, "client_cert") == 0;
    }
    if (strcmp(word, "term") == 0) {
        tls->termination = strcmp(value, "edge") == 0          ? PROXY_EDGE
                           : strcmp(value, "passthrough") == 0 ? PROXY_PASSTHROUGH
                                                               : PROXY_REENCRYPT;
        return true;
    }
    if (strcmp(word, "insecure") == 0) {
        tls->insecure = strcmp(value, "allow") == 0      ? PROXY_INSECURE_ALLOW
                        : strcmp(value, "redirect") == 0 ? PROXY_INSECURE_REDIRECT
                                                         : PROXY_INSECURE_DENY;
        return true;
    }
    return false;
}

void driver_listen_free(void)
{
    for (size_t i = 0; i < named_count; i++) {
        mem_free(named[i].name);
        tls_cert_unref(named[i].cert);
        tls_policy_unref(named[i].policy);
    }
    named_count = 0;
}
