/*
 * The command line: words, options in all their forms, what is refused.
 */
#include "tests/support/unit.h"

#include "admin/cli/args.h"
#include "node/base/buf.h"

static struct args args;
static struct err_info err;

/* Words split at blanks; at most 31. */
static int parse(const char *line)
{
    static char text[512];
    static char *argv[32];
    int argc = 0;
    snprintf(text, sizeof(text), "skeinctl %s", line);
    for (char *rest = text, *word; argc < 31 && (word = strsep(&rest, " ")) != NULL;) {
        if (word[0] != '\0') {
            argv[argc++] = word;
        }
    }
    memset(&err, 0, sizeof(err));
    return args_parse(argc, argv, &args, &err);
}

static void test_words_and_options_mix(void **state)
{
    (void)state;
    assert_int_equal(parse("delete route -n shop checkout other --wait"), 0);
    assert_int_equal(args.word_count, 4);
    assert_string_equal(args.words[0], "delete");
    assert_string_equal(args.words[3], "other");
    assert_string_equal(args.namespace_, "shop");
    assert_int_equal(args.given, OPTION_NAMESPACE | OPTION_WAIT);
}

static void test_forms_of_a_value(void **state)
{
    (void)state;
    static const char *const lines[] = {"get x -n shop", "get x -nshop", "get x --namespace shop",
                                        "get x --namespace=shop"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(parse(lines[i]), 0);
        assert_string_equal(args.namespace_, "shop");
    }
    assert_int_equal(parse("get routes -Ao json"), 0);
    assert_true((args.given & OPTION_ALL_NAMESPACES) != 0);
    assert_int_equal(args.output, OUTPUT_JSON);
    assert_int_equal(parse("get routes -l tier=gold,zone!=a"), 0);
    assert_string_equal(args.selector, "tier=gold,zone!=a");
    assert_int_equal(parse("apply -f a.yaml -f - --file=b"), 0);
    assert_int_equal(args.file_count, 3);
    assert_string_equal(args.files[1], "-");
}

static void test_end_of_options(void **state)
{
    (void)state;
    assert_int_equal(parse("get routes -- -x --y"), 0);
    assert_int_equal(args.word_count, 4);
    assert_string_equal(args.words[2], "-x");
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"get --nothing", "--nothing"},
        {"get -x", "-x"},
        {"get -n", "--namespace"},
        {"get --namespace", "--namespace"},
        {"get --wait=yes", "takes no value"},
        {"get -o xml", "table, json, yaml"},
        {"get --=x", "--=x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(parse(cases[i].line), RC_INVALID);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static void test_options_of_a_command(void **state)
{
    (void)state;
    assert_int_equal(parse("cluster --wait"), 0);
    assert_int_equal(args_check(&args, OPTION_OUTPUT, "cluster", &err), RC_INVALID);
    assert_non_null(strstr(err.text, "--wait"));
    assert_int_equal(args_check(&args, OPTION_OUTPUT | OPTION_WAIT, "cluster", &err), 0);
    struct buf text;
    buf_init(&text, 4096);
    args_help(OPTION_OUTPUT | OPTION_WAIT, &text);
    assert_non_null(strstr(text.data, "-o, --output FORM"));
    assert_non_null(strstr(text.data, "--wait"));
    assert_null(strstr(text.data, "--file"));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_and_options_mix), cmocka_unit_test(test_forms_of_a_value),
        cmocka_unit_test(test_end_of_options),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_options_of_a_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
