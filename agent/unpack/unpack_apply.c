/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"
#include "agent/unpack/unpack_node.h"

#include "base/array.h"
#include "base/files/fs.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#define WHITEOUT_META ".wh..wh."

struct folder_time { /* set at the end, because every new file changes the time of its folder */
    char *path;
    struct timespec mtime;
};

struct unpack_apply {
    struct unpack_path path;
    enum unpack_kind kind;
    struct unpack_budget *budget;
    struct unpack_result result;
    const struct unpack_lower *lower; /* NULL: none */
    struct folder_time *times;
    size_t n_times;
};

struct place {            /* the destination of an entry */
    char path[4097];      /* after unpack_path_clean() */
    int dir;              /* O_PATH, borrowed */
    const char *leaf;     /* points into path */
    bool covers_whiteout; /* the entry replaces a whiteout of this layer */
};

void unpack_apply_free(struct unpack_apply *u)
{
    if (u == NULL)
        return;
    unpack_path_forget(&u->path);
    for (size_t i = 0; i < u->n_times; i++)
        free(u->times[i].path);
    free(u->times);
    free(u);
}

/* ---- folders ---------------------------------------------------------------------------------- */

static enum err_code remember_time(struct unpack_apply *u, const char *path, struct timespec mtime,
                                   struct err *e)
{
    if (!array_room(u->times, u->n_times))
        return err_nomem(e);
    u->times[u->n_times] = (struct folder_time){ .path = strdup(path), .mtime = mtime };
    if (u->times[u->n_times].path == NULL)
        return err_nomem(e);
    u->n_times++;
    return ERR_OK;
}

/* Sets the metadata of a folder that the tar needs but does not contain to that of the nearest lower layer.
 */
static enum err_code borrow_folder(void *arg, int dir, const char *name, const char *path, struct err *e)
{
    struct unpack_apply *u = arg;
    struct stat st;

    u->result.borrowed_folders++;
    if (u->lower == NULL || !unpack_lower_find(u->lower, path, &st))
        return ERR_OK;
    /* The folder was just created and no other process writes here, so this cannot follow a link. */
    if (fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        fchmodat(dir, name, st.st_mode & 07777, 0) != 0)
        return err_sys(e, errno, "set owner and mode of \"%.200s\"", path);
    return remember_time(u, path, st.st_mtim, e);
}

enum err_code unpack_apply_new(struct unpack_apply **ret, int root, enum unpack_kind kind,
                               const struct unpack_lower *lower, struct unpack_budget *budget, struct err *e)
{
    struct unpack_apply *u = calloc(1, sizeof(*u));

    if (u == NULL)
        return err_nomem(e);
    unpack_path_init(&u->path, root);
    u->kind = kind;
    u->lower = lower;
    if (kind == UNPACK_LAYER) {
        u->path.on_made = borrow_folder;
        u->path.arg = u;
    }
    u->budget = budget;
    *ret = u;
    return ERR_OK;
}

/* ---- existing entries --------------------------------------------------------------- */

/*
 * Removes the existing entry of the same name.  When both are folders, the existing one stays and *ret_exists
 * is set; ret_exists is NULL for an entry that is not a folder.
 */
static enum err_code clear_place(struct unpack_apply *u, struct place *at, bool *ret_exists, struct err *e)
{
    struct stat st;

    at->covers_whiteout = false;
    if (fstatat(at->dir, at->leaf, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return ERR_OK;
        return err_sys(e, errno, "stat \"%.200s\"", at->path);
    }
    if (S_ISDIR(st.st_mode)) {
        if (ret_exists != NULL) {
            *ret_exists = true;
            return ERR_OK;
        }
        return fs_remove_tree(at->dir, at->leaf, e);
    }
    at->covers_whiteout = u->kind == UNPACK_LAYER && unpack_is_whiteout(&st);
    if (unlinkat(at->dir, at->leaf, 0) != 0)
        return err_sys(e, errno, "replace \"%.200s\"", at->path);
    return ERR_OK;
}

/* ---- kinds of entries ------------------------------------------------------------------------ */

static enum err_code apply_folder(struct unpack_apply *u, struct place *at, struct archive_entry *entry,
                                  struct err *e)
{
    const bool is_root = at->path[0] == '\0';
    struct unpack_meta meta = { 0 };
    bool exists = is_root;
    fd_auto fd = -1;

