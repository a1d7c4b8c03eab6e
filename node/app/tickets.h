/*
 * Session ticket keys of the cluster: rows in, keys to the data plane, the next key out.
 *
 * Rows of kind TICKETS_ROW_KIND hold the keys, sealed; gossip sends them on streams alone. What is
 * to be done is decided in tickets_core. Whether a member has a key is known from its frontier: a
 * member that has all our writes has all our keys. Thread: the control thread.
 */
#ifndef SKEIN_NODE_APP_TICKETS_H
#define SKEIN_NODE_APP_TICKETS_H

#include "admin/server/admin.h"
#include "gossip/core/row.h"
#include "node/base/buf.h"
#include "node/tls/key_file.h"

struct node;
struct tickets;

/* The cluster's keys are used for the call. RC_UNSUPPORTED: OpenSSL lacks something. */
MUST_CHECK int tickets_new(struct node *node, uint64_t self, const struct key_ring *keys,
                           struct tickets **ret_tickets, struct err_info *err);
void tickets_free(struct tickets *tickets); /* wipes; NULL is accepted */

/* From the core's ops: a row of the kind, or its tombstone. */
void tickets_apply(struct tickets *tickets, const struct row *row);

/* node->proxy has come: give it the keys. */
void tickets_attach(struct tickets *tickets);

/* Once per turn of the loop, not from within the core's ops. */
void tickets_turn(struct tickets *tickets);

/* As admin.h has them. */
size_t tickets_list(struct tickets *tickets, struct admin_ticket_key *ret_keys, size_t cap);
MUST_CHECK int tickets_rotate(struct tickets *tickets, bool revoke, uint64_t *ret_write,
                              struct err_info *err);

void tickets_metrics(const struct tickets *tickets, struct buf *out);

#endif
