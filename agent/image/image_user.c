/* SPDX-License-Identifier: Apache-2.0 */
/* skopeo's user: skopeo parses a registry's data and needs no file of root. */
#include "agent/image/image_internal.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PULL_USER "coracle-pull" /* created by the package */
#define NOBODY 65534             /* otherwise: every system has this id, and it owns no files */

/* ---- once at start ---- */

/* Reads /etc/passwd only: system users are in it, and a name service may hang. */
static void find_user(uid_t *uid, gid_t *gid)
{
    FILE *f = fopen("/etc/passwd", "re");
    struct passwd entry, *found = NULL;
    char text[4096];

    *uid = *gid = NOBODY;
    while (f != NULL && fgetpwent_r(f, &entry, text, sizeof(text), &found) == 0)
        if (strcmp(entry.pw_name, PULL_USER) == 0 && entry.pw_uid != 0 && entry.pw_gid != 0) {
            *uid = entry.pw_uid;
            *gid = entry.pw_gid;
            break;
        }
    if (f != NULL)
        fclose(f);
}

/* Whether we have the capabilities to change to that user and to change the owner of files. */
static bool have_rights(void)
{
    static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_FOWNER, CAP_DAC_OVERRIDE, CAP_KILL };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct have[2] = { 0 };

    if (syscall(SYS_capget, &header, have) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if ((have[0].effective & (1u << needed[i])) == 0)
            return false;
    return true;
}

static bool is_in_user_namespace(void)
{
    char text[128] = "";
    unsigned inside, outside, count;
    FILE *f = fopen("/proc/self/uid_map", "re");
    const size_t n = f == NULL ? 0 : fread(text, 1, sizeof(text) - 1, f);

    if (f == NULL && errno == ENOENT) /* not supported by the kernel */
        return false;
    if (f != NULL)
        fclose(f);
    text[n] = '\0';
    return sscanf(text, "%u %u %u", &inside, &outside, &count) != 3 || inside != 0 || outside != 0 ||
           count != UINT32_MAX;
}

void img_user_find(struct img_store *s)
{
    const char *why = is_in_user_namespace() ? "user namespace"
                      : have_rights()        ? NULL
                                             : "missing capabilities";

    if (why == NULL)
        find_user(&s->pull_uid, &s->pull_gid);
    else
        log_warn("cannot run skopeo as its own user; running it as root without capabilities",
                 F_STR("why", why));
}

/* ---- for one pull: whether the user can read the files it needs ---- */

struct look {
    const struct img_store *store;
    const char *folder; /* being listed */
    unsigned depth;
    char *blocked; /* the first file or folder that the user cannot access */
    struct err e;
};

static bool image_user_is_over(const struct look *l)
{
    return l->blocked != NULL || l->e.code != ERR_OK;
}

/* Only the mode is checked: if an ACL grants more access, the pull still runs as root. */
static bool mode_allows(const struct img_store *s, const struct stat *st, mode_t bits)
{
    const unsigned shift = st->st_uid == s->pull_uid ? 6 : st->st_gid == s->pull_gid ? 3 : 0;

    return ((st->st_mode >> shift) & bits) == bits;
}

static void check_each(struct look *l, char *path, mode_t bits)
{
    for (char *end = path; *end != '\0' && !image_user_is_over(l);) {
        struct stat st;
        struct presence found;
        char was;

        end += 1 + strcspn(end + 1, "/");
        was = *end;
        *end = '\0';
        found = fs_look_at(AT_FDCWD, path, &st, &l->e);
        if (presence_is_absent(found) || presence_is_unknown(found))
            return;
        if (S_ISLNK(st.st_mode) && stat(path, &st) != 0) {
            if (errno != ENOENT && errno != ENOTDIR)
                err_sys(&l->e, errno, "stat %s", path);
            return;
        }
        if (!mode_allows(l->store, &st, was != '\0' ? 1 : S_ISDIR(st.st_mode) ? bits | 1 : bits)) {
            l->blocked = strdup(path);
            if (l->blocked == NULL)
                err_nomem(&l->e);
        }
        *end = was;
    }
}

/* Checks the path as written, then the targets of its links. */
static void image_user_check(struct look *l, const char *path, mode_t bits)
{
    str_auto written = NULL;
    str_auto real = NULL;

    if (path == NULL || path[0] != '/' || image_user_is_over(l))
        return;
    if ((written = strdup(path)) == NULL) {
        err_nomem(&l->e);
        return;
    }
    check_each(l, written, bits);
    if (image_user_is_over(l))
        return;
    real = realpath(path, NULL);
    if (real != NULL)
        check_each(l, real, bits);
    else if (errno != ENOENT && errno != ENOTDIR)
        err_sys(&l->e, errno, "stat %s", path);
}

