/*
 * Rows of ticket keys; see the header.
 */
#include "node/app/tickets_row.h"

#include <string.h>

enum { FORM_VERSION = 1 };

void tickets_row_id(const uint8_t name[TICKET_NAME_BYTES], char ret_id[TICKETS_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < TICKET_NAME_BYTES; i++) {
        ret_id[2 * i] = digits[name[i] >> 4];
        ret_id[2 * i + 1] = digits[name[i] & 15];
    }
    ret_id[TICKETS_ID_LEN] = '\0';
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tickets_row_name(const char *id, size_t len, uint8_t ret_name[TICKET_NAME_BYTES])
{
    uint8_t name[TICKET_NAME_BYTES];
    if (len != TICKETS_ID_LEN) {
        return RC_INVALID;
    }
    for (size_t i = 0; i < TICKET_NAME_BYTES; i++) {
        int high = digit_of(id[2 * i]);
        int low = digit_of(id[2 * i + 1]);
        if (high < 0 || low < 0) {
            return RC_INVALID;
        }
        name[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret_name, name, TICKET_NAME_BYTES);
    return RC_OK;
}

static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
    }
    return at + bytes;
}

static uint64_t take(const uint8_t **at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | *(*at)++;
    }
    return value;
}

void tickets_row_encode(const struct tickets_key *key, uint8_t ret_form[TICKETS_FORM_BYTES])
{
    uint8_t *at = put(ret_form, FORM_VERSION, 1);
    memcpy(at, key->name, TICKET_NAME_BYTES);
    at += TICKET_NAME_BYTES;
    memcpy(at, key->secret, TICKET_SECRET_BYTES);
    at += TICKET_SECRET_BYTES;
    at = put(at, key->epoch, 8);
    at = put(at, key->not_before_ms, 8);
    at = put(at, key->creator, 8);
    at = put(at, key->life_s, 4);
    (void)put(at, key->flags, 4); /* the last one */
}

int tickets_row_decode(const uint8_t *form, size_t len, struct tickets_key *ret_key,
                       struct err_info *err)
{
    if (len < 1 || form[0] != FORM_VERSION) {
        return err_set(err, RC_CORRUPT, "a ticket key of a form that this version does not know");
    }
    if (len != TICKETS_FORM_BYTES) {
        return err_set(err, RC_CORRUPT, "a ticket key of %zu bytes; wants %d", len,
                       TICKETS_FORM_BYTES);
    }
    const uint8_t *at = form + 1;
    memcpy(ret_key->name, at, TICKET_NAME_BYTES);
    at += TICKET_NAME_BYTES;
    memcpy(ret_key->secret, at, TICKET_SECRET_BYTES);
    at += TICKET_SECRET_BYTES;
    ret_key->epoch = take(&at, 8);
    ret_key->not_before_ms = take(&at, 8);
    ret_key->creator = take(&at, 8);
    ret_key->life_s = (uint32_t)take(&at, 4);
    ret_key->flags = (uint32_t)take(&at, 4);
    ret_key->hlc = 0;
    /* What is added to these must not wrap. */
    if (ret_key->epoch == 0 || ret_key->epoch > UINT32_MAX || ret_key->not_before_ms >> 48 != 0 ||
        ret_key->life_s == 0 || ret_key->life_s > TICKET_LIFE_MAX_S) {
        return err_set(err, RC_CORRUPT, "a ticket key with an epoch, time or life out of range");
    }
    return RC_OK;
}
