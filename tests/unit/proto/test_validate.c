/*
 * What is accepted and what is refused, kind by kind, as a user sees it.
 * covers: validate.c validate_route.c validate_backend.c validate_settings.c checks_scalar.c
 * checks_http.c
 */
#include "tests/unit/proto/objects.h"

#define ROUTE_HEAD "kind: Route\nmetadata: {name: r}\nspec:\n"
#define ROUTE      ROUTE_HEAD "  host: a.example\n  to: [{backend: b}]\n"
#define BACKEND    "kind: Backend\nmetadata: {name: b}\nspec:\n"
#define SETTINGS   "kind: Settings\nmetadata: {name: default}\nspec:\n"
#define CERT       "\"-----BEGIN CERTIFICATE-----\\nMII\\n-----END CERTIFICATE-----\\n\""

static void metadata(void **state)
{
    (void)state;
    assert_faults("kind: Backend", "metadata.name: is missing; wants a name\n");
    assert_faults(
        "kind: Backend\nmetadata: {name: a_b, namespace: A.b}",
        "metadata.name: \"a_b\" is no name: lower-case letters, digits, '-' and '.', "
        "starting and ending with a letter or digit\n"
        "metadata.namespace: \"A.b\" is no namespace: up to 63 lower-case letters, digits "
        "and '-', starting and ending with a letter or digit\n");
    assert_faults("kind: Namespace\nmetadata: {name: a.b}",
                  "metadata.name: \"a.b\" is no namespace: up to 63 lower-case letters, digits and "
                  "'-', starting and ending with a letter or digit\n");
    assert_faults("kind: Node\nmetadata: {name: r1, namespace: shop}",
                  "metadata.namespace: has no place in a kind that is for the whole cluster\n");
    assert_faults("kind: Backend\nmetadata: {name: "
                  "a123456789012345678901234567890123456789012345678901234567890123}",
                  "metadata.name: is 64 bytes long; at most 63 are accepted\n");
    assert_faults(
        "kind: Route\nmetadata: {name: "
        "a12345678901234567890123456789012345678901234567890123456789012.b}\nspec: {host: "
        "a.example, to: [{backend: b}]}",
        "");
    assert_faults(
        "kind: Namespace\nmetadata: {name: a, labels: {'': x, ok: '', 'a/b/c': x, 'a b': x, good: "
        "'no spaces here', -x: y}, annotations: {note: 'any text, of any kind'}}",
        "metadata.labels[\"\"]: \"\" is no key: up to 63 letters, digits, '-', '_' and '.', with "
        "or "
        "without example.com/ before it\n"
        "metadata.labels[\"a/b/c\"]: \"a/b/c\" is no key: up to 63 letters, digits, '-', '_' and "
        "'.', with or without example.com/ before it\n"
        "metadata.labels[\"a b\"]: \"a b\" is no key: up to 63 letters, digits, '-', '_' and '.', "
        "with or without example.com/ before it\n"
        "metadata.labels.good: \"no spaces here\" is no value of a label: up to 63 letters, "
        "digits, "
        "'-', '_' and '.', starting and ending with a letter or digit\n"
        "metadata.labels.-x: \"-x\" is no key: up to 63 letters, digits, '-', '_' and '.', with or "
        "without example.com/ before it\n");
}

