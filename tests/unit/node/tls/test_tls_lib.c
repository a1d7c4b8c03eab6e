/*
 * tls_lib: whole handshakes in memory, between two libraries as two nodes have them: names, trust,
 * tickets in domains, client certificates, bytes split anywhere.
 * covers: tls_lib.c, tls_ticket.c, tls_tickets.c, tls_facts.c
 */
#include "tests/support/unit.h"

#include "node/base/mem.h"
#include "node/tls/tls_impl.h"
#include "node/tls/tls_lib.h"

#include <openssl/ssl.h>

enum { CIPHER_CAP = 200000, PLAIN_CAP = 100000 };

/* What a test has: certificates, policies, a ring, two nodes and a client. */
struct stage {
    struct tls_cert *cert;  /* of a.test and *.b.test */
    struct tls_cert *other; /* of c.test */
    struct tls_cert *mine;  /* a client's */
    char *ca;               /* that cert is checked with: itself */
    char *client_ca;
    struct tls_policy *policy, *asking, *requiring;
    struct ticket_ring *ring; /* of both nodes */
    struct tls_lib *nodes[2], *client;
    uint8_t domain[TLS_DIGEST_BYTES];
};

static const struct ticket_ring *ring_of(void *arg)
{
    return ((struct stage *)arg)->ring;
}

static struct tls_cert *make_cert(const char *const *names, size_t count, char **ret_chain)
{
    char *chain = NULL, *key = NULL;
    struct err_info err = {0};
    struct tls_cert *cert = NULL;
    assert_int_equal(tls_cert_generate(names, count, &chain, &key, &err), RC_OK);
    const struct tls_cert_source source = {.chain = chain, .key = key};
    assert_int_equal(tls_cert_read(&source, 1, &cert, &err), RC_OK);
    mem_free(key);
    *ret_chain = chain;
    return cert;
}

static struct ticket_key key_of(uint8_t seed, enum ticket_state state)
{
    struct ticket_key key = {.state = state};
    memset(key.name, seed, sizeof(key.name));
    memset(key.secret, seed + 1, sizeof(key.secret));
    return key;
}

static void set_ring(struct stage *stage, const struct ticket_key *keys, size_t count)
{
    ticket_ring_unref(stage->ring);
    stage->ring = keys != NULL ? ticket_ring_new(keys, count, 3600) : NULL;
}

static void begin(struct stage *stage)
{
    static const char *const names[] = {"a.test", "*.b.test"}, *const others[] = {"c.test"};
    struct err_info err = {0};
    char *chain = NULL;
    memset(stage, 0, sizeof(*stage));
    stage->cert = make_cert(names, 2, &stage->ca);
    stage->other = make_cert(others, 1, &chain);
    mem_free(chain);
    stage->mine = make_cert(NULL, 0, &stage->client_ca);
    struct tls_policy_spec spec = {.profile = TLS_PROFILE_INTERMEDIATE};
    assert_int_equal(tls_policy_new(&spec, &stage->policy, &err), RC_OK);
    spec.client_ca = stage->client_ca;
    spec.client_auth = TLS_CLIENT_AUTH_OPTIONAL;
    assert_int_equal(tls_policy_new(&spec, &stage->asking, &err), RC_OK);
    spec.client_auth = TLS_CLIENT_AUTH_REQUIRED;
    assert_int_equal(tls_policy_new(&spec, &stage->requiring, &err), RC_OK);
    const struct ticket_key key = key_of(1, TICKET_ACTIVE);
    set_ring(stage, &key, 1);
    const struct tls_lib_config config = {.tickets = ring_of, .arg = stage, .keylog_fd = -1};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tls_lib_new(&config, &stage->nodes[i], &err), RC_OK);
    }
    const struct tls_lib_config plain = {.keylog_fd = -1};
    assert_int_equal(tls_lib_new(&plain, &stage->client, &err), RC_OK);
    memset(stage->domain, 7, sizeof(stage->domain));
}

