/*
 * The certificate for clients without a server name and for hosts without a Certificate, when
 * Settings name none: made once by a node of the cluster, replicated like any other.
 *
 * A node that serves TLS and is in step with its cluster makes Certificate default/skein-default
 * when there is none. Two that do so at once write the same object: the later write stays, on all
 * nodes. Whoever wants another one writes it, or names it in Settings. Thread: the control thread.
 */
#ifndef SKEIN_NODE_APP_DEFAULT_CERT_H
#define SKEIN_NODE_APP_DEFAULT_CERT_H

#include "node/base/defs.h"

struct node;
struct row;

/* A row came or went: also one that this node cannot read is not written over. */
void default_cert_applied(struct node *node, const struct row *row);

/* Once a turn of the loop; a few tests while there is nothing to do. */
void default_cert_turn(struct node *node);

#endif
