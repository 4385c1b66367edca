/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/atomic_writer.h"

#include "base/files/fs.h"
#include "base/log.h"
#include "volumes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* All names are relative to the volume's descriptor. A ConfigMap may be in a hundred pods that all wait for
 * the last one, so the folder is listed only once and nothing is looked up twice. */
#define DATA "..data"
#define DATA_TMP "..data_tmp"
#define LINK_TMP "..link_tmp" /* followed by a number */
#define NAME_TRIES 16

/* Ownership and mode of written files: kubelet's fsGroup rule for read-only volumes. */
struct group_rule {
    bool applies;
    gid_t gid;
    mode_t file_bits, dir_bits; /* added, never removed */
};

static bool group_differs(const struct group_rule *rule, const struct stat *st)
{
    return rule->applies && st->st_gid != rule->gid;
}

#define DIR_MODE 0755

static struct group_rule rule_for(int64_t fs_group)
{
    if (fs_group < 0)
        return (struct group_rule){ 0 };
    return (
        struct group_rule){ .gid = (gid_t)fs_group, .applies = true, .file_bits = 0440, .dir_bits = 02550 };
}

enum err_code vol_writer_open(struct vol_writer **ret, const char *target, struct err *e)
{
    scoped(vol_writer_free) struct vol_writer *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_nomem(e);
    w->fd = open(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->fd < 0)
        return err_sys(e, errno, "open volume %s", target);
    w->target = strdup(target);
    if (w->target == NULL)
        return err_nomem(e);
    *ret = take_ptr(&w);
    return ERR_OK;
}

void vol_writer_free(struct vol_writer *w)
{
    if (w == NULL)
        return;
    scope_close_p(&w->fd);
    free(w->target);
    free(w);
}

/* ---- is the content there already? ---- */

/* Does the open file hold exactly these bytes? */
static bool same_bytes(int fd, const char *data, size_t size)
{
    char chunk[16384];
    size_t at = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 && at == size;
        if ((size_t)n > size - at || memcmp(data + at, chunk, (size_t)n) != 0)
            return false;
        at += (size_t)n;
    }
}

