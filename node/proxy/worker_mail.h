/*
 * Messages to a worker. Embedded where the sender must not allocate, else made for the purpose.
 */
#ifndef SKEIN_NODE_PROXY_WORKER_MAIL_H
#define SKEIN_NODE_PROXY_WORKER_MAIL_H

#include "node/net/mailbox.h"

struct endpoint;

enum worker_mail_kind {
    WORKER_MAIL_ENDPOINT_GONE = 0, /* one reference passes to the worker */
    WORKER_MAIL_DRAIN,
    WORKER_MAIL_STOP,
    WORKER_MAIL_PLACE,    /* places for those who wait; part of a backend's slot (queue.h) */
    WORKER_MAIL_TCP_OPEN, /* of a struct tcp_mail (tcp_port.h) */
    WORKER_MAIL_TCP_CUT,
    WORKER_MAIL_TCP_CLOSE,
};

struct worker_mail {
    struct mail mail;
    enum worker_mail_kind kind;
    struct endpoint *endpoint;
};

#endif