static void a_route_with_everything(void **state)
{
    (void)state;
    assert_faults(
        "kind: Route\nmetadata: {name: r}\nspec:\n"
        "  host: '*.shop.example'\n  path: /a\n  pathType: Prefix\n"
        "  tls: {termination: Reencrypt, certificate: c.x, insecure: Redirect, redirectStatus: "
        "301, "
        "destinationCa: " CERT
        ", serverName: in.example, verify: Full, profile: Modern, http2: true, "
        "clientAuth: {policy: Required, ca: " CERT ", subjects: ['CN=.*']}}\n"
        "  to: [{backend: a, weight: 0}, {backend: b, weight: 256}]\n"
        "  timeouts: {connect: 1s, client: 2s, server: 3s, tunnel: 2d, request: 1m, queue: 1ms}\n"
        "  forwarded: Replace\n  rewrite: {replacePrefix: /b, host: x.example}\n"
        "  headers: {request: [{name: X-A, value: 'b c'}, {action: Delete, name: X-B}], response: "
        "[{action: Add, name: X-C, value: ''}]}\n"
        "  hsts: {maxAge: 365d, includeSubdomains: true, preload: true}\n"
        "  cors: {allowOrigins: ['https://a.example', 'http://b.example:8080'], allowMethods: "
        "[GET], "
        "allowHeaders: ['*'], allowCredentials: true, maxAge: 1h}\n"
        "  allowFrom: [10.0.0.0/8, '2001:db8::/32', 192.0.2.1]\n  denyFrom: [10.1.0.0/16]\n"
        "  rateLimit: {requests: 100, window: 1s, burst: 10, key: Header, header: X-Key, scope: "
        "Node, connections: 5}\n"
        "  limits: {bodyBytes: 0, connections: 5}\n"
        "  sticky: {cookie: sid, sameSite: Lax, maxAge: 1d, secure: true, path: /a}\n"
        "  retries: {attempts: 3, 'on': [ConnectFailure, Status], statuses: [503], perTry: 1s}\n"
        "  accessLog: true\n"
        "  captures: {request: [{name: X-A, maxLength: 100}], cookies: [{name: sid}]}\n"
        "  errorPages: [{status: 503, contentType: text/html, body: '<p>'}]\n"
        "  compression: {mimeTypes: [text/html], minBytes: 100}\n  adjustHeaderCase: true\n",
        "");
}

static void route_hosts_and_targets(void **state)
{
    (void)state;
    assert_faults("kind: Route\nmetadata: {name: r}",
                  "spec.host: is missing; wants a host such as shop.example.com\n"
                  "spec.to: is missing; wants at least one backend\n");
    assert_faults(
        "kind: Route\nmetadata: {name: r}\nspec: {host: 'a.example:80', path: a/../b, to: "
        "[{}, {backend: B, weight: 300}, {backend: c}, {backend: c}]}",
        "spec.host: \"a.example:80\" has a port; a host has none\n"
        "spec.path: \"a/../b\" does not start with /\n"
        "spec.to[0].backend: is missing; wants the name of a Backend\n"
        "spec.to[1].backend: \"B\" is no name: lower-case letters, digits, '-' and '.', "
        "starting and ending with a letter or digit\n"
        "spec.to[1].weight: 300 is above 256\n"
        "spec.to[3].backend: c is in to[2] already\n");
    assert_faults(ROUTE "  pathType: Exact\n", "spec.path: is missing; pathType is Exact\n");
    assert_faults(ROUTE "  path: /a/%2e%2e/b\n",
                  "spec.path: \"/a/%2e%2e/b\" has a . or .. segment\n");
    /* Nothing gets traffic: legal, and answered 503. */
    assert_faults(
        "kind: Route\nmetadata: {name: r}\nspec: {host: a.b, to: [{backend: b, weight: 0}]}", "");

    struct buf text;
    buf_init(&text, 65536);
    (void)buf_puts(&text, "{\"kind\":\"Route\",\"metadata\":{\"name\":\"r\"},\"spec\":{\"host\":"
                          "\"a.b\",\"to\":[{\"backend\":\"b\"}");
    for (int i = 0; i < TARGETS_MAX; i++) {
        (void)buf_printf(&text, ",{\"backend\":\"b%d\"}", i);
    }
    (void)buf_puts(&text, "]}}");
    assert_faults(text.data, "spec.to: has 33 elements; at most 32 are accepted\n");
    buf_deinit(&text);
}

