/*
 * An open-loop HTTP/1.1 client: a constant rate, whatever the answers do.
 *
 * Connection i of n has a fixed schedule: its k-th request is planned at start + (k * n + i) /
 * rate. A request that cannot be sent at its instant because the one before it is still out is sent
 * as soon as that is answered, and its time counts from the planned instant. So a server that
 * pauses is charged for everybody who would have come meanwhile (no coordinated omission). What
 * goes wrong is counted by class and is not in the times. One line of JSON at the end.
 *
 * A connection that the server closed between two requests is opened again at the next one: that is
 * no error. A request that was sent and not answered is one, whatever the reason.
 */
#include "tests/bench/histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 1000,
    HEAD_MAX = 8192,
    REQUEST_MAX = 1024,
    WORST_MAX = 20,
    EVENTS_MAX = 64,
};

static const uint64_t NS_PER_MS = 1000000;
static const uint64_t NS_PER_S = 1000000000;

enum fault {
    FAULT_REFUSED = 0,
    FAULT_CONNECT,
    FAULT_RESET_UNANSWERED,
    FAULT_RESET_PARTIAL,
    FAULT_CLOSED_UNANSWERED,
    FAULT_CLOSED_PARTIAL,
    FAULT_TIMEOUT,
    FAULT_STATUS_4XX,
    FAULT_STATUS_502,
    FAULT_STATUS_503,
    FAULT_STATUS_504,
    FAULT_STATUS_OTHER,
    FAULT_MALFORMED,
    FAULT_UNSTARTED, /* planned, and the run was over before its turn came */
    FAULT_COUNT,
};

static const char *const fault_names[] = {
    "refused",        "connect",      "reset_unanswered", "reset_partial", "closed_unanswered",
    "closed_partial", "timeout",      "status_4xx",       "status_502",    "status_503",
    "status_504",     "status_other", "malformed",        "unstarted",
};

enum state {
    STATE_CLOSED = 0,
    STATE_CONNECTING, /* for a request */
    STATE_OPEN,       /* between requests */
    STATE_WAITING,    /* for an answer */
};

struct client {
    int fd;
    enum state state;
    uint64_t turn;       /* number of the first planned request that was not begun */
    uint64_t next_ns;    /* and its instant */
    uint64_t planned_ns; /* of the request that is out */
    uint64_t begun_ns;   /* when it really began: time limits count from here */
    size_t head_len;
    bool head_done;
    bool last; /* the server will close after this answer */
    uint64_t body_left;
    int status;
    char head[HEAD_MAX];
};

struct worst {
    uint64_t took_ns;
    uint64_t planned_ns;
};

static struct {
    struct sockaddr_in address;
    const char *host;
    const char *path;
    double rate;
    size_t count;
    uint64_t seconds;
    uint64_t timeout_ns;
} options = {.host = "h0.bench.test",
             .path = "/",
             .rate = 1000,
             .count = 50,
             .seconds = 10,
             .timeout_ns = 5000000000};

static struct client clients[CLIENTS_MAX];
static struct histogram times;
static struct worst worst[WORST_MAX];
static uint64_t faults[FAULT_COUNT];
static uint64_t first_fault_ns[FAULT_COUNT];
static uint64_t idle_closed;
static uint64_t opened;
static char request[REQUEST_MAX];
static size_t request_len;
static uint64_t start_ns;
static uint64_t end_ns;
static int poller;

static uint64_t now_ns(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * NS_PER_S + (uint64_t)at.tv_nsec;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "paced: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t planned(size_t client, uint64_t turn)
{
    double number = (double)turn * (double)options.count + (double)client;
    return start_ns + (uint64_t)(number * (double)NS_PER_S / options.rate);
}

static void disconnect(struct client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
    }
    client->fd = -1;
    client->state = STATE_CLOSED;
}

static void count_fault(struct client *client, enum fault fault)
{
    if (faults[fault]++ == 0) {
        first_fault_ns[fault] = client->planned_ns - start_ns;
    }
    disconnect(client);
}

static void keep_worst(uint64_t planned_ns, uint64_t took_ns)
{
    struct worst *least = &worst[0];
    for (size_t i = 1; i < WORST_MAX; i++) {
        least = worst[i].took_ns < least->took_ns ? &worst[i] : least;
    }
    if (took_ns > least->took_ns) {
        *least = (struct worst){.took_ns = took_ns, .planned_ns = planned_ns - start_ns};
    }
}

static void answered(struct client *client)
{
    if (client->status != 200) {
        enum fault fault = FAULT_STATUS_OTHER;
        fault = client->status / 100 == 4 ? FAULT_STATUS_4XX : fault;
        fault = client->status == 502 ? FAULT_STATUS_502 : fault;
        fault = client->status == 503 ? FAULT_STATUS_503 : fault;
        fault = client->status == 504 ? FAULT_STATUS_504 : fault;
        count_fault(client, fault);
        return;
    }
    uint64_t took = now_ns() - client->planned_ns;
    histogram_add(&times, took);
    keep_worst(client->planned_ns, took);
    client->state = STATE_OPEN;
    if (client->last) {
        disconnect(client);
    }
}

