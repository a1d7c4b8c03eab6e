/*
 * Requests over libcurl; see the header.
 */
#include "admin/cli/client.h"

#include "node/base/mem.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CONNECT_TIMEOUT_MS = 5000, REQUEST_TIMEOUT_MS = 120000 };

struct client {
    CURL *curl;
    char *server;
    char *unix_path; /* NULL: TCP */
    char *base;      /* "http://host:port", "https://host:port" */
    char *bearer;    /* "Authorization: Bearer ..."; NULL: none */
    char *ca;
    char *cert;
    char *key;
    bool insecure;
    char error[CURL_ERROR_SIZE];
};

/* One request's receiving end. */
struct reception {
    struct client *client;
    struct answer *answer;
    bool (*on_bytes)(void *arg, const char *bytes, size_t len); /* NULL: collect */
    void *arg;
    bool stopped; /* on_bytes said so */
};

static int set_server(struct client *client, const char *server, struct err_info *err)
{
    static const char unix_scheme[] = "unix://";
    static const char http_scheme[] = "http://";
    static const char https_scheme[] = "https://";
    size_t scheme_len = strncmp(server, http_scheme, strlen(http_scheme)) == 0 ? strlen(http_scheme)
                        : strncmp(server, https_scheme, strlen(https_scheme)) == 0
                            ? strlen(https_scheme)
                            : 0;
    client->server = mem_strdup(server);
    if (strncmp(server, unix_scheme, strlen(unix_scheme)) == 0) {
        const char *path = server + strlen(unix_scheme);
        if (path[0] == '/') {
            client->unix_path = mem_strdup(path);
            client->base = mem_strdup("http://localhost");
            return RC_OK;
        }
    } else if (scheme_len > 0) {
        size_t len = strlen(server);
        while (len > scheme_len && server[len - 1] == '/') {
            len--;
        }
        const char *host = server + scheme_len;
        if (len > scheme_len && memchr(host, '/', len - scheme_len) == NULL) {
            client->base = mem_strndup(server, len);
            return RC_OK;
        }
    }
    return err_set(err, RC_INVALID,
                   "server \"%.200s\": accepted are unix:///path/of/socket, https://host:port and "
                   "http://host:port",
                   server);
}

int client_new(const char *server, struct client **ret_client, struct err_info *err)
{
    struct client *client = mem_new(sizeof(*client));
    int rc = set_server(client, server, err);
    if (rc == RC_OK) {
        client->curl = curl_easy_init();
        rc = client->curl != NULL ? RC_OK : err_set(err, RC_NO_MEMORY, "libcurl cannot start");
    }
    if (rc != RC_OK) {
        client_free(client);
        return rc;
    }
    *ret_client = client;
    return RC_OK;
}

void client_free(struct client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->curl != NULL) {
        curl_easy_cleanup(client->curl);
    }
    mem_free(client->server);
    mem_free(client->unix_path);
    mem_free(client->base);
    if (client->bearer != NULL) {
        explicit_bzero(client->bearer, strlen(client->bearer));
    }
    mem_free(client->bearer);
    mem_free(client->ca);
    mem_free(client->cert);
    mem_free(client->key);
    mem_free(client);
}

/* ---- credentials ---- */

static bool is_https(const struct client *client)
{
    return strncmp(client->base, "https://", 8) == 0;
}

/* A plain connection stays on this machine: others on the way could read the token. */
static bool is_local(const struct client *client)
{
    static const char *const hosts[] = {"127.", "localhost", "[::1]"};
    const char *host = strstr(client->base, "://") + 3;
    bool found = client->unix_path != NULL;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        size_t len = strlen(hosts[i]);
        found = found || (strncmp(host, hosts[i], len) == 0 &&
                          (i == 0 || host[len] == ':' || host[len] == '\0'));
    }
    return found;
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? mem_strdup(text) : NULL;
}

int client_use(struct client *client, const struct client_credentials *credentials,
               struct err_info *err)
{
    if (credentials->token != NULL && !is_https(client) && !is_local(client)) {
        return err_set(err, RC_INVALID,
                       "%.200s: a token is not sent in the clear over the network; use https://",
                       client->server);
    }
    if (credentials->token != NULL &&
        credentials->token[strspn(credentials->token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr"
                                                      "stuvwxyz0123456789-._~+/=")] != '\0') {
        return err_set(err, RC_INVALID, "the token has characters that no token has");
    }
    if ((credentials->cert == NULL) != (credentials->key == NULL)) {
        return err_set(err, RC_INVALID, "--cert, --key: both are needed, or none");
    }
    client->bearer = credentials->token != NULL
                         ? mem_printf("Authorization: Bearer %s", credentials->token)
                         : NULL;
    client->ca = copy_or_null(credentials->ca);
    client->cert = copy_or_null(credentials->cert);
    client->key = copy_or_null(credentials->key);
    client->insecure = credentials->insecure;
    return RC_OK;
}

int client_read_token(const char *path, char out[CLIENT_TOKEN_MAX], struct err_info *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_set(err, RC_INVALID, "--token-file: %s: %s", path, strerror(errno));
    }
    char text[CLIENT_TOKEN_MAX] = "";
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    bool whole = feof(file) != 0;
    (void)fclose(file); /* read only: nothing can be lost */
    text[len] = '\0';
    const char *begin = text + strspn(text, " \t\r\n");
    size_t used = strcspn(begin, " \t\r\n");
    bool good = whole && used > 0 && begin[used + strspn(begin + used, " \t\r\n")] == '\0';
    if (good) {
        memcpy(out, begin, used);
        out[used] = '\0';
    }
    explicit_bzero(text, sizeof(text));
    return good ? RC_OK : err_set(err, RC_INVALID, "--token-file: %s holds no token", path);
}

