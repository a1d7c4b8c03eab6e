/*
 * Runs stored inputs through a fuzz target: each argument is a file, or a folder whose files are
 * taken. Every input is handed over in a block of its exact size, so that a sanitizer sees a read
 * too far. Fails when there was no input at all.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8 << 20 };

static int run_file(const char *path, size_t size)
{
    if (size > INPUT_MAX) {
        (void)fprintf(stderr, "%s is larger than an input may be\n", path);
        return -1;
    }
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    int rc = -1;
    if (file != NULL && data != NULL && fread(data, 1, size, file) == size) {
        (void)fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
        rc = LLVMFuzzerTestOneInput(data, size);
    } else {
        perror(path);
    }
    free(data);
    if (file != NULL) {
        (void)fclose(file); /* only read */
    }
    return rc;
}

/* Inputs run, or -1. */
static int run_path(const char *path)
{
    struct stat stat_buf;
    if (stat(path, &stat_buf) != 0) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(stat_buf.st_mode)) {
        return run_file(path, (size_t)stat_buf.st_size) == 0 ? 1 : -1;
    }
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort), run = 0;
    for (int i = 0; i < count; i++) {
        char inner[4096];
        (void)snprintf(inner, sizeof(inner), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && run >= 0) {
            int inner_run = run_path(inner);
            run = inner_run < 0 ? -1 : run + inner_run;
        }
        free(names[i]);
    }
    free(names);
    return count < 0 ? -1 : run;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int run = run_path(argv[i]);
        if (run < 0) {
            return 1;
        }
        total += run;
    }
    (void)fprintf(stderr, "%d inputs\n", total);
    return total > 0 ? 0 : 1;
}
