/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover - finds the cgroup hierarchies in the text of /proc/self/mountinfo and /proc/self/cgroup.
 *
 * Only mounts at or below /sys/fs/cgroup are used, because that is where OCI runtimes look for hierarchies.
 */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
} controller_names[] = {
    { "cpuset", CG_CTL_CPUSET },   { "cpu", CG_CTL_CPU },         { "cpuacct", CG_CTL_CPUACCT },
    { "io", CG_CTL_IO },           { "blkio", CG_CTL_IO },        { "memory", CG_CTL_MEMORY },
    { "hugetlb", CG_CTL_HUGETLB }, { "freezer", CG_CTL_FREEZER }, { "pids", CG_CTL_PIDS },
};

/* The next element of a list separated by blanks or commas; false at its end. */
static bool discover_next_word(const char **list, struct str *ret)
{
    const char *p = *list + strspn(*list, " ,\n\t");

    ret->p = p;
    ret->n = strcspn(p, " ,\n\t");
    *list = p + ret->n;
    return ret->n > 0;
}

unsigned cg_controllers_parse(const char *list)
{
    unsigned mask = 0;
    struct str word;

    while (discover_next_word(&list, &word))
        for (size_t i = 0; i < ARRAY_LEN(controller_names); i++)
            if (strlen(controller_names[i].name) == word.n &&
                memcmp(controller_names[i].name, word.p, word.n) == 0)
                mask |= controller_names[i].bit;
    return mask;
}

void cg_controllers_format(unsigned controllers, char prefix, char *ret, size_t size)
{
    size_t n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(controller_names); i++) {
        if ((controllers & controller_names[i].bit) == 0)
            continue;
        controllers &= ~controller_names[i].bit; /* "io" has a second name */
        const char sign[2] = { prefix, '\0' };
        int put = snprintf(ret + n, size - n, "%s%s%s", n > 0 ? " " : "", sign, controller_names[i].name);
        if (put < 0 || (size_t)put >= size - n)
            return;
        n += (size_t)put;
    }
}

static bool discover_list_has(const char *list, const struct str *wanted)
{
    struct str word;

    while (discover_next_word(&list, &word))
        if (word.n == wanted->n && memcmp(word.p, wanted->p, word.n) == 0)
            return true;
    return false;
}

/* One line of /proc/self/cgroup, "4:memory:/a/b" or "0::/a/b", split in place. */
struct membership {
    const char *list; /* "" is v2 */
    const char *path;
};

#define MEMBERSHIPS_MAX 64

static enum err_code parse_memberships(char *text, struct membership *ret, size_t *ret_n, struct err *e)
{
    size_t n = 0;
    char *saved = NULL;

    for (char *line = strtok_r(text, "\n", &saved); line != NULL; line = strtok_r(NULL, "\n", &saved)) {
        char *list = strchr(line, ':');
        char *path = list != NULL ? strchr(list + 1, ':') : NULL;
        if (path == NULL || path[1] != '/')
            return err_set(e, ERR_INVALID, "/proc/self/cgroup: line \"%.60s\" is not id:controllers:path",
                           line);
        if (n == MEMBERSHIPS_MAX)
            return err_set(e, ERR_INVALID, "/proc/self/cgroup: more than %d hierarchies", MEMBERSHIPS_MAX);
        *list++ = *path++ = '\0';
        ret[n++] = (struct membership){ .list = list, .path = path };
    }
    *ret_n = n;
    return ERR_OK;
}

struct scan {
    struct cg_found *found;
    const struct membership *members;
    size_t n_members;
};

/* A mount hides earlier mounts at or below its mount point. */
static void forget_hidden(struct cg_found *f, const char *point)
{
    size_t n = strlen(point), kept = 0;

    for (size_t i = 0; i < f->n; i++) {
        const char *p = f->hiers[i].point;
        if (strncmp(p, point, n) == 0 && (p[n] == '\0' || p[n] == '/'))
            continue;
        if (kept != i)
            f->hiers[kept] = f->hiers[i];
        kept++;
    }
    f->n = kept;
}

