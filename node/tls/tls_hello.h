/*
 * A ClientHello, read from the first bytes of a connection, so that the host decides before any TLS
 * state exists: who ends the connection, with which certificate and policy.
 *
 * The message may be split over any number of records (RFC 8446 5.1); the caller gathers segments.
 * Pure. Thread: any. Source: RFC 8446 4.1.2 and 5.1, RFC 6066 3, RFC 7301, RFC 8701 (GREASE).
 */
#ifndef SKEIN_NODE_TLS_TLS_HELLO_H
#define SKEIN_NODE_TLS_TLS_HELLO_H

#include "node/base/defs.h"

enum {
    TLS_HELLO_BYTES_MAX = 16384, /* of the message; records add 5 bytes each */
    TLS_HELLO_WIRE_MAX = 18432,  /* of the bytes that carry it, record headers included */
    TLS_HELLO_NAME_MAX = 255,
};

enum tls_hello_result {
    TLS_HELLO_OK = 0,
    TLS_HELLO_MORE,    /* nothing wrong so far: gather more */
    TLS_HELLO_HTTP,    /* plain HTTP: a method and a blank, or "PRI * HTTP/2" */
    TLS_HELLO_FOREIGN, /* not TLS, SSLv2 included */
    TLS_HELLO_BROKEN,  /* TLS, but malformed: alert decode_error */
    TLS_HELLO_TOO_BIG, /* above a limit: alert record_overflow */
};

struct tls_hello {
    size_t wire_len;                          /* bytes of the records that carried it */
    char server_name[TLS_HELLO_NAME_MAX + 1]; /* lower-case, without a trailing dot; "": none */
    bool bad_name;      /* there was a name, but no host name: as none, and not to be shown */
    bool offers_http11; /* ALPN names http/1.1; also when there is no ALPN */
    bool offers_h2;     /* ALPN names h2 */
    bool has_alpn;
    uint16_t max_version; /* 0x0303, 0x0304: the highest known one that is offered */
};

/* ret_hello is filled when the result is OK. Stateless: call again with all the bytes so far. */
enum tls_hello_result tls_hello_read(const uint8_t *bytes, size_t len, struct tls_hello *ret_hello);

/* An alert record (plain, for before the handshake): 7 bytes. Fatal. */
enum { TLS_ALERT_RECORD_LEN = 7 };
void tls_alert_record(uint8_t alert, uint8_t out[TLS_ALERT_RECORD_LEN]);

#endif
