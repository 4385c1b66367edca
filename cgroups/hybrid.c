/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hybrid - keeps the v2 side of a hybrid host free of controllers.
 *
 * crun refuses to start containers if v1 hierarchies are mounted and the v2 tree still has a controller
 * ("cgroups in hybrid mode not supported, drop all controllers from cgroupv2"). In practice that is hugetlb,
 * which is mounted nowhere. A controller leaves the v2 tree while it is mounted as v1 anywhere. So this file
 * mounts it and detaches the mount at once: the mount lives as long as our descriptor, and no other program
 * finds it (a kubelet would create cgroups in it). We create no cgroup in it.
 */
#include "base/files/fs.h"
#include "base/log.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* Detaches the mount, so that no path leads to it. */
static enum err_code hold(struct cg_tree *t, const char *name, const char *point, struct err *e)
{
    fd_auto fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
        return err_sys(e, errno, "detach the mount of cgroup controller \"%s\" at %s", name, point);
    fs_remove_quietly(AT_FDCWD, point);
    snprintf(t->pinned[t->n_pinned], CG_NAME_MAX, "%s", name);
    t->pinned_fd[t->n_pinned++] = take_fd(&fd);
    return ERR_OK;
}

static enum err_code pin_one(struct cg_tree *t, const char *name, struct err *e)
{
    char point[CG_PATH_MAX];

    if (t->scratch_dir == NULL)
        return err_set(e, ERR_PRECONDITION,
                       "cgroup v1 and v2 are mixed and controller \"%s\" is still on v2, which OCI runtimes "
                       "refuse: mount it as v1 "
                       "(mount -t cgroup -o %s none <folder>)",
                       name, name);
    snprintf(point, sizeof(point), "%s/%s", t->scratch_dir, name);
    if (!fs_is_mountpoint(point)) { /* otherwise an agent was killed just there */
        if (fs_mkdirs(point, 0700, e) != ERR_OK)
            return e->code;
        if (mount("none", point, "cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, name) != 0) {
            int sys = errno;
            fs_remove_quietly(AT_FDCWD, point);
            return err_set(e, ERR_PRECONDITION,
                           "cgroup v1 and v2 are mixed and controller \"%s\" is still on v2, which OCI "
                           "runtimes refuse; mounting it as "
                           "v1 at %s failed: %s.  Mount it as v1 elsewhere, or boot with v2 alone "
                           "(systemd.unified_cgroup_hierarchy=1)",
                           name, point, strerror(sys));
        }
    }
    return hold(t, name, point, e);
}

/* Without a cgroup below the v2 root, its subtree_control is left over and unused. */
static bool has_no_children(int v2_fd)
{
    struct err e = { 0 };
    str_auto stat = NULL;

    return fs_read_at(v2_fd, "cgroup.stat", FS_SMALL_MAX, &stat, NULL, &e) == ERR_OK &&
           strncmp(stat, "nr_descendants 0\n", 17) == 0;
}

/* The kernel removes a controller from v2 children without any check, so check here. */
static enum err_code refuse_if_in_use(int v2_fd, const char *point, const char *name, struct err *e)
{
    str_auto used = NULL;

    if (fs_read_at(v2_fd, "cgroup.subtree_control", FS_SMALL_MAX, &used, NULL, e) != ERR_OK)
        return err_wrap(e, "cgroup %s", point);
    char *saved = NULL;
    for (char *word = strtok_r(used, " \n", &saved); word != NULL; word = strtok_r(NULL, " \n", &saved))
        if (strcmp(word, name) == 0 && has_no_children(v2_fd)) {
            char text[CG_NAME_MAX + 2];
            snprintf(text, sizeof(text), "-%s", name);
            return fs_write_control(v2_fd, "cgroup.subtree_control", text, e);
        } else if (strcmp(word, name) == 0)
            return err_set(e, ERR_PRECONDITION,
                           "cgroup v1 and v2 are mixed and controller \"%s\" is used below %s, so OCI "
                           "runtimes refuse to start "
                           "containers: write -%s to %s/cgroup.subtree_control, or boot with v2 alone "
                           "(systemd.unified_cgroup_hierarchy=1)",
                           name, point, name, point);
    return ERR_OK;
}

enum err_code cg_pin_controllers(struct cg_tree *t, const struct cg_found *found, struct err *e)
{
    str_auto list = NULL;
    const struct cg_hier *v2 = NULL;

    if (t->layout != CG_HYBRID)
        return ERR_OK;
    for (size_t i = 0; i < t->n_hiers; i++)
        if (t->hiers[i].backend->v2)
            v2 = &t->hiers[i];
    if (v2 == NULL)
        return ERR_OK;
    if (fs_read_at(v2->fd, "cgroup.controllers", FS_SMALL_MAX, &list, NULL, e) != ERR_OK)
        return err_wrap(e, "cgroup %s", v2->point);
    char *saved = NULL;
    for (char *name = strtok_r(list, " \n", &saved); name != NULL; name = strtok_r(NULL, " \n", &saved)) {
        if (strlen(name) >= CG_NAME_MAX || strchr(name, '/') != NULL || t->n_pinned == CG_HIERS_MAX)
            continue;
        if (refuse_if_in_use(v2->fd, v2->point, name, e) != ERR_OK || pin_one(t, name, e) != ERR_OK)
            return e->code;
    }
    /* A v1 hierarchy that is not mounted in the usual place exists only through a mount that may end at any
     * time (of another agent, or an earlier run of this one): mount it, too. Optional, so failure is not an
     * error. */
    for (size_t i = 0; i < found->n_unmounted && t->scratch_dir != NULL && t->n_pinned < CG_HIERS_MAX; i++) {
        if (pin_one(t, found->unmounted[i], ERR_IGNORED) != ERR_OK)
            log_debug("cgroup v1 hierarchy not held", F_STR("hierarchy", found->unmounted[i]),
                      F_ERR(ERR_IGNORED));
    }
    return ERR_OK;
}

void cg_unpin_controllers(struct cg_tree *t)
{
    while (t->n_pinned > 0)
        close(t->pinned_fd[--t->n_pinned]);
}
