/*
 * Checks that several kinds share. Internal to this unit.
 *
 * Every check takes the field's JSON name (NULL: the place where `faults` stands is the field),
 * does nothing when the field is unset, and adds its faults below that place.
 */
#ifndef SKEIN_PROTO_CHECKS_H
#define SKEIN_PROTO_CHECKS_H

#include "node/base/template.h"
#include "proto/fault.h"
#include "proto/validate.h"

enum {
    TIMEOUT_MS_MAX = 2147483647, /* 24d20h31m23s647ms: what a signed 32-bit number of ms holds */
    HEADER_ACTIONS_MAX = 20,
    HEADER_VALUE_MAX = 16384,
    CAPTURES_MAX = 20,
    ERROR_PAGES_MAX = 32,
    PEOPLE_TEXT_MAX = 4096, /* bytes of descriptions */
    HEALTH_BODY_MAX = 1024, /* bytes that a health check looks for */
};

/* ---- checks_scalar.c ---- */

void check_u32(struct faults *faults, const char *field, bool has, uint32_t value, uint32_t low,
               uint32_t high);
void check_duration(struct faults *faults, const char *field, const Skein__Duration *value,
                    uint64_t low_ms, uint64_t high_ms);
/* Bytes above the cap, or a control character other than newline and tab. */
void check_people_text(struct faults *faults, const char *field, const char *text, size_t max);
/* RFC 9110 5.6.2 token: header names, methods, cookie names. */
bool is_token(const char *text);
void check_token(struct faults *faults, const char *field, const char *text, const char *what);
void check_cidrs(struct faults *faults, const char *field, char *const *texts, size_t count);
/* PEM with at least one certificate; its content is for the TLS library. */
void check_pem(struct faults *faults, const char *field, const char *text, const char *label);
/* Name of an object of a kind whose names are up to max bytes. */
void check_name(struct faults *faults, const char *field, const char *text, size_t max);
/* A host without wildcard, for Host headers and TLS names. */
void check_server_name(struct faults *faults, const char *field, const char *text);
/* An absolute path in canonical form or one that has such a form. */
void check_path(struct faults *faults, const char *field, const char *text);
void check_labels(struct faults *faults, const char *field, Skein__Pair *const *pairs, size_t count,
                  bool annotations);
/* More elements than max. */
void check_count(struct faults *faults, const char *field, size_t count, size_t max);
/* A field that has no meaning with what another says. */
void check_absent(struct faults *faults, const char *field, bool present, const char *why);

/* ---- checks_http.c ---- */

void check_timeouts(struct faults *faults, const Skein__Timeouts *timeouts, bool settings);
/* A header that may be set: neither of framing nor of one connection. NULL is a fault. */
void check_header_name(struct faults *faults, const char *field, const char *name);
void check_template(struct faults *faults, const char *field, const char *text,
                    enum template_place place);
void check_headers(struct faults *faults, const Skein__HeaderActions *headers);
void check_hsts(struct faults *faults, const Skein__Hsts *hsts);
void check_captures(struct faults *faults, const Skein__Captures *captures);
void check_error_pages(struct faults *faults, Skein__ErrorPage *const *pages, size_t count);
void check_compression(struct faults *faults, const Skein__Compression *compression);
void check_retries(struct faults *faults, const Skein__Retries *retries);
void check_client_auth(struct faults *faults, const Skein__ClientAuth *auth);
void check_health(struct faults *faults, const Skein__HealthCheck *health);

/* ---- validate_route.c ---- */

void check_targets(struct faults *faults, Skein__Target *const *targets, size_t count);
void check_rate_limit(struct faults *faults, const Skein__RateLimit *limit);

/* ---- one per kind: the rows of kinds.c ---- */

void validate_namespace(const ProtobufCMessage *message, struct faults *faults);
void validate_route(const ProtobufCMessage *message, struct faults *faults);
void validate_tcp_route(const ProtobufCMessage *message, struct faults *faults);
void validate_backend(const ProtobufCMessage *message, struct faults *faults);
void validate_endpoint(const ProtobufCMessage *message, struct faults *faults);
void validate_settings(const ProtobufCMessage *message, struct faults *faults);
void validate_node(const ProtobufCMessage *message, struct faults *faults);
void validate_token(const ProtobufCMessage *message, struct faults *faults);
void validate_certificate(const ProtobufCMessage *message, struct faults *faults);

/* A chain that stays keeps the key that a document leaves out. */
void certificate_keep_keys(ProtobufCMessage *now, const ProtobufCMessage *before);

#endif
