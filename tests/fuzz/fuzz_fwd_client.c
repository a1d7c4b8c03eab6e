/* unit: node_http */
/*
 * Forwarded fields in front of a router: the first byte chooses the field, the rest is its value.
 * However a client spells it, what the trusted hop adds behind it decides.
 */
#include "node/base/buf.h"
#include "node/base/check.h"
#include "node/http/fwd_client.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 16384 };

static struct cidr_set *trusted;

/* The client that a request with this value has; false: no head that is taken. */
static bool client_of(bool plain, const uint8_t *value, size_t len, const char *more,
                      struct addr *ret_client)
{
    static const struct h1_limits limits = {
        .head_bytes = 65535, .field_count = 64, .target_bytes = 1024};
    static struct h1_field fields[64];
    struct buf head_text;
    struct h1_head head;
    struct h1_scan scan = {0};
    struct addr peer;
    buf_init(&head_text, TEXT_MAX * 2);
    (void)buf_printf(&head_text,
                     "GET / HTTP/1.1\r\nHost: a\r\n%s: ", plain ? "X-Forwarded-For" : "Forwarded");
    (void)buf_put(&head_text, value, len);
    (void)buf_printf(&head_text, "%s\r\n\r\n", more);
    h1_head_init(&head, fields, ARRAY_LEN(fields));
    ASSERT(addr_parse("10.0.0.1:1", &peer, NULL) == RC_OK);
    bool taken = h1_parse_request(&scan, head_text.data, head_text.len, &limits, &head) == RC_OK;
    if (taken) {
        *ret_client = fwd_client(trusted, &peer, &head, head_text.data);
        (void)fwd_is_https(&head, head_text.data); /* ends, and reads nothing else */
        ASSERT(ret_client->sa.sa_family == AF_INET || ret_client->sa.sa_family == AF_INET6);
    }
    buf_deinit(&head_text);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const networks[] = {"10.0.0.0/8", "fd00::/8"};
    if (trusted == NULL) {
        ASSERT(cidr_set_new(networks, ARRAY_LEN(networks), &trusted, NULL) == RC_OK);
    }
    if (size < 1 || size > TEXT_MAX || memchr(data, '\n', size) != NULL) {
        return 0;
    }
    bool plain = data[0] % 2 == 0;
    struct addr client;
    (void)client_of(plain, data + 1, size - 1, "", &client);
    if (client_of(plain, data + 1, size - 1, plain ? ", 9.9.9.9" : ", for=9.9.9.9", &client)) {
        char text[ADDR_TEXT_MAX];
        (void)addr_format_ip(&client, text);
        bool is_last = strcmp(text, "9.9.9.9") == 0;
        /* An open quote swallows what follows: then nobody is believed. */
        ASSERT(is_last || (!plain && strcmp(text, "10.0.0.1") == 0));
    }
    return 0;
}