static void end(struct stage *stage)
{
    for (size_t i = 0; i < 2; i++) {
        tls_lib_free(stage->nodes[i]);
    }
    tls_lib_free(stage->client);
    ticket_ring_unref(stage->ring);
    tls_policy_unref(stage->policy);
    tls_policy_unref(stage->asking);
    tls_policy_unref(stage->requiring);
    tls_cert_unref(stage->cert);
    tls_cert_unref(stage->other);
    tls_cert_unref(stage->mine);
    mem_free(stage->ca);
    mem_free(stage->client_ca);
}

/* One connection. */
struct pair {
    struct tls_engine *server, *client;
    struct buf to_client, to_server, server_plain, client_plain;
    size_t step; /* bytes handed over at once; 0: all */
};

static void open_pair(struct pair *pair, struct stage *stage, size_t node,
                      const struct tls_accept *accept, struct tls_target *target,
                      struct tls_resume *resume)
{
    struct err_info err = {0};
    memset(pair, 0, sizeof(*pair));
    buf_init(&pair->to_client, CIPHER_CAP);
    buf_init(&pair->to_server, CIPHER_CAP);
    buf_init(&pair->server_plain, PLAIN_CAP);
    buf_init(&pair->client_plain, PLAIN_CAP);
    assert_int_equal(
        tls_lib_accept(stage->nodes[node], accept, &pair->to_client, &pair->server, &err), RC_OK);
    assert_int_equal(
        tls_lib_connect(stage->client, target, resume, &pair->to_server, &pair->client, &err),
        RC_OK);
    assert_int_equal(tls_engine_start(pair->client), RC_OK);
}

static void close_pair(struct pair *pair)
{
    tls_engine_free(pair->server);
    tls_engine_free(pair->client);
    buf_deinit(&pair->to_client);
    buf_deinit(&pair->to_server);
    buf_deinit(&pair->server_plain);
    buf_deinit(&pair->client_plain);
}

static int hand_over(struct buf *from, struct tls_engine *to, struct buf *plain, size_t step)
{
    int rc = RC_OK;
    while (from->len != 0 && rc == RC_OK) {
        size_t used = 0, len = step != 0 ? MIN(step, from->len) : from->len;
        rc = tls_engine_feed(to, (const uint8_t *)from->data, len, &used, plain);
        buf_drop(from, used);
    }
    return rc;
}

/* Until nothing moves any more. */
static void settle(struct pair *pair)
{
    for (int i = 0; i < 20 && (pair->to_client.len != 0 || pair->to_server.len != 0); i++) {
        if (hand_over(&pair->to_server, pair->server, &pair->server_plain, pair->step) != RC_OK) {
            buf_reset(&pair->to_server);
        }
        if (hand_over(&pair->to_client, pair->client, &pair->client_plain, pair->step) != RC_OK) {
            buf_reset(&pair->to_client);
        }
    }
}

static bool is_open(const struct pair *pair)
{
    return tls_engine_state(pair->server) == TLS_OPEN && tls_engine_state(pair->client) == TLS_OPEN;
}

/* A request and its answer, with which the ticket comes. */
static void talk(struct pair *pair)
{
    size_t used = 0;
    settle(pair);
    assert_true(is_open(pair));
    assert_int_equal(tls_engine_write(pair->client, "ping", 4, &used), RC_OK);
    settle(pair);
    assert_string_equal(pair->server_plain.data, "ping");
    assert_int_equal(tls_engine_write(pair->server, "pong", 4, &used), RC_OK);
    settle(pair);
    assert_string_equal(pair->client_plain.data, "pong");
}

static struct tls_target *target_of(const struct stage *stage, const char *name,
                                    enum tls_verify verify, struct tls_cert *mine)
{
    struct err_info err = {0};
    struct tls_target *target = NULL;
    const struct tls_target_spec spec = {
        .verify = verify, .ca = stage->ca, .server_name = name, .client_cert = mine};
    assert_int_equal(tls_target_new(&spec, &target, &err), RC_OK);
    return target;
}

static struct tls_accept plain_accept(const struct stage *stage)
{
    return (struct tls_accept){
        .policy = stage->policy, .cert = stage->cert, .domain = stage->domain};
}

