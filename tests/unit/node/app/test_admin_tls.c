/*
 * The certificate of the admin API: made once, read from files, faults told, changes seen.
 */
#include "tests/support/unit.h"

#include "node/app/admin_tls.h"
#include "node/base/mem.h"
#include "node/tls/tls_cert.h"
#include "node/tls/tls_policy.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/skein-admin-tls-XXXXXX";
static char chain[64], key[64];
static struct err_info err;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/skein-admin-tls-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(chain, sizeof(chain), "%s/admin-cert.pem", folder);
    snprintf(key, sizeof(key), "%s/admin-key.pem", folder);
    memset(&err, 0, sizeof(err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(chain);
    (void)unlink(key);
    return rmdir(folder);
}

static struct settings settings_with(const char *certificate, const char *key_file, const char *ca)
{
    return (struct settings){
        .node_name = unconst("r1"),
        .data_dir = folder,
        .admin_tls_certificate = unconst(certificate),
        .admin_tls_key = unconst(key_file),
        .admin_tls_self_signed = unconst(certificate[0] == '\0' ? "true" : "false"),
        .admin_tls_client_ca = unconst(ca),
        .admin_tls_client_role = unconst("editor"),
    };
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool look(const struct settings *settings, struct admin_tls_watch *watch)
{
    bool due = false;
    for (int i = 0; i < ADMIN_TLS_LOOK_S; i++) {
        due = admin_tls_is_due(settings, watch) || due;
    }
    return due;
}

static void test_one_of_its_own_is_made_once(void **state)
{
    (void)state;
    struct settings settings = settings_with("", "", "");
    struct admin_tls_watch watch = {0};
    struct admin_tls first, second;
    assert_int_equal(admin_tls_load(&settings, &watch, &first, &err), RC_OK);
    struct stat facts;
    assert_int_equal(stat(key, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    assert_true(tls_cert_covers(first.cert, "r1"));
    assert_true(tls_cert_covers(first.cert, "localhost"));
    assert_int_equal(tls_policy_client_auth(first.policy), TLS_CLIENT_AUTH_OFF);
    assert_int_equal(admin_tls_load(&settings, &watch, &second, &err), RC_OK);
    assert_string_equal(tls_cert_info(first.cert)->fingerprint,
                        tls_cert_info(second.cert)->fingerprint);
    admin_tls_deinit(&first);
    admin_tls_deinit(&second);
}

static void test_files_and_their_changes(void **state)
{
    (void)state;
    struct settings own = settings_with("", "", "");
    struct admin_tls_watch watch = {0};
    struct admin_tls tls;
    assert_int_equal(admin_tls_load(&own, &watch, &tls, &err), RC_OK);
    admin_tls_deinit(&tls);
    struct settings settings = settings_with(chain, key, chain);
    assert_int_equal(admin_tls_load(&settings, &watch, &tls, &err), RC_OK);
    assert_int_equal(tls.client_role, ACCESS_EDITOR);
    assert_int_equal(tls_policy_client_auth(tls.policy), TLS_CLIENT_AUTH_OPTIONAL);
    admin_tls_deinit(&tls);
    assert_false(look(&settings, &watch));
    write_file(chain, "nothing\n");
    assert_true(look(&settings, &watch));
    assert_int_equal(admin_tls_load(&settings, &watch, &tls, &err), RC_INVALID);
    assert_non_null(strstr(err.text, "admin.tls.certificate"));
    assert_false(look(&settings, &watch)); /* told once */
    settings.admin_tls_certificate = folder;
    assert_int_equal(admin_tls_load(&settings, &watch, &tls, &err), RC_INVALID);
    settings.admin_tls_certificate = unconst("/nowhere.pem");
    assert_int_equal(admin_tls_load(&settings, &watch, &tls, &err), RC_IO);
    assert_non_null(strstr(err.text, "/nowhere.pem"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_of_its_own_is_made_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_and_their_changes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
