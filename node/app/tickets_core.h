/*
 * Which key seals session tickets, which ones open them, who makes the next one and when.
 *
 *   made --> PENDING (opens) --not_before, and every live member has it--> ACTIVE (seals)
 *        --the next one is active--> RETIRING (opens) --one ticket life--> wiped, row deleted
 *
 * The keys are a set that grows by rows of any node. Two nodes that make one for the same epoch do
 * no harm: all open with either, and seal with the one of the lowest (hlc, name). The next key is
 * made at half of an epoch by the live node that comes first in rendezvous order, by the next one
 * a while later if none shows. The first key of a cluster is active at once.
 *
 * Pure: keys, members and wall time in, what to do out. Thread: one. Source: the clustering notes
 * 4.2.
 */
#ifndef SKEIN_NODE_APP_TICKETS_CORE_H
#define SKEIN_NODE_APP_TICKETS_CORE_H

#include "node/tls/tls_tickets.h"

enum {
    TICKETS_HELD_MAX = 64, /* keys held; what is above TICKET_KEYS_MAX is about to be deleted */
    TICKETS_ROTATION_MIN_S = 1,
    TICKETS_ROTATION_DEFAULT_S = 12 * 3600,
};

/* Why a key was made, which decides how long it waits for members that do not have it. */
enum tickets_flag {
    TICKETS_FIRST = 1,  /* the cluster had none: it seals at once */
    TICKETS_ASKED = 2,  /* by a person, to be used soon */
    TICKETS_REVOKE = 4, /* keys made before it count for nothing; it seals at once */
};

/* As rows carry it. */
struct tickets_key {
    uint8_t name[TICKET_NAME_BYTES];
    uint8_t secret[TICKET_SECRET_BYTES];
    uint64_t hlc;           /* of the row */
    uint64_t epoch;         /* counts up from 1 */
    uint64_t not_before_ms; /* wall */
    uint64_t creator;       /* a node's id */
    uint32_t life_s;        /* what tickets sealed with it promise at least */
    uint32_t flags;         /* enum tickets_flag */
};

struct tickets_settings {
    bool enabled;
    uint32_t rotation_s;
    uint32_t life_s; /* <= rotation_s, <= TICKET_LIFE_MAX_S */
};

/* Out of range values are brought into it; 0: the default. Pure. */
struct tickets_settings tickets_settings_of(bool enabled, uint64_t rotation_ms, uint64_t life_ms);

struct tickets_member {
    uint64_t id;
    bool is_self;
    bool is_up;    /* alive or suspect */
    bool is_ready; /* it serves, so that it makes keys too */
    bool in_step;  /* it has every write that we have */
};

struct tickets_world {
    uint64_t wall_ms;
    const struct tickets_member *members; /* with self */
    size_t member_count;
    bool may_write;
};

struct tickets_core;

/* What a step asks for. */
struct tickets_todo {
    bool ring_changed; /* take tickets_core_ring */
    bool make;         /* write a key of this form; name and secret are the caller's to draw */
    struct tickets_key key;
    size_t drop_count; /* rows to delete */
    uint8_t drop[TICKETS_HELD_MAX][TICKET_NAME_BYTES];
};

struct tickets_core *tickets_core_new(uint64_t self);
void tickets_core_free(struct tickets_core *core); /* wipes; NULL is accepted */

/* A row came: copied. False: too many keys, or it is older than all that are held. */
bool tickets_core_put(struct tickets_core *core, const struct tickets_key *key);
/* A row went: wiped. Unknown names are accepted. */
void tickets_core_remove(struct tickets_core *core, const uint8_t name[TICKET_NAME_BYTES]);

void tickets_core_step(struct tickets_core *core, const struct tickets_settings *settings,
                       const struct tickets_world *world, struct tickets_todo *ret_todo);

/* A key that a person asks for, now. False: there are so many that one in use would go. */
bool tickets_core_rotate(const struct tickets_core *core, const struct tickets_settings *settings,
                         uint64_t wall_ms, bool revoke, struct tickets_key *ret_key);

/* Keys as of the last step, newest epoch first; what is wiped or void is left out. */
struct tickets_shown {
    const struct tickets_key *key; /* borrowed until the next put, remove or step */
    enum ticket_state state;
    uint64_t expires_ms; /* wall; 0: not before another key is active */
};
size_t tickets_core_count(const struct tickets_core *core);
void tickets_core_at(const struct tickets_core *core, size_t idx, struct tickets_shown *ret_shown);

/* At most TICKET_KEYS_MAX; returns how many. The caller wipes them. */
size_t tickets_core_ring(const struct tickets_core *core,
                         struct ticket_key ret_keys[TICKET_KEYS_MAX]);

#endif
