/*
 * What policies do to an exchange, step by step; see policy.h for the order. Called by the other
 * files of exchange, only when there is a policy. Thread: the worker's.
 */
#ifndef SKEIN_NODE_PROXY_EXCHANGE_SHAPE_H
#define SKEIN_NODE_PROXY_EXCHANGE_SHAPE_H

#include "node/http/uri.h"
#include "node/proxy/exchange.h"
#include "node/proxy/policy.h"

/* Before routing: who asks, over what, under which id. */
void exchange_shape_begin(struct exchange *exchange, const struct exchange_request *request,
                          struct policy_base *base);

/* Once the rule is known: access, limits, preflight, redirect. An answer is put into *answer, whose
 * texts stay until the next request of this worker. */
enum reason exchange_shape_admit(struct exchange *exchange, const struct exchange_request *request,
                                 const struct uri_path *path, struct exchange_answer *answer);

/* Edits, request id and rewriting, into the head's marks and *how; worker->lines has the lines that
 * are added. base may be NULL. */
enum reason exchange_shape_request(struct exchange *exchange,
                                   const struct exchange_request *request,
                                   const struct uri_path *path, struct policy_base *base,
                                   struct h1_out *how);

/* The lines of the final response in worker->lines, and marks for fields that go. False: they do
 * not fit, so that the response must not pass. */
bool exchange_shape_response(struct exchange *exchange, struct h1_head *head, const char *bytes);

/* An answer of our own: error page, and the lines that every response of the route carries.
 * base is the one in force. */
void exchange_shape_answer(struct exchange *exchange, struct policy_base *base,
                           struct exchange_answer *answer);

/* The exchange is over. */
void exchange_shape_end(struct exchange *exchange);

#endif
