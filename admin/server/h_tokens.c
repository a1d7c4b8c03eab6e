/*
 * POST /v1/tokens: a credential. The secret is made here, shown in this answer and nowhere else;
 * what is written is its hash.
 *
 * A Token is never changed: another role or namespace is another token. So PUT, PATCH and apply
 * refuse the kind (plan_read.c), nobody can plant a hash, and DELETE revokes.
 */
#include "admin/server/auth.h"
#include "admin/server/write.h"
#include "node/base/mem.h"
#include "node/tls/crypto.h"
#include "proto/json.h"
#include "proto/manifest.h"

#include <string.h>

static const char *name_of(const json_t *document)
{
    return json_string_value(json_object_get(json_object_get(document, "metadata"), "name"));
}

/* The hash of a fresh secret into the one request of the write. */
static void set_secret(struct write *write)
{
    Skein__Token *token = (void *)write->requests.items[0].message;
    uint8_t hash[TOKEN_HASH_BYTES];
    auth_secret_new(write->secret, hash);
    token->spec->has_hash = true;
    token->spec->hash =
        (ProtobufCBinaryData){.len = sizeof(hash), .data = mem_dup(hash, sizeof(hash))};
}

static int prepare_token(struct write *write, struct problem *problem, struct err_info *err)
{
    const struct kind *kind = kind_by_name("Token");
    const char *name = name_of(write->input);
    if (view_find(&write->call->admin->view, kind, name) != NULL) {
        return err_set(err, RC_EXISTS,
                       "there is a token \"%.200s\"; revoke it first, or take another name", name);
    }
    if (write->requests.count > 0) {
        return RC_OK; /* an earlier attempt read it */
    }
    write->requests.makes_tokens = true;
    if (!plan_read(write->input, kind, name, NULL, &write->requests, problem)) {
        return RC_INVALID;
    }
    set_secret(write);
    return RC_OK;
}

void handle_token_create(struct call *call)
{
    struct err_info err = {0};
    json_t *document = NULL;
    const char *text = call->body.data != NULL ? call->body.data : "";
    int rc = json_parse(text, call->body.len, &document, &err);
    if (rc != RC_OK) {
        call_answer_problem(call, 400, NULL, NULL, err.text);
        return;
    }
    const char *name = name_of(document);
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL ||
        strlen(name) > OBJECT_ID_MAX) {
        struct problem problem = {0};
        problem_add(&problem, "metadata.name", NULL,
                    "is missing or no name; wants what the token is to be called");
        json_decref(document);
        call_answer_problem(call, 422, NULL, &problem, NULL);
        problem_deinit(&problem);
        return;
    }
    struct write *write = write_new(call, prepare_token);
    write->input = document;
    write->is_single = true;
    write_start(write);
}
