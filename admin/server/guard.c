/*
 * Who asks: by the socket, a token or a certificate; and whether it may.
 *
 *   unix socket                     an admin, whatever it shows: the file's permissions decide
 *   plain TCP (loopback), nothing   an admin; with a token: who the token names
 *   TLS                             a token, else a certificate that the policy's authorities
 *                                   signed; else 401
 */
#include "admin/server/auth.h"
#include "admin/server/server.h"
#include "node/base/log.h"
#include "node/base/timesrc.h"
#include "node/tls/tls_lib.h"

#include <stdio.h>
#include <string.h>

#define CHALLENGE "WWW-Authenticate: Bearer realm=\"skein\"\r\n"

_Static_assert((int)COUNT_AUTH_MAX == (int)AUTH_RESULT_COUNT, "one counter a result");

static void set_from(struct who *who, const struct conn *conn)
{
    struct addr peer;
    char text[ADDR_TEXT_MAX];
    stream_peer_addr(conn->stream, &peer);
    bool is_unix = stream_is_unix(conn->stream);
    (void)snprintf(who->from, sizeof(who->from), "%s",
                   is_unix ? "unix" : addr_format_ip(&peer, text));
}

static void set_local(struct who *who, const struct conn *conn)
{
    uint32_t uid;
    who->role = ACCESS_ADMIN;
    if (!stream_is_unix(conn->stream)) {
        who->via = WHO_LOOPBACK;
        (void)snprintf(who->name, sizeof(who->name), "loopback");
        return;
    }
    who->via = WHO_UNIX;
    if (stream_peer_uid(conn->stream, &uid)) {
        (void)snprintf(who->name, sizeof(who->name), "uid %u", (unsigned)uid);
    } else {
        (void)snprintf(who->name, sizeof(who->name), "unix");
    }
}

static bool set_by_certificate(struct who *who, const struct conn *conn)
{
    struct tls_peer peer;
    if (conn->engine == NULL || !tls_engine_peer(conn->engine, &peer)) {
        return false;
    }
    who->via = WHO_CERTIFICATE;
    who->role = conn->admin->tls.client_role;
    (void)snprintf(who->name, sizeof(who->name), "%s", peer.subject);
    return true;
}

static enum auth_result identify(struct call *call, const struct h1_head *head, const char *bytes)
{
    const struct conn *conn = call->conn;
    struct who *who = &call->who;
    const struct h1_field *field = h1_find(head, H1_AUTHORIZATION);
    if (stream_is_unix(conn->stream) || (field == NULL && !conn->tls)) {
        set_local(who, conn);
        return AUTH_OK;
    }
    if (field == NULL) {
        return set_by_certificate(who, conn) ? AUTH_OK : AUTH_MISSING;
    }
    if (h1_find_next(head, field) != NULL) {
        return AUTH_UNKNOWN; /* two credentials are none */
    }
    return auth_bearer(&call->admin->view, bytes + field->value.off, field->value.len,
                       time_wall_ms(), who);
}

static void refuse_unknown(struct call *call, enum auth_result result)
{
    static struct log_limit limit;
    struct admin *admin = call->admin;
    uint32_t suppressed = 0, wait_s = 0;
    admin->count.auth_failures[result]++;
    if (result != AUTH_MISSING) {
        call->bad_credential = true;
        struct addr peer;
        stream_peer_addr(call->conn->stream, &peer);
        wait_s = throttle_fail(&admin->throttle, &peer, uv_now(admin->loop));
        if (log_limit_pass(&limit, 1, &suppressed)) {
            log_warn("admin: a credential is refused", "from=%s reason=%s left_out=%u",
                     call->who.from, auth_result_name(result), suppressed);
        }
    }
    if (wait_s > 0) {
        char fields[64];
        (void)snprintf(fields, sizeof(fields), "Retry-After: %u\r\n", (unsigned)wait_s);
        admin->count.auth_throttled++;
        call->unrecorded = true;
        call_answer_problem(call, 429, fields, NULL,
                            "too many credentials that are not known came from your address");
        return;
    }
    static const char *const details[AUTH_RESULT_COUNT] = {
        [AUTH_MISSING] = "a credential is needed: Authorization: Bearer TOKEN (skeinctl token "
                         "create makes one)",
        [AUTH_UNKNOWN] = "the token is not known here: it is mistyped, or it was revoked",
        [AUTH_EXPIRED] = "the token has expired; an admin can make a new one (skeinctl token "
                         "create)",
    };
    call_answer_problem(call, 401, CHALLENGE, NULL, details[result]);
}

bool guard_refuses(struct call *call, const struct h1_head *head, const char *bytes)
{
    struct err_info err = {0};
    set_from(&call->who, call->conn);
    const struct route *route = call->match.route;
    if (route != NULL && route->least == ACCESS_OPEN) {
        call->who.role = ACCESS_OPEN;
        return false;
    }
    enum auth_result result = identify(call, head, bytes);
    if (result != AUTH_OK) {
        refuse_unknown(call, result);
        return true;
    }
    call->conn->known = true;
    if (route == NULL || access_check(&call->who, &call->match, &err) == RC_OK) {
        return false;
    }
    call->admin->count.forbidden++;
    call_answer_problem(call, 403, NULL, NULL, err.text);
    return true;
}

bool guard_still_good(const struct call *call)
{
    if (call->who.via != WHO_TOKEN) {
        return true;
    }
    const struct object *object =
        view_find(&call->admin->view, kind_by_name("Token"), call->who.name);
    if (object == NULL || object->created_hlc != call->who.created_hlc) {
        return false;
    }
    const Skein__TokenSpec *spec = ((const Skein__Token *)(const void *)object->message)->spec;
    return spec != NULL && (spec->expires == NULL || spec->expires->wall_ms > time_wall_ms());
}
