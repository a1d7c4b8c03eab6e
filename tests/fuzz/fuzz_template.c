/* unit: node_base */
/*
 * Templates: the first byte chooses the place, the second one the size of the output, the rest is
 * the text. Whatever is accepted is rendered without a control byte, and literals come out as they
 * are.
 */
#include "node/base/check.h"
#include "node/base/mem.h"
#include "node/base/template.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    const uint8_t *data;
    size_t size;
    size_t calls;
};

/* Values are the input itself, control bytes and all. */
static struct template_value value_of(void *ctx, const struct template_part *part)
{
    struct source *source = ctx;
    ASSERT(part->var > TEMPLATE_LITERAL && part->var < TEMPLATE_VAR_COUNT);
    bool named = part->var == TEMPLATE_REQUEST_HEADER || part->var == TEMPLATE_RESPONSE_HEADER;
    ASSERT(named ? part->len != 0 : part->text == NULL);
    source->calls++;
    return (struct template_value){.at = (const char *)source->data, .len = source->size};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    enum template_place place = (enum template_place)(data[0] % 3);
    char *text = mem_strndup((const char *)data + 2, size - 2);
    struct template *template = NULL;
    struct err_info err = {0};
    int rc = template_new(text, place, &template, &err);
    ASSERT(rc == template_check(text, place, NULL));
    if (rc == RC_OK) {
        struct source source = {.data = data, .size = size};
        struct buf out;
        buf_init(&out, (size_t)data[1] * 64);
        template_render(template, value_of, &source, &out);
        ASSERT(template->has_vars == (source.calls != 0));
        for (size_t i = 0; i < out.len; i++) {
            unsigned char c = (unsigned char)out.data[i];
            ASSERT((c >= 0x20 || c == '\t') && c != 0x7f);
        }
        buf_deinit(&out);
        template_free(template);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    mem_free(text);
    return 0;
}