static const struct membership *member_of_mount(const struct scan *s, const struct fs_mount *m)
{
    bool v2 = strcmp(m->fstype, "cgroup2") == 0;

    for (size_t i = 0; i < s->n_members; i++) {
        const char *list = s->members[i].list;
        const char *options = m->super_options;
        struct str word;

        if (v2 && list[0] == '\0')
            return &s->members[i];
        /* Super options are the controllers and flags such as "rw,xattr"; no controller has a flag's name. */
        while (!v2 && list[0] != '\0' && discover_next_word(&options, &word))
            if (discover_list_has(list, &word))
                return &s->members[i];
    }
    return NULL;
}

static bool scan_mount(const struct fs_mount *m, void *arg)
{
    struct scan *s = arg;
    struct cg_found *f = s->found;
    bool v2 = strcmp(m->fstype, "cgroup2") == 0;
    const struct membership *member;

    forget_hidden(f, m->point);
    if (!v2 && strcmp(m->fstype, "cgroup") != 0)
        return true;
    member = member_of_mount(s, m);
    if (member == NULL || f->n == CG_HIERS_MAX)
        return true;
    const char *name = v2 ? "unified" : member->list;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->hiers[i].name, name) == 0)
            return true; /* mounted a second time: use the first */

    struct cg_found_hier *h = &f->hiers[f->n];
    if (strlen(name) >= sizeof(h->name) || strlen(m->point) >= sizeof(h->point) ||
        strlen(member->path) >= sizeof(h->own))
        return true;
    *h = (struct cg_found_hier){ .v2 = v2, .controllers = v2 ? 0 : cg_controllers_parse(name) };
    strcpy(h->name, name);
    strcpy(h->point, m->point);
    strcpy(h->own, member->path);
    f->n++;
    return true;
}

static void note_unmounted(struct cg_found *f, const struct membership *members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool mounted = members[i].list[0] == '\0' || strncmp(members[i].list, "name=", 5) == 0;
        for (size_t k = 0; k < f->n && !mounted; k++)
            mounted = strcmp(f->hiers[k].name, members[i].list) == 0;
        if (!mounted && f->n_unmounted < CG_HIERS_MAX && strlen(members[i].list) < sizeof(f->unmounted[0]))
            strcpy(f->unmounted[f->n_unmounted++], members[i].list);
    }
}

enum err_code cg_discover(struct cg_found *ret, const char *mountinfo, const char *proc_cgroup, struct err *e)
{
    mem_auto struct cg_found *f = calloc(1, sizeof(*f)); /* about 40 KiB: too big for the stack */
    str_auto mounts = strdup(mountinfo);
    str_auto memberships = strdup(proc_cgroup);
    struct membership members[MEMBERSHIPS_MAX];
    size_t n_members = 0, n_v1 = 0, n_v2 = 0;

    if (f == NULL || mounts == NULL || memberships == NULL)
        return err_nomem(e);
    if (parse_memberships(memberships, members, &n_members, e) != ERR_OK)
        return e->code;
    struct scan s = { .found = f, .members = members, .n_members = n_members };
    fs_parse_mountinfo(mounts, CG_MOUNTS, scan_mount, &s);

    for (size_t i = 0; i < f->n; i++)
        *(f->hiers[i].v2 ? &n_v2 : &n_v1) += 1;
    if (n_v1 + n_v2 == 0)
        return err_set(e, ERR_PRECONDITION,
                       "no cgroup file system is mounted at " CG_MOUNTS
                       ": mount cgroup2 there (mount -t cgroup2 none " CG_MOUNTS
                       "), or let the init system do it");
    f->layout = n_v1 == 0 ? CG_V2 : n_v2 == 0 ? CG_V1 : CG_HYBRID;
    note_unmounted(f, members, n_members);
    *ret = *f;
    return ERR_OK;
}
