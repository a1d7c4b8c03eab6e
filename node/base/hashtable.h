/*
 * uthash with our hash: its own default falls through cases, which our warnings refuse, and SipHash
 * keeps tables flat whatever names operators choose. Include this instead of <uthash.h>.
 *
 * The key is fixed, so that a simulation replays; tables that clients can fill have their own
 * (node/proxy/hosts.h).
 */
#ifndef SKEIN_NODE_BASE_HASHTABLE_H
#define SKEIN_NODE_BASE_HASHTABLE_H

#include "node/base/hash.h"

#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
    ((hashv) = (unsigned)hash_sip64(0x736b65696eU, 0x7461626c65U, (keyptr), (keylen)))

#include <uthash.h>

#endif