static bool atomic_writer_same_file(int gen, const struct vol_entry *entry, const struct group_rule *rule)
{
    struct stat st;
    fd_auto fd = openat(gen, entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !group_differs(rule, &st) &&
           st.st_uid == (entry->file->has_owner ? entry->file->owner : geteuid()) &&
           (st.st_mode & 07777) == (entry->file->mode | rule->file_bits) &&
           (size_t)st.st_size == entry->file->size && same_bytes(fd, entry->file->data, entry->file->size);
}

struct dir_look {
    int gen;
    const struct group_rule *rule;
};

static int dir_differs(const char *dir, void *arg)
{
    const struct dir_look *l = arg;
    struct stat st;

    return fstatat(l->gen, dir, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode) ||
           group_differs(l->rule, &st) || (st.st_mode & 07777) != (DIR_MODE | l->rule->dir_bits);
}

static bool same_payload(const struct vol_writer *w, const char *generation, const struct vol_plan *plan,
                         const struct group_rule *rule)
{
    fd_auto gen = openat(w->fd, generation, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dir_look look = { .gen = gen, .rule = rule };
    struct stat root;

    if (gen < 0 || dir_differs(".", &look) || fstat(w->fd, &root) != 0)
        return false;
    if (group_differs(rule, &root) || (root.st_mode & rule->dir_bits) != rule->dir_bits)
        return false;
    for (size_t i = 0; i < plan->n; i++)
        if (vol_plan_each_new_dir(plan, i, dir_differs, &look) != 0 ||
            !atomic_writer_same_file(gen, &plan->v[i], rule))
            return false;
    size_t expected = plan->n + plan->n_dirs;
    return vol_count_entries(gen, expected + 1) == expected;
}

/* ---- writing a generation ---- */

struct fill {
    int gen;
    const struct group_rule *rule;
    const char *step; /* the step that failed */
};

static int make_dir(const char *dir, void *arg)
{
    struct fill *f = arg;

    f->step = "mkdir";
    if (mkdirat(f->gen, dir, 0700) != 0)
        return errno;
    f->step = "chown";
    if (f->rule->applies && fchownat(f->gen, dir, (uid_t)-1, f->rule->gid, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    f->step = "chmod";
    return fchmodat(f->gen, dir, DIR_MODE | f->rule->dir_bits, 0) != 0 ? errno : 0;
}

static int atomic_writer_make_file(struct fill *f, const struct vol_entry *entry)
{
    int sys;

    f->step = "create";
    fd_auto fd = openat(f->gen, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    f->step = "write";
    sys = fs_write_all(fd, entry->file->data, entry->file->size);
    if (sys != 0)
        return sys;
    f->step = "chown";
    if ((f->rule->applies || entry->file->has_owner) &&
        fchown(fd, entry->file->has_owner ? entry->file->owner : (uid_t)-1,
               f->rule->applies ? f->rule->gid : (gid_t)-1) != 0)
        return errno;
    f->step = "chmod";
    return fchmod(fd, entry->file->mode | f->rule->file_bits) != 0 ? errno : 0;
}

static enum err_code fill_generation(int gen, const struct vol_plan *plan, const struct group_rule *rule,
                                     struct err *e)
{
    struct fill f = { .gen = gen, .rule = rule };

    for (size_t i = 0; i < plan->n; i++) {
        int sys = vol_plan_each_new_dir(plan, i, make_dir, &f);
        if (sys == 0)
            sys = atomic_writer_make_file(&f, &plan->v[i]);
        if (sys != 0)
            return err_sys(e, sys, "%s %.256s", f.step, plan->v[i].path);
    }
    return ERR_OK;
}

/* Makes and opens the folder of a new generation, and sets its owner. */
static enum err_code make_generation(const struct vol_writer *w, const struct group_rule *rule, char name[64],
                                     int *ret, struct err *e)
{
    int sys = EEXIST;

    for (unsigned i = 0; i < NAME_TRIES && sys == EEXIST; i++) {
        vol_generation_name(name);
        sys = mkdirat(w->fd, name, 0700) != 0 ? errno : 0;
    }
    if (sys != 0)
        return err_sys(e, sys, "mkdir %s", name);
    fd_auto gen = openat(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (gen < 0)
        return err_sys(e, errno, "open %s", name);
    if (rule->applies && fchown(gen, (uid_t)-1, rule->gid) != 0)
        return err_sys(e, errno, "chown %s", name);
    if (fchmod(gen, DIR_MODE | rule->dir_bits) != 0)
        return err_sys(e, errno, "chmod %s", name);
    *ret = take_fd(&gen);
    return ERR_OK;
}

/* ---- links ---- */

static enum err_code atomic_writer_make_link(const struct vol_writer *w, const char *to, const char *tmp,
                                             const struct group_rule *rule, struct err *e)
{
    int rc = symlinkat(to, w->fd, tmp);

    if (rc != 0 && errno == EEXIST) /* of a killed run, and could not be removed before */
        rc = unlinkat(w->fd, tmp, 0) != 0 ? -1 : symlinkat(to, w->fd, tmp);
    if (rc == 0 && rule->applies)
        rc = fchownat(w->fd, tmp, (uid_t)-1, rule->gid, AT_SYMLINK_NOFOLLOW);
    return rc != 0 ? err_sys(e, errno, "symlink %s", tmp) : ERR_OK;
}

/* Makes the symlink appear atomically, replacing any symlink of that name. */
static enum err_code show_link(const struct vol_writer *w, const char *tmp, const char *name, struct err *e)
{
    return renameat(w->fd, tmp, w->fd, name) != 0 ? err_sys(e, errno, "rename %s", name) : ERR_OK;
}

/* The state of a link's name: the link, nothing, or another file in the way. */
static enum err_code look_at_link(const struct vol_writer *w, const char *name, const char *to,
                                  bool *ret_wanted, struct err *e)
{
    char is[300];
    ssize_t k = readlinkat(w->fd, name, is, sizeof(is));
    struct stat st;

    *ret_wanted = false;
    if (k == (ssize_t)strlen(to) && memcmp(is, to, (size_t)k) == 0)
        return ERR_OK;
    if (k < 0 && errno == EINVAL) {
        /* A folder is the mount point of another volume inside this one; that mount covers the file. */
        if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            return ERR_OK;
        return err_set(e, ERR_EXISTS,
                       "volume file \"%s\": the name is taken by something that is no link of ours", name);
    }
    if (k < 0 && errno != ENOENT)
        return err_sys(e, errno, "readlink %s", name);
    *ret_wanted = true;
    return ERR_OK;
}

/* Makes <file> -> ..data/<file> for each first path element, in two steps: before the switch each new link is
 * made under a temporary name, because that can fail on a full disk; after it, they are only renamed. */
static enum err_code prepare_file_links(const struct vol_writer *w, struct vol_plan *plan,
                                        const struct group_rule *rule, struct err *e)
{
    for (size_t i = 0; i < plan->n; i++) {
        char name[256], to[300], tmp[64];

        plan->v[i].link_wanted = false;
        if (!vol_plan_top(plan, i, name))
            continue;
        snprintf(to, sizeof(to), DATA "/%s", name);
        snprintf(tmp, sizeof(tmp), LINK_TMP ".%zu", i);
        if (look_at_link(w, name, to, &plan->v[i].link_wanted, e) != ERR_OK ||
            (plan->v[i].link_wanted && atomic_writer_make_link(w, to, tmp, rule, e) != ERR_OK))
            return e->code;
    }
    return ERR_OK;
}

static enum err_code show_file_links(const struct vol_writer *w, const struct vol_plan *plan, bool *changed,
                                     struct err *e)
{
    for (size_t i = 0; i < plan->n; i++) {
        char name[256], tmp[64];

        if (!plan->v[i].link_wanted)
            continue;
        vol_plan_top(plan, i, name);
        snprintf(tmp, sizeof(tmp), LINK_TMP ".%zu", i);
        if (show_link(w, tmp, name, e) != ERR_OK)
            return e->code;
        *changed = true;
    }
    return ERR_OK;
}

/* ---- clean-up ---- */

/* False: it is left. */
static bool remove_entry(const struct vol_writer *w, const char *name, bool is_tree)
{
    struct err e = { 0 };

    if (is_tree && fs_remove_tree(w->fd, name, &e) == ERR_OK)
        return true;
    if (!is_tree && (unlinkat(w->fd, name, 0) == 0 || errno == ENOENT))
        return true;
    if (!is_tree)
        err_sys(&e, errno, "remove %s", name);
    log_debug("cannot remove a file of a volume, will retry with its next publish", F_STR("path", w->target),
              F_ERR(&e));
    return false;
}

struct found {        /* found in the volume's folder */
    size_t kept;      /* superseded generations that are left, most of them for their readers */
    bool stale_links; /* links to files that are not in the plan */
};

struct tidying {
    const struct vol_writer *w;
    const char *current;
    const struct vol_plan *plan; /* NULL: none */
    struct vol_generations old;
    bool seen; /* all of them */
    struct found found;
};

static bool atomic_writer_sort_in(const char *name, void *arg)
{
    struct tidying *t = arg;
    struct err e = { 0 };

    if (strcmp(name, DATA_TMP) == 0 || strncmp(name, LINK_TMP, sizeof(LINK_TMP) - 1) == 0)
        remove_entry(t->w, name, false);
    else if (vol_generation_is(name))
        t->seen = vol_generations_add(&t->old, t->w->fd, name, strcmp(name, t->current) == 0, &e) == ERR_OK &&
                  t->seen;
    else if (t->plan != NULL && strncmp(name, "..", 2) != 0 && !vol_plan_has_top(t->plan, name))
        t->found.stale_links = true;
    return true;
}

/* Removes unneeded generations and temporary links; entries that cannot be removed now are found again by the
 * next publish or tidy. A plan (NULL: none) contains the stale links to files. */
static struct found atomic_writer_tidy(const struct vol_writer *w, const char *current,
                                       const struct vol_plan *plan, size_t keep_max)
{
    struct tidying t = { .w = w,
                         .current = current,
                         .plan = plan,
                         .old = { .keep_ms = w->keep_ms, .keep_max = keep_max },
                         .seen = true };
    struct err e = { 0 };

    if (presence_is_unknown(fs_list(w->fd, ".", atomic_writer_sort_in, &t, &e)))
        t.seen = false;
    if (t.seen) {
        t.found.kept = vol_generations_sort_out(&t.old);
        for (size_t i = 0; i < t.old.n; i++)
            if (t.old.v[i].remove && !remove_entry(w, t.old.v[i].name, true))
                t.found.kept++;
    } else { /* which are superseded is not known: all stay */
        t.found = (struct found){ .kept = 1, .stale_links = plan != NULL };
    }
    vol_generations_done(&t.old);
    return t.found;
}

struct unlinking {
    const struct vol_writer *w;
    const struct vol_plan *plan;
    struct err *e;
};

/* Removes links to files that are no longer listed. */
static bool atomic_writer_remove_stale_link(const char *name, void *arg)
{
    const struct unlinking *u = arg;
    char to[300], is[300];
    ssize_t k;
    int n;

    if (strncmp(name, "..", 2) == 0 || vol_plan_has_top(u->plan, name))
        return true;
    n = snprintf(to, sizeof(to), DATA "/%.255s", name);
    k = readlinkat(u->w->fd, name, is, sizeof(is));
    if (k < 0 && errno != EINVAL && errno != ENOENT)
        err_sys(u->e, errno, "readlink %s", name);
    else if (k == n && memcmp(is, to, (size_t)k) == 0 && unlinkat(u->w->fd, name, 0) != 0 && errno != ENOENT)
        err_sys(u->e, errno, "remove %s", name);
    return u->e->code == ERR_OK;
}

static enum err_code remove_stale_links(const struct vol_writer *w, const struct vol_plan *plan,
                                        struct err *e)
{
    struct unlinking u = { .w = w, .plan = plan, .e = e };

    return presence_is_unknown(fs_list(w->fd, ".", atomic_writer_remove_stale_link, &u, e))
               ? err_wrap(e, "old names")
               : e->code;
}

/* ---- publish ---- */

/* The target of ..data; "" if there is none, or it is not ours. */
static enum err_code read_current(const struct vol_writer *w, char ret[64], struct err *e)
{
    ssize_t n = readlinkat(w->fd, DATA, ret, 63);

    if (n < 0 && errno != ENOENT)
        return err_sys(e, errno, "readlink " DATA);
    ret[n < 0 ? 0 : n] = '\0';
    if (!vol_generation_is(ret))
        ret[0] = '\0';
    return ERR_OK;
}

static enum err_code own_root(const struct vol_writer *w, const struct group_rule *rule, struct err *e)
{
    struct stat st;

    if (!rule->applies)
        return ERR_OK;
    if (fstat(w->fd, &st) != 0)
        return err_sys(e, errno, "stat");
    if (fchown(w->fd, (uid_t)-1, rule->gid) != 0 || fchmod(w->fd, (st.st_mode & 07777) | rule->dir_bits) != 0)
        return err_sys(e, errno, "set group %u", (unsigned)rule->gid);
    return ERR_OK;
}

static enum err_code write_and_switch(const struct vol_writer *w, struct vol_plan *plan,
                                      const struct group_rule *rule, char name[64], struct err *e)
{
    fd_auto gen = -1;

    if (make_generation(w, rule, name, &gen, e) != ERR_OK)
        return e->code; /* at most an empty folder is left: tidy() removes it */
    if (fill_generation(gen, plan, rule, e) == ERR_OK && own_root(w, rule, e) == ERR_OK &&
        atomic_writer_make_link(w, name, DATA_TMP, rule, e) == ERR_OK &&
        prepare_file_links(w, plan, rule, e) == ERR_OK && show_link(w, DATA_TMP, DATA, e) == ERR_OK)
        return ERR_OK;
    remove_entry(w, name, true);
    return e->code;
}

static enum err_code publish(const struct vol_writer *w, struct vol_plan *plan, const struct group_rule *rule,
                             char current[64], bool *changed, struct err *e)
{
    char name[64] = "";

    if (current[0] == '\0' || !same_payload(w, current, plan, rule)) {
        if (write_and_switch(w, plan, rule, name, e) != ERR_OK)
            return e->code;
        memcpy(current, name, sizeof(name));
        *changed = true;
    } else if (prepare_file_links(w, plan, rule, e) != ERR_OK) {
        return e->code;
    }
    return show_file_links(w, plan, changed, e);
}

/* How many old generations of this size may be kept. */
static size_t keep_max(const struct vol_plan *plan)
{
    const uint64_t page = 4096; /* a tmpfs allocates whole pages; inodes need less, but are counted as one */
    uint64_t bytes = page * (plan->n + plan->n_dirs + 1);

    for (size_t i = 0; i < plan->n; i++)
        bytes += (plan->v[i].file->size + page - 1) / page * page;
    uint64_t n = VOL_KEEP_BYTES / bytes;
    return n < 1 ? 1 : n > VOL_KEEP_MAX ? VOL_KEEP_MAX : (size_t)n;
}

/* Removes entries of the previous version that this one lacks, without listing the folder again. */
static enum err_code leave_behind(const struct vol_writer *w, const char *before, const char *current,
                                  const struct vol_plan *plan, struct found *found, struct err *e)
{
    if (before[0] != '\0' && strcmp(before, current) != 0 &&
        (w->keep_ms > 0 || !remove_entry(w, before, true)))
        found->kept++;
    return found->stale_links ? remove_stale_links(w, plan, e) : ERR_OK;
}

enum err_code vol_writer_publish(struct vol_writer *w, const struct vol_file *files, size_t n_files,
                                 int64_t fs_group, bool *ret_changed, struct err *e)
{
    struct group_rule rule = rule_for(fs_group);
    struct vol_plan plan = { 0 };
    char before[64] = "", current[64] = "";
    struct found found = { 0 };
    bool changed = false;

    if (fs_group > UINT32_MAX - 1)
        return err_set(e, ERR_INVALID, "fsGroup %lld is not a group id", (long long)fs_group);
    if (vol_plan_make(&plan, files, n_files, e) != ERR_OK)
        return e->code;
    if (read_current(w, current, e) == ERR_OK) {
        memcpy(before, current, sizeof(before));
        found = atomic_writer_tidy(w, current, &plan,
                                   keep_max(&plan)); /* first, so that leftovers do not fill the disk */
        if (publish(w, &plan, &rule, current, &changed, e) == ERR_EXHAUSTED && found.kept > 0 && !changed) {
            *e = (struct err){ 0 }; /* remove old ones despite their readers */
            found = atomic_writer_tidy(w, current, &plan, 0);
            ERR_IGNORE(publish(w, &plan, &rule, current, &changed, e));
        }
        if (e->code != ERR_OK)
            found = atomic_writer_tidy(w, current, NULL, keep_max(&plan));
        else
            ERR_IGNORE(leave_behind(w, before, current, &plan, &found, e));
    }
    vol_plan_done(&plan);
    w->kept = found.kept > 0;
    *ret_changed = changed;
    return e->code != ERR_OK ? err_wrap(e, "publish to %s", w->target) : ERR_OK;
}

void vol_writer_keep(struct vol_writer *w, uint64_t keep_ms)
{
    w->keep_ms = keep_ms;
}

bool vol_writer_kept(const struct vol_writer *w)
{
    return w->kept;
}

void vol_writer_tidy(struct vol_writer *w)
{
    struct err e = { 0 };
    struct found found = { .kept = 1 }; /* not known: read again */
    char current[64];

    if (read_current(w, current, &e) == ERR_OK)
        found = atomic_writer_tidy(w, current, NULL, VOL_KEEP_MAX);
    else
        log_debug("cannot remove a file of a volume, will retry with its next publish",
                  F_STR("path", w->target), F_ERR(&e));
    w->kept = found.kept > 0;
}
