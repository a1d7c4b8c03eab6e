/*
 * Lists of captures, in one piece of memory; see access_capture.h.
 */
#include "node/proxy/access_capture.h"

#include "node/base/mem.h"

#include <string.h>

static bool is_sound(const struct proxy_capture *capture)
{
    return capture->name != NULL && capture->name[0] != '\0' &&
           strlen(capture->name) <= CAPTURE_NAME_MAX;
}

/* How many are kept, and how many bytes their names take. */
static uint16_t measure(const struct proxy_capture *from, size_t count, size_t *bytes)
{
    uint16_t kept = 0;
    for (size_t i = 0; i < count && kept < CAPTURES_MAX; i++) {
        if (is_sound(&from[i])) {
            *bytes += strlen(from[i].name);
            kept++;
        }
    }
    return kept;
}

struct place {
    struct capture *item;
    char *text;
};

static const struct capture *copy(const struct proxy_capture *from, uint16_t kept, bool lower,
                                  struct place *place)
{
    const struct capture *first = place->item;
    for (size_t i = 0, done = 0; done < kept; i++) {
        if (!is_sound(&from[i])) {
            continue;
        }
        size_t len = strlen(from[i].name);
        for (size_t j = 0; j < len; j++) {
            char c = from[i].name[j];
            place->text[j] = lower && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        }
        uint32_t most = from[i].max_length != 0 ? from[i].max_length : CAPTURE_LENGTH;
        *place->item = (struct capture){
            .name = place->text,
            .name_len = (uint8_t)len,
            .max_length = (uint16_t)MIN(most, (uint32_t)CAPTURE_LENGTH_MAX),
        };
        place->item++;
        place->text += len;
        done++;
    }
    return first;
}

struct captures *captures_new(const struct proxy_captures *from)
{
    size_t bytes = 0;
    uint16_t requests = measure(from->request, from->request_count, &bytes);
    uint16_t responses = measure(from->response, from->response_count, &bytes);
    uint16_t cookies = measure(from->cookies, from->cookie_count, &bytes);
    size_t count = (size_t)requests + responses + cookies;
    if (count == 0) {
        return NULL;
    }
    struct captures *captures = mem_new(sizeof(*captures) + count * sizeof(struct capture) + bytes);
    struct capture *items = (struct capture *)(void *)(captures + 1);
    struct place place = {.item = items, .text = (char *)(items + count)};
    *captures = (struct captures){
        .request = copy(from->request, requests, true, &place),
        .response = copy(from->response, responses, true, &place),
        .cookies = copy(from->cookies, cookies, false, &place),
        .request_count = requests,
        .response_count = responses,
        .cookie_count = cookies,
    };
    return captures;
}
