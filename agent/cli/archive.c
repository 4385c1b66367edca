/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coracle __archive from|into PATH`: the agent's helper for `coracle cp` (base/tar.h).  It joins
 * the namespaces of a container and packs or unpacks there: every path is resolved with the container's root
 * as root.
 */
#include "agent/cli/internal.h"
#include "base/fs.h"
#include "base/scope.h"
#include "base/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static enum err_code cli_archive_join(int pidfd, struct err *e)
{
    bool users = setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS) == 0;

    /* EINVAL: the user namespace is our own. */
    if (!users && (errno != EINVAL || setns(pidfd, CLONE_NEWNS) != 0))
        return err_sys(e, errno, "join the container's namespaces");
    if (users && (setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0))
        return err_sys(e, errno, "become the container's root");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || chdir("/") != 0)
        return err_sys(e, errno, "prepare");
    return ERR_OK;
}

static void cli_archive_tell(const char *text, void *arg)
{
    (void)arg;
    dprintf(TAR_HELPER_MESSAGES, "warning: %s\n", text);
}

static enum err_code pack(int root, const char *path, const struct tar_options *o, struct err *e)
{
    fd_auto node = fs_open_in_root(root, path, O_PATH, 0, e);
    char name[256];

    if (node < 0)
        return e->code;
    tar_base_name(path, name);
    return tar_pack(node, name[0] != '\0' ? name : ".", TAR_HELPER_STREAM, o, e);
}

/* Into a folder that is there; else under the name that the path gives it. */
static enum err_code unpack(int root, const char *path, struct tar_options *o, struct err *e)
{
    const char *slash = strrchr(path, '/');
    str_auto above = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct err ignored = { 0 };
    fd_auto dir = fs_open_in_root(root, path, O_PATH | O_DIRECTORY, 0, &ignored);

    if (above == NULL)
        return err_nomem(e);
    signal(SIGTERM, SIG_IGN); /* the stream ends, too: a half file is removed first */
    if (dir < 0) {
        o->rename = slash != NULL ? slash + 1 : path;
        dir = fs_open_in_root(root, above, O_PATH | O_DIRECTORY, 0, e);
    }
    return dir >= 0 ? tar_unpack(dir, TAR_HELPER_STREAM, o, e) : e->code;
}

static int cli_archive_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct tar_options o = { .warn = cli_archive_tell };
    fd_auto proc_fds = -1;
    fd_auto root = -1;
    struct err e = { 0 };

    if (argc != 2 || (strcmp(argv[0], "from") != 0 && strcmp(argv[0], "into") != 0))
        return cli_usage_error(cli, command, "this is the agent's own");
    proc_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    o.proc_fds = proc_fds;
    if (cli_archive_join(TAR_HELPER_PIDFD, &e) == ERR_OK) {
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (strcmp(argv[0], "from") == 0)
            (void)!pack(root, argv[1], &o, &e);
        else
            (void)!unpack(root, argv[1], &o, &e);
    }
    if (e.code != ERR_OK)
        fprintf(cli->err, "%s\n", e.text);
    fflush(cli->err);
    /* At once: what runs at the exit (a sanitizer's) may not expect a /proc that does not know us. */
    _exit(e.code == ERR_OK ? EXIT_OK : EXIT_ERROR);
}

static const struct cli_flag flags[] = { CLI_FLAGS_END };

static const struct cli_example examples[] = {
    { "what the agent runs for `coracle cp web:/etc .`", "coracle __archive from /etc" },
    { NULL, NULL },
};

const struct cli_command command_archive = {
    .name = TAR_HELPER,
    .run = cli_archive_run,
    .summary = "the agent's helper for cp",
    .usage = "__archive from|into PATH",
    .about = "Packs or unpacks files in the namespaces of a container.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits_local,
    .words = "@nothing",
    .hidden = true,
};
