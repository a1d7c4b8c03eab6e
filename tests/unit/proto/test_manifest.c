/*
 * YAML and JSON text to documents, and values to YAML. covers: manifest.c yaml_read.c yaml_emit.c
 */
#include "tests/unit/proto/objects.h"

/* All documents as one line of JSON, or the error; mem_free. */
static char *parsed(const char *text, size_t len)
{
    json_t *documents = NULL;
    struct err_info err = {""};
    if (manifest_parse(text, len, &documents, NULL, &err) != RC_OK) {
        assert_true(err.text[0] != '\0');
        return mem_strdup(err.text);
    }
    char *out = json_text(documents, 0);
    json_decref(documents);
    return out;
}

#define assert_parsed(text, expected)                                                              \
    do {                                                                                           \
        char *found_ = parsed(text, strlen(text));                                                 \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void scalars_are_typed_as_in_json(void **state)
{
    (void)state;
    assert_parsed("a: 1\nb: -5\nc: 1.5\nd: 1e3\ne: true\nf: false\ng: null\nh: ~\ni:\n",
                  "[{\"a\":1,\"b\":-5,\"c\":1.5,\"d\":1000.0,\"e\":true,\"f\":false,\"g\":null,"
                  "\"h\":null,\"i\":null}]");
    assert_parsed(
        "a: '1'\nb: \"true\"\nc: yes\nd: on\ne: 0777\nf: 1:30\ng: +5\nh: 0x1F\ni: True\n"
        "j: 1_000\nk: .5\nl: 5.\nm: 1e\no: 2026-01-31\np: NaN\n",
        "[{\"a\":\"1\",\"b\":\"true\",\"c\":\"yes\",\"d\":\"on\",\"e\":\"0777\",\"f\":"
        "\"1:30\",\"g\":\"+5\",\"h\":\"0x1F\",\"i\":\"True\",\"j\":\"1_000\",\"k\":\".5\","
        "\"l\":\"5.\",\"m\":\"1e\",\"o\":\"2026-01-31\",\"p\":\"NaN\"}]");
    assert_parsed("a: 18446744073709551615\nb: 1e999\n",
                  "[{\"a\":\"18446744073709551615\",\"b\":\"1e999\"}]");
    assert_parsed("a: |\n  one\n  two\nb: >\n  folded\n  text\n1: key\ntrue: too\n",
                  "[{\"a\":\"one\\ntwo\\n\",\"b\":\"folded text\\n\",\"1\":\"key\",\"true\":"
                  "\"too\"}]");
}

static void documents_are_flattened(void **state)
{
    (void)state;
    assert_parsed("", "[]");
    assert_parsed("# nothing\n---\n---\n...\n", "[]");
    assert_parsed("a: 1\n---\nb: 2\n---\n\n---\n- c: 3\n- d: 4\n",
                  "[{\"a\":1},{\"b\":2},{\"c\":3},{\"d\":4}]");
    assert_parsed("items:\n- a: 1\n- b: 2\nrevision: '7'\n", "[{\"a\":1},{\"b\":2}]");
    assert_parsed("kind: List\nitems:\n- a: 1\n", "[{\"a\":1}]");
    assert_parsed("kind: Route\nitems: [1]\n", "[{\"kind\":\"Route\",\"items\":[1]}]");
    assert_parsed("items: 5\n", "[{\"items\":5}]");
    assert_parsed(" {\"items\":[{\"a\":1}],\"continue\":\"x\"} ", "[{\"a\":1}]");
    assert_parsed("[{\"a\":1},{\"b\":[1,2]}]", "[{\"a\":1},{\"b\":[1,2]}]");
    assert_parsed("{a: 1}", "[{\"a\":1}]");
    assert_parsed("{\"a\":1}\n---\n{\"b\":2}\n", "[{\"a\":1},{\"b\":2}]");
    assert_parsed("%YAML 1.2\n---\na: 1\n", "[{\"a\":1}]");
    assert_parsed("\xef\xbb\xbf"
                  "a: 1\n",
                  "[{\"a\":1}]");
}

static void lines_are_told(void **state)
{
    (void)state;
    static const char text[] = "# comment\na: 1\n---\n- b: 2\n\n- c: 3\n---\nkind: List\nitems:\n"
                               "  - d: 4\n  -\n    e: 5\n";
    json_t *documents = NULL;
    size_t *lines = NULL;
    assert_int_equal(manifest_parse(text, strlen(text), &documents, &lines, NULL), RC_OK);
    assert_int_equal(json_array_size(documents), 5);
    static const size_t expected[] = {2, 4, 6, 10, 12};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_int_equal(lines[i], expected[i]);
    }
    json_decref(documents);
    mem_free(lines);

    static const char settings[] = "node:\n  name: r1\nlisten:\n  http:\n  - port: 80\n";
    json_t *value = NULL;
    json_t *keys = NULL;
    assert_int_equal(yaml_parse_one(settings, strlen(settings), &value, &keys, NULL), RC_OK);
    char *found = json_text(keys, 0);
    assert_string_equal(found, "{\"node\":1,\"node.name\":2,\"listen\":3,\"listen.http\":4,"
                               "\"listen.http[0].port\":5}");
    mem_free(found);
    json_decref(value);
    json_decref(keys);
}

