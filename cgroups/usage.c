/* usage - what a cgroup has used, gathered from every hierarchy that counts something. */
#include "base/fs.h"
#include "base/parse.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <string.h>

static bool parse_number(const char *text, size_t n, uint64_t *ret)
{
    uint64_t value = 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *ret = value;
    return true;
}

bool cg_read_u64(int dir, const char *file, uint64_t *ret)
{
    struct err e = { 0 };
    str_auto text = NULL;

    return fs_read_at(dir, file, FS_SMALL_MAX, &text, NULL, &e) == ERR_OK &&
           parse_number(text, strcspn(text, "\n"), ret);
}

/* Flat keyed files: "key value" on each line. */
bool cg_read_key(int dir, const char *file, const char *key, uint64_t *ret)
{
    struct err e = { 0 };
    str_auto text = NULL;
    size_t n = strlen(key);

    if (fs_read_at(dir, file, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return false;
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return parse_number(line + n + 1, strcspn(line + n + 1, "\n"), ret);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

enum err_code cg_usage(struct cg_tree *t, const char *path, struct cg_usage *ret, struct err *e)
{
    struct cg_usage u = { 0 };
    bool found = false;

    if (path[0] != '/' || (path[1] != '\0' && !fs_path_is_safe(path + 1)))
        return err_set(e, ERR_INVALID, "usage of cgroup \"%.200s\": not an absolute path", path);
    for (size_t i = t->n_hiers; i-- > 0;) { /* v2 last: on a hybrid it fills in what v1 does not count */
        const struct cg_hier *h = &t->hiers[i];
        fd_auto dir = cg_open_dir(h, path);
        if (dir < 0)
            continue;
        found = true;
        h->backend->usage(h, dir, &u);
    }
    if (!found)
        return err_set(e, ERR_NOT_FOUND, "usage of cgroup %s: no such cgroup", path);
    *ret = u;
    return ERR_OK;
}
