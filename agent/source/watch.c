/* SPDX-License-Identifier: Apache-2.0 */
/* watch - detects changes of the folder, its files and the targets of its symlinks: by a set of watches, and
 * by a descriptor of /proc/self/mountinfo (which can be polled but has no inotify events), because the folder
 * may be a mount point. */
#include "agent/source/internal.h"

#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum { MOUNTINFO_MAX = 64 * 1024 * 1024 };

/* Two uses of one folder share a watch. */
static const uint32_t content_mask = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                     IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
static const uint32_t parent_mask =
    IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/* ---- the folder ---- */

/* Ends a watch when its last user releases it. */
static void release_wd(struct src_folder *f, int wd)
{
    struct file *file, *tmp;

    if (wd < 0 || wd == f->folder_wd || wd == f->parent_wd)
        return;
    HASH_ITER (hh, f->files, file, tmp) {
        if (file->target_wd == wd)
            return;
    }
    watch_set_remove(f->watches, wd);
}

static void set_wd(struct src_folder *f, int *slot, int wd)
{
    int old = *slot;

    *slot = wd;
    if (old != wd)
        release_wd(f, old);
}

/* Watches the nearest existing parent: it changes before the folder appears, or is replaced as a whole. */
static void watch_parent(struct src_folder *f)
{
    char path[PATH_MAX];
    char *slash;
    int wd = -1;

    strcpy(path, f->dir);
    while (wd < 0 && (slash = strrchr(path, '/')) != NULL && path[1] != '\0') {
        slash[slash == path ? 1 : 0] = '\0';
        wd = watch_set_add(f->watches, path, parent_mask);
    }
    set_wd(f, &f->parent_wd, wd);
}

static uint64_t mount_of(const char *path)
{
    struct statx stx;

    return statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx) == 0 ? stx.stx_mnt_id : 0;
}

/* A line of mountinfo begins with the mount's id. A folder without an id is treated as present. */
static struct presence look_mount(uint64_t id, struct err *e)
{
    str_auto text = NULL;

    if (id == 0)
        return presence_present();
    if (fs_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, e) != ERR_OK)
        return presence_unknown(e);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strtoull(line, NULL, 10) == id)
            return presence_present();
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return presence_absent();
}

/* The folder at the path; anything else is not a manifest folder. */
static struct presence look_folder(const struct src_folder *f, struct stat *ret, struct err *e)
{
    if (stat(f->dir, ret) < 0) {
        err_sys(e, errno, "stat %s", f->dir);
        return presence_from_err(e);
    }
    return S_ISDIR(ret->st_mode) ? presence_present() : presence_absent();
}

/* Whether the folder exists and is now watched. */
static bool take_folder(struct src_folder *f)
{
    struct presence found;
    struct err e = { 0 };
    struct stat st;
    int wd;

    found = look_folder(f, &st, &e);
    if (presence_is_unknown(found)) {
        folder_unseen(f, &e);
        return false;
    }
    if (presence_is_absent(found))
        return false;
    if (f->state == WATCH_BARE && st.st_dev == f->dev && st.st_ino == f->ino)
        return false;
    wd = watch_set_add(f->watches, f->dir, content_mask);
    if (wd < 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            err_sys(&e, errno, "watch %s", f->dir);
            folder_unseen(f, &e);
        }
        return false;
    }
    set_wd(f, &f->folder_wd, wd);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->mount_id = mount_of(f->dir);
    f->state = WATCH_FOLDER;
    watch_parent(f);
    return true;
}

/* Notes the folder underneath an unmounted disk: it is not the manifest folder, unless a program writes to
 * it. */
static void note_bare(struct src_folder *f)
{
    struct err e = { 0 };
    struct stat st;

    switch (presence_of(look_folder(f, &st, &e))) {
    case PRESENCE_UNKNOWN:
        folder_unseen(f, &e);
        return;
    case PRESENCE_ABSENT:
        f->uncovered = false;
        return;
    case PRESENCE_PRESENT:
        f->uncovered = false;
        f->state = WATCH_BARE;
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        f->folder_wd = watch_set_add(f->watches, f->dir, content_mask);
        return;
    }
}

static void await_folder(struct src_folder *f)
{
    if (f->uncovered)
        note_bare(f);
    if (f->uncovered)
        return;                   /* the current folder may be the one underneath */
    for (int i = 0; i < 2; i++) { /* the folder may have appeared before its parent was watched */
        if (take_folder(f)) {
            log_info("the manifest folder has appeared", F_STR("path", f->dir));
            folder_rescan(f);
            return;
        }
        watch_parent(f);
    }
}

static void lose_folder(struct src_folder *f, bool unmounted)
{
    log_warn("the manifest folder is missing; its objects still apply until it is back",
             F_STR("path", f->dir));
    folder_lost(f);
    set_wd(f, &f->folder_wd, -1);
    f->state = WATCH_PARENTS;
    f->uncovered = unmounted;
    await_folder(f);
}

/* After a mount, unmount, move or new link: checks whether the path still leads to the watched folder. */
bool watch_check(struct src_folder *f)
{
    struct presence found, mounted;
    struct err e = { 0 };
    struct stat st;

    if (f->state != WATCH_FOLDER) {
        await_folder(f);
        return !f->uncovered;
    }
    found = look_folder(f, &st, &e);
    if (presence_is_unknown(found)) {
        folder_unseen(f, &e);
        return false;
    }
    if (presence_is_absent(found)) {
        lose_folder(f, false);
        return true;
    }
    if (st.st_dev == f->dev && st.st_ino == f->ino)
        return true;
    mounted = look_mount(f->mount_id, &e);
    if (presence_is_unknown(mounted)) {
        folder_unseen(f, &e);
        return false;
    }
    if (presence_is_absent(mounted)) {
        lose_folder(f, true); /* detected before the event */
    } else {
        log_info("the manifest folder was replaced by another one", F_STR("path", f->dir));
        if (take_folder(f))
            folder_rescan(f);
    }
    return true;
}