static void one_document_is_one(void **state)
{
    (void)state;
    json_t *value = NULL;
    struct err_info err = {""};
    assert_int_equal(yaml_parse_one("", 0, &value, NULL, &err), RC_OK);
    assert_true(json_is_null(value));
    assert_int_equal(yaml_parse_one("a: 1\n---\nb: 2\n", 14, &value, NULL, &err), RC_INVALID);
    assert_string_equal(err.text, "line 3: one document is expected");
    json_t *lines = NULL;
    assert_int_equal(yaml_parse_one("a: [\n", 5, &value, &lines, &err), RC_INVALID);
    assert_null(lines);
}

static void what_expands_is_refused(void **state)
{
    (void)state;
    assert_parsed("a: &x 1\nb: *x\n", "line 1, column 4: anchors are not accepted");
    assert_parsed("b: *x\n", "line 1, column 4: aliases are not accepted");
    assert_parsed("a: &x [1]\n", "line 1, column 4: anchors are not accepted");
    assert_parsed("a:\n  &x b: 1\n", "line 2, column 3: anchors are not accepted");
    assert_parsed("<<: {a: 1}\n", "line 1, column 1: merge keys are not accepted");
    assert_parsed("'<<': {a: 1}\n", "[{\"<<\":{\"a\":1}}]");
    assert_parsed("a: !!str 1\n", "line 1, column 4: tags are not accepted");
    assert_parsed("!x {a: 1}\n", "line 1, column 1: tags are not accepted");
    assert_parsed("%TAG !e! tag:example.com,2000:\n---\na: 1\n",
                  "line 1, column 1: %TAG is not accepted");
    assert_parsed("%YAML 2.0\n---\na: 1\n", "line 1, column 1: found incompatible YAML document");
}

static void malformed_text_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_parsed("a: 1\na: 2\n", "line 2, column 1: the key \"a\" is there twice");
    assert_parsed("? [a]\n: 1\n", "line 1, column 3: a key must be a plain text");
    assert_parsed("a: [1, 2\n", "line 2, column 1: did not find expected ',' or ']'");
    assert_parsed("a: \"\\0\"\n", "line 1, column 4: a NUL byte is not accepted");
    assert_parsed("\"a\\0\": 1\n", "line 1, column 1: a NUL byte is not accepted");
    assert_parsed("{\"a\":1,\"a\":2}", "line 1, column 10: duplicate object key near '\"a\"'");
    assert_parsed("{\"a\":1", "line 1, column 6: '}' expected near end of file");
    assert_parsed("[1] x", "line 1, column 5: end of file expected near 'x'");
    assert_parsed("{\"a\": \"\\u0000\"}",
                  "line 1, column 14: \\u0000 is not allowed without JSON_ALLOW_NUL near "
                  "'\"\\u0000\"'");
    static const char nul[] = "a: b\0c\n";
    char *found = parsed(nul, sizeof nul - 1);
    assert_string_equal(found, "byte 4: control characters are not allowed");
    mem_free(found);
    char *bad_utf8 = parsed("a: \xff\n", 5);
    assert_non_null(strstr(bad_utf8, "byte 3:"));
    mem_free(bad_utf8);
}

