/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer - measures the atomic writer alone: how often a second it publishes a changed set of files.
 *
 *     writer FOLDER FILES SECONDS     FOLDER is made on the file system to be measured, and removed
 * afterwards
 *
 * One file of the set differs between versions, as after an edit of one key; each file has 100 bytes. Prints
 * the number of swaps a second.
 */
#include "base/clock.h"
#include "base/files/fs.h"
#include "volumes/atomic_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SIZE 100

static enum err_code swap_for(const char *folder, size_t n_files, uint64_t ms, double *ret_rate,
                              struct err *e)
{
    struct vol_file *files = calloc(n_files, sizeof(*files));
    char(*names)[24] = calloc(n_files, sizeof(*names));
    char data[SIZE], edited[SIZE];
    scoped(vol_writer_free) struct vol_writer *w = NULL;
    uint64_t begin, n = 0;
    bool changed;

    if (files == NULL || names == NULL || vol_writer_open(&w, folder, e) != ERR_OK)
        goto out;
    memset(data, 'x', sizeof(data));
    for (size_t i = 0; i < n_files; i++) {
        snprintf(names[i], sizeof(names[i]), "key-%zu", i);
        files[i] = (struct vol_file){ .path = names[i], .data = data, .size = SIZE, .mode = 0644 };
    }
    files[0].data = edited;
    begin = clock_mono_ms();
    do {
        memset(edited, ' ', sizeof(edited));
        snprintf(edited, sizeof(edited), "%llu", (unsigned long long)++n);
        if (vol_writer_publish(w, files, n_files, -1, &changed, e) != ERR_OK)
            goto out;
    } while (clock_mono_ms() - begin < ms);
    *ret_rate = (double)n * 1000 / (double)(clock_mono_ms() - begin);
out:
    free(files);
    free(names);
    return e->code;
}

int main(int argc, char **argv)
{
    size_t n_files = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    double rate = 0;
    struct err e = { 0 }, ignored = { 0 };

    if (n_files == 0) {
        fprintf(stderr, "usage: writer FOLDER FILES SECONDS\n");
        return 2;
    }
    if (mkdir(argv[1], 0755) != 0)
        err_sys(&e, errno, "create %s", argv[1]);
    else
        swap_for(argv[1], n_files, strtoul(argv[3], NULL, 10) * 1000, &rate, &e);
    if (fs_remove_tree(AT_FDCWD, argv[1], &ignored) != ERR_OK)
        fprintf(stderr, "writer: %s\n", ignored.text);
    if (e.code != ERR_OK) {
        fprintf(stderr, "writer: %s\n", e.text);
        return 1;
    }
    printf("%.0f\n", rate);
    return 0;
}
