/*
 * Ring of changes and resume tokens; see the header.
 */
#include "admin/server/watch_ring.h"

#include "node/base/check.h"
#include "node/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void watch_ring_init(struct watch_ring *ring, size_t cap, uint64_t revision)
{
    ASSERT(cap > 0);
    *ring = (struct watch_ring){.cap = cap, .next_seq = 1, .base = revision};
    ring->events = mem_array(cap, sizeof(*ring->events));
}

void watch_ring_deinit(struct watch_ring *ring)
{
    for (size_t i = 0; i < ring->cap && ring->events != NULL; i++) {
        MEM_FREE(ring->events[i].id);
    }
    MEM_FREE(ring->events);
}

static struct watch_event *slot(const struct watch_ring *ring, uint64_t seq)
{
    return &ring->events[seq % ring->cap];
}

const struct watch_event *watch_ring_find(const struct watch_ring *ring, uint64_t seq)
{
    bool known = seq > 0 && seq < ring->next_seq && !watch_ring_is_gone(ring, seq);
    return known ? slot(ring, seq) : NULL;
}

bool watch_ring_is_gone(const struct watch_ring *ring, uint64_t seq)
{
    return seq + ring->cap < ring->next_seq;
}

void watch_ring_add(struct watch_ring *ring, const struct kind *kind, const char *id, bool deleted,
                    uint64_t revision)
{
    const struct watch_event *last = watch_ring_find(ring, ring->next_seq - 1);
    uint64_t floor = last != NULL ? last->revision : ring->base;
    struct watch_event *event = slot(ring, ring->next_seq);
    if (event->id != NULL) {
        ring->base = event->revision;
        MEM_FREE(event->id);
    }
    *event = (struct watch_event){
        .revision = MAX(revision, floor), .kind = kind, .id = mem_strdup(id), .deleted = deleted};
    ring->next_seq++;
}

int watch_ring_seek(const struct watch_ring *ring, uint64_t since, uint64_t now, uint64_t *ret_seq,
                    struct err_info *err)
{
    if (since > now) {
        return err_set(err, RC_NOT_FOUND,
                       "since: revision %" PRIu64 " is ahead of this node, which is at %" PRIu64
                       "; list again and watch from its answer's \"since\"",
                       since, now);
    }
    if (since < ring->base) {
        return err_set(err, RC_NOT_FOUND,
                       "since: revision %" PRIu64 " is too old, changes up to %" PRIu64
                       " are no longer kept; list again and watch from its answer's \"since\"",
                       since, ring->base);
    }
    uint64_t first = ring->next_seq > ring->cap ? ring->next_seq - ring->cap : 1;
    uint64_t low = first, high = ring->next_seq; /* revisions ascend: binary search */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (slot(ring, middle)->revision > since) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *ret_seq = low;
    return RC_OK;
}

uint64_t watch_ring_resume(const struct watch_ring *ring, uint64_t seq)
{
    const struct watch_event *event = watch_ring_find(ring, seq);
    if (event == NULL) {
        return ring->base;
    }
    const struct watch_event *next = watch_ring_find(ring, seq + 1);
    if (next == NULL || next->revision != event->revision) {
        return event->revision;
    }
    for (uint64_t before = seq - 1; before > 0; before--) {
        const struct watch_event *earlier = watch_ring_find(ring, before);
        if (earlier == NULL) {
            break;
        }
        if (earlier->revision < event->revision) {
            return earlier->revision;
        }
    }
    return MIN(ring->base, event->revision - 1);
}

int watch_token_parse(const char *text, const char *node, uint64_t *ret_revision,
                      struct err_info *err)
{
    const char *colon = strrchr(text, ':');
    const char *number = colon != NULL ? colon + 1 : text;
    uint64_t revision = 0;
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 18 || number[digits] != '\0') {
        return err_set(err, RC_INVALID,
                       "since: \"%.80s\" is unknown; accepted: NODE:NUMBER as a list or a watch "
                       "of this node gave it out",
                       text);
    }
    for (size_t i = 0; i < digits; i++) {
        revision = revision * 10 + (uint64_t)(number[i] - '0');
    }
    size_t name_len = colon != NULL ? (size_t)(colon - text) : 0;
    if (colon != NULL && (name_len != strlen(node) || memcmp(text, node, name_len) != 0)) {
        return err_set(err, RC_NOT_FOUND,
                       "since: this token was given out by node \"%.*s\", and this is node \"%s\": "
                       "each node takes changes in its own order; list again here and watch from "
                       "its answer's \"since\"",
                       (int)MIN(name_len, 64), text, node);
    }
    *ret_revision = revision;
    return RC_OK;
}

const char *watch_token_format(const char *node, uint64_t revision, char out[WATCH_TOKEN_MAX])
{
    (void)snprintf(out, WATCH_TOKEN_MAX, "%.64s:%" PRIu64, node, revision);
    return out;
}