    if (unpack_meta_read(&meta, entry, at->path, e) != ERR_OK)
        return e->code;
    if (!is_root && clear_place(u, at, &exists, e) != ERR_OK)
        return e->code;
    if (!exists && mkdirat(at->dir, at->leaf, 0700) != 0)
        return err_sys(e, errno, "create folder \"%.200s\"", at->path);
    if (u->kind == UNPACK_ARCHIVE)
        return ERR_OK;

    fd = openat(at->dir, is_root ? "." : at->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "open folder \"%.200s\"", at->path);
    /* The whiteout hid the lower layers' entry; a folder in its place does the same by being opaque. */
    if (!exists && at->covers_whiteout && unpack_set_opaque(fd, at->path, e) != ERR_OK)
        return e->code;
    if (unpack_meta_apply(&meta, fd, entry, at->path, e) != ERR_OK)
        return e->code;
    return remember_time(u, at->path, meta.mtime, e);
}

static enum err_code apply_file(struct unpack_apply *u, struct place *at, struct archive *a,
                                struct archive_entry *entry, struct err *e)
{
    struct unpack_meta meta = { 0 };
    int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    fd_auto fd = -1;

    if (size < 0)
        return err_set(e, ERR_INVALID, "file \"%.200s\" has a negative size", at->path);
    if (unpack_meta_read(&meta, entry, at->path, e) != ERR_OK || clear_place(u, at, NULL, e) != ERR_OK)
        return e->code;
    fd = openat(at->dir, at->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, errno, "create file \"%.200s\"", at->path);

    /* The header's size includes holes, so a sparse bomb fails here, before its first byte is written. */
    if (unpack_spend_bytes(u->budget, fd, (uint64_t)size, e) != ERR_OK)
        return err_wrap(e, "file \"%.200s\"", at->path);
    if (unpack_copy_data(a, fd, size, at->path, e) != ERR_OK)
        return e->code;
    u->result.bytes += (uint64_t)size;
    if (u->kind == UNPACK_ARCHIVE)
        return ERR_OK;

    if (unpack_meta_apply(&meta, fd, entry, at->path, e) != ERR_OK)
        return e->code;
    return unpack_set_time(fd, NULL, meta.mtime, at->path, e);
}

static enum err_code apply_symlink(struct unpack_apply *u, struct place *at, struct archive_entry *entry,
                                   struct err *e)
{
    const char *target = archive_entry_symlink(entry);
    struct unpack_meta meta = { 0 };

    if (target == NULL || target[0] == '\0')
        return err_set(e, ERR_INVALID, "symbolic link \"%.200s\" has no target", at->path);
    if (unpack_meta_read(&meta, entry, at->path, e) != ERR_OK || clear_place(u, at, NULL, e) != ERR_OK)
        return e->code;
    if (symlinkat(target, at->dir, at->leaf) != 0)
        return err_sys(e, errno, "create symbolic link \"%.200s\"", at->path);
    if (u->kind == UNPACK_ARCHIVE)
        return ERR_OK;
    if (fchownat(at->dir, at->leaf, meta.uid, meta.gid, AT_SYMLINK_NOFOLLOW) != 0)
        return err_sys(e, errno, "set the owner of \"%.200s\"", at->path);
    return unpack_set_time(at->dir, at->leaf, meta.mtime, at->path, e);
}

static bool below_dev(const char *path)
{
    return str_starts(path, "dev/");
}

static enum err_code apply_hardlink(struct unpack_apply *u, struct place *at, const char *target,
                                    struct err *e)
{
    struct unpack_path from;
    struct stat st;
    char path[4097];
    const char *leaf;
    int dir;