/* ---- symlinks ---- */

bool watch_target(struct src_folder *f, struct file *file, const char *dir)
{
    int old = file->target_wd;

    if (f->closing)
        return false;
    set_wd(f, &file->target_wd, dir != NULL ? watch_set_add(f->watches, dir, content_mask) : -1);
    return file->target_wd >= 0 && file->target_wd != old;
}

static void target_event(struct src_folder *f, int wd, uint32_t mask, const char *name)
{
    struct file *file, *tmp;

    HASH_ITER (hh, f->files, file, tmp) {
        if (file->target_wd != wd)
            continue;
        if (mask & IN_IGNORED)
            file->target_wd = -1;
        if (name[0] == '\0' || (file->target_name != NULL && strcmp(name, file->target_name) == 0))
            folder_touched(f, file->name);
    }
}

/* ---- events ---- */

/* A newly created file will be written and closed; links and non-files are complete at once. */
static bool complete_when_created(const struct src_folder *f, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/%s", f->dir, name) >= (int)sizeof(path) || lstat(path, &st) < 0)
        return false;
    return !S_ISREG(st.st_mode) || st.st_nlink > 1;
}

/* While git changes its work tree, it holds the lock of its index, in the folder or above it. If the check
 * fails, the longer delay is used. */
static bool git_is_at_work(const struct src_folder *f)
{
    static const char lock[] = "/.git/index.lock";
    char path[PATH_MAX + sizeof(lock)];

    for (size_t n = strlen(f->dir);;) {
        struct err e = { 0 };

        snprintf(path, sizeof(path), "%.*s%s", (int)n, f->dir, lock);
        if (!presence_is_absent(fs_look_at(AT_FDCWD, path, NULL, &e)))
            return true;
        if (n == 0)
            return false;
        while (n > 0 && f->dir[--n] != '/')
            continue;
    }
}

static uint64_t unlink_wait_ms(const struct src_folder *f)
{
    return git_is_at_work(f) ? SRC_FOLDER_SETTLE_MS : SRC_FOLDER_UNLINK_MS;
}

static void folder_event(struct src_folder *f, uint32_t mask, const char *name)
{
    if (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) {
        if (f->state == WATCH_FOLDER)
            lose_folder(f, (mask & IN_UNMOUNT) != 0);
        else if (mask & IN_IGNORED)
            f->folder_wd = -1;
        return;
    }
    if (f->state == WATCH_BARE) {
        if (mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE)) {
            f->state = WATCH_PARENTS;
            await_folder(f);
        }
        return;
    }
    if (name[0] == '\0') { /* an event of the folder itself, which may have been removed */
        watch_check(f);
        return;
    }
    if (strcmp(name, "..data") == 0) { /* a mounted ConfigMap got a new generation */
        if (mask & IN_MOVED_TO)
            folder_rescan(f);
    } else if (mask & (IN_DELETE | IN_MOVED_FROM)) {
        folder_missing(f, name, mask & IN_DELETE ? unlink_wait_ms(f) : SRC_FOLDER_SETTLE_MS);
    } else if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) ||
               ((mask & (IN_CREATE | IN_ATTRIB)) && complete_when_created(f, name))) {
        folder_touched(f, name);
    } else if (mask & IN_ATTRIB) {
        folder_retouched(f, name);
    }
}

static void src_watch_on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct src_folder *f = arg;

    if (mask & IN_Q_OVERFLOW) {
        log_debug("manifest events were lost, reading all", F_STR("path", f->dir));
        watch_check(f);
        if (f->state == WATCH_FOLDER)
            folder_rescan(f);
        return;
    }
    target_event(f, wd, mask, name);
    if (wd == f->folder_wd) {
        folder_event(f, mask, name);
    } else if (wd == f->parent_wd) {
        if (mask & IN_IGNORED)
            f->parent_wd = -1;
        watch_check(f);
    }
}

static void on_mounts(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status == 0)
        watch_check(poll->data);
}

/* ---- life ---- */

enum err_code watch_open(struct src_folder *f, struct err *e)
{
    f->folder_wd = f->parent_wd = -1;
    f->state = WATCH_PARENTS;
    if (watch_set_open(&f->watches, f->loop, src_watch_on_change, f, e) != ERR_OK)
        return e->code;

    /* Without /proc, only a mount over the folder is not detected. */
    f->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (f->mounts_fd >= 0 && uv_poll_init(f->loop, &f->mounts_poll, f->mounts_fd) == 0) {
        f->mounts_poll.data = f;
        f->open_handles++;
        uv_poll_start(&f->mounts_poll, UV_PRIORITIZED, on_mounts);
    } else if (f->mounts_fd >= 0) {
        close(f->mounts_fd);
        f->mounts_fd = -1;
    }

    if (!take_folder(f)) {
        watch_parent(f);
        if (take_folder(f)) /* the folder has just appeared */
            return ERR_OK;
        log_warn("the manifest folder is missing; waiting for it to appear", F_STR("path", f->dir));
    }
    return ERR_OK;
}

void watch_close(struct src_folder *f)
{
    watch_set_close(f->watches);
    if (f->mounts_fd >= 0) {
        uv_close((uv_handle_t *)&f->mounts_poll, folder_handle_closed);
        close(f->mounts_fd);
    }
}
