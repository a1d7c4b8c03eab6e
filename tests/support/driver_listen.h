/*
 * TLS listeners of the proxy_driver:
 *
 *   cert NAME CHAINFILE KEYFILE
 *   policy NAME [profile=NUMBER] [auth=optional|required] [ca=FILE]
 *   tls CERT|- POLICY [strict] [handshakes=N] [inspect=MS]     of all listeners
 *   tickets SEED ...               keys of session tickets by number; the first one is active; none
 *   host NAME [cert=NAME] [policy=NAME]                        as proxy_driver.c has it
 *   rule ... term=edge|passthrough|reencrypt [insecure=deny|allow|redirect] [client_cert]
 */
#ifndef SKEIN_TESTS_SUPPORT_DRIVER_LISTEN_H
#define SKEIN_TESTS_SUPPORT_DRIVER_LISTEN_H

#include "node/proxy/proxy.h"

/* True: the command was one of these, and *ret_rc says what came of it. */
bool driver_listen_run(struct proxy *proxy, char **words, size_t count, int *ret_rc,
                       struct err_info *err);
/* The words behind the name of a host. */
MUST_CHECK int driver_listen_host(char **words, size_t count, struct proxy_host_tls *ret_tls,
                                  struct err_info *err);
/* True: the word was one of a rule's for TLS; value is NULL without '='. */
bool driver_listen_rule(const char *word, const char *value, struct proxy_rule_tls *tls);
void driver_listen_free(void);

#endif
