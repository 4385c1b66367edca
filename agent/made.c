/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/made.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of the longest part of `path` that may exist. */
static size_t there_already(const char *path)
{
    const size_t whole = strlen(path);
    str_auto part = strdup(path);
    size_t n = 0;

    while (part != NULL && n < whole) {
        size_t next = n + 1 + strcspn(path + n + 1, "/");
        struct err e = { 0 };

        part[next] = '\0';
        if (presence_is_absent(fs_look_at(AT_FDCWD, part, NULL, &e)))
            return n;
        if (next < whole)
            part[next] = '/';
        n = next;
    }
    return whole;
}

enum err_code made_mkdirs(struct made *m, const char *path, mode_t mode, struct err *e)
{
    const size_t kept = there_already(path);
    char *copy = kept < strlen(path) && m->n < MADE_MAX ? strdup(path) : NULL;

    if (copy != NULL) {
        m->v[m->n].path = copy;
        m->v[m->n++].kept = kept;
    }
    return fs_mkdirs(path, mode, e);
}

bool made_has(const struct made *m, const char *path)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].path, path) == 0)
            return true;
    return false;
}

void made_remove(struct made *m)
{
    for (size_t i = m->n; i-- > 0;) {
        char *path = m->v[i].path;

        while (strlen(path) > m->v[i].kept && rmdir(path) == 0)
            *strrchr(path, '/') = '\0';
    }
    made_done(m);
}

void made_done(struct made *m)
{
    while (m->n > 0)
        free(m->v[--m->n].path);
}
