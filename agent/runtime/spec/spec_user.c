/* SPDX-License-Identifier: Apache-2.0 */
/* The user of the container's process: kubelet's rules (pkg/kubelet/kuberuntime/security_context.go) and
 * containerd's. */
#include "agent/runtime/spec/internal.h"

#include "base/array.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ACCOUNT_FILE_MAX = 1024 * 1024, /* /etc/passwd and /etc/group of an image: tens of thousands of lines */
    NAME_MAX_SHOWN = 128,
    GROUPS_MAX = 65536, /* NGROUPS_MAX */
};
#define ID_MAX INT64_C(2147483647) /* the range that containerd and runc accept */

/* ---- the requested user ---- */

enum user_kind { USER_ID, USER_NAME };
struct wanted_user {
    enum user_kind kind;
    int64_t id;
    char name[NAME_MAX_SHOWN];
};

/* The user part of the image's USER. A group after ':' is ignored, as kubelet only passes the user
 * (kubernetes issue 61967); an image without USER runs as root. */
static enum err_code image_user(const struct rt_config *c, struct wanted_user *ret, struct err *e)
{
    const char *user = c->image->user != NULL ? c->image->user : "";
    size_t n = strcspn(user, ":");
    int64_t id = 0;
    size_t i;

    *ret = (struct wanted_user){ .kind = USER_ID };
    if (n == 0)
        return ERR_OK;
    if (strspn(user, "0123456789") < n) {
        if (n >= sizeof(ret->name))
            return err_set(e, ERR_NOT_FOUND, "unable to find user %.*s...: the name is too long",
                           NAME_MAX_SHOWN - 1, user);
        ret->kind = USER_NAME;
        memcpy(ret->name, user, n);
        return ERR_OK;
    }
    for (i = 0; i < n; i++) {
        id = id * 10 + (user[i] - '0');
        if (id > ID_MAX)
            return err_set(e, ERR_NOT_FOUND,
                           "user %.*s of the image: uids and gids must be in range 0-2147483647",
                           (int)(n < 64 ? n : 64), user);
    }
    ret->id = id;
    return ERR_OK;
}

static const int64_t *wanted_id(const struct rt_config *c, bool group)
{
    const struct api_security *s = c->security;
    const struct api_pod_security *p = c->pod_security;

    if (s != NULL && (group ? s->has_run_as_group : s->has_run_as_user))
        return group ? &s->run_as_group : &s->run_as_user;
    if (p != NULL && (group ? p->has_run_as_group : p->has_run_as_user))
        return group ? &p->run_as_group : &p->run_as_user;
    return NULL;
}

enum err_code rt_user_check_non_root(const struct rt_config *c, struct err *e)
{
    const int64_t *uid = wanted_id(c, false);
    struct wanted_user image;
    bool non_root = false;
    char where[512];

    if (c->security != NULL && c->security->has_run_as_non_root)
        non_root = c->security->run_as_non_root;
    else if (c->pod_security != NULL && c->pod_security->has_run_as_non_root)
        non_root = c->pod_security->run_as_non_root;
    if (!non_root)
        return ERR_OK;

    snprintf(where, sizeof(where), "(pod: \"%s_%s(%s)\", container: %s)", c->pod_name, c->pod_namespace,
             c->pod_uid, c->container_name);
    if (uid != NULL)
        return *uid != 0
                   ? ERR_OK
                   : err_set(e, ERR_PRECONDITION, "container's runAsUser breaks non-root policy %s", where);
    if (image_user(c, &image, e) != ERR_OK)
        return e->code;
    if (image.kind == USER_NAME)
        return err_set(
            e, ERR_PRECONDITION,
            "container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is "
            "non-root %s",
            image.name, where);
    if (image.id == 0)
        return err_set(e, ERR_PRECONDITION, "container has runAsNonRoot and image will run as root %s",
                       where);
    return ERR_OK;
}

/* ---- the image's accounts ---- */

/* "" if there is no such file. Only opens regular files, because the image determines the content. */
static enum err_code read_accounts(int rootfs_fd, const char *path, char **ret, struct err *e)
{
    struct err why = { 0 };
    char link[64];
    struct stat st;
    fd_auto found = fs_open_in_root(rootfs_fd, path, O_PATH | O_CLOEXEC, 0, &why);
    fd_auto fd = -1;

    *ret = NULL;
    if (found < 0) {
        if (why.code != ERR_NOT_FOUND && why.sys != ENOTDIR && why.sys != ELOOP) {
            *e = why;
            return err_wrap(e, "read /%s of the image", path);
        }
    } else if (fstat(found, &st) != 0) {
        return err_sys(e, errno, "stat /%s of the image", path);
    } else if (S_ISREG(st.st_mode)) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
        fd = open(link, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return err_sys(e, errno, "open /%s of the image", path);
        if (fs_read_fd(fd, ACCOUNT_FILE_MAX, ret, NULL, e) != ERR_OK)
            return err_wrap(e, "read /%s of the image", path);
        return ERR_OK;
    }
    *ret = strdup("");
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* Splits the next line at ':' into exactly n fields (rest in the last); false at the end. Lines with fewer
 * are skipped. */
static bool next_account(char **cursor, char **fields, size_t n)
{
    char *line;

    while ((line = strsep(cursor, "\n")) != NULL) {
        size_t i;

        for (i = 0; i + 1 < n; i++)
            if ((fields[i] = strsep(&line, ":")) == NULL)
                break;
        if (i + 1 < n || line == NULL)
            continue;
        fields[n - 1] = line;
        return true;
    }
    return false;
}

static bool parse_id(const char *text, uint32_t *ret)
{
    int64_t id = 0;
    const char *p;

    if (*text == '\0')
        return false;
    for (p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || (id = id * 10 + (*p - '0')) > ID_MAX)
            return false;
    }
    *ret = (uint32_t)id;
    return true;
}

