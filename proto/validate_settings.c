/*
 * What makes Settings acceptable: cluster-wide defaults, one object named "default".
 */
#include "proto/checks.h"

#include <string.h>

static void check_text_list(struct faults *faults, const char *field, char *const *texts,
                            size_t count)
{
    check_count(faults, field, count, 64);
    for (size_t i = 0; i < MIN(count, (size_t)64); i++) {
        size_t item = faults_enter_item(faults, field, i);
        check_token(faults, NULL, texts[i], "name");
        faults_leave(faults, item);
    }
}

static void check_certificate_id(struct faults *faults, const char *field, const char *id)
{
    if (id == NULL) {
        return;
    }
    const char *slash = strchr(id, '/');
    if (slash == NULL || !name_is_label(id, (size_t)(slash - id)) ||
        !name_is_dns(slash + 1, strlen(slash + 1))) {
        fault_field(faults, field, "\"%.80s\" is no namespace/name of a Certificate", id);
    }
}

/* Short ones are for tests; a ticket outlives its key's use by its life, not more. */
static void check_tickets(struct faults *faults, const Skein__SettingsTickets *tickets)
{
    const uint64_t day_ms = 86400000;
    if (tickets == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tickets");
    check_duration(faults, "rotation", tickets->rotation, 1000, 30 * day_ms);
    check_duration(faults, "life", tickets->life, 1000, 7 * day_ms);
    uint64_t rotation_ms = tickets->rotation != NULL ? tickets->rotation->ms : day_ms / 2;
    if (tickets->life != NULL && tickets->life->ms > rotation_ms) {
        fault_field(faults, "life", "is above rotation (12h when unset)");
    }
    faults_leave(faults, mark);
}

static void check_tls(struct faults *faults, const Skein__SettingsTls *tls)
{
    if (tls == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "tls");
    bool custom = tls->has_profile && tls->profile == SKEIN__TLS_PROFILE__Custom;
    const char *why = "unless profile is Custom";
    check_absent(faults, "minVersion", !custom && tls->min_version != NULL, why);
    check_absent(faults, "ciphers", !custom && tls->n_ciphers != 0, why);
    check_absent(faults, "ciphersuites", !custom && tls->n_ciphersuites != 0, why);
    check_absent(faults, "groups", !custom && tls->n_groups != 0, why);
    if (custom && tls->min_version == NULL) {
        fault_field(faults, "minVersion", "is missing; profile is Custom");
    }
    if (tls->min_version != NULL && strcmp(tls->min_version, "1.2") != 0 &&
        strcmp(tls->min_version, "1.3") != 0 && strcmp(tls->min_version, "1.1") != 0) {
        fault_field(faults, "minVersion", "\"%.20s\" is not one of 1.1, 1.2, 1.3",
                    tls->min_version);
    }
    check_text_list(faults, "ciphers", tls->ciphers, tls->n_ciphers);
    check_text_list(faults, "ciphersuites", tls->ciphersuites, tls->n_ciphersuites);
    check_text_list(faults, "groups", tls->groups, tls->n_groups);
    check_certificate_id(faults, "defaultCertificate", tls->default_certificate);
    check_client_auth(faults, tls->client_auth);
    check_tickets(faults, tls->tickets);
    faults_leave(faults, mark);
}

static void check_limits(struct faults *faults, const Skein__SettingsLimits *limits)
{
    if (limits == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "limits");
    check_u32(faults, "headerBytes", limits->has_header_bytes, limits->header_bytes, 4096, 1 << 20);
    check_u32(faults, "headerCount", limits->has_header_count, limits->header_count, 16, 1024);
    check_u32(faults, "uriBytes", limits->has_uri_bytes, limits->uri_bytes, 256, 65536);
    if (limits->has_uri_bytes && limits->has_header_bytes &&
        limits->uri_bytes > limits->header_bytes) {
        fault_field(faults, "uriBytes", "%u is above headerBytes, of which it is a part",
                    limits->uri_bytes);
    }
    if (limits->has_connections && limits->connections < 16) {
        fault_field(faults, "connections", "%llu is below 16",
                    (unsigned long long)limits->connections);
    }
    check_u32(faults, "connectionsPerClient", limits->has_connections_per_client,
              limits->connections_per_client, 1, UINT32_MAX);
    check_u32(faults, "idlePerEndpoint", limits->has_idle_per_endpoint, limits->idle_per_endpoint,
              0, 65536);
    faults_leave(faults, mark);
}

static void check_domains(struct faults *faults, const char *field, char *const *domains,
                          size_t count)
{
    check_count(faults, field, count, 256);
    for (size_t i = 0; i < MIN(count, (size_t)256); i++) {
        char canonical[NAME_LONG_MAX_BYTES + 1];
        struct err_info err;
        if (host_canonical(domains[i], canonical, &err) != RC_OK) {
            size_t item = faults_enter_item(faults, field, i);
            fault_add(faults, "%s", err.text);
            faults_leave(faults, item);
        }
    }
}

static void check_required_hsts(struct faults *faults, const Skein__SettingsSpec *spec)
{
    check_count(faults, "requiredHsts", spec->n_required_hsts, 64);
    for (size_t i = 0; i < MIN(spec->n_required_hsts, (size_t)64); i++) {
        const Skein__RequiredHsts *rule = spec->required_hsts[i];
        size_t item = faults_enter_item(faults, "requiredHsts", i);
        if (rule->n_domains == 0) {
            fault_field(faults, "domains", "is missing; wants hosts such as *.example.com");
        }
        check_domains(faults, "domains", rule->domains, rule->n_domains);
        check_duration(faults, "minMaxAge", rule->min_max_age, 0, 3650ULL * 86400000);
        check_duration(faults, "maxMaxAge", rule->max_max_age, 0, 3650ULL * 86400000);
        if (rule->min_max_age != NULL && rule->max_max_age != NULL &&
            rule->min_max_age->ms > rule->max_max_age->ms) {
            fault_field(faults, "minMaxAge", "is above maxMaxAge");
        }
        faults_leave(faults, item);
    }
}

static void check_one_line(struct faults *faults, const char *field, const char *text)
{
    check_people_text(faults, field, text, 1024);
    if (text != NULL && strpbrk(text, "\r\n") != NULL) {
        fault_field(faults, field, "has a line break");
    }
}

static void check_logging(struct faults *faults, const Skein__SettingsSpec *spec)
{
    if (spec->access_log != NULL) {
        size_t mark = faults_enter(faults, "accessLog");
        const char *format = spec->access_log->format;
        if (format != NULL && strcmp(format, "json") != 0 && strcmp(format, "combined") != 0) {
            fault_field(faults, "format", "is neither json nor combined");
        }
        faults_leave(faults, mark);
    }
    if (spec->unique_id != NULL) {
        size_t mark = faults_enter(faults, "uniqueId");
        check_header_name(faults, "header", spec->unique_id->header);
        check_one_line(faults, "format", spec->unique_id->format);
        check_template(faults, "format", spec->unique_id->format, TEMPLATE_IN_ID);
        faults_leave(faults, mark);
    }
    check_captures(faults, spec->captures);
}

static void check_rest(struct faults *faults, const Skein__SettingsSpec *spec)
{
    if (spec->admission != NULL) {
        size_t mark = faults_enter(faults, "admission");
        check_domains(faults, "allowedDomains", spec->admission->allowed_domains,
                      spec->admission->n_allowed_domains);
        check_domains(faults, "deniedDomains", spec->admission->denied_domains,
                      spec->admission->n_denied_domains);
        faults_leave(faults, mark);
    }
    if (spec->drain != NULL) {
        size_t mark = faults_enter(faults, "drain");
        check_duration(faults, "delay", spec->drain->delay, 0, 3600000);
        check_duration(faults, "timeout", spec->drain->timeout, 0, TIMEOUT_MS_MAX);
        faults_leave(faults, mark);
    }
    check_text_list(faults, "headerNameCase", spec->header_name_case, spec->n_header_name_case);
    if (spec->has_balance && spec->balance == SKEIN__BACKEND_SPEC__BALANCE__Hash) {
        fault_field(faults, "balance", "Hash needs a key, so only a Backend can ask for it");
    }
}

void validate_settings(const ProtobufCMessage *message, struct faults *faults)
{
    const Skein__Settings *settings = (const Skein__Settings *)(const void *)message;
    const Skein__SettingsSpec *spec = settings->spec;
    if (settings->metadata != NULL && settings->metadata->name != NULL &&
        strcmp(settings->metadata->name, "default") != 0) {
        fault_field(faults, "metadata.name", "\"%.60s\" is not default, the one Settings object",
                    settings->metadata->name);
    }
    if (spec == NULL) {
        return;
    }
    size_t mark = faults_enter(faults, "spec");
    check_timeouts(faults, spec->timeouts, true);
    check_tls(faults, spec->tls);
    check_cidrs(faults, "trustedProxies", spec->trusted_proxies, spec->n_trusted_proxies);
    check_limits(faults, spec->limits);
    check_error_pages(faults, spec->error_pages, spec->n_error_pages);
    check_headers(faults, spec->headers);
    check_hsts(faults, spec->hsts);
    check_required_hsts(faults, spec);
    check_retries(faults, spec->retries);
    check_health(faults, spec->health_check);
    check_logging(faults, spec);
    check_compression(faults, spec->compression);
    check_rest(faults, spec);
    faults_leave(faults, mark);
}