    if (unpack_path_clean(target, path, e) != ERR_OK)
        return err_wrap(e, "hard link \"%.200s\"", at->path);
    if (path[0] == '\0' || strcmp(path, at->path) == 0)
        return err_set(e, ERR_INVALID, "hard link \"%.200s\" has no valid target", at->path);

    unpack_path_init(&from, u->path.root);
    dir = unpack_path_parent(&from, path, NULL, &leaf, e);
    if (dir < 0) {
        if (e->code != ERR_NOT_FOUND)
            return err_wrap(e, "hard link \"%.200s\"", at->path);
    } else if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 || unpack_is_whiteout(&st)) {
        err_set(e, ERR_NOT_FOUND, "not found");
    } else if (S_ISDIR(st.st_mode)) {
        err_set(e, ERR_INVALID, "hard link \"%.200s\": \"%.200s\" is a folder", at->path, path);
    } else if (clear_place(u, at, NULL, e) == ERR_OK && linkat(dir, leaf, at->dir, at->leaf, 0) != 0) {
        err_sys(e, errno, "create hard link \"%.200s\" to \"%.200s\"", at->path, path);
    }
    unpack_path_forget(&from);

    if (e->code == ERR_NOT_FOUND) {
        if (below_dev(path) && below_dev(at->path)) { /* a second name of a skipped device */
            *e = (struct err){ 0 };
            return ERR_OK;
        }
        return err_set(e, ERR_INVALID,
                       "hard link \"%.200s\": \"%.200s\" does not come before it in this layer", at->path,
                       path);
    }
    return e->code;
}

/* Creates named pipes and the few devices that every container has. */
static enum err_code apply_node(struct unpack_apply *u, struct place *at, struct archive_entry *entry,
                                struct err *e)
{
    const mode_t type = archive_entry_filetype(entry);
    struct unpack_meta meta = { 0 };
    dev_t device = 0;

    if (type == AE_IFCHR || type == AE_IFBLK) {
        bool known = false;

        device = archive_entry_rdev(entry);
        for (size_t i = 0; i < unpack_n_devices && type == AE_IFCHR; i++)
            known = known || device == makedev(unpack_devices[i].major, unpack_devices[i].minor);
        if (!known) {
            u->result.skipped_devices += !below_dev(at->path);
            return ERR_OK;
        }
    }
    if (unpack_meta_read(&meta, entry, at->path, e) != ERR_OK || clear_place(u, at, NULL, e) != ERR_OK)
        return e->code;
    if (mknodat(at->dir, at->leaf, (type == AE_IFIFO ? S_IFIFO : S_IFCHR) | 0600, device) != 0)
        return err_sys(e, errno, "create device node \"%.200s\"", at->path);
    /* The node was just created and no other process writes here, so these cannot follow a link. */
    if (fchownat(at->dir, at->leaf, meta.uid, meta.gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        fchmodat(at->dir, at->leaf, meta.mode, 0) != 0)
        return err_sys(e, errno, "set owner and mode of \"%.200s\"", at->path);
    return unpack_set_time(at->dir, at->leaf, meta.mtime, at->path, e);
}

/* ---- whiteouts ------------------------------------------------------------------------------- */

static enum err_code make_opaque(int dir, const char *name, const char *path, struct err *e)
{
    fd_auto fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open folder of \"%.200s\"", path);
    return unpack_set_opaque(fd, path, e);
}

static enum err_code apply_whiteout(struct place *at, struct err *e)
{
    const char *name = at->leaf + strlen(UNPACK_WHITEOUT);
    struct stat st;