/* Whole connections: does the next one resume? */
static bool connect_once(struct stage *stage, size_t node, const struct tls_accept *accept,
                         struct tls_target *target, struct tls_resume *resume)
{
    struct pair pair;
    open_pair(&pair, stage, node, accept, target, resume);
    talk(&pair);
    struct tls_facts server, client;
    tls_engine_facts(pair.server, &server);
    tls_engine_facts(pair.client, &client);
    assert_int_equal(server.resumed, client.resumed);
    close_pair(&pair);
    return server.resumed;
}

static void test_bytes_may_be_split_anywhere(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    const struct tls_accept accept = plain_accept(&stage);
    static const size_t steps[] = {0, 1, 7, 100};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct pair pair;
        open_pair(&pair, &stage, 0, &accept, target, NULL);
        pair.step = steps[i];
        talk(&pair);
        struct tls_facts facts;
        tls_engine_facts(pair.server, &facts);
        assert_string_equal(facts.version, "TLSv1.3");
        assert_string_equal(facts.cipher, "TLS_AES_128_GCM_SHA256");
        tls_engine_end(pair.server);
        settle(&pair);
        assert_int_equal(tls_engine_state(pair.client), TLS_ENDED);
        close_pair(&pair);
    }
    tls_target_unref(target);
    end(&stage);
}

