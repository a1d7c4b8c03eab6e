/*
 * Life of the server: listeners, clocks, the end; and what the node tells it.
 */
#include "admin/server/server.h"

#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/tls/tls_cert.h"

#include <inttypes.h>
#include <string.h>
#include <utlist.h>

enum { WATCH_RING_EVENTS = 8192, UNIX_MODE = 0660 };

static void on_tick(uv_timer_t *timer)
{
    struct admin *admin = timer->data;
    uint64_t now = uv_now(admin->loop);
    bool overdue = admin->stopping && now - admin->stop_ms > ADMIN_STOP_MS;
    struct conn *conn, *next;
    DL_FOREACH_SAFE (admin->conns, conn, next) { /* closing is never done from within */
        if (overdue) {
            stream_close(conn->stream, STREAM_SHUTDOWN, NULL);
        } else {
            conn_tick(conn, now);
        }
    }
}

static void on_kick(uv_timer_t *timer)
{
    struct admin *admin = timer->data;
    struct conn *conn, *next;
    DL_FOREACH_SAFE (admin->conns, conn, next) {
        if (conn->state == CONN_STREAM && stream_is_open(conn->stream)) {
            conn_pump(conn);
        }
    }
}

void admin_kick(struct admin *admin)
{
    if (!admin->stopping && !uv_is_active((uv_handle_t *)&admin->kick)) {
        int rc = uv_timer_start(&admin->kick, on_kick, 0, 0);
        ASSERT(rc == 0); /* fails only for a missing callback or a closing handle */
    }
}

/* ---- the end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct admin *admin = handle->data;
    admin->handles--;
    admin_check_closed(admin);
}

static void on_part_closed(void *owner)
{
    struct admin *admin = owner;
    admin->handles--;
    admin_check_closed(admin);
}

void admin_check_closed(struct admin *admin)
{
    if (!admin->stopping || admin->conn_count > 0 || admin->call_count > 0) {
        return;
    }
    if (!uv_is_closing((uv_handle_t *)&admin->tick)) {
        uv_close((uv_handle_t *)&admin->tick, on_handle_closed);
        uv_close((uv_handle_t *)&admin->kick, on_handle_closed);
        if (admin->audit != NULL) {
            audit_close(admin->audit, on_part_closed, admin); /* no call waits for it any more */
        }
        return;
    }
    if (admin->handles > 0) {
        return;
    }
    void (*closed)(void *arg) = admin->closed;
    void *arg = admin->closed_arg;
    watch_ring_deinit(&admin->ring);
    wire_deinit(admin);
    mem_free(admin);
    if (closed != NULL) {
        closed(arg);
    }
}

void admin_stop(struct admin *admin, void (*closed)(void *arg), void *arg)
{
    ASSERT(!admin->stopping);
    admin->stopping = true;
    admin->stop_ms = uv_now(admin->loop);
    admin->closed = closed;
    admin->closed_arg = arg;
    if (admin->unix_listener != NULL) {
        listener_close(admin->unix_listener, on_part_closed, admin);
    }
    if (admin->tcp_listener != NULL) {
        listener_close(admin->tcp_listener, on_part_closed, admin);
    }
    struct conn *conn, *next;
    DL_FOREACH_SAFE (admin->conns, conn, next) {
        conn_close_when_idle(conn);
    }
    admin_check_closed(admin); /* never ends here: the timers close through the loop */
}

/* ---- the beginning ---- */

static int open_listeners(struct admin *admin, const struct admin_config *config,
                          struct err_info *err)
{
    struct listener_config listener = {
        .streams_max = ADMIN_CONNECTIONS_MAX, .on_accept = conn_accept, .owner = admin};
    if (config->unix_path != NULL && config->unix_path[0] != '\0') {
        int rc = listener_open_unix(admin->loop, config->unix_path, UNIX_MODE, &listener,
                                    &admin->unix_listener, err);
        if (rc != RC_OK) {
            return err_prefix(err, rc, "admin");
        }
        admin->handles++;
    }
    if (config->listen != NULL) {
        char text[ADDR_TEXT_MAX];
        if (config->tls == NULL && !addr_is_loopback(config->listen)) {
            return err_set(err, RC_INVALID,
                           "admin: %s is no loopback address; without TLS only 127.0.0.1 and "
                           "[::1] are accepted",
                           addr_format(config->listen, text));
        }
        int rc =
            listener_open_tcp(admin->loop, config->listen, &listener, &admin->tcp_listener, err);
        if (rc != RC_OK) {
            return err_prefix(err, rc, "admin");
        }
        admin->handles++;
        listener_addr(admin->tcp_listener, &admin->listen_addr);
    }
    return RC_OK;
}