static void route_tls(void **state)
{
    (void)state;
    assert_faults(ROUTE "  tls: {certificate: c}\n",
                  "spec.tls.termination: is missing; wants None, "
                  "Edge, Passthrough or Reencrypt\n");
    assert_faults(
        ROUTE "  tls: {termination: None, certificate: c, insecure: Allow, destinationCa: x, "
              "redirectStatus: 303}\n",
        "spec.tls.certificate: has no place unless termination is Edge or Reencrypt\n"
        "spec.tls.destinationCa: has no place unless termination is Reencrypt\n"
        "spec.tls.insecure: has no place with termination: None, where all is plain HTTP\n"
        "spec.tls.destinationCa: is no PEM text that starts with -----BEGIN "
        "CERTIFICATE-----\n"
        "spec.tls.redirectStatus: 303 is not one of 301, 302, 307, 308\n"
        "spec.tls.redirectStatus: has no place unless insecure is Redirect\n");
    assert_faults(ROUTE
                  "  tls: {termination: Edge, serverName: x.example, verify: Skip, clientAuth: "
                  "{policy: Required}}\n",
                  "spec.tls.serverName: has no place unless termination is Reencrypt\n"
                  "spec.tls.verify: has no place unless termination is Reencrypt\n"
                  "spec.tls.clientAuth.ca: is missing; it says whose certificates are accepted\n");
    assert_faults(
        ROUTE
        "  path: /a\n  tls: {termination: Passthrough, insecure: Allow}\n  hsts: {maxAge: 1d}\n"
        "  headers: {request: []}\n  limits: {bodyBytes: 5}\n  rateLimit: {requests: 5}\n",
        "spec.tls.insecure: Allow is not one of Deny, Redirect of a Passthrough\n"
        "spec.hsts: has no place unless tls.termination is Edge or Reencrypt\n"
        "spec.path: has no place with termination: Passthrough, where requests are not seen\n"
        "spec.headers: has no place with termination: Passthrough, where requests are not seen\n"
        "spec.limits.bodyBytes: has no place with termination: Passthrough, where requests are not "
        "seen\n"
        "spec.rateLimit.requests: has no place with termination: Passthrough, where requests are "
        "not "
        "seen\n");
}

static void route_timeouts(void **state)
{
    (void)state;
    assert_faults(
        ROUTE "  timeouts: {connect: 0s, server: 25d, keepAlive: 1s, clientHeader: 1s}\n",
        "spec.timeouts.connect: 0s is below 1ms\n"
        "spec.timeouts.server: 25d is above 24d20h31m23s647ms\n"
        "spec.timeouts.clientHeader: applies before the route is known; set it in "
        "Settings\n"
        "spec.timeouts.keepAlive: applies before the route is known; set it in Settings\n");
}

