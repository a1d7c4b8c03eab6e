/*
 * The admin API: its listener, its requests, and the table of operations that the node gives it.
 *
 * Requests are parsed, validated and planned here; what exists and what becomes durable is behind
 * struct admin_ops, so that this unit knows neither store, gossip nor data plane.
 * Thread: the control thread's loop. Nothing blocks.
 */
#ifndef SKEIN_ADMIN_SERVER_ADMIN_H
#define SKEIN_ADMIN_SERVER_ADMIN_H

#include "admin/server/access.h"
#include "node/base/addr.h"
#include "node/base/buf.h"
#include "node/base/errors.h"
#include "proto/object.h"

#include <uv.h>

struct admin;

/* One object to write or delete, as planned. */
struct admin_change {
    const struct kind *kind;
    const char *id;                  /* "name" or "namespace/name"; borrowed for the call */
    const ProtobufCMessage *message; /* NULL deletes; status and server-set metadata are ignored */
};

/*
 * rc: RC_OK durable (and, when asked, on every live node); RC_NO_SPACE; RC_IO; RC_TIMEOUT: durable
 * here, but a live node did not confirm in time (text says which). revision: as admin_member has
 * it.
 */
typedef void (*admin_done)(void *arg, int rc, uint64_t revision, const char *text);

struct admin_member {
    char id[20]; /* 16 hex digits */
    char name[64];
    char address[ADDR_TEXT_MAX];
    char version[32];
    const char *state; /* "alive", "suspect", "dead", "left" */
    bool is_self;
    bool ready;
    uint64_t revision;       /* configuration revision it has */
    uint64_t lag;            /* writes it misses against the highest revision known; 0: in step */
    bool in_step;            /* its frontier equals ours */
    int64_t clock_offset_ms; /* its clock minus ours */
    bool clock_flagged;      /* above the limit */
    uint32_t rtt_us;
    uint64_t heard_ms_ago; /* UINT64_MAX: never */
};

/* A key of session tickets, without what is secret. Times are wall clock. */
struct admin_ticket_key {
    char name[2 * 16 + 1]; /* the first hex digits of its name */
    char creator[64];
    const char *state; /* "Pending", "Active", "Retiring" */
    uint64_t epoch;
    uint64_t created_ms;
    uint64_t not_before_ms;
    uint64_t expires_ms; /* 0: not before another key is active */
};

struct admin_ops {
    /* NULL when there is none. Valid until control returns to the loop. status is up to date. */
    const struct object *(*find)(void *ctx, const struct kind *kind, const char *id);

    /* In ascending order of id; stop when visit returns false. */
    void (*each)(void *ctx, const struct kind *kind,
                 bool (*visit)(void *arg, const struct object *object), void *arg);

    /*
     * As each, from the first id that is not below `from` on. NULL is accepted (each is used and
     * what comes before is skipped), but costs O(objects) per page and per Backend shown.
     */
    void (*each_from)(void *ctx, const struct kind *kind, const char *from,
                      bool (*visit)(void *arg, const struct object *object), void *arg);

    /*
     * Write all or nothing; done is called later, exactly once, never from within.
     * RC_BUSY: a key has a write in progress; plan again when settled calls back.
     * RC_CLOCK, RC_TOO_BIG, RC_INVALID: err says why; done is not called.
     */
    int (*commit)(void *ctx, const struct admin_change *changes, size_t count, bool wait_all,
                  admin_done done, void *arg, struct err_info *err);

    /* What is wrong with a complete message that texts do not tell: certificates, keys, words of
     * TLS. Adds to faults. NULL: nothing is looked at. */
    void (*check)(void *ctx, const struct kind *kind, const ProtobufCMessage *message,
                  struct faults *faults);

    /* Call back once after the next write ended (at once through the loop when none is pending). */
    void (*settled)(void *ctx, void (*callback)(void *arg), void *arg);

    /* Self first. Fills at most cap, returns how many there are. */
    size_t (*members)(void *ctx, struct admin_member *ret_members, size_t cap);

    /*
     * Remove a member that is dead or left from the memory of all nodes. member is its name, or its
     * id when the name fits several. RC_NOT_FOUND; RC_BUSY: it is alive or suspect; RC_INVALID: the
     * name fits several. err says which.
     */
    int (*forget)(void *ctx, const char *member, struct err_info *err);

    /* Newest first. Fills at most cap, returns how many there are. */
    size_t (*ticket_keys)(void *ctx, struct admin_ticket_key *ret_keys, size_t cap);

    /*
     * A new key of session tickets, to be used as soon as every live node has it; revoke: at once,
     * and all others are deleted. done as for commit. RC_CONFLICT: off, or too many keys; RC_BUSY,
     * RC_AGAIN, RC_CLOCK as commit.
     */
    int (*rotate_tickets)(void *ctx, bool revoke, bool wait_all, admin_done done, void *arg,
                          struct err_info *err);

    /* False: reason (one line) says what is missing. */
    bool (*ready)(void *ctx, char *reason, size_t size);

    /*
     * What admin_notify was last called with, or what precedes its first call: a count of this node
     * alone, never falling, also over restarts. It resumes a watch. (The revision of a write and of
     * a member counts the writes of the whole cluster.)
     */
    uint64_t (*revision)(void *ctx);
    const char *(*node_name)(void *ctx);
    /* Appends Prometheus text: all of GET /metrics, admin_metrics included. */
    void (*metrics)(void *ctx, struct buf *out);
};

/* TLS on the TCP listener: what it shows, what it accepts. Referenced by who is given it. */
struct tls_cert;
struct tls_policy;
struct admin_tls {
    struct tls_cert *cert;
    struct tls_policy *policy;
    enum access client_role; /* of who shows a certificate that the policy's authorities signed */
};

struct admin_config {
    const char *unix_path;       /* NULL or "": none */
    const struct addr *listen;   /* NULL: none; without tls a loopback address */
    const struct admin_tls *tls; /* NULL: plain TCP, where whoever reaches it is an admin */
    const char *audit_path;      /* of the audit trail; NULL or "": none is kept */
    size_t audit_bytes_max;      /* of its file, before it is rotated; 0: 16 MiB */
    size_t body_bytes_max;       /* 0: 8 MiB; above it 413 */
};

/* RC_BUSY: socket or port in use (text names it; a stale unix socket is replaced). ops is borrowed.
 */
MUST_CHECK int admin_start(uv_loop_t *loop, const struct admin_config *config,
                           const struct admin_ops *ops, void *ctx, struct admin **ret_admin,
                           struct err_info *err);

/* Another certificate or policy (it had one before), for connections from now on. RC_UNSUPPORTED.
 */
MUST_CHECK int admin_set_tls(struct admin *admin, const struct admin_tls *tls,
                             struct err_info *err);

/* The TCP address in use (for port 0); unset when there is none. */
void admin_listen_addr(const struct admin *admin, struct addr *ret_addr);

/* An object changed or went (deleted: object is its last form): feeds /v1/watch. */
void admin_notify(struct admin *admin, const struct object *object, bool deleted,
                  uint64_t revision);

/* Close listeners and connections; closed is called when nothing is left on the loop. */
void admin_stop(struct admin *admin, void (*closed)(void *arg), void *arg);

/* Prometheus text of the API's own counters, appended: for ops->metrics. */
void admin_metrics(const struct admin *admin, struct buf *out);

#endif
