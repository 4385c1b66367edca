/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/fs.h"

#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* 110 pods with a dozen mounts each make 300 KiB; beyond the maximum the host has other problems. */
enum { MOUNTINFO_MAX = 32 * 1024 * 1024, UNMOUNT_PASSES = 16 };

/* In place: the kernel writes blank, tab, newline, backslash (and '#') as three octal digits. */
static void unescape(char *text)
{
    char *out = text;

    for (; *text != '\0'; text++) {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' && text[2] <= '7' &&
            text[3] >= '0' && text[3] <= '7') {
            char c = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));

            if (c != '\0') {
                *out++ = c;
                text += 3;
                continue;
            }
        }
        *out++ = *text;
    }
    *out = '\0';
}

static bool within(const char *point, const char *prefix)
{
    size_t n = prefix == NULL ? 0 : strlen(prefix);

    while (n > 0 && prefix[n - 1] == '/')
        n--;
    return n == 0 || (strncmp(point, prefix, n) == 0 && (point[n] == '\0' || point[n] == '/'));
}

/* proc(5): id parent major:minor root point options [tag[:value]...] - type source super-options */
static bool mounts_parse_line(char *line, struct fs_mount *m)
{
    char *fields[6], *tag, *type, *source;
    size_t i;

    *m = (struct fs_mount){ 0 };
    for (i = 0; i < 6; i++) {
        fields[i] = strsep(&line, " ");
        if (fields[i] == NULL || *fields[i] == '\0')
            return false;
    }
    for (;;) {
        tag = strsep(&line, " ");
        if (tag == NULL)
            return false;
        if (strcmp(tag, "-") == 0)
            break;
        if (strncmp(tag, "shared:", 7) == 0)
            m->shared = true;
        else if (strncmp(tag, "master:", 7) == 0)
            m->slave = true;
    }
    type = strsep(&line, " ");
    source = strsep(&line, " "); /* may be empty */
    if (type == NULL || *type == '\0' || source == NULL || line == NULL)
        return false;

    for (i = 3; i < 6; i++)
        unescape(fields[i]);
    unescape(type);
    unescape(source);
    unescape(line);
    m->id = strtoull(fields[0], NULL, 10);
    m->parent = strtoull(fields[1], NULL, 10);
    m->root = fields[3];
    m->point = fields[4];
    m->options = fields[5];
    m->fstype = type;
    m->source = source;
    m->super_options = line;
    return true;
}

bool fs_parse_mountinfo(char *text, const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg),
                        void *arg)
{
    struct fs_mount m;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL)
        if (mounts_parse_line(line, &m) && within(m.point, prefix) && !fn(&m, arg))
            return false;
    return true;
}

enum err_code fs_each_mount(const char *prefix, bool (*fn)(const struct fs_mount *m, void *arg), void *arg,
                            struct err *e)
{
    str_auto text = NULL;

    if (fs_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, e) != ERR_OK)
        return e->code;
    fs_parse_mountinfo(text, prefix, fn, arg);
    return ERR_OK;
}

struct presence fs_look_mountpoint(const char *path, struct err *e)
{
    struct statx sx;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, 0, &sx) != 0) {
        err_sys(e, errno, "stat %s", path);
        return presence_from_err(e);
    }
    return (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ? presence_present() : presence_absent();
}

bool fs_is_mountpoint(const char *path)
{
    struct err e = { 0 };

    return presence_of(fs_look_mountpoint(path, &e)) == PRESENCE_PRESENT; /* best effort: see fs.h */
}

struct points {
    struct strs list;
    bool no_memory;
};

static bool mounts_collect(const struct fs_mount *m, void *arg)
{
    struct points *l = arg;
    size_t n = strlen(m->point), k = strlen("//deleted");

    /* The mount point's folder was deleted: no path leads there any more. */
    if (n >= k && strcmp(m->point + n - k, "//deleted") == 0)
        return true;
    l->no_memory = !strs_add(&l->list, m->point);
    return !l->no_memory;
}

static size_t mounts_depth(const char *path)
{
    size_t n = 0;

    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

static int deepest_first(const void *a, const void *b)
{
    size_t x = mounts_depth(*(char *const *)a), y = mounts_depth(*(char *const *)b);

    return x > y ? -1 : x < y;
}

/* One pass over the current mounts. *ret_gone counts successes; returns the first failure. */
static enum err_code mounts_unmount_pass(const char *prefix, size_t *ret_gone, size_t *ret_seen,
                                         struct err *e)
{
    struct points l = { 0 };
    enum err_code code;
    size_t i;

    *ret_gone = 0;
    *ret_seen = 0;
    code = fs_each_mount(prefix, mounts_collect, &l, e);
    if (code == ERR_OK && l.no_memory)
        code = err_nomem(e);
    if (code != ERR_OK) {
        strs_done(&l.list);
        return code;
    }
    *ret_seen = l.list.n;
    if (l.list.n > 0)
        qsort(l.list.v, l.list.n, sizeof(*l.list.v), deepest_first);
    for (i = 0; i < l.list.n; i++) {
        if (umount2(l.list.v[i], MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ++*ret_gone;
        else if (code == ERR_OK) /* EINVAL, ENOENT: covered by another mount, which this pass removes */
            code = err_sys(e, errno, "unmount %s", l.list.v[i]);
    }
    strs_done(&l.list);
    return code;
}

enum err_code fs_unmount_below(const char *prefix, struct err *e)
{
    struct err failure;
    size_t gone, seen;
    int pass;

    if (prefix == NULL || prefix[0] != '/' || prefix[strspn(prefix, "/")] == '\0')
        return err_set(e, ERR_INVALID, "unmount below \"%s\": not a folder of the agent",
                       prefix == NULL ? "" : prefix);
    for (pass = 0; pass < UNMOUNT_PASSES; pass++) {
        failure = (struct err){ 0 };
        if (mounts_unmount_pass(prefix, &gone, &seen, &failure) != ERR_OK && gone == 0) {
            *e = failure;
            return e->code;
        }
        if (seen == 0)
            return ERR_OK;
    }
    return err_set(e, ERR_ABORTED, "unmount below %s: new mounts keep coming", prefix);
}