static void route_policies_fail_closed(void **state)
{
    (void)state;
    assert_faults(ROUTE "  allowFrom: [10.0.0.0/8, 10.0.0.1/8, ' ', 'fe80::/200']\n",
                  "spec.allowFrom[1]: \"10.0.0.1/8\" has address bits beyond its prefix\n"
                  "spec.allowFrom[2]: \" \" is no network such as 10.0.0.0/8 or 2001:db8::/32\n"
                  "spec.allowFrom[3]: \"fe80::/200\" has no prefix length from 0 to 128\n");
    assert_faults(ROUTE "  rateLimit: {}\n",
                  "spec.rateLimit: is empty; wants requests or connections\n");
    assert_faults(ROUTE "  rateLimit: {requests: 0, key: Header}\n",
                  "spec.rateLimit.requests: 0 is below 1\n"
                  "spec.rateLimit.header: is missing; key is Header\n");
    assert_faults(ROUTE "  rateLimit: {connections: 1, burst: 5, window: 1s, header: X}\n",
                  "spec.rateLimit.header: has no place unless key is Header\n"
                  "spec.rateLimit.burst: has no place without requests\n"
                  "spec.rateLimit.window: has no place without requests\n");
    assert_faults(
        ROUTE "  cors: {allowOrigins: ['*', 'a.example', 'https://a.example/x'], "
              "allowMethods: ['G T'], allowCredentials: true}\n",
        "spec.cors.allowOrigins[0]: has no place with allowCredentials: true\n"
        "spec.cors.allowOrigins[1]: \"a.example\" is no origin such as "
        "https://example.com\n"
        "spec.cors.allowOrigins[2]: \"https://a.example/x\" is no origin such as "
        "https://example.com\n"
        "spec.cors.allowMethods[0]: \"G T\" is no method such as GET: letters, digits and "
        "- _ . are usual\n");
    assert_faults(ROUTE "  hsts: {preload: true}\n",
                  "spec.hsts.maxAge: is missing; wants a duration such as 365d\n"
                  "spec.hsts: has no place unless tls.termination is Edge or Reencrypt\n");
    assert_faults(ROUTE "  sticky: {cookie: 'a=b', maxAge: 1ms, path: x}\n",
                  "spec.sticky.cookie: \"a=b\" is no cookie name: letters, digits and - _ . are "
                  "usual\n"
                  "spec.sticky.maxAge: 1ms is below 1s\n"
                  "spec.sticky.path: \"x\" does not start with /\n");
    assert_faults(ROUTE "  sticky: {cookie: a, path: '/x;Domain=example.com'}\n",
                  "spec.sticky.path: has a ; which ends a cookie's path\n");
    assert_faults(ROUTE "  retries: {attempts: 11, 'on': [Status]}\n",
                  "spec.retries.attempts: 11 is above 10\n"
                  "spec.retries.statuses: is missing; \"on\" has Status\n");
    assert_faults(ROUTE "  retries: {statuses: [200, 503]}\n",
                  "spec.retries.statuses: has no place unless \"on\" has Status\n"
                  "spec.retries.statuses[0]: 200 is below 400\n");
}

static void route_headers(void **state)
{
    (void)state;
    assert_faults(
        ROUTE
        "  headers:\n    request:\n    - {name: Host, value: x}\n    - {name: 'a b', value: x}\n"
        "    - {name: X}\n    - {action: Delete, name: X, value: y}\n    - {value: y}\n"
        "    - {name: X, value: \"a\\r\\nSet-Cookie: b\"}\n    - {name: X, value: ' a'}\n"
        "    response: [{name: set-cookie, value: x}, {name: TRANSFER-ENCODING, value: x}]\n",
        "spec.headers.request[0].name: Host cannot be changed; use rewrite.host\n"
        "spec.headers.request[1].name: \"a b\" is no header name: letters, digits and - _ . are "
        "usual\n"
        "spec.headers.request[2].value: is missing; wants the value of the header\n"
        "spec.headers.request[3].value: has no place with action: Delete\n"
        "spec.headers.request[4].name: is missing; wants the name of a header\n"
        "spec.headers.request[5].value: has the control byte 0x0D\n"
        "spec.headers.request[6].value: starts or ends with a blank\n"
        "spec.headers.response[0].name: set-cookie cannot be changed; use sticky for affinity\n"
        "spec.headers.response[1].name: TRANSFER-ENCODING cannot be changed\n");
}