static void depth_is_capped(void **state)
{
    (void)state;
    char text[256];
    for (int yaml = 0; yaml < 2; yaml++) {
        for (int depth = MANIFEST_DEPTH_MAX - 1; depth <= MANIFEST_DEPTH_MAX + 60; depth++) {
            int used = yaml ? snprintf(text, sizeof text, "a: ") : 0;
            int levels = depth - yaml;
            memset(text + used, '[', (size_t)levels);
            text[used + levels] = '1';
            memset(text + used + levels + 1, ']', (size_t)levels);
            char *found = parsed(text, (size_t)(used + 1 + 2 * levels));
            bool refused = strstr(found, "nested too deeply") != NULL;
            assert_int_equal(refused, depth > MANIFEST_DEPTH_MAX);
            mem_free(found);
        }
    }
}

static void sizes_are_capped(void **state)
{
    (void)state;
    struct err_info err = {""};
    json_t *documents = NULL;
    assert_int_equal(manifest_parse("x", (size_t)MANIFEST_BYTES_MAX + 1, &documents, NULL, &err),
                     RC_TOO_BIG);
    assert_int_equal(json_parse("x", (size_t)MANIFEST_BYTES_MAX + 1, &documents, &err), RC_TOO_BIG);

    /* Containers cost the most memory per byte of text. */
    size_t count = MANIFEST_CONTAINERS_MAX + 1;
    struct buf text;
    buf_init(&text, 8 << 20);
    (void)buf_putc(&text, '[');
    for (size_t i = 0; i < count; i++) {
        (void)buf_puts(&text, i != 0 ? ",[]" : "[]");
    }
    (void)buf_putc(&text, ']');
    assert_int_equal(json_parse(text.data, text.len, &documents, &err), RC_TOO_BIG);
    text.data[0] = ' '; /* a plain scalar would not do: make it a list in block form */
    buf_reset(&text);
    for (size_t i = 0; i < count; i++) {
        (void)buf_puts(&text, "- []\n");
    }
    assert_int_equal(manifest_parse(text.data, text.len, &documents, NULL, &err), RC_TOO_BIG);
    buf_reset(&text);
    for (size_t i = 0; i < MANIFEST_OBJECTS_MAX + 1; i++) {
        (void)buf_puts(&text, "- 1\n");
    }
    assert_int_equal(manifest_parse(text.data, text.len, &documents, NULL, &err), RC_TOO_BIG);
    assert_string_equal(err.text, "more than 20000 objects");
    buf_deinit(&text);
}

static char *emitted(const char *json)
{
    json_t *value = NULL;
    assert_int_equal(json_parse(json, strlen(json), &value, NULL), RC_OK);
    struct buf out;
    buf_init(&out, 1 << 16);
    yaml_emit(value, &out);
    assert_false(out.full);

    json_t *back = NULL;
    struct err_info err = {""};
    int rc = yaml_parse_one(out.data, out.len, &back, NULL, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, RC_OK);
    assert_true(json_equal(value, back));
    json_decref(back);
    json_decref(value);
    return buf_take(&out, NULL);
}

#define assert_emitted(json, expected)                                                             \
    do {                                                                                           \
        char *found_ = emitted(json);                                                              \
        assert_string_equal(found_, expected);                                                     \
        mem_free(found_);                                                                          \
    } while (0)

