/*
 * What a TcpRoute accepts and refuses.
 */
#include "tests/unit/proto/objects.h"

#define TCP_HEAD "kind: TcpRoute\nmetadata: {name: r}\nspec:\n"
#define TCP      TCP_HEAD "  port: 5432\n  to: [{backend: b}]\n"

static void one_with_everything(void **state)
{
    (void)state;
    assert_faults(TCP_HEAD
                  "  port: 65535\n  to: [{backend: a, weight: 0}, {backend: b, weight: 256}]\n"
                  "  timeouts: {connect: 1s, queue: 2s, tunnel: 1h, clientFin: 3s, serverFin: 4s}\n"
                  "  allowFrom: [10.0.0.0/8]\n  denyFrom: ['2001:db8::/32']\n"
                  "  rateLimit: {requests: 5, window: 10s, burst: 2, key: Route, connections: 9}\n"
                  "  limits: {connections: 100}\n  retries: {attempts: 3, on: [ConnectFailure]}\n"
                  "  accessLog: false\n",
                  "");
}

static void port_and_targets(void **state)
{
    (void)state;
    assert_faults("kind: TcpRoute\nmetadata: {name: r}",
                  "spec.port: is missing; wants a number from 1 to 65535\n"
                  "spec.to: is missing; wants at least one backend\n");
    assert_faults(TCP_HEAD "  port: 65536\n  to: [{backend: b}, {backend: b}]\n",
                  "spec.port: 65536 is above 65535\n"
                  "spec.to[1].backend: b is in to[0] already\n");
    assert_faults(TCP_HEAD "  port: 0\n  to: [{backend: b, weight: 257}]\n",
                  "spec.port: 0 is below 1\nspec.to[0].weight: 257 is above 256\n");
}

static void what_means_nothing_for_bytes(void **state)
{
    (void)state;
    const char *why = "in a TcpRoute; tunnel limits how long both sides may be silent";
    char *expected = mem_printf("spec.timeouts.client: has no place %s\n"
                                "spec.timeouts.server: has no place %s\n"
                                "spec.timeouts.request: has no place %s\n",
                                why, why, why);
    assert_faults(TCP "  timeouts: {client: 1s, server: 1s, request: 1s}\n", expected);
    mem_free(expected);
    assert_faults(TCP "  rateLimit: {requests: 1, key: Header, header: X-A}\n",
                  "spec.rateLimit.key: Header is not one of ClientAddress, Route of a TcpRoute\n");
    assert_faults(TCP "  rateLimit: {}\n",
                  "spec.rateLimit: is empty; wants requests or connections\n");
    assert_faults(TCP "  retries: {on: [ConnectFailure, Reset]}\n",
                  "spec.retries.on[1]: is not ConnectFailure, the only reason of a TcpRoute\n");
    assert_faults(TCP "  retries: {perTry: 1s}\n",
                  "spec.retries.perTry: has no place in a TcpRoute; it tries again when a connect "
                  "fails\n");
    assert_faults(TCP "  limits: {connections: 0}\n", "spec.limits.connections: 0 is below 1\n");
    assert_faults(TCP "  allowFrom: [10.0.0.1/8]\n",
                  "spec.allowFrom[0]: \"10.0.0.1/8\" has address bits beyond its prefix\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_with_everything),
        cmocka_unit_test(port_and_targets),
        cmocka_unit_test(what_means_nothing_for_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