const char *client_server(const struct client *client)
{
    return client->server;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct reception *reception = arg;
    size_t len = size * count;
    long status = 0;
    (void)curl_easy_getinfo(reception->client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (reception->on_bytes != NULL && status == 200) {
        reception->stopped = !reception->on_bytes(reception->arg, bytes, len);
        return reception->stopped ? 0 : len; /* 0 ends the transfer */
    }
    return buf_put(&reception->answer->body, bytes, len) == 0 ? len : 0;
}

static void set_up(struct client *client, const char *method, const char *url,
                   struct curl_slist *headers, struct reception *reception)
{
    CURL *curl = client->curl;
    curl_easy_reset(curl); /* connections are kept */
    client->error[0] = '\0';
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, reception);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "skeinctl/" SKEIN_VERSION);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    if (client->unix_path != NULL) {
        (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->unix_path);
    }
    if (client->ca != NULL) {
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca);
        (void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* that authority alone */
    }
    if (client->cert != NULL) {
        (void)curl_easy_setopt(curl, CURLOPT_SSLCERT, client->cert);
        (void)curl_easy_setopt(curl, CURLOPT_SSLKEY, client->key);
    }
    if (client->insecure) {
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static int perform(struct client *client, struct reception *reception, struct err_info *err)
{
    struct answer *answer = reception->answer;
    CURLcode code = curl_easy_perform(client->curl);
    (void)curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &answer->status);
    const char *type = NULL;
    (void)curl_easy_getinfo(client->curl, CURLINFO_CONTENT_TYPE, &type);
    (void)snprintf(answer->content_type, sizeof(answer->content_type), "%s",
                   type != NULL ? type : "");
    if (code == CURLE_OK || reception->stopped) {
        return RC_OK;
    }
    /* An answer that came whole counts, also when the server did not want the rest of a body. */
    if (code == CURLE_SEND_ERROR && answer->status >= 400 && answer->body.len > 0) {
        return RC_OK;
    }
    const char *text = client->error[0] != '\0' ? client->error : curl_easy_strerror(code);
    long os_error = 0;
    (void)curl_easy_getinfo(client->curl, CURLINFO_OS_ERRNO, &os_error);
    if (client->unix_path != NULL && os_error != 0) {
        text = strerror((int)os_error); /* libcurl's own text names a host and port */
    }
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
        return err_set(err, RC_CLOSED, "cannot connect to %.200s: %s", client->server, text);
    }
    if (code == CURLE_OPERATION_TIMEDOUT && answer->status == 0) {
        return err_set(err, RC_CLOSED, "no answer from %.200s: %s", client->server, text);
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        return err_set(err, RC_CLOSED,
                       "%.200s: its certificate is not trusted: %s; --ca FILE names the authority "
                       "(of a self-signed one: the certificate itself)",
                       client->server, text);
    }
    if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM) {
        return err_set(err, RC_CLOSED, "--ca, --cert, --key: %s", text);
    }
    if (code == CURLE_SSL_CONNECT_ERROR) {
        return err_set(err, RC_CLOSED, "no TLS with %.200s: %s (a plain port is http://)",
                       client->server, text);
    }
    return err_set(err, RC_PEER, "%.200s: %s", client->server, text);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    char line[256];
    (void)snprintf(line, sizeof(line), "%s: %s", name, value);
    return curl_slist_append(list, line);
}

static int run(struct client *client, const struct request *request, struct reception *reception,
               struct err_info *err)
{
    *reception->answer = (struct answer){0};
    buf_init(&reception->answer->body, CLIENT_ANSWER_BYTES_MAX);
    struct curl_slist *headers =
        add_header(NULL, "Accept", request->accept != NULL ? request->accept : "application/json");
    if (request->content_type != NULL) {
        headers = add_header(headers, "Content-Type", request->content_type);
    }
    if (client->bearer != NULL) {
        headers = curl_slist_append(headers, client->bearer);
    }
    char *url = mem_printf("%s%s", client->base, request->path);
    set_up(client, request->method, url, headers, reception);
    if (request->body != NULL) {
        (void)curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, request->body);
        (void)curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
    }
    if (reception->on_bytes == NULL) {
        (void)curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)REQUEST_TIMEOUT_MS);
    }
    int rc = perform(client, reception, err);
    if (rc != RC_OK) {
        buf_deinit(&reception->answer->body);
    }
    mem_free(url);
    curl_slist_free_all(headers);
    return rc;
}

int client_request(struct client *client, const struct request *request, struct answer *ret_answer,
                   struct err_info *err)
{
    struct reception reception = {.client = client, .answer = ret_answer};
    return run(client, request, &reception, err);
}

int client_stream(struct client *client, const struct request *request,
                  bool (*on_bytes)(void *arg, const char *bytes, size_t len), void *arg,
                  struct answer *ret_answer, struct err_info *err)
{
    struct reception reception = {
        .client = client, .answer = ret_answer, .on_bytes = on_bytes, .arg = arg};
    return run(client, request, &reception, err);
}

void answer_deinit(struct answer *answer)
{
    buf_deinit(&answer->body);
}

void client_escape(const char *text, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        bool plain = (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= 'a' && *at <= 'z') || strchr("-._~", *at) != NULL;
        if (plain) {
            (void)buf_putc(out, (char)*at);
        } else {
            char escaped[3] = {'%', hex[*at >> 4], hex[*at & 15]};
            (void)buf_put(out, escaped, sizeof(escaped));
        }
    }
}
