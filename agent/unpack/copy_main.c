/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_main - coracle-unpack as the helper of `coracle cp` (base/process/copy_helper.h), here or in a
 * container.
 *
 * In a container, every path is resolved below the container's root folder and with the rights of its root
 * user. The helper leaves the container's mount namespace again before it reads the first byte of an archive:
 * the C library loads character set and name service modules by path, and must never load the container's.
 */
#include "agent/unpack/copy.h"
#include "agent/unpack/unpack.h"

#include "base/files/fs.h"
#include "base/process/copy_helper.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

struct place {
    int root; /* the container's root; -1: paths are resolved as usual */
    int stream, messages;
};

static enum err_code copy_main_join(int pidfd, int *ret_root, struct err *e)
{
    fd_auto host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    bool users;

    if (host < 0 || setns(pidfd, CLONE_NEWNS) != 0 ||
        (*ret_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 || setns(host, CLONE_NEWNS) != 0)
        return err_sys(e, errno, "find the container's root folder");
    users = setns(pidfd, CLONE_NEWUSER) == 0;
    if (!users && errno != EINVAL) /* EINVAL: the container shares our user namespace */
        return err_sys(e, errno, "join the container's user namespace");
    if (users && (setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0))
        return err_sys(e, errno, "become the container's root");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? ERR_OK : err_sys(e, errno, "prepare");
}

static void copy_main_warn(const char *text, void *arg)
{
    dprintf(((const struct place *)arg)->messages, "warning: %s\n", text);
}

static int copy_main_open(const struct place *p, const char *path, int flags, struct err *e)
{
    int fd;

    if (p->root >= 0)
        return fs_open_in_root(p->root, path, flags, 0, e);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        err_sys(e, errno, "open %s", path);
    return fd;
}

static enum err_code copy_main_pack(const struct place *p, const char *path, const struct copy_options *o,
                                    struct err *e)
{
    fd_auto node = copy_main_open(p, path, O_PATH, e);
    char name[256];

    fs_base_name(path, name);
    return node >= 0 ? copy_pack(node, name[0] != '\0' ? name : ".", p->stream, o, e) : e->code;
}

/*
 * Unpacks into the path if it is a folder, else into its parent under the path's last element.  Signals are
 * ignored: when the caller ends, the stream ends, and a partial file is removed before the process exits.
 */
static enum err_code copy_main_unpack(const struct place *p, const char *path, const struct copy_options *o,
                                      struct err *e)
{
    fd_auto dir = copy_main_open(p, path, O_PATH | O_DIRECTORY, ERR_IGNORED);
    struct copy_options named = *o;
    str_auto above = NULL;
    char name[256];

    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (dir < 0) {
        size_t n = strlen(path);

        fs_base_name(path, name);
        while (n > 0 && path[n - 1] == '/')
            n--;
        while (n > 0 && path[n - 1] != '/')
            n--;
        named.rename = name;
        above = n > 0 ? strndup(path, n) : strdup(".");
        if (above == NULL)
            return err_nomem(e);
        dir = copy_main_open(p, above, O_PATH | O_DIRECTORY, e);
    }
    return dir >= 0 ? copy_unpack(dir, p->stream, &named, e) : e->code;
}

int copy_main(int argc, char **argv)
{
    const bool from = argc == 2 && strcmp(argv[0], "from") == 0,
               pack = argc == 2 && strcmp(argv[0], "pack") == 0;
    const bool inside = from || (argc == 2 && strcmp(argv[0], "into") == 0);
    struct place p = { -1,
                       inside ? COPY_STREAM
                       : pack ? STDOUT_FILENO
                              : STDIN_FILENO,
                       inside ? COPY_MESSAGES : STDERR_FILENO };
    struct copy_options o = { .no_links = !inside, .warn = copy_main_warn, .arg = &p };
    pid_t parent = getppid();
    struct err e = { 0 };

    if (!inside && !pack && (argc != 2 || strcmp(argv[0], "unpack") != 0))
        err_set(&e, ERR_INVALID, COPY_OPTION ": usage: pack, unpack, from or into, followed by a path");
    else if (!inside || copy_main_join(COPY_PIDFD, &p.root, &e) == ERR_OK)
        (void)!(from || pack ? copy_main_pack : copy_main_unpack)(&p, argv[1], &o, &e);
    text_printable(e.text);                                  /* names in an archive may hold any byte */
    if (e.code != ERR_OK && (inside || getppid() == parent)) /* otherwise the caller has ended */
        fprintf(stderr, "%s%s\n", inside ? "" : "error: ", e.text);
    return e.code == ERR_OK ? 0 : 1;
}