static void look_below(struct look *l, const char *path, unsigned depth);

static bool check_entry(const char *name, void *arg)
{
    struct look *l = arg;
    const char *folder = l->folder;
    const unsigned depth = l->depth;
    str_auto path = str_printf("%s/%s", folder, name);

    if (path == NULL)
        err_nomem(&l->e);
    else
        look_below(l, path, depth - 1);
    l->folder = folder;
    l->depth = depth;
    return !image_user_is_over(l);
}

static void look_below(struct look *l, const char *path, unsigned depth)
{
    struct stat st;

    image_user_check(l, path, 4);
    if (image_user_is_over(l) || depth == 0)
        return;
    if (stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            err_sys(&l->e, errno, "stat %s", path);
        return;
    }
    if (!S_ISDIR(st.st_mode))
        return;
    l->folder = path;
    l->depth = depth;
    ERR_IGNORE(presence_is_unknown(fs_list(AT_FDCWD, path, check_entry, l, &l->e)));
}

static void image_user_check_list(struct look *l, const char *list, mode_t bits)
{
    while (list != NULL && *list != '\0') {
        const size_t n = strcspn(list, ":");
        str_auto path = strndup(list, n);

        if (path == NULL)
            err_nomem(&l->e);
        image_user_check(l, path, bits);
        list += n + (list[n] == ':');
    }
}

static bool has_helper(const struct img_job *j)
{
    for (size_t i = 0; i < j->tries.n; i++)
        if (j->tries.v[i] != NULL &&
            (strstr(j->tries.v[i], "credHelpers") != NULL || strstr(j->tries.v[i], "credsStore") != NULL))
            return true;
    return false;
}

/* All of certs.d, not only the registry's: registries.conf may redirect to a mirror. */
static void check_settings(struct look *l, const struct img_job *j)
{
    const struct img_store *s = j->store;
    str_auto tmp = str_printf("%s/tmp", s->dir);

    if (tmp == NULL)
        err_nomem(&l->e);
    image_user_check(l, tmp, 1);
    image_user_check(l, s->tmpfs_dir, 1);
    image_user_check(l, s->skopeo_path, 1);
    image_user_check(l, s->registries_conf != NULL ? s->registries_conf : "/etc/containers/registries.conf",
                     4);
    look_below(l, "/etc/containers/registries.conf.d", 1);
    look_below(l, "/etc/containers/registries.d", 1);
    image_user_check(l, "/etc/containers/policy.json", 4);
    look_below(l, "/etc/containers/certs.d", 2);
    look_below(l, "/etc/docker/certs.d", 2);
    image_user_check(l, getenv("SSL_CERT_FILE"), 4);
    image_user_check_list(l, getenv("SSL_CERT_DIR"), 4);
    if (has_helper(j))
        image_user_check_list(l, getenv("PATH"), 1);
}

/* ---- access to its folders ---- */

/* Allows the user to enter one of our folders, without further rights: through the folder's group or, if
 * another group has access to the folder, through the rights of all users. */
static enum err_code image_user_open_folder(const struct img_store *s, int fd, struct err *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return err_sys(e, errno, "stat a folder of the image store");
    if (mode_allows(s, &st, 1))
        return ERR_OK;
    if (st.st_gid != s->pull_gid && (st.st_mode & 070) != 0)
        return fchmod(fd, (st.st_mode & 07777) | 1) == 0 ? ERR_OK : err_sys(e, errno, "change its mode");
    if ((st.st_gid != s->pull_gid && fchown(fd, (uid_t)-1, s->pull_gid) != 0) ||
        fchmod(fd, (st.st_mode & 07777) | 010) != 0)
        return err_sys(e, errno, "change its group and mode");
    return ERR_OK;
}

static enum err_code open_path(const struct img_store *s, const char *path, struct err *e)
{
    fd_auto fd = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (path == NULL)
        return err_nomem(e);
    if (fd < 0)
        err_sys(e, errno, "open it");
    else
        ERR_IGNORE(image_user_open_folder(s, fd, e));
    return e->code == ERR_OK ? ERR_OK : err_wrap(e, "%s", path);
}

/* Before each pull, because tmpfiles.d or an administrator may have reset the mode. Other entries stay
 * closed. */
