/* SPDX-License-Identifier: Apache-2.0 */
/* stuck - processes stuck in the kernel. */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct stuck {
    char *text;
    size_t size, n;
};

/* "412 (cat) D ...": true if the state is D; the name is between the outer parentheses. */
static bool sleeps_in_kernel(pid_t pid, char *name, size_t size)
{
    struct err e = { 0 };
    str_auto text = NULL;
    char path[64];
    char *from, *to;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return false;
    from = strchr(text, '(');
    to = strrchr(text, ')');
    if (from == NULL || to == NULL || to < from || strncmp(to, ") D", 3) != 0)
        return false;
    *to = '\0';
    snprintf(name, size, "%s", from + 1);
    for (char *c = name; *c != '\0'; c++) /* processes choose their names */
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}

static bool stuck_add_stuck(pid_t pid, void *arg)
{
    struct stuck *s = arg;
    struct err e = { 0 };
    str_auto where = NULL;
    char path[64], name[64];
    int n;

    if (!sleeps_in_kernel(pid, name, sizeof(name)))
        return true;
    snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
    bool known =
        fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &where, NULL, &e) == ERR_OK && strcmp(where, "0") != 0;
    n = snprintf(s->text + s->n, s->size - s->n, "%sprocess %d (%s) sleeps in %.60s", s->n > 0 ? ", " : "",
                 (int)pid, name, known ? where : "the kernel");
    if (n < 0 || (size_t)n >= s->size - s->n) {
        s->text[s->n] = '\0';
        return false;
    }
    s->n += (size_t)n;
    return true;
}

void cg_stuck(struct cg_tree *t, const char *path, char *ret, size_t size)
{
    struct stuck s = { .text = ret, .size = size };

    ret[0] = '\0';
    if (!cg_path_is_ours(t, path))
        return;
    for (size_t i = 0; i < t->n_hiers && s.n == 0; i++) {
        fd_auto dir = cg_open_dir(&t->hiers[i], path);
        if (dir >= 0)
            cg_each_pid(dir, stuck_add_stuck, &s, ERR_IGNORED);
    }
}
