/*
 * The last changes of this node, by which a watch resumes.
 *
 * A ring of (revision, kind, id, deleted): small, because the object itself is looked up when an
 * event is sent. A watcher is a cursor into the ring, so a slow one costs nothing; when the ring
 * overtakes the cursor, the watcher has missed something and is told to start over.
 *
 * Invariants: sequence numbers grow by 1 per event from 1; revisions never fall; every event with a
 * revision above `base` is in the ring. Pure. Thread: the control thread.
 */
#ifndef SKEIN_ADMIN_SERVER_WATCH_RING_H
#define SKEIN_ADMIN_SERVER_WATCH_RING_H

#include "node/base/errors.h"
#include "proto/object.h"

struct watch_event {
    uint64_t revision;
    const struct kind *kind;
    char *id; /* owned by the ring */
    bool deleted;
};

struct watch_ring {
    struct watch_event *events;
    size_t cap;
    uint64_t next_seq; /* of the event that comes next; the first event is 1 */
    uint64_t base;     /* revision up to which events are forgotten, or precede the start */
};

enum { WATCH_TOKEN_MAX = 96 }; /* "node:revision" and NUL */

/* cap events at most; revision is the node's present one. */
void watch_ring_init(struct watch_ring *ring, size_t cap, uint64_t revision);
void watch_ring_deinit(struct watch_ring *ring);

/* id is copied. A revision below the last one counts as the last one. */
void watch_ring_add(struct watch_ring *ring, const struct kind *kind, const char *id, bool deleted,
                    uint64_t revision);

/* The event, until the next add; NULL when it was forgotten or has not happened. */
const struct watch_event *watch_ring_find(const struct watch_ring *ring, uint64_t seq);

/* True: the event was forgotten. */
bool watch_ring_is_gone(const struct watch_ring *ring, uint64_t seq);

/*
 * The first event above revision `since`; may be the one that comes next. RC_NOT_FOUND when events
 * between were forgotten, or since is above `now` (the revision of this node), with the text to
 * show.
 */
MUST_CHECK int watch_ring_seek(const struct watch_ring *ring, uint64_t since, uint64_t now,
                               uint64_t *ret_seq, struct err_info *err);

/*
 * The revision from which to resume after the event: its own, but when more events of the same
 * revision follow, the one before, so that a stream cut between them repeats rather than loses.
 */
uint64_t watch_ring_resume(const struct watch_ring *ring, uint64_t seq);

/*
 * "node:revision" as it was given out, or a revision alone. RC_INVALID for another form,
 * RC_NOT_FOUND for another node's: revisions count what a node took in, in its own order.
 */
MUST_CHECK int watch_token_parse(const char *text, const char *node, uint64_t *ret_revision,
                                 struct err_info *err);
const char *watch_token_format(const char *node, uint64_t revision, char out[WATCH_TOKEN_MAX]);

#endif