/* ---- sending ---- */

static void send_request(struct client *client)
{
    client->state = STATE_WAITING;
    client->head_len = 0;
    client->head_done = false;
    client->last = false;
    ssize_t sent = send(client->fd, request, request_len, MSG_NOSIGNAL);
    if (sent != (ssize_t)request_len) {
        count_fault(client, FAULT_RESET_UNANSWERED);
    }
}

static void watch(struct client *client, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = client};
    if (epoll_ctl(poller, operation, client->fd, &event) != 0) {
        fail("epoll_ctl");
    }
}

static void open_connection(struct client *client)
{
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) {
        fail("socket");
    }
    int on = 1;
    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    opened++;
    int rc =
        connect(client->fd, (const struct sockaddr *)&options.address, sizeof(options.address));
    if (rc != 0 && errno != EINPROGRESS) {
        count_fault(client, errno == ECONNREFUSED ? FAULT_REFUSED : FAULT_CONNECT);
        return;
    }
    client->state = STATE_CONNECTING;
    watch(client, EPOLL_CTL_ADD, EPOLLOUT);
}

static void begin(struct client *client, size_t idx)
{
    client->planned_ns = client->next_ns;
    client->begun_ns = now_ns();
    client->next_ns = planned(idx, ++client->turn);
    if (client->state == STATE_OPEN) {
        send_request(client);
    } else {
        open_connection(client);
    }
}

static void connected(struct client *client)
{
    int error = 0;
    socklen_t size = sizeof(error);
    (void)getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        count_fault(client, error == ECONNREFUSED ? FAULT_REFUSED : FAULT_CONNECT);
        return;
    }
    watch(client, EPOLL_CTL_MOD, EPOLLIN);
    send_request(client);
}

/* ---- receiving ---- */

/* The value of a field of a complete head, or NULL. */
static const char *field(const char *head, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at != NULL; at = strstr(at + 2, "\r\n")) {
        if (strncasecmp(at + 2, name, len) == 0 && at[2 + len] == ':') {
            const char *value = at + 3 + len;
            return value + strspn(value, " \t");
        }
    }
    return NULL;
}

static bool read_head(struct client *client)
{
    const char *length = field(client->head, "content-length");
    const char *connection = field(client->head, "connection");
    if (strncmp(client->head, "HTTP/1.", 7) != 0 || length == NULL) {
        return false;
    }
    client->status = atoi(client->head + 9);
    client->body_left = strtoull(length, NULL, 10);
    client->last = connection != NULL && strncasecmp(connection, "close", 5) == 0;
    client->head_done = true;
    return true;
}

/* Bytes of an answer. False: they are none. */
static bool take(struct client *client, const char *bytes, size_t len)
{
    if (!client->head_done) {
        size_t old = client->head_len;
        size_t part = len < HEAD_MAX - 1 - old ? len : HEAD_MAX - 1 - old;
        memcpy(client->head + old, bytes, part);
        client->head_len += part;
        client->head[client->head_len] = '\0';
        const char *mark = strstr(client->head, "\r\n\r\n");
        if (mark == NULL) {
            return client->head_len < HEAD_MAX - 1;
        }
        size_t used = (size_t)(mark - client->head) + 4 - old;
        if (!read_head(client)) {
            return false;
        }
        bytes += used;
        len -= used;
    }
    if (len > client->body_left) {
        return false;
    }
    client->body_left -= len;
    return true;
}

static void receive(struct client *client)
{
    static char scratch[65536];
    ssize_t got = recv(client->fd, scratch, sizeof(scratch), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (client->state == STATE_OPEN) {
        idle_closed += got <= 0;
        faults[FAULT_MALFORMED] += got > 0;
        disconnect(client);
        return;
    }
    bool partial = client->head_len > 0;
    if (got == 0) {
        count_fault(client, partial ? FAULT_CLOSED_PARTIAL : FAULT_CLOSED_UNANSWERED);
    } else if (got < 0) {
        count_fault(client, partial ? FAULT_RESET_PARTIAL : FAULT_RESET_UNANSWERED);
    } else if (!take(client, scratch, (size_t)got)) {
        count_fault(client, FAULT_MALFORMED);
    } else if (client->head_done && client->body_left == 0) {
        answered(client);
    }
}

/* ---- the loop ---- */

static bool is_out(const struct client *client)
{
    return client->state == STATE_CONNECTING || client->state == STATE_WAITING;
}

/* Begin what is due and end what took too long. Returns the next instant at which there is
 * something to do, 0 when there is nothing left. */
static uint64_t advance(uint64_t now)
{
    uint64_t next = 0;
    for (size_t i = 0; i < options.count; i++) {
        struct client *client = &clients[i];
        if (is_out(client) && now - client->begun_ns > options.timeout_ns &&
            now > client->begun_ns) {
            count_fault(client, FAULT_TIMEOUT);
        }
        if (!is_out(client) && client->next_ns <= now && client->next_ns < end_ns) {
            begin(client, i);
        }
        uint64_t due = 0;
        if (is_out(client)) {
            due = client->begun_ns + options.timeout_ns;
        } else if (client->next_ns < end_ns) {
            due = client->next_ns;
        }
        next = due != 0 && (next == 0 || due < next) ? due : next;
    }
    return next;
}

static void run(void)
{
    uint64_t give_up = end_ns + 2 * options.timeout_ns;
    for (;;) {
        uint64_t now = now_ns();
        uint64_t next = advance(now);
        if (next == 0 || now > give_up) {
            break;
        }
        now = now_ns();
        uint64_t wait = next > now ? next - now : 0;
        struct timespec span = {.tv_sec = (time_t)(wait / NS_PER_S),
                                .tv_nsec = (long)(wait % NS_PER_S)};
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_pwait2(poller, events, EVENTS_MAX, &span, NULL);
        if (count < 0 && errno != EINTR) {
            fail("epoll_pwait2");
        }
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            if (client->state == STATE_CONNECTING) {
                connected(client);
            } else if (client->state != STATE_CLOSED) {
                receive(client);
            }
        }
    }
    for (size_t i = 0; i < options.count; i++) {
        faults[FAULT_UNSTARTED] += is_out(&clients[i]);
        while (planned(i, clients[i].turn) < end_ns) {
            clients[i].turn++;
            faults[FAULT_UNSTARTED]++;
        }
        disconnect(&clients[i]);
    }
}

