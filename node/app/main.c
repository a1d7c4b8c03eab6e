/*
 * skeind: reads the settings and runs one node.
 */
#include "node/app/node.h"
#include "node/app/settings.h"
#include "node/base/log.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <string.h>

static int run(const struct settings *settings)
{
    struct err_info err = {0};
    struct settings_resolved resolved;
    log_setup(LOG_LEVEL_INFO, false, settings->node_name);
    if (settings_resolve(settings, &resolved, &err) != RC_OK) {
        (void)fprintf(stderr, "skeind: %s\n", err.text);
        return NODE_EXIT_USAGE;
    }
    if (settings->check_only) {
        (void)printf("settings are valid\n");
        return NODE_EXIT_OK;
    }
    log_setup(resolved.log_level, resolved.log_json, settings->node_name);
    return node_run(settings, &resolved);
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct err_info err = {0};
    int rc = settings_load(argc, argv, &settings, &err);
    if (rc != RC_OK) {
        (void)fprintf(stderr, "skeind: %s\n", err.text);
        return rc == RC_IO ? NODE_EXIT_KEY : NODE_EXIT_USAGE;
    }
    int code = NODE_EXIT_OK;
    if (settings.show_help) {
        char *help = settings_help();
        (void)fputs(help, stdout);
        mem_free(help);
    } else if (settings.show_version) {
        (void)printf("skeind %s\n", SKEIN_VERSION);
    } else {
        code = run(&settings);
    }
    settings_deinit(&settings);
    return code;
}
