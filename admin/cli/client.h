/*
 * The API over libcurl: one server, one request at a time, blocking.
 *
 * A server is "unix:///path", "http://host:port" or "https://host:port". Thread: one per client.
 */
#ifndef SKEIN_ADMIN_CLI_CLIENT_H
#define SKEIN_ADMIN_CLI_CLIENT_H

#include "node/base/buf.h"
#include "node/base/errors.h"

struct client;

enum { CLIENT_ANSWER_BYTES_MAX = 1 << 30, CLIENT_TYPE_MAX = 96 };

struct answer {
    long status;
    char content_type[CLIENT_TYPE_MAX];
    struct buf body; /* text */
};

/* RC_INVALID: not a form of server that is known. Free with client_free, which accepts NULL. */
MUST_CHECK int client_new(const char *server, struct client **ret_client, struct err_info *err);
void client_free(struct client *client);

/* What to show and whom to trust; NULL: none, or the default. Files are PEM. */
struct client_credentials {
    const char *token;
    const char *ca;
    const char *cert;
    const char *key;
    bool insecure; /* the server's certificate is not checked */
};

/* Copied. RC_INVALID: a token over plain TCP to another machine, or what goes with https:// alone.
 */
MUST_CHECK int client_use(struct client *client, const struct client_credentials *credentials,
                          struct err_info *err);

/* A token from a file, without the white space around it. RC_INVALID. */
enum { CLIENT_TOKEN_MAX = 256 };
MUST_CHECK int client_read_token(const char *path, char out[CLIENT_TOKEN_MAX],
                                 struct err_info *err);

/* The server as it was given. */
const char *client_server(const struct client *client);

struct request {
    const char *method;
    const char *path; /* "/v1..."; what comes from users in it was escaped by client_escape */
    const char *content_type; /* NULL: none */
    const char *body;         /* NULL: none */
    size_t len;               /* of the body */
    const char *accept;       /* NULL: application/json */
};

/*
 * One request. Any status is RC_OK.
 *
 * RC_CLOSED  could not connect; err says what was tried and why it failed
 * RC_PEER    connected, but no whole answer came
 * Free the answer with answer_deinit after RC_OK.
 */
MUST_CHECK int client_request(struct client *client, const struct request *request,
                              struct answer *ret_answer, struct err_info *err);
void answer_deinit(struct answer *answer);

/*
 * The same, but the answer is handed out as it arrives, for as long as it lasts; false from
 * on_bytes ends it. A status other than 200 is collected into ret_answer instead.
 */
MUST_CHECK int client_stream(struct client *client, const struct request *request,
                             bool (*on_bytes)(void *arg, const char *bytes, size_t len), void *arg,
                             struct answer *ret_answer, struct err_info *err);

/* Percent-encode one path segment or query value and append it. */
void client_escape(const char *text, struct buf *out);

#endif
