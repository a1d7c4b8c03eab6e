/*
 * skeinctl: the command line of the admin API.
 */
#include "admin/cli/cli.h"

#include <curl/curl.h>
#include <signal.h>

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write, told at the end */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fputs("skeinctl: libcurl cannot start\n", stderr);
        return CLI_REFUSED;
    }
    int code = cli_run(argc, argv, stdout, stderr);
    curl_global_cleanup();
    return code;
}