static void start_timers(struct admin *admin)
{
    int rc = uv_timer_init(admin->loop, &admin->tick);
    rc |= uv_timer_init(admin->loop, &admin->kick);
    admin->tick.data = admin;
    admin->kick.data = admin;
    rc |= uv_timer_start(&admin->tick, on_tick, ADMIN_TICK_MS, ADMIN_TICK_MS);
    ASSERT(rc == 0); /* timers need nothing that could be missing */
    admin->handles += 2;
}

static int start_audit(struct admin *admin, const struct admin_config *config, struct err_info *err)
{
    if (config->audit_path == NULL || config->audit_path[0] == '\0') {
        return RC_OK;
    }
    int rc =
        audit_open(admin->loop, config->audit_path, config->audit_bytes_max, &admin->audit, err);
    if (rc != RC_OK) {
        admin->audit = NULL;
        return err_prefix(err, rc, "admin: audit trail");
    }
    admin->handles++;
    return RC_OK;
}

int admin_start(uv_loop_t *loop, const struct admin_config *config, const struct admin_ops *ops,
                void *ctx, struct admin **ret_admin, struct err_info *err)
{
    struct admin *admin = mem_new(sizeof(*admin));
    admin->loop = loop;
    admin->view = (struct view){.ops = ops, .ctx = ctx};
    admin->body_bytes_max =
        config->body_bytes_max != 0 ? config->body_bytes_max : (size_t)ADMIN_BODY_BYTES_DEFAULT;
    watch_ring_init(&admin->ring, WATCH_RING_EVENTS, ops->revision(ctx));
    throttle_init(&admin->throttle);
    start_timers(admin);
    int rc = config->tls != NULL ? wire_set_tls(admin, config->tls, err) : RC_OK;
    rc = rc != RC_OK ? err_prefix(err, rc, "admin") : start_audit(admin, config, err);
    rc = rc != RC_OK ? rc : open_listeners(admin, config, err);
    if (rc != RC_OK) {
        admin_stop(admin, NULL, NULL); /* what is open closes through the loop, then it is freed */
        return rc;
    }
    *ret_admin = admin;
    return RC_OK;
}

int admin_set_tls(struct admin *admin, const struct admin_tls *tls, struct err_info *err)
{
    ASSERT(admin->tls_lib != NULL);
    return wire_set_tls(admin, tls, err);
}

void admin_listen_addr(const struct admin *admin, struct addr *ret_addr)
{
    *ret_addr = admin->listen_addr;
}

void admin_notify(struct admin *admin, const struct object *object, bool deleted, uint64_t revision)
{
    watch_ring_add(&admin->ring, object->kind, object->id, deleted, revision);
    if (admin->watchers > 0) {
        admin_kick(admin);
    }
}

void admin_metrics(const struct admin *admin, struct buf *out)
{
    count_format(&admin->count, out);
    (void)buf_printf(out,
                     "# HELP skein_admin_connections Open connections to the admin API.\n"
                     "# TYPE skein_admin_connections gauge\n"
                     "skein_admin_connections %zu\n"
                     "# HELP skein_admin_watchers Open watches.\n"
                     "# TYPE skein_admin_watchers gauge\n"
                     "skein_admin_watchers %zu\n",
                     admin->conn_count, admin->watchers);
    if (admin->tls.cert != NULL) {
        (void)buf_printf(out,
                         "# HELP skein_admin_certificate_not_after_seconds When the admin API's "
                         "certificate ends, in seconds since 1970.\n"
                         "# TYPE skein_admin_certificate_not_after_seconds gauge\n"
                         "skein_admin_certificate_not_after_seconds %" PRId64 "\n",
                         tls_cert_info(admin->tls.cert)->not_after);
    }
    if (admin->audit != NULL) {
        (void)buf_printf(out,
                         "# HELP skein_admin_audit_lost_total Records that the audit trail did not "
                         "take.\n# TYPE skein_admin_audit_lost_total counter\n"
                         "skein_admin_audit_lost_total %" PRIu64 "\n",
                         audit_lost(admin->audit));
    }
}
