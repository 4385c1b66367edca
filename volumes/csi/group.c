/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/group.h"

#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BITS 0660
#define FOLDER_BITS 02770

static enum err_code give(const char *path, const struct stat *st, gid_t gid, struct err *e)
{
    mode_t bits = S_ISDIR(st->st_mode) ? FOLDER_BITS : FILE_BITS;
    mode_t mode = (st->st_mode & 07777) | bits;

    if (st->st_gid != gid && lchown(path, (uid_t)-1, gid) != 0 && errno != ENOENT)
        return err_sys(e, errno, "give %s to group %lu", path, (unsigned long)gid);
    if (S_ISLNK(st->st_mode))
        return ERR_OK;
    /* A change of the group may have taken set-user-ID bits away, so the mode is set again then. */
    if ((mode != (st->st_mode & 07777) || st->st_gid != gid) && fchmodat(AT_FDCWD, path, mode, 0) != 0 &&
        errno != ENOENT)
        return err_sys(e, errno, "change the mode of %s", path);
    return ERR_OK;
}

static bool is_right(const char *path, gid_t gid)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_gid == gid && (st.st_mode & FOLDER_BITS) == FOLDER_BITS;
}

/* Fields of fts are changed in place, so the walk needs no memory of its own; FTS_PHYSICAL follows no link.
 * Folders come after what is in them: the top is right only when all is. */
enum err_code csi_group_apply(const char *path, gid_t gid, bool only_if_wrong, struct err *e)
{
    char *const paths[] = { (char *)path, NULL };
    FTS *walk;
    FTSENT *at;

    if (only_if_wrong && is_right(path, gid))
        return ERR_OK;
    walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    if (walk == NULL)
        return err_sys(e, errno, "read %s", path);
    errno = 0;
    while (e->code == ERR_OK && (at = fts_read(walk)) != NULL) {
        switch (at->fts_info) {
        case FTS_D: /* FTS_DP follows */
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            if (at->fts_errno != ENOENT)
                err_sys(e, at->fts_errno, "read %s", at->fts_path);
            break;
        default:
            ERR_IGNORE(give(at->fts_accpath, at->fts_statp, gid, e));
        }
        errno = 0;
    }
    if (e->code == ERR_OK && errno != 0)
        err_sys(e, errno, "read %s", path);
    fts_close(walk);
    return e->code;
}
