/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - runs a fuzz target without a fuzzer: every file given, or every file in the folders given, goes
 * through it once.  The recorded seeds are so part of the ordinary tests, under any compiler and sanitizer.
 *
 *     fuzz_mountinfo tests/fuzz/corpus/mountinfo
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;

/* The input in a block of exactly its size, so that a sanitizer sees a read past the end. */
static bool replay_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool ok = f != NULL && data != NULL && fread(data, 1, size, f) == size;

    if (ok) {
        LLVMFuzzerTestOneInput(data, size);
        replayed++;
    } else {
        perror(path);
    }
    free(data);
    if (f != NULL)
        fclose(f);
    return ok;
}

static bool replay(const char *path)
{
    bool ok = true;
    struct stat st;
    struct dirent *d;
    char *below;
    DIR *dir;

    if (stat(path, &st) != 0) {
        perror(path);
        return false;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, (size_t)st.st_size);
    dir = opendir(path);
    if (dir == NULL) {
        perror(path);
        return false;
    }
    while ((d = readdir(dir)) != NULL) {
        if (d->d_name[0] == '.')
            continue;
        if (asprintf(&below, "%s/%s", path, d->d_name) < 0) {
            ok = false;
            break;
        }
        ok = replay(below) && ok;
        free(below);
    }
    closedir(dir);
    return ok;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    bool ok = true;
    int i;

    for (i = 1; i < argc; i++)
        ok = replay(argv[i]) && ok;
    printf("%s: %zu inputs replayed\n", slash != NULL ? slash + 1 : argv[0], replayed);
    return ok ? 0 : 1;
}