static void test_trust(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    static const struct {
        const char *name;
        bool other; /* the server shows another certificate */
        enum tls_verify verify;
        bool good;
        const char *text;
    } rows[] = {
        {"a.test", false, TLS_VERIFY_FULL, true, ""},
        {"x.b.test", false, TLS_VERIFY_FULL, true, ""},
        {"b.test", false, TLS_VERIFY_FULL, false, "hostname mismatch"},
        {"10.0.0.1", false, TLS_VERIFY_FULL, false, "IP address mismatch"},
        {"wrong.test", false, TLS_VERIFY_CA_ONLY, true, ""},
        {"c.test", true, TLS_VERIFY_FULL, false, "self-signed certificate"},
        {"c.test", true, TLS_VERIFY_NONE, true, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_target *target = target_of(&stage, rows[i].name, rows[i].verify, NULL);
        struct tls_accept accept = plain_accept(&stage);
        accept.cert = rows[i].other ? stage.other : stage.cert;
        struct pair pair;
        open_pair(&pair, &stage, 0, &accept, target, NULL);
        settle(&pair);
        assert_int_equal(is_open(&pair), rows[i].good);
        if (rows[i].text != NULL) {
            assert_non_null(strstr(tls_engine_verify_text(pair.client), rows[i].text));
        }
        if (!rows[i].good) {
            assert_int_equal(tls_engine_state(pair.client), TLS_FAILED);
            assert_int_equal(tls_engine_state(pair.server), TLS_FAILED);
            assert_true(tls_engine_peer_alert(pair.server) > 0);
        }
        close_pair(&pair);
        tls_target_unref(target);
    }
    end(&stage);
}

static void test_a_ticket_of_one_node_resumes_on_another(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    const struct tls_accept accept = plain_accept(&stage);
    struct tls_resume resume = {0};
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    for (size_t i = 1; i <= 20; i++) { /* each ticket is used once */
        assert_true(connect_once(&stage, i % 2, &accept, target, &resume));
    }
    tls_resume_clear(&resume);
    assert_false(connect_once(&stage, 1, &accept, target, &resume));
    tls_resume_clear(&resume);
    tls_target_unref(target);
    end(&stage);
}

static void test_domains_part(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    struct tls_accept accept = plain_accept(&stage), strange = plain_accept(&stage);
    uint8_t domain[TLS_DIGEST_BYTES] = {9};
    strange.domain = domain;
    struct tls_resume resume = {0};
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    assert_false(connect_once(&stage, 1, &strange, target, &resume));
    strange.domain = NULL; /* no tickets in either direction */
    tls_resume_clear(&resume);
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    assert_false(connect_once(&stage, 0, &strange, target, &resume));
    assert_null(resume.session);
    tls_target_unref(target);
    end(&stage);
}

static void test_the_life_of_a_key(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    const struct tls_accept accept = plain_accept(&stage);
    struct tls_resume resume = {0};
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    /* Another one is active: the old one opens still, and the new one seals. */
    const struct ticket_key both[] = {key_of(1, TICKET_RETIRING), key_of(2, TICKET_ACTIVE)};
    set_ring(&stage, both, 2);
    assert_true(connect_once(&stage, 0, &accept, target, &resume));
    set_ring(&stage, &both[1], 1);
    assert_true(connect_once(&stage, 1, &accept, target, &resume));
    /* A pending one opens what a node that is ahead has sealed. */
    const struct ticket_key pending[] = {key_of(2, TICKET_PENDING), key_of(3, TICKET_ACTIVE)};
    set_ring(&stage, pending, 2);
    assert_true(connect_once(&stage, 1, &accept, target, &resume));
    /* It is gone: a full handshake. */
    set_ring(&stage, &both[1], 1);
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    /* Nothing seals: it works without. */
    const struct ticket_key none = key_of(4, TICKET_PENDING);
    set_ring(&stage, &none, 1);
    tls_resume_clear(&resume);
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    assert_null(resume.session);
    set_ring(&stage, NULL, 0);
    assert_false(connect_once(&stage, 0, &accept, target, &resume));
    assert_null(resume.session);
    tls_target_unref(target);
    end(&stage);
}

static void test_clients_with_certificates(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *with = target_of(&stage, "a.test", TLS_VERIFY_FULL, stage.mine);
    struct tls_target *foreign = target_of(&stage, "a.test", TLS_VERIFY_FULL, stage.other);
    struct tls_target *without = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    const struct {
        struct tls_policy *policy;
        struct tls_target *target;
        bool good, shown;
    } rows[] = {
        {stage.asking, with, true, true},         {stage.asking, without, true, false},
        {stage.asking, foreign, false, false},    {stage.requiring, with, true, true},
        {stage.requiring, without, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_accept accept = plain_accept(&stage);
        accept.policy = rows[i].policy;
        struct pair pair;
        open_pair(&pair, &stage, 0, &accept, rows[i].target, NULL);
        settle(&pair);
        assert_int_equal(is_open(&pair), rows[i].good);
        struct tls_peer peer;
        assert_int_equal(rows[i].good && tls_engine_peer(pair.server, &peer), rows[i].shown);
        if (rows[i].shown) {
            assert_string_equal(peer.common_name, "skein default");
            assert_string_equal(peer.subject, "CN=skein default,O=Skein");
            assert_string_equal(peer.fingerprint, tls_cert_info(stage.mine)->fingerprint);
            struct buf der;
            buf_init(&der, 10000);
            assert_true(tls_engine_peer_der(pair.server, &der));
            assert_memory_equal(der.data, "MII", 3);
            buf_deinit(&der);
        }
        close_pair(&pair);
    }
    tls_target_unref(with);
    tls_target_unref(foreign);
    tls_target_unref(without);
    end(&stage);
}

static void test_large_data_and_full_buffers(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    const struct tls_accept accept = plain_accept(&stage);
    struct pair pair;
    open_pair(&pair, &stage, 0, &accept, target, NULL);
    settle(&pair);
    enum { BYTES = 1000000 };
    char *bytes = mem_new(BYTES);
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (char)(i * 7 + i / 256);
    }
    size_t sent = 0, seen = 0;
    while (seen < BYTES) {
        size_t used = 0;
        int rc = tls_engine_write(pair.server, bytes + sent, BYTES - sent, &used);
        assert_true(rc == RC_OK || rc == RC_FULL);
        sent += used;
        while (pair.to_client.len != 0) {
            rc = hand_over(&pair.to_client, pair.client, &pair.client_plain, 0);
            assert_true(rc == RC_OK || rc == RC_FULL);
            assert_memory_equal(pair.client_plain.data, bytes + seen, pair.client_plain.len);
            seen += pair.client_plain.len;
            buf_reset(&pair.client_plain);
        }
        size_t none = 0; /* what was decrypted before room ran out */
        assert_int_equal(tls_engine_feed(pair.client, NULL, 0, &none, &pair.client_plain), RC_OK);
        assert_memory_equal(pair.client_plain.data, bytes + seen, pair.client_plain.len);
        seen += pair.client_plain.len;
        buf_reset(&pair.client_plain);
    }
    assert_int_equal(seen, BYTES);
    mem_free(bytes);
    close_pair(&pair);
    tls_target_unref(target);
    end(&stage);
}

/* Of a client that knows no more than TLS 1.2. */
static bool connect_12(struct stage *stage, size_t node, const struct tls_accept *accept,
                       struct tls_target *target, struct tls_resume *resume)
{
    struct err_info err = {0};
    struct pair pair = {0};
    open_pair(&pair, stage, node, accept, target, NULL);
    tls_engine_free(pair.client); /* anew, older */
    buf_reset(&pair.to_server);
    assert_int_equal(
        tls_lib_connect(stage->client, target, resume, &pair.to_server, &pair.client, &err), RC_OK);
    assert_int_equal(SSL_set_max_proto_version(tls_engine_ssl(pair.client), TLS1_2_VERSION), 1);
    assert_int_equal(tls_engine_start(pair.client), RC_OK);
    talk(&pair);
    struct tls_facts facts;
    tls_engine_facts(pair.server, &facts);
    assert_string_equal(facts.version, "TLSv1.2");
    close_pair(&pair);
    return facts.resumed;
}

static void test_tls12_resumes(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    const struct tls_accept accept = plain_accept(&stage);
    struct tls_accept strange = accept;
    uint8_t domain[TLS_DIGEST_BYTES] = {9};
    strange.domain = domain;
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    struct tls_resume resume = {0};
    assert_false(connect_12(&stage, 0, &accept, target, &resume));
    assert_true(connect_12(&stage, 0, &accept, target, &resume));
    assert_true(connect_12(&stage, 1, &accept, target, &resume));
    const struct ticket_key both[] = {key_of(1, TICKET_RETIRING), key_of(2, TICKET_ACTIVE)};
    set_ring(&stage, both, 2);
    assert_true(connect_12(&stage, 1, &accept, target, &resume)); /* and gets a new ticket */
    set_ring(&stage, &both[1], 1);
    assert_true(connect_12(&stage, 0, &accept, target, &resume));
    assert_false(connect_12(&stage, 0, &strange, target, &resume));
    tls_resume_clear(&resume);
    tls_target_unref(target);
    end(&stage);
}

static void test_caches_are_bounded(void **state)
{
    (void)state;
    struct stage stage;
    begin(&stage);
    struct err_info err = {0};
    struct tls_lib *lib = NULL;
    const struct tls_lib_config config = {.certs_max = 1, .contexts_max = 1, .keylog_fd = -1};
    assert_int_equal(tls_lib_new(&config, &lib, &err), RC_OK);
    tls_lib_free(stage.nodes[0]);
    stage.nodes[0] = lib;
    struct tls_target *target = target_of(&stage, "a.test", TLS_VERIFY_FULL, NULL);
    struct tls_target *any = target_of(&stage, "c.test", TLS_VERIFY_NONE, NULL);
    struct tls_accept first = plain_accept(&stage), second = plain_accept(&stage);
    second.cert = stage.other;
    second.policy = stage.asking;
    struct pair open[2]; /* what is dropped serves on where it is in use */
    for (size_t i = 0; i < 4; i++) {
        open_pair(&open[0], &stage, 0, &first, target, NULL);
        open_pair(&open[1], &stage, 0, &second, any, NULL);
        talk(&open[0]);
        talk(&open[1]);
        close_pair(&open[0]);
        close_pair(&open[1]);
    }
    tls_target_unref(target);
    tls_target_unref(any);
    end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_may_be_split_anywhere),
        cmocka_unit_test(test_trust),
        cmocka_unit_test(test_a_ticket_of_one_node_resumes_on_another),
        cmocka_unit_test(test_domains_part),
        cmocka_unit_test(test_the_life_of_a_key),
        cmocka_unit_test(test_clients_with_certificates),
        cmocka_unit_test(test_large_data_and_full_buffers),
        cmocka_unit_test(test_tls12_resumes),
        cmocka_unit_test(test_caches_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
