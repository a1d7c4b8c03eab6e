/*
 * The text forms of scalars that JSON has no type for: spans of time, moments, bytes, field names.
 * Pure, any thread.
 */
#ifndef SKEIN_PROTO_SCALAR_H
#define SKEIN_PROTO_SCALAR_H

#include "node/base/defs.h"
#include "node/base/errors.h"

enum { DURATION_TEXT_MAX = 64 };

/*
 * "500ms", "30s", "1h30m", "2d": whole numbers with d, h, m, s or ms, each at most once and from
 * large to small. "0s" is legal, "0" and a number without unit are not. RC_INVALID.
 */
MUST_CHECK int duration_parse(const char *text, uint64_t *ret_ms, struct err_info *err);

/* The shortest such text. Returns out. */
const char *duration_format(uint64_t ms, char out[DURATION_TEXT_MAX]);

/* RFC 3339 ("2026-01-31T10:00:00.000Z", with any offset), years 1970 to 9999. RC_INVALID. */
MUST_CHECK int wall_parse(const char *text, uint64_t *ret_wall_ms, struct err_info *err);

/* Standard alphabet with padding; mem_free. */
char *base64_encode(const uint8_t *bytes, size_t len);

/* Standard or URL alphabet, padding optional. ret_bytes (mem_free) is never NULL. RC_INVALID. */
MUST_CHECK int base64_decode(const char *text, size_t len, uint8_t **ret_bytes, size_t *ret_len);

/* Digits only, no sign, no leading blank. False: something else, or above 64 bits. */
bool u64_parse(const char *text, size_t len, uint64_t *ret_value);

#endif