static enum err_code open_way(const struct img_store *s, struct err *e)
{
    const int closed[] = { s->refs_fd, s->images_fd, s->layers_fd, s->parts_fd };
    str_auto tmp = str_printf("%s/tmp", s->dir);
    str_auto state = strndup(s->dir, (size_t)(strrchr(s->dir, '/') - s->dir));

    for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
        struct stat st;

        if (fstat(closed[i], &st) != 0 || ((st.st_mode & 077) != 0 && fchmod(closed[i], 0700) != 0))
            return err_sys(e, errno, "close a folder of the image store to others");
    }
    if (open_path(s, tmp, e) != ERR_OK || open_path(s, s->dir, e) != ERR_OK ||
        (state != NULL && state[0] == '\0' ? ERR_OK : open_path(s, state, e)) != ERR_OK)
        return e->code;
    return s->tmpfs_dir == NULL ? ERR_OK : open_path(s, s->tmpfs_dir, e);
}

enum err_code img_user_plan(struct img_job *j, struct err *e)
{
    const struct img_store *s = j->store;
    struct look l = { .store = s };
    struct err closed = { 0 };

    if (s->pull_uid == 0)
        return ERR_OK;
    if (open_way(s, &closed) != ERR_OK) {
        log_warn("running skopeo as root for this pull: cannot give its own user access to its folders",
                 F_STR("image", j->key), F_ERR(&closed));
        return ERR_OK;
    }
    check_settings(&l, j);
    if (l.e.code != ERR_OK) {
        free(l.blocked);
        *e = l.e;
        e->code = ERR_UNAVAILABLE; /* so that the pull is retried */
        return err_wrap(e, "look for what skopeo's user can read");
    }
    if (l.blocked != NULL) {
        log_warn("running skopeo as root for this pull: its own user cannot read a file that it may need",
                 F_STR("image", j->key), F_STR("file", l.blocked));
        free(l.blocked);
        return ERR_OK;
    }
    j->uid = s->pull_uid;
    j->gid = s->pull_gid;
    return ERR_OK;
}

/* ---- its folders ---- */

enum err_code img_user_give(const struct img_job *j, const char *path, struct err *e)
{
    if (j->uid == 0 || fchownat(AT_FDCWD, path, j->uid, j->gid, AT_SYMLINK_NOFOLLOW) == 0)
        return ERR_OK;
    return err_sys(e, errno, "change the owner of %s to skopeo's user", path);
}

enum err_code img_user_folders(struct img_job *j, struct err *e)
{
    fd_auto folder = openat(j->store->tmp_fd, j->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (folder < 0 || (mkdirat(folder, "fetch", 0700) != 0 && errno != EEXIST))
        return err_sys(e, errno, "create skopeo's folder");
    if (j->uid == 0)
        return ERR_OK;
    if (fchownat(folder, "fetch", j->uid, j->gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        fchown(folder, (uid_t)-1, j->gid) != 0 || fchmod(folder, 0710) != 0)
        return err_sys(e, errno, "change the owner of skopeo's folder");
    return ERR_OK;
}

struct gift {
    int folder;
    uid_t uid;
};

static bool give_blob(const char *name, void *arg)
{
    const struct gift *g = arg;
    struct stat st;

    /* Files with several links are left alone. */
    if (fstatat(g->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
        ERR_IGNORE(fchownat(g->folder, name, g->uid, 0,
                            AT_SYMLINK_NOFOLLOW)); /* after a failure the blob is fetched again */
    return true;
}

/* Also writable by root's group: a pull that must run as root has no capabilities either. The parent folder
 * stays root's. */
enum err_code img_user_blobs(struct img_store *s, struct err *e)
{
    fd_auto blobs = -1, folder = -1;
    struct gift gift;
    struct stat st;

    if (s->pull_uid == 0)
        return ERR_OK;
    blobs = openat(s->tmp_fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (blobs < 0 || (mkdirat(blobs, "sha256", 0700) != 0 && errno != EEXIST) ||
        (folder = openat(blobs, "sha256", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
        fstat(folder, &st) != 0)
        return err_sys(e, errno, "open the blob folder");
    if (st.st_uid != s->pull_uid) {
        gift = (struct gift){ .folder = folder, .uid = s->pull_uid };
        if (presence_is_unknown(fs_list(folder, ".", give_blob, &gift, e)))
            return e->code;
        if (fchown(folder, s->pull_uid, 0) != 0 || fchmod(folder, 0770) != 0)
            return err_sys(e, errno, "change the owner of the blob folder");
    }
    return image_user_open_folder(s, blobs, e);
}