static void route_templates(void **state)
{
    (void)state;
    assert_faults(ROUTE "  headers:\n    request: [{name: X, value: '%{client.address} %% "
                        "%{request.header.a}'}]\n    response: [{name: X, value: '%{endpoint}'}]\n",
                  "");
    assert_faults(ROUTE "  headers:\n    request: [{name: X, value: '5%'}, {name: Expect, value: "
                        "x}]\n    response: [{name: X, value: '%{request.header.}'}]\n",
                  "spec.headers.request[0].value: has a % at byte 2 that begins no variable such "
                  "as %{host}; write %% for the character itself\n"
                  "spec.headers.request[1].name: Expect cannot be changed\n"
                  "spec.headers.response[0].value: %{request.header.} is no variable here; "
                  "accepted are client.address, client.port, host, path, query, method, "
                  "request.id, route, namespace, backend, endpoint, node, scheme, listener.port, "
                  "time, random, request.header.NAME, response.header.NAME\n");
    assert_faults(SETTINGS "  uniqueId: {format: '%{route}'}\n",
                  "spec.uniqueId.header: is missing; wants the name of a header\n"
                  "spec.uniqueId.format: %{route} is no variable here; accepted are "
                  "client.address, client.port, host, path, query, method, node, scheme, "
                  "listener.port, time, random, request.header.NAME\n");
    assert_faults(SETTINGS "  uniqueId: {header: Host}\n",
                  "spec.uniqueId.header: Host cannot be changed; use rewrite.host\n");
}

static void route_cors_alone(void **state)
{
    (void)state;
    assert_faults(ROUTE "  cors: {allowOrigins: ['https://a.b:443', 'http://a.b:443', "
                        "'http://[::1]:80']}\n"
                        "  headers: {response: [{name: access-control-Max-Age, value: '1'}]}\n",
                  "spec.headers.response[0].name: has no place beside cors, which sets it\n"
                  "spec.cors.allowOrigins[0]: \"https://a.b:443\" has the port of its scheme, "
                  "which browsers leave out: it would never match\n"
                  "spec.cors.allowOrigins[2]: \"http://[::1]:80\" has the port of its scheme, "
                  "which browsers leave out: it would never match\n");
}

static void route_redirect_and_rewrite(void **state)
{
    (void)state;
    assert_faults("kind: Route\nmetadata: {name: r}\nspec: {host: a.b, redirect: {scheme: Https, "
                  "status: 308}}",
                  "");
    assert_faults(ROUTE "  redirect: {status: 305}\n  rewrite: {}\n",
                  "spec.to: has no place beside redirect\n"
                  "spec.rewrite: is empty; wants replacePrefix, replacePath or host\n"
                  "spec.rewrite: has no place beside redirect\n"
                  "spec.redirect.status: 305 is not one of 301, 302, 303, 307, 308\n"
                  "spec.redirect: leads back to itself; wants scheme, host, port, replacePrefix or "
                  "replacePath\n");
    assert_faults(ROUTE "  rewrite: {replacePrefix: b, replacePath: '/a?b', host: '*.x'}\n",
                  "spec.rewrite.replacePrefix: \"b\" does not start with /\n"
                  "spec.rewrite.replacePath: has a ?; a path has no query and no fragment\n"
                  "spec.rewrite.replacePath: has no place beside replacePrefix\n"
                  "spec.rewrite.host: \"*.x\" is a wildcard; wants one name\n");
}

static void route_content(void **state)
{
    (void)state;
    assert_faults(ROUTE
                  "  errorPages: [{status: 200, body: x}, {status: 503}, {status: 503, body: x, "
                  "contentType: html}, {body: \"\\e\"}]\n",
                  "spec.errorPages[0].status: 200 is below 400\n"
                  "spec.errorPages[1].body: is missing; wants text\n"
                  "spec.errorPages[2].status: 503 has a page already\n"
                  "spec.errorPages[2].contentType: is no media type such as text/html\n"
                  "spec.errorPages[3].status: is missing; wants 400 to 599\n"
                  "spec.errorPages[3].body: has the control byte 0x1B\n");
    assert_faults(ROUTE "  compression: {mimeTypes: [html, text/]}\n  captures: {request: [{}], "
                        "response: [{name: X, maxLength: 0}]}\n",
                  "spec.captures.request[0].name: is missing; wants a name\n"
                  "spec.captures.response[0].maxLength: 0 is below 1\n"
                  "spec.compression.mimeTypes[0]: \"html\" is no media type such as text/html\n"
                  "spec.compression.mimeTypes[1]: \"text/\" is no media type such as text/html\n");
}

