/*
 * See the header. It is written as the API writes: packed, sealed, durable before it is used.
 */
#include "node/app/default_cert.h"

#include "node/app/node.h"
#include "node/app/routing_certs.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/base/timesrc.h"
#include "node/tls/crypto.h"
#include "node/tls/tls_cert.h"

#include <string.h>

enum { AGAIN_MS = 1000 };

static const char namespace_name[] = "default";
static const char certificate_name[] = "skein-default";

void default_cert_applied(struct node *node, const struct row *row)
{
    if (row->kind == kind_by_name("Certificate")->number && row->id_len == strlen(CERT_STANDARD) &&
        memcmp(row->id, CERT_STANDARD, row->id_len) == 0) {
        node->default_cert_seen = row_is_live(row);
    }
}

static bool is_due(const struct node *node)
{
    const struct gossip *core = gossip_net_core(node->net);
    bool alone = node->settings->cluster_join.count == 0 && gossip_member_count(core) <= 1;
    return node->phase == NODE_SERVING && node->settings->listen_https.count > 0 &&
           !node->default_cert_writing && (alone || gossip_in_step(core)) && gossip_writable(core);
}

static bool is_wanted(const struct node *node)
{
    const struct object *settings =
        objects_find(node->objects, kind_by_name("Settings"), "default");
    const Skein__SettingsSpec *spec =
        settings != NULL ? (const Skein__SettingsSpec *)(const void *)settings->message->spec
                         : NULL;
    bool named = spec != NULL && spec->tls != NULL && spec->tls->default_certificate != NULL;
    return !named && !node->default_cert_seen;
}

static void on_written(void *arg, int rc, uint64_t revision, const char *text)
{
    struct node *node = arg;
    (void)revision;
    node->default_cert_writing = false;
    if (rc == RC_OK) {
        log_info("default certificate made", "certificate=%s", CERT_STANDARD);
    } else {
        log_warn("the default certificate cannot be written", "reason=\"%s\"",
                 text != NULL && *text != '\0' ? text : rc_text(rc));
    }
}

static int write_pair(struct node *node, char *chain, char *key, struct err_info *err)
{
    Skein__Metadata metadata = SKEIN__METADATA__INIT;
    Skein__CertificateSpec spec = SKEIN__CERTIFICATE_SPEC__INIT;
    Skein__Certificate certificate = SKEIN__CERTIFICATE__INIT;
    char *texts[] = {mem_strdup(namespace_name), mem_strdup(certificate_name)};
    metadata.namespace_ = texts[0];
    metadata.name = texts[1];
    spec.chain = chain;
    spec.key = key;
    certificate.metadata = &metadata;
    certificate.spec = &spec;
    const struct admin_change change = {
        .kind = kind_by_name("Certificate"), .id = CERT_STANDARD, .message = &certificate.base};
    int rc = node_admin_ops.commit(node, &change, 1, false, on_written, node, err);
    node->default_cert_writing = rc == RC_OK;
    mem_free(texts[0]);
    mem_free(texts[1]);
    return rc;
}

void default_cert_turn(struct node *node)
{
    static const char *const names[] = {"skein-default.invalid"};
    if (node->default_cert_seen || !is_due(node) || !is_wanted(node)) {
        return;
    }
    uint64_t now_ms = time_mono_ms();
    if (node->default_cert_tried_ms != 0 && now_ms - node->default_cert_tried_ms < AGAIN_MS) {
        return;
    }
    node->default_cert_tried_ms = now_ms;
    static struct log_limit limit;
    uint32_t suppressed = 0;
    struct err_info err = {0};
    char *chain = NULL, *key = NULL;
    int rc = tls_cert_generate(names, ARRAY_LEN(names), &chain, &key, &err);
    rc = rc != RC_OK ? rc : write_pair(node, chain, key, &err);
    if (rc != RC_OK && rc != RC_BUSY && log_limit_pass(&limit, 1, &suppressed)) {
        log_warn("no default certificate can be made", "reason=\"%s\" left_out=%u", err.text,
                 suppressed);
    }
    if (key != NULL) {
        crypto_wipe(key, strlen(key));
    }
    mem_free(key);
    mem_free(chain);
}