struct account {
    bool found;
    uint32_t uid, gid;
    const char *name, *home; /* pointers into the searched text */
};

/* Modifies the text. */
static struct account find_account(char *passwd, const struct wanted_user *user)
{
    char *f[6]; /* name, password, uid, gid, full name, "home:shell" */
    uint32_t uid, gid;

    while (next_account(&passwd, f, ARRAY_LEN(f))) {
        if (!parse_id(f[2], &uid) || !parse_id(f[3], &gid))
            continue;
        if (user->kind == USER_NAME ? strcmp(f[0], user->name) != 0 : uid != user->id)
            continue;
        f[5][strcspn(f[5], ":")] = '\0';
        return (struct account){ .found = true, .uid = uid, .gid = gid, .name = f[0], .home = f[5] };
    }
    return (struct account){ .home = "" };
}

/* ---- groups ---- */

static enum err_code add_group(struct rt_user *u, uint32_t gid, struct err *e)
{
    size_t i;

    for (i = 0; i < u->n_gids && u->gids[i] < gid; i++)
        ;
    if (i < u->n_gids && u->gids[i] == gid)
        return ERR_OK;
    if (u->n_gids >= GROUPS_MAX)
        return err_set(e, ERR_EXHAUSTED, "more than %d supplementary groups", GROUPS_MAX);
    if (!array_room(u->gids, u->n_gids))
        return err_nomem(e);
    memmove(u->gids + i + 1, u->gids + i, (u->n_gids - i) * sizeof(*u->gids));
    u->gids[i] = gid;
    u->n_gids++;
    return ERR_OK;
}

static bool has_member(char *members, const char *name)
{
    char *member;

    while ((member = strsep(&members, ",")) != NULL)
        if (strcmp(member, name) == 0)
            return true;
    return false;
}

/* Modifies the text. */
static enum err_code add_image_groups(struct rt_user *u, char *group, const char *name, struct err *e)
{
    char *f[4]; /* name, password, gid, members */
    uint32_t gid;

    while (next_account(&group, f, ARRAY_LEN(f)))
        if (parse_id(f[2], &gid) && has_member(f[3], name) && add_group(u, gid, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code add_pod_groups(struct rt_user *u, const struct api_pod_security *p, struct err *e)
{
    size_t i;

    if (p == NULL)
        return ERR_OK;
    if (p->has_fs_group && add_group(u, (uint32_t)p->fs_group, e) != ERR_OK)
        return e->code;
    for (i = 0; i < p->n_supplemental_groups; i++)
        if (add_group(u, (uint32_t)p->supplemental_groups[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

void rt_user_done(struct rt_user *u)
{
    free(u->gids);
    free(u->home);
    *u = (struct rt_user){ 0 };
}

/* uid: runAsUser, otherwise the image's USER. gid: runAsGroup, otherwise the user's primary group in the
 * image's /etc/passwd, otherwise 0. The primary group is always among the supplementary ones; those of the
 * image's /etc/group are omitted under supplementalGroupsPolicy Strict. */
enum err_code rt_user_choose(const struct rt_config *c, char *passwd, char *group, struct rt_user *ret,
                             struct err *e)
{
    const struct api_pod_security *p = c->pod_security;
    const int64_t *uid = wanted_id(c, false), *gid = wanted_id(c, true);
    bool strict = p != NULL && str_eq(p->supplemental_groups_policy, "Strict");
    struct wanted_user user = { .kind = USER_ID };
    struct account account;
    struct rt_user u = { 0 };

    if (uid != NULL)
        user.id = *uid;
    else if (image_user(c, &user, e) != ERR_OK)
        return e->code;
    account = find_account(passwd, &user);
    if (user.kind == USER_NAME && !account.found)
        return err_set(e, ERR_NOT_FOUND, "unable to find user %s: no matching entries in passwd file",
                       user.name);

    u.uid = user.kind == USER_NAME ? account.uid : (uint32_t)user.id;
    u.gid = gid != NULL ? (uint32_t)*gid : account.gid;
    if (add_group(&u, u.gid, e) != ERR_OK || add_pod_groups(&u, p, e) != ERR_OK ||
        (!strict && account.found && add_image_groups(&u, group, account.name, e) != ERR_OK)) {
        rt_user_done(&u);
        return e->code;
    }
    u.home = strdup(*account.home != '\0' ? account.home : "/");
    if (u.home == NULL) {
        rt_user_done(&u);
        return err_nomem(e);
    }
    *ret = u;
    return ERR_OK;
}

enum err_code rt_user_resolve(const struct rt_config *c, int rootfs_fd, struct rt_user *ret, struct err *e)
{
    str_auto passwd = NULL;
    str_auto group = NULL;

    if (read_accounts(rootfs_fd, "etc/passwd", &passwd, e) != ERR_OK ||
        read_accounts(rootfs_fd, "etc/group", &group, e) != ERR_OK)
        return e->code;
    return rt_user_choose(c, passwd, group, ret, e);
}