    if (strcmp(at->leaf, UNPACK_OPAQUE) == 0)
        return make_opaque(at->dir, ".", at->path, e);
    if (str_starts(at->leaf, WHITEOUT_META))
        return ERR_OK;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, ERR_INVALID, "whiteout \"%.200s\" names no file", at->path);

    /* "Files that are present in the same layer as a whiteout file can only be hidden by subsequent layers."
     */
    if (fstatat(at->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(st.st_mode) ? make_opaque(at->dir, name, at->path, e) : ERR_OK;
    if (errno != ENOENT || mknodat(at->dir, name, S_IFCHR, makedev(0, 0)) != 0)
        return err_sys(e, errno, "create whiteout \"%.200s\"", at->path);
    return ERR_OK;
}

/* Skips aufs' bookkeeping folders and their content; no other folder may have a whiteout's name. */
static enum err_code check_parents(const char *path, bool *ret_skip, struct err *e)
{
    for (const char *at = path, *slash; (slash = strchr(at, '/')) != NULL; at = slash + 1) {
        if (str_starts(at, WHITEOUT_META)) {
            *ret_skip = true;
            return ERR_OK;
        }
        if (str_starts(at, UNPACK_WHITEOUT))
            return err_set(e, ERR_INVALID, "path \"%.200s\" goes through a whiteout", path);
    }
    return ERR_OK;
}

/* ---- one entry ------------------------------------------------------------------------------- */

enum err_code unpack_apply_entry(struct unpack_apply *u, struct archive *a, struct archive_entry *entry,
                                 struct err *e)
{
    const char *name = archive_entry_pathname(entry), *link = archive_entry_hardlink(entry);
    const mode_t type = archive_entry_filetype(entry);
    struct place at = { 0 };
    bool skip = false;

    if (unpack_spend_entry(u->budget, e) != ERR_OK)
        return e->code;
    if (name == NULL)
        return err_set(e, ERR_INVALID, "an entry has no name");
    if (unpack_path_clean(name, at.path, e) != ERR_OK)
        return e->code;

    if (at.path[0] == '\0') { /* "./": the root itself */
        if (type != AE_IFDIR || link != NULL)
            return err_set(e, ERR_INVALID, "entry \"%.200s\" would replace the root folder", name);
        at.dir = u->path.root;
        at.leaf = at.path;
        return apply_folder(u, &at, entry, e);
    }
    if (u->kind == UNPACK_LAYER && check_parents(at.path, &skip, e) != ERR_OK)
        return e->code;
    if (skip)
        return ERR_OK;

    at.dir = unpack_path_parent(&u->path, at.path, u->budget, &at.leaf, e);
    if (at.dir < 0)
        return e->code;
    if (u->kind == UNPACK_LAYER && str_starts(at.leaf, UNPACK_WHITEOUT))
        return apply_whiteout(&at, e);
    if (link != NULL)
        return apply_hardlink(u, &at, link, e);

    switch (type) {
    case AE_IFREG:
        return apply_file(u, &at, a, entry, e);
    case AE_IFDIR:
        return apply_folder(u, &at, entry, e);
    case AE_IFLNK:
        return apply_symlink(u, &at, entry, e);
    case AE_IFIFO:
    case AE_IFCHR:
    case AE_IFBLK:
        if (u->kind == UNPACK_LAYER)
            return apply_node(u, &at, entry, e);
        break;
    default:
        break;
    }
    return err_set(e, ERR_INVALID, "entry \"%.200s\" is of a kind that is not allowed here", at.path);
}

enum err_code unpack_apply_finish(struct unpack_apply *u, struct unpack_result *ret, struct err *e)
{
    for (size_t i = u->n_times; i-- > 0;) {
        const struct folder_time *t = &u->times[i];
        struct err lost = { 0 };
        const char *leaf = ".";
        int dir = u->path.root;
        fd_auto fd = -1;

        if (t->path[0] != '\0')
            dir = unpack_path_parent(&u->path, t->path, NULL, &leaf, &lost);
        if (dir >= 0)
            fd = openat(dir, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && unpack_set_time(fd, NULL, t->mtime, t->path, e) != ERR_OK)
            return e->code;
        /* If it could not be opened, a later entry replaced it. */
    }
    *ret = u->result;
    return ERR_OK;
}