static void backends(void **state)
{
    (void)state;
    assert_faults("kind: Backend\nmetadata: {name: b}", "");
    assert_faults(
        BACKEND
        "  balance: Hash\n  hash: {'on': Header, name: X-User}\n"
        "  healthCheck: {type: Http, path: /healthz, host: h.example, method: HEAD, statuses: "
        "['200', 200-399], headers: {X-A: b}, interval: 5s, timeout: 1s, rise: 2, fall: 3, "
        "port: 81, tls: true}\n"
        "  passiveCheck: {failures: 5, window: 10s, eject: 30s, maxEjectedPercent: 50}\n"
        "  limits: {connectionsPerEndpoint: 100, requestsPerEndpoint: 100, queue: 0, "
        "queueTimeout: 1s}\n"
        "  slowStart: 30s\n  endpoints: [{address: 10.0.0.1:80}, {address: '[::1]:80', weight: "
        "0, state: Drain}, {address: name.example:80}]\n"
        "  protocol: Http2\n  tls: {ca: " CERT ", serverName: a.b, verify: CaOnly, "
        "clientCertificate: c}\n"
        "  proxyProtocol: V2\n  pool: {idlePerEndpoint: 0, idleTimeout: 1m, "
        "requestsPerConnection: 100}\n  panicPercent: 50\n  resolveInterval: 10s\n",
        "");
    assert_faults(BACKEND "  balance: Hash\n", "spec.hash: is missing; balance is Hash\n");
    assert_faults(BACKEND "  hash: {'on': Path, name: x}\n",
                  "spec.hash: has no place unless balance is Hash\n"
                  "spec.hash.name: has no place unless \"on\" is Header, Cookie or Query\n");
    assert_faults(BACKEND "  balance: Hash\n  hash: {'on': Cookie}\n",
                  "spec.hash.name: is missing; it names the header, cookie or query parameter\n");
    assert_faults(
        BACKEND "  balance: leastconn\n",
        "spec.balance: \"leastconn\" is not one of Random, RoundRobin, LeastConn, Source, "
        "Hash\n");
    assert_faults(BACKEND
                  "  endpoints: [{address: 10.0.0.1:80}, {address: '[::ffff:10.0.0.1]:80'}, "
                  "{weight: 257}, {address: x}, {address: 10.0.0.1:80}]\n",
                  "spec.endpoints[2].address: is missing; wants an address such as 10.1.0.4:8080\n"
                  "spec.endpoints[2].weight: 257 is above 256\n"
                  "spec.endpoints[3].address: \"x\" is no address such as 10.1.0.4:8080, "
                  "[2001:db8::1]:8080 or name.example:8080\n"
                  "spec.endpoints[1].address: 10.0.0.1:80 is in endpoints[0] already\n"
                  "spec.endpoints[4].address: 10.0.0.1:80 is in endpoints[1] already\n");
}