static void values_become_block_style(void **state)
{
    (void)state;
    assert_emitted("{\"kind\":\"Route\",\"spec\":{\"to\":[{\"backend\":\"a\",\"weight\":5},{}],"
                   "\"none\":[],\"x\":null,\"z\":[[1,2],[]],\"path\":\"/a\",\"on\":true}}",
                   "kind: Route\n"
                   "spec:\n"
                   "  to:\n"
                   "    - backend: a\n"
                   "      weight: 5\n"
                   "    - {}\n"
                   "  none: []\n"
                   "  x: null\n"
                   "  z:\n"
                   "    - - 1\n"
                   "      - 2\n"
                   "    - []\n"
                   "  path: /a\n"
                   "  \"on\": true\n");
    assert_emitted("\"x\"", "x\n");
    assert_emitted("[]", "[]\n");
    assert_emitted("1.5", "1.5\n");
}

static void strings_are_quoted_where_a_reader_could_err(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "a",   "shop.example.com", "/a/b",      "10.1.0.4:8080", "30s", "1h30m", "a b",
        "x@y", "v1/10.0.0.1:80",   "10.0.0.0/8"};
    static const char *const quoted[] = {
        "",     "true", "Yes",        "on",    "NULL", "~",    "n",  "123",  "1.5", "0x1f",
        "1:30", "1e5",  ".5",         "-",     "- a",  "a: b", "a:", "a #b", "#a",  "*.a",
        "&a",   "!a",   "%a",         "@a",    "{a}",  "[a]",  "'a", " a",   "a ",  "=",
        "<<",   "...",  "2026-01-31", "1_000", "?",    "|",    ">",  "..."};
    for (size_t i = 0; i < ARRAY_LEN(plain) + ARRAY_LEN(quoted); i++) {
        bool is_plain = i < ARRAY_LEN(plain);
        const char *word = is_plain ? plain[i] : quoted[i - ARRAY_LEN(plain)];
        char *json = mem_printf("[\"%s\"]", word);
        char *expected = mem_printf(is_plain ? "- %s\n" : "- \"%s\"\n", word);
        assert_emitted(json, expected);
        mem_free(json);
        mem_free(expected);
    }
    assert_emitted("\"a\\\"b\\\\c\\td\\u0001\\u0085\\u2028\\ufeff\\ud83e\\udda2\"",
                   "\"a\\\"b\\\\c\\td\\u0001\\u0085\\u2028\\uFEFF\xf0\x9f\xa6\xa2\"\n");
}

static void text_of_several_lines_becomes_a_block(void **state)
{
    (void)state;
    assert_emitted(
        "{\"a\":\"one\\ntwo\\n\",\"b\":\"one\\n\\n  two\",\"c\":\"x\\n\\n\\n\",\"d\":[\"p"
        "\\nq\"]}",
        "a: |\n  one\n  two\nb: |-\n  one\n\n    two\nc: |+\n  x\n\n\nd:\n  - |-\n    "
        "p\n    q\n");
    assert_emitted("{\"a\":\"\\nx\",\"b\":\" x\\ny\",\"c\":\"x\\r\\ny\",\"d\":\"\\n\"}",
                   "a: \"\\nx\"\nb: \" x\\ny\"\nc: \"x\\u000D\\ny\"\nd: \"\\n\"\n");
    assert_emitted("\"---\\n...\\n\"", "|\n  ---\n  ...\n");
    assert_emitted("\"x\\n   \\ny\"", "|-\n  x\n     \n  y\n");
}

static void long_keys_are_explicit(void **state)
{
    (void)state;
    char key[1500];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    char *json = mem_printf("{\"a\":1,\"%s\":{\"b\":[1]},\"c\":{\"%s\":2}}", key, key);
    mem_free(emitted(json));
    mem_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_typed_as_in_json),
        cmocka_unit_test(documents_are_flattened),
        cmocka_unit_test(lines_are_told),
        cmocka_unit_test(one_document_is_one),
        cmocka_unit_test(what_expands_is_refused),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(depth_is_capped),
        cmocka_unit_test(sizes_are_capped),
        cmocka_unit_test(values_become_block_style),
        cmocka_unit_test(strings_are_quoted_where_a_reader_could_err),
        cmocka_unit_test(text_of_several_lines_becomes_a_block),
        cmocka_unit_test(long_keys_are_explicit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
