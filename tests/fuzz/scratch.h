/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch - for targets whose parser reads or writes files: a folder on tmpfs that goes with the process, and
 * an input that holds several files, apart by lines of "%%".
 */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H
#include "base/files/fs.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static char scratch_path[64];

static inline void scratch_remove(void)
{
    struct err e = { 0 };

    (void)!(fs_remove_tree(AT_FDCWD, scratch_path, &e) == ERR_OK);
}

/* Opened; once in a process. */
static inline int scratch_open(void)
{
    struct statfs fs;
    int fd;

    snprintf(scratch_path, sizeof(scratch_path), "%s/coracle-fuzz-XXXXXX",
             statfs("/dev/shm", &fs) == 0 && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(scratch_path) == NULL || (fd = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        abort();
    atexit(scratch_remove);
    return fd;
}

static inline void scratch_mkdir(int dir, const char *path)
{
    if (mkdirat(dir, path, 0700) != 0)
        abort();
}

static inline int scratch_open_folder(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        abort();
    return fd;
}

static inline void scratch_write(int dir, const char *path, struct str content)
{
    int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, content.p, content.n) != (ssize_t)content.n)
        abort();
    close(fd);
}

/* Everything below `path` of `dir`, and it. */
static inline void scratch_clear(int dir, const char *path)
{
    struct err e = { 0 };

    if (fs_remove_tree(dir, path, &e) != ERR_OK) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
}

/* The input's parts; what is beyond `max` belongs to the last one. */
static inline size_t scratch_parts(const uint8_t *data, size_t size, struct str *ret, size_t max)
{
    const char *at = (const char *)data, *end = at + size, *mark;
    size_t n = 0;

    while (n + 1 < max && (mark = memmem(at, (size_t)(end - at), "\n%%\n", 4)) != NULL) {
        ret[n++] = (struct str){ at, (size_t)(mark - at) };
        at = mark + 4;
    }
    ret[n++] = (struct str){ at, (size_t)(end - at) };
    return n;
}
#endif