static void health_checks(void **state)
{
    (void)state;
    assert_faults(BACKEND "  healthCheck: {path: /x}\n",
                  "spec.healthCheck.type: is missing; wants None, Tcp, Http or Grpc\n");
    assert_faults(BACKEND
                  "  healthCheck: {type: Tcp, path: /x, service: y, interval: 1ms, rise: 0, "
                  "port: 65536}\n",
                  "spec.healthCheck.path: has no place unless type is Http\n"
                  "spec.healthCheck.service: has no place unless type is Grpc\n"
                  "spec.healthCheck.interval: 1ms is below 100ms\n"
                  "spec.healthCheck.rise: 0 is below 1\n"
                  "spec.healthCheck.port: 65536 is above 65535\n");
    assert_faults(
        BACKEND "  healthCheck: {type: Http, path: '', statuses: ['2xx', '399-200', '99'], "
                "headers: {Host: x, 'a b': c}}\n",
        "spec.healthCheck.path: is empty; wants a path such as /healthz\n"
        "spec.healthCheck.statuses[0]: \"2xx\" is no status such as 200 or 200-399\n"
        "spec.healthCheck.statuses[1]: \"399-200\" is no status such as 200 or 200-399\n"
        "spec.healthCheck.statuses[2]: \"99\" is no status such as 200 or 200-399\n"
        "spec.healthCheck.headers.Host: Host cannot be changed; use rewrite.host\n"
        "spec.healthCheck.headers[\"a b\"]: \"a b\" is no header name: letters, digits and "
        "- _ . are usual\n");
    assert_faults(BACKEND "  healthCheck: {type: Http, path: '/healthz?full=1&x=%20', body: ok, "
                          "intervalDown: 1s}\n  resolveHold: 0s\n",
                  "");
    assert_faults(BACKEND
                  "  healthCheck: {type: Tcp, host: h.example, body: x, intervalDown: 1ms}\n"
                  "  resolveHold: 31d\n",
                  "spec.healthCheck.host: has no place with type: Tcp\n"
                  "spec.healthCheck.body: has no place unless type is Http\n"
                  "spec.healthCheck.intervalDown: 1ms is below 100ms\n"
                  "spec.resolveHold: 31d is above 30d\n");
    assert_faults(BACKEND "  healthCheck: {type: Http, method: HEAD, body: '', path: '/a?b#c'}\n",
                  "spec.healthCheck.body: has no place with method: HEAD, which has no body\n"
                  "spec.healthCheck.body: is 0 bytes long; wants 1 to 1024\n"
                  "spec.healthCheck.path: has the byte 0x23 in its query; write it as %23\n");
    assert_faults(BACKEND "  healthCheck: {type: Http, path: 'a?b'}\n",
                  "spec.healthCheck.path: \"a\" does not start with /\n");
}

static void settings(void **state)
{
    (void)state;
    assert_faults(
        SETTINGS
        "  timeouts: {connect: 5s, clientHeader: 10s, keepAlive: 5m, tlsInspect: 5s}\n"
        "  tls: {profile: Custom, minVersion: '1.2', ciphers: [A-B], groups: [X25519], "
        "defaultCertificate: shop/c.x, strictSni: true}\n"
        "  forwarded: Never\n  trustedProxies: [10.0.0.0/8]\n"
        "  limits: {headerBytes: 32768, headerCount: 128, uriBytes: 8192, bodyBytes: "
        "'99999999999', connections: 100}\n  dotSegments: Remove\n"
        "  requiredHsts: [{domains: ['*.a.example'], minMaxAge: 1d, maxMaxAge: 2d}]\n"
        "  accessLog: {enabled: true, format: combined}\n  uniqueId: {header: X-Request-Id}\n"
        "  headerNameCase: [X-Foo]\n  admission: {ownership: Strict, allowedDomains: [a.b]}\n"
        "  drain: {delay: 0s, timeout: 1m}\n  balance: LeastConn\n",
        "");
    assert_faults("kind: Settings\nmetadata: {name: other}",
                  "metadata.name: \"other\" is not default, the one Settings object\n");
    assert_faults(
        SETTINGS "  tls: {minVersion: '1.0', ciphers: ['a b'], defaultCertificate: c}\n"
                 "  limits: {headerBytes: 100, headerCount: 5000, uriBytes: 8192, connections: 1}\n"
                 "  trustedProxies: [any]\n  balance: Hash\n  accessLog: {format: \"a\\nb\"}\n"
                 "  requiredHsts: [{minMaxAge: 2d, maxMaxAge: 1d}]\n  admission: {deniedDomains: "
                 "['a b']}\n",
        "spec.tls.minVersion: has no place unless profile is Custom\n"
        "spec.tls.ciphers: has no place unless profile is Custom\n"
        "spec.tls.minVersion: \"1.0\" is not one of 1.1, 1.2, 1.3\n"
        "spec.tls.ciphers[0]: \"a b\" is no name: letters, digits and - _ . are usual\n"
        "spec.tls.defaultCertificate: \"c\" is no namespace/name of a Certificate\n"
        "spec.trustedProxies[0]: \"any\" is no network such as 10.0.0.0/8 or 2001:db8::/32\n"
        "spec.limits.headerBytes: 100 is below 4096\n"
        "spec.limits.headerCount: 5000 is above 1024\n"
        "spec.limits.uriBytes: 8192 is above headerBytes, of which it is a part\n"
        "spec.limits.connections: 1 is below 16\n"
        "spec.requiredHsts[0].domains: is missing; wants hosts such as *.example.com\n"
        "spec.requiredHsts[0].minMaxAge: is above maxMaxAge\n"
        "spec.accessLog.format: is neither json nor combined\n"
        "spec.admission.deniedDomains[0]: \"a b\" is no host such as shop.example.com or "
        "*.example.com (one label)\n"
        "spec.balance: Hash needs a key, so only a Backend can ask for it\n");
}

