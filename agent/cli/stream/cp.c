/* SPDX-License-Identifier: Apache-2.0 */
/* cp - copies files between a container and this machine as a tar stream: the agent packs or unpacks in the
 * container's namespaces, a child of this process does so here. */
#include "agent/cli/stream/internal.h"

#include "base/codec/percent.h"
#include "base/files/fs.h"
#include "base/process/copy_helper.h"
#include "base/process/process.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct cp {
    struct cli *cli;
    const char *namespace_, *container;
};

struct place { /* "web:/etc", "shop/web:/etc", "./file", "-" */
    char *pod; /* NULL: this machine */
    char *namespace_;
    const char *path; /* points into the word */
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct cp, namespace_, "the pod's namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct cp, container), "NAME",
      "the container (default: the first)", "@container" },
    CLI_FLAGS_END,
};

static bool parse_place(const char *word, struct place *ret)
{
    const char *colon = strchr(word, ':'), *slash = strchr(word, '/');

    *ret = (struct place){ .path = word };
    if (colon == NULL || word[0] == '/' || word[0] == '.')
        return true;
    if (slash != NULL && slash < colon)
        ret->namespace_ = strndup(word, (size_t)(slash - word));
    else
        slash = NULL;
    ret->pod =
        strndup(slash != NULL ? slash + 1 : word, (size_t)(colon - (slash != NULL ? slash + 1 : word)));
    ret->path = colon + 1;
    return ret->pod != NULL;
}

/* "dir/.", "." or "/": the content, without the folder itself. */
static bool is_content(const char *path)
{
    const size_t n = strlen(path);

    return strcmp(path, ".") == 0 || (n >= 2 && strcmp(path + n - 2, "/.") == 0) || strspn(path, "/") == n;
}

static void place_done(struct place *p)
{
    free(p->pod);
    free(p->namespace_);
}

/* ---- this side ---- */

/* coracle-unpack on a pipe, whose other end is the caller's.  -1: reported. */
static int start_here(struct cli *cli, const char *path, bool pack, pid_t *ret_pid)
{
    char program[4096];
    int fds[2];

    if (!proc_find_own("", "coracle-unpack", program, sizeof(program))) {
        cli_error(cli, "%s is missing", program);
        return -1;
    }
    if (pipe2(fds, O_CLOEXEC) != 0 || (*ret_pid = fork()) < 0) {
        cli_error(cli, "start a copy: %s", strerror(errno));
        return -1;
    }
    if (*ret_pid == 0) {
        signal(SIGPIPE, SIG_DFL); /* the other side reports why it stopped reading */
        dup2(fds[pack ? 1 : 0], pack ? STDOUT_FILENO : STDIN_FILENO);
        execl(program, program, COPY_OPTION, pack ? "pack" : "unpack", path, NULL);
        fprintf(stderr, "error: start %s: %s\n", program, strerror(errno));
        _exit(EXIT_ERROR);
    }
    close(fds[pack ? 1 : 0]);
    return fds[pack ? 0 : 1];
}

static int wait_here(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_ERROR;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_ERROR;
}

/* ---- both ---- */

static int transfer(const struct cp *o, const char *url, const char *local, bool into)
{
    bool streamed = strcmp(local, "-") == 0;
    pid_t pid = -1;
    fd_auto end = streamed ? -1 : start_here(o->cli, local, into, &pid);
    int code, here;

    if (!streamed && end < 0)
        return EXIT_ERROR;
    code = exec_stream(&(struct exec_session){ .cli = o->cli,
                                               .input = !into      ? -1
                                                        : streamed ? STDIN_FILENO
                                                                   : end,
                                               .output = into || streamed ? -1 : end,
                                               .terminal = -1 },
                       url);
    if (streamed)
        return code;
    close(take_fd(&end));
    here = wait_here(pid);
    return code != EXIT_OK ? code : here;
}

static int cp_copy(const struct cp *o, const struct place *remote, const char *local, bool into)
{
    const char *namespace_ = remote->namespace_ != NULL ? remote->namespace_ : o->namespace_;
    int code;
    json_auto_t *pod = cli_get_pod(o->cli, namespace_, remote->pod, &code);
    buf_auto url = BUF_INIT(64 * 1024);
    char name[256];

    if (pod == NULL)
        return code;
    if (o->container != NULL && cli_find_container(pod, o->container) == NULL)
        return cli_no_container(o->cli, o->container, remote->pod);
    if (!into && strcmp(local, "-") == 0 && isatty(STDOUT_FILENO))
        return cli_error(o->cli, "refusing to write an archive to a terminal: use a pipe or a file");
    fs_base_name(into ? local : remote->path, name);
    if (name[0] == '\0' && !is_content(into ? local : remote->path))
        return cli_wrong(o->cli,
                         "%s has no name to copy it under: name the folder itself, or its content (%s/.)",
                         into ? local : remote->path, into ? local : remote->path);
    cli_add_pod_path(&url, namespace_, remote->pod);
    buf_adds(&url, "/archive?container=");
    percent_add(&url, o->container != NULL ? o->container : cli_choose_container(o->cli, pod));
    buf_adds(&url, "&path=");
    percent_add(&url, remote->path);
    buf_addf(&url, "&into=%s", into ? "true" : "false");
    return transfer(o, url.p, local, into);
}

static int cp_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct cp o = { .cli = cli, .namespace_ = "default" };
    struct place from = { 0 }, to = { 0 };
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    if (argc != 2)
        return cli_usage_error(cli, command, "you must specify a source and a destination");
    if (!parse_place(argv[0], &from) || !parse_place(argv[1], &to))
        code = cli_error(cli, "out of memory");
    else if ((from.pod == NULL) == (to.pod == NULL))
        code = cli_usage_error(cli, command, "one of source and destination must be POD:PATH");
    else if ((from.pod != NULL ? from.path : to.path)[0] == '\0')
        code = cli_usage_error(cli, command, "the path after POD: is missing");
    else
        code = cp_copy(&o, from.pod != NULL ? &from : &to, from.pod != NULL ? to.path : from.path,
                       to.pod != NULL);
    place_done(&from);
    place_done(&to);
    return code;
}

static const struct cli_example examples[] = {
    { "copy a file from a container", "coracle cp web:/etc/nginx/nginx.conf ." },
    { "copy the content of a folder, without the folder itself",
      "coracle cp site/. web:/usr/share/nginx/html" },
    { "copy a folder to one of several containers", "coracle cp -c proxy ./conf web:/etc/proxy" },
    { "pipe into another program", "coracle cp web:/var/log - | gzip > log.tar.gz" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "everything was copied, except files named in warnings" },
    { 1, "an error; the copy may be incomplete; see standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_cp = {
    .name = "cp",
    .run = cp_run,
    .summary = "copy files from and to containers",
    .usage = "cp [NAMESPACE/]POD:PATH DESTINATION [flags]\ncp SOURCE [NAMESPACE/]POD:PATH [flags]",
    .about = "Copies a file or a folder.  If the destination is a folder, the copy is placed in it "
             "under the source's name; otherwise the destination is the name of the copy.  DIR/. "
             "stands for the content of a folder; its destination is created if it does not exist.  - "
             "is a tar stream on standard input or output.  The container needs no tar.  Files and "
             "folders are copied with their permissions, symbolic links only into containers.  Links "
             "in the container never lead the copy outside the container, or outside the destination "
             "on this machine.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "exec",
    .words = "@pod|@file @pod|@file",
};
