/*
 * What each fault means in public: status, words, metric label.
 */
#include "node/http/h1_head.h"

static const struct {
    int status;
    const char *label;
    const char *text;
} faults[H1_FAULT_COUNT] = {
    [H1_FAULT_NONE] = {500, "none", "no fault"},
    [H1_FAULT_CONTROL_BYTE] = {400, "control_byte", "a control byte, or a line not ended by CRLF"},
    [H1_FAULT_START_LINE] = {400, "start_line", "the first line is not of the form that HTTP has"},
    [H1_FAULT_METHOD] = {400, "method", "the method is not a token"},
    [H1_FAULT_TARGET] = {400, "target", "the target is malformed"},
    [H1_FAULT_VERSION] = {505, "version", "only HTTP/1.0 and HTTP/1.1 are spoken here"},
    [H1_FAULT_FIELD_NAME] = {400, "field_name", "a field name is not a token before a colon"},
    [H1_FAULT_FOLD] = {400, "fold", "a field line is folded"},
    [H1_FAULT_HOST] = {400, "host", "Host is missing, repeated, malformed or not the target's"},
    [H1_FAULT_LENGTH] = {400, "content_length", "Content-Length is not one decimal number"},
    [H1_FAULT_CODING] = {400, "transfer_encoding", "Transfer-Encoding is not a single chunked"},
    [H1_FAULT_CODING_UNKNOWN] = {501, "transfer_coding", "the only transfer coding is chunked"},
    [H1_FAULT_LENGTH_AND_CODING] = {400, "length_and_coding",
                                    "Content-Length and Transfer-Encoding exclude each other"},
    [H1_FAULT_CONNECTION] = {400, "connection", "Connection is malformed or lists too much"},
    [H1_FAULT_STATUS] = {502, "status", "the status is not a number of three digits"},
    [H1_FAULT_HEAD_TOO_BIG] = {431, "head_bytes", "the header section is too large"},
    [H1_FAULT_FIELDS_TOO_MANY] = {431, "field_count", "there are too many header fields"},
    [H1_FAULT_TARGET_TOO_LONG] = {414, "target_bytes", "the target is too long"},
    [H1_FAULT_CHUNK_SIZE] = {400, "chunk_size", "a chunk size is malformed"},
    [H1_FAULT_CHUNK_LINE] = {400, "chunk_line", "a chunk line is malformed"},
    [H1_FAULT_CHUNK_DATA] = {400, "chunk_data", "chunk data is not followed by CRLF"},
    [H1_FAULT_CHUNK_OVERHEAD] = {400, "chunk_overhead", "there is more chunk extension than data"},
    [H1_FAULT_TRAILER] = {400, "trailer", "a trailer field is malformed"},
    [H1_FAULT_TRAILER_TOO_BIG] = {431, "trailer_bytes", "the trailer section is too large"},
    [H1_FAULT_BODY_TOO_BIG] = {413, "body_bytes", "the body is too large"},
};

int h1_fault_status(enum h1_fault fault)
{
    return faults[fault < H1_FAULT_COUNT ? fault : H1_FAULT_NONE].status;
}

const char *h1_fault_text(enum h1_fault fault)
{
    return faults[fault < H1_FAULT_COUNT ? fault : H1_FAULT_NONE].text;
}

const char *h1_fault_label(enum h1_fault fault)
{
    return faults[fault < H1_FAULT_COUNT ? fault : H1_FAULT_NONE].label;
}