static void small_kinds(void **state)
{
    (void)state;
    assert_faults(
        "kind: Node\nmetadata: {name: r1.example}\nspec: {labels: {zone: a}, drain: true, "
        "drainTimeout: 0s}",
        "");
    assert_faults(
        "kind: Node\nmetadata: {name: r1}\nspec: {labels: {zone: 'a b'}}",
        "spec.labels.zone: \"a b\" is no value of a label: up to 63 letters, digits, '-', "
        "'_' and '.', starting and ending with a letter or digit\n");
    assert_faults("kind: Namespace\nmetadata: {name: shop}\nspec: {description: \"two\\nlines\"}",
                  "");
    assert_faults("kind: Namespace\nmetadata: {name: shop}\nspec: {description: \"\\a\"}",
                  "spec.description: has the control byte 0x07\n");
}

static void objects_have_a_size(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 4 << 20);
    (void)buf_puts(&text, "{\"kind\":\"Backend\",\"metadata\":{\"name\":\"b\"},\"spec\":"
                          "{\"endpoints\":[");
    for (int i = 0; i < 4000; i++) {
        (void)buf_printf(&text, "%s{\"address\":\"%0100d.example:80\"}", i != 0 ? "," : "", i);
    }
    (void)buf_puts(&text, "]}}");
    char *found = faults_of(text.data);
    assert_non_null(strstr(found, "is no address")); /* labels of 100 bytes */
    mem_free(found);
    buf_reset(&text);
    (void)buf_puts(&text, "{\"kind\":\"Backend\",\"metadata\":{\"name\":\"b\"},\"spec\":"
                          "{\"endpoints\":[");
    for (int i = 0; i < 4000; i++) {
        (void)buf_printf(&text, "%s{\"address\":\"a%050d.b%040d.example:80\"}", i != 0 ? "," : "",
                         i, i);
    }
    (void)buf_puts(&text, "]}}");
    found = faults_of(text.data);
    assert_non_null(strstr(found, "bytes packed; at most 262144 are accepted\n"));
    mem_free(found);
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata),
        cmocka_unit_test(a_route_with_everything),
        cmocka_unit_test(route_hosts_and_targets),
        cmocka_unit_test(route_tls),
        cmocka_unit_test(route_timeouts),
        cmocka_unit_test(route_policies_fail_closed),
        cmocka_unit_test(route_headers),
        cmocka_unit_test(route_templates),
        cmocka_unit_test(route_cors_alone),
        cmocka_unit_test(route_redirect_and_rewrite),
        cmocka_unit_test(route_content),
        cmocka_unit_test(backends),
        cmocka_unit_test(health_checks),
        cmocka_unit_test(settings),
        cmocka_unit_test(small_kinds),
        cmocka_unit_test(objects_have_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
