/*
 * A UDP socket with bounded datagrams in both directions.
 *
 * Datagrams may be lost: a send that neither the kernel nor the bounded queue takes is refused and
 * counted, and what arrives above bytes_max is dropped and counted.
 * Thread: the loop's. Nothing blocks.
 */
#ifndef SKEIN_NODE_NET_DGRAM_H
#define SKEIN_NODE_NET_DGRAM_H

#include "node/base/addr.h"
#include "node/base/errors.h"

#include <uv.h>

struct dgram;

struct dgram_config {
    size_t bytes_max;       /* of one datagram, at most 65,507 */
    size_t queue_bytes_max; /* waiting to be sent; 0: 256 KiB */

    /* bytes is borrowed for the call and may be written to; from is never unset. */
    void (*on_datagram)(void *owner, const struct addr *from, uint8_t *bytes, size_t len);
    void *owner;
};

struct dgram_counters {
    uint64_t received;
    uint64_t received_too_big; /* dropped: longer than bytes_max */
    uint64_t receive_errors;
    uint64_t sent;
    uint64_t send_dropped; /* queue full or refused by the kernel */
};

/* RC_BUSY: the address is in use; RC_IO: refused otherwise. The text names the address. */
MUST_CHECK int dgram_open(uv_loop_t *loop, const struct addr *bind,
                          const struct dgram_config *config, struct dgram **ret_dgram,
                          struct err_info *err);

/* The address in use (the real port when 0 was asked for). */
void dgram_addr(const struct dgram *dgram, struct addr *ret_addr);

/*
 * Send one datagram: at once when the socket takes it, else copied and queued.
 * RC_FULL: the queue is full. RC_TOO_BIG: above bytes_max. RC_IO: the kernel refused. RC_CLOSED.
 */
MUST_CHECK int dgram_send(struct dgram *dgram, const struct addr *to, const void *bytes,
                          size_t len);

const struct dgram_counters *dgram_counters(const struct dgram *dgram);

/* Close; queued datagrams are dropped. on_closed (may be NULL) comes from the loop; the pointer is
 * dead for the caller from this call on, and no on_datagram follows. NULL is accepted when
 * on_closed is NULL. */
void dgram_close(struct dgram *dgram, void (*on_closed)(void *owner), void *owner);

#endif
