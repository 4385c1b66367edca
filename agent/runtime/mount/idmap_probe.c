/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/mount/idmap_probe.h"

#include "agent/runtime/mount/idmap.h"
#include "base/files/fs.h"
#include "base/process/process.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A runtime that runs as the pod's root accesses its bundle by path. */
static enum err_code check_folder(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & S_IXOTH) == 0)
        return err_set(e, ERR_PRECONDITION,
                       "the folder %s is closed to other users (mode %04o), but pods' users pass through it",
                       path, st.st_mode & 07777);
    return ERR_OK;
}

static enum err_code check_passable(const char *path, struct err *e)
{
    str_auto real = realpath(path, NULL);

    if (real == NULL)
        return err_sys(e, errno, "%s", path);
    for (const char *end = strchr(real + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        str_auto above = strndup(real, (size_t)(end - real));

        if (above == NULL)
            return err_nomem(e);
        if (check_folder(above, e) != ERR_OK)
            return e->code;
    }
    return check_folder(real, e);
}

/* Only the folder itself: mounts below it are not ours. */
static enum err_code try_bind(const char *source, const char *target, int userns, struct err *e)
{
    fd_auto tree = idmap_mount(source, userns, e);

    if (tree < 0)
        return e->code;
    if (mkdir(target, 0700) != 0 || move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_sys(e, errno, "mount on %s", target);
    return ERR_OK;
}

static enum err_code try_all(const struct idmap_probe *p, int userns, struct err *e)
{
    size_t i;

    /* Mounted over the run folder, visible only to this process, so that relative names are below it. */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return err_sys(e, errno, "create a mount namespace");
    if (mount("tmpfs", p->run_dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=1m") != 0 ||
        chdir(p->run_dir) != 0)
        return err_sys(e, errno, "mount a tmpfs on %s", p->run_dir);
    if (mkdir("tmpfs", 0700) != 0 || mkdir("lower", 0755) != 0 || mkdir("upper", 0755) != 0 ||
        mkdir("work", 0700) != 0 || mkdir("merged", 0700) != 0)
        return err_sys(e, errno, "create folders in %s", p->run_dir);
    for (i = 0; i < IDMAP_FOLDERS_MAX && p->folders[i] != NULL; i++) {
        char target[16];

        snprintf(target, sizeof(target), "folder%zu", i);
        if (try_bind(p->folders[i], target, userns, e) != ERR_OK)
            return e->code;
    }
    if (try_bind("lower", "layer", userns, e) != ERR_OK)
        return e->code == ERR_UNIMPLEMENTED
                   ? err_set(
                         e, ERR_UNIMPLEMENTED,
                         "this kernel cannot mount a tmpfs with the ids of a user namespace (Linux 6.3 is "
                         "the first that can)")
                   : e->code;
    if (mount("overlay", "merged", "overlay", 0, "lowerdir=layer,upperdir=upper,workdir=work") != 0)
        return err_set(
            e, ERR_UNIMPLEMENTED,
            "this kernel cannot mount an overlay of layers with the ids of a user namespace (Linux "
            "5.19 is the first that can): %s",
            strerror(errno));
    return ERR_OK;
}

static enum err_code map_ids(pid_t pid, const char *file, struct err *e)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return fs_write_control(AT_FDCWD, path, "0 65536 65536", e);
}

/* A user namespace kept alive only by the descriptor. -1: *e has the problem. */
static int new_users(struct err *e)
{
    struct proc_pipes pipes;
    int fd = -1, sys = 0;
    char path[64], go;
    pid_t pid = proc_call_fork_piped(&pipes, e);

    if (pid < 0)
        return -1;
    if (pid == 0) {
        sys = unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
        if (write(pipes.to, &sys, sizeof(sys)) == sizeof(sys))
            ERR_IGNORE(read(pipes.from, &go, 1));
        _exit(0);
    }
    fd_auto from = pipes.from, to = pipes.to;
    if (read(from, &sys, sizeof(sys)) != sizeof(sys) || sys != 0) {
        err_sys(e, sys, "create a user namespace (see user.max_user_namespaces)");
    } else if (map_ids(pid, "uid_map", e) == ERR_OK && map_ids(pid, "gid_map", e) == ERR_OK) {
        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(e, errno, "open %s", path);
    }
    close(take_fd(&to));
    waitpid(pid, NULL, 0);
    return fd;
}

enum err_code idmap_probe(const struct idmap_probe *p, struct err *e)
{
    fd_auto users = -1;

    if (check_passable(p->run_dir, e) == ERR_OK && (users = new_users(e)) >= 0)
        ERR_IGNORE(try_all(p, users, e));
    return e->code;
}