/* ---- words ---- */

static double ms(uint64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static int by_time(const void *a, const void *b)
{
    const struct worst *left = a;
    const struct worst *right = b;
    return left->took_ns < right->took_ns ? 1 : -(left->took_ns > right->took_ns);
}

static void report(void)
{
    static const struct {
        const char *name;
        double part;
    } parts[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
    uint64_t errors = 0;
    printf("{\"answered\": %llu, \"opened\": %llu, \"idle_closed\": %llu",
           (unsigned long long)times.total, (unsigned long long)opened,
           (unsigned long long)idle_closed);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        printf(", \"%s\": %.3f", parts[i].name, ms(histogram_quantile(&times, parts[i].part)));
    }
    printf(", \"max\": %.3f, \"faults\": {", ms(times.max));
    const char *comma = "";
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        errors += faults[i];
        if (faults[i] > 0) {
            printf("%s\"%s\": %llu", comma, fault_names[i], (unsigned long long)faults[i]);
            comma = ", ";
        }
    }
    printf("}, \"first_fault_s\": {");
    comma = "";
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        if (faults[i] > 0) {
            printf("%s\"%s\": %.3f", comma, fault_names[i], ms(first_fault_ns[i]) / 1000);
            comma = ", ";
        }
    }
    printf("}, \"errors\": %llu, \"worst\": [", (unsigned long long)errors);
    qsort(worst, WORST_MAX, sizeof(worst[0]), by_time);
    comma = "";
    for (size_t i = 0; i < WORST_MAX && worst[i].took_ns > 0; i++) {
        printf("%s[%.3f, %.3f]", comma, ms(worst[i].planned_ns) / 1000, ms(worst[i].took_ns));
        comma = ", ";
    }
    printf("]}\n");
}

static void usage(void)
{
    (void)fputs("usage: paced --connect ADDRESS:PORT [--host NAME] [--path PATH] [--rate N]\n"
                "             [--connections N] [--seconds N] [--timeout-ms N]\n",
                stderr);
    exit(64);
}

static void parse_address(const char *text)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof(host)) {
        usage();
        return;
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    options.address.sin_family = AF_INET;
    options.address.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, host, &options.address.sin_addr) != 1) {
        usage();
    }
}

static void parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"connect", required_argument, NULL, 'a'},     {"host", required_argument, NULL, 'h'},
        {"path", required_argument, NULL, 'p'},        {"rate", required_argument, NULL, 'r'},
        {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 's'},
        {"timeout-ms", required_argument, NULL, 't'},  {NULL, 0, NULL, 0},
    };
    int option = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'a':
            parse_address(optarg);
            break;
        case 'h':
            options.host = optarg;
            break;
        case 'p':
            options.path = optarg;
            break;
        case 'r':
            options.rate = atof(optarg);
            break;
        case 'c':
            options.count = strtoul(optarg, NULL, 10);
            break;
        case 's':
            options.seconds = strtoul(optarg, NULL, 10);
            break;
        case 't':
            options.timeout_ns = strtoul(optarg, NULL, 10) * NS_PER_MS;
            break;
        default:
            usage();
        }
    }
    if (options.address.sin_port == 0 || !(options.rate > 0) || options.count == 0 ||
        options.count > CLIENTS_MAX || options.seconds == 0 || options.timeout_ns == 0) {
        usage();
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                       options.path, options.host);
    if (len < 0 || (size_t)len >= sizeof(request)) {
        usage();
    }
    request_len = (size_t)len;
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) {
        fail("epoll_create1");
    }
    start_ns = now_ns() + 10 * NS_PER_MS;
    end_ns = start_ns + options.seconds * NS_PER_S;
    for (size_t i = 0; i < options.count; i++) {
        clients[i].fd = -1;
        clients[i].next_ns = planned(i, 0);
    }
    run();
    report();
    return 0;
}
