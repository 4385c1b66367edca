/* SPDX-License-Identifier: Apache-2.0 */
/* size - how much work a payload is: a small one is written and removed on the loop, others on the pool.
 */
#include "base/scope.h"
#include "volumes/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A file takes some 20 us to make and 5 us to remove: together a few milliseconds. */
#define LARGE_FILES 256
#define LARGE_BYTES (1024 * 1024)

/* The links, the files of this version, and those of one before it. */
_Static_assert(VOL_LARGE_ENTRIES == 3 * LARGE_FILES, "the bound of volumes.h");

size_t vol_count_entries(int dir, size_t limit)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    size_t n = 0;

    if (list == NULL) {
        scope_close_p(&copy);
        return limit;
    }
    for (const struct dirent *d; n < limit && (errno = 0, d = readdir(list)) != NULL;) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        n++;
        if (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN)
            continue;
        fd_auto below = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            n += vol_count_entries(below, limit - n);
        else if (errno != ENOTDIR && errno != ELOOP)
            n = limit;
    }
    if (n < limit && errno != 0)
        n = limit;
    closedir(list);
    return n;
}

bool vol_payload_is_large(const struct vol_payload *p)
{
    size_t bytes = 0;

    if (p->n_files > LARGE_FILES)
        return true;
    for (size_t i = 0; i < p->n_files; i++)
        if (__builtin_add_overflow(bytes, p->files[i].size, &bytes) || bytes > LARGE_BYTES)
            return true;
    return false;
}

size_t vol_payload_entries(const struct vol_node *n, const char *uid, const char *name)
{
    struct err e = { 0 };
    char path[VOL_PATH_MAX];

    if (vol_payload_path(n, uid, name, path, sizeof(path), &e) != ERR_OK)
        return 0; /* which the publish reports */
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : VOL_LARGE_ENTRIES;
    return vol_count_entries(dir, VOL_LARGE_ENTRIES);
}

/* The folder of the version, "..data", and for each file itself, its folders and its link. */
size_t vol_payload_adds(const struct vol_payload *p)
{
    size_t n = 2;

    for (size_t i = 0; i < p->n_files; i++) {
        n += 2;
        for (const char *c = p->files[i].path; *c != '\0'; c++)
            n += *c == '/';
    }
    return n;
}
