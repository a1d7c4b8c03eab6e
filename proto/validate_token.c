/*
 * What makes a Token acceptable.
 *
 * The hash is the server's to set, so it is not looked for here: an object without one opens
 * nothing.
 */
#include "proto/checks.h"

#include <string.h>

void validate_token(const ProtobufCMessage *message, struct faults *faults)
{
    static const Skein__TokenSpec empty = SKEIN__TOKEN_SPEC__INIT;
    const Skein__TokenSpec *spec = ((const Skein__Token *)(const void *)message)->spec;
    if (spec == NULL) {
        spec = &empty;
    }
    size_t mark = faults_enter(faults, "spec");
    if (!spec->has_role) {
        fault_field(faults, "role", "is missing; wants one of Viewer, Editor, Admin");
    }
    if (spec->namespace_ != NULL) {
        if (!name_is_label(spec->namespace_, strlen(spec->namespace_))) {
            fault_field(faults, "namespace",
                        "\"%.80s\" is no namespace: up to 63 lower-case letters, digits and '-', "
                        "starting and ending with a letter or digit",
                        spec->namespace_);
        }
        check_absent(faults, "namespace",
                     spec->has_role && spec->role == SKEIN__TOKEN_SPEC__ROLE__Admin,
                     "with role Admin, which is for the whole cluster; use Editor");
    }
    if (spec->expires != NULL && !spec->expires->has_wall_ms) {
        fault_field(faults, "expires", "is no moment; wants one such as 2026-01-31T10:00:00Z");
    }
    if (spec->has_hash && spec->hash.len != TOKEN_HASH_BYTES) {
        fault_field(faults, "hash", "has %zu bytes; wants %d", spec->hash.len, TOKEN_HASH_BYTES);
    }
    check_people_text(faults, "description", spec->description, PEOPLE_TEXT_MAX);
    faults_leave(faults, mark);
}
