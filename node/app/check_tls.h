/*
 * What of TLS in an object only the TLS library can judge: certificates and keys, bundles of
 * authorities, names of suites and groups.
 */
#ifndef SKEIN_NODE_APP_CHECK_TLS_H
#define SKEIN_NODE_APP_CHECK_TLS_H

#include "proto/object.h"

struct faults;

/* message has passed object_validate and is complete. Adds to faults. Thread: the control thread's;
 * up to some milliseconds. */
void check_tls(const struct kind *kind, const ProtobufCMessage *message, struct faults *faults);

#endif
