/*
 * Ticket keys as replicated rows: the id is the name in hex, the value a sealed fixed form.
 *
 * The form, in network byte order: version (1) | name (16) | secret (64) | epoch (8) | not_before
 * (8) | creator (8) | life (4) | flags (4). The time of the write is the row's own. Pure, any
 * thread.
 */
#ifndef SKEIN_NODE_APP_TICKETS_ROW_H
#define SKEIN_NODE_APP_TICKETS_ROW_H

#include "node/app/tickets_core.h"
#include "node/base/errors.h"

enum {
    TICKETS_ROW_KIND = 32, /* proto/kinds.c */
    TICKETS_ID_LEN = 2 * TICKET_NAME_BYTES,
    TICKETS_FORM_BYTES = 1 + TICKET_NAME_BYTES + TICKET_SECRET_BYTES + 3 * 8 + 2 * 4,
};

void tickets_row_id(const uint8_t name[TICKET_NAME_BYTES], char ret_id[TICKETS_ID_LEN + 1]);

/* RC_INVALID: no such id. */
MUST_CHECK int tickets_row_name(const char *id, size_t len, uint8_t ret_name[TICKET_NAME_BYTES]);

void tickets_row_encode(const struct tickets_key *key, uint8_t ret_form[TICKETS_FORM_BYTES]);

/* hlc is left 0. RC_CORRUPT: not of this form, or out of range; err says what. */
MUST_CHECK int tickets_row_decode(const uint8_t *form, size_t len, struct tickets_key *ret_key,
                                  struct err_info *err);

#endif
