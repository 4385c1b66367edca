/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/image/internal.h"

#include "agent/cli/show/show.h"
#include "base/codec/percent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- import, pull, rm ---- */

static int import_stream(struct cli *cli, int from, const char *name, bool quiet)
{
    struct err e = { 0 };
    const char *path;
    int fd, code;

    if (isatty(from))
        return cli_wrong(cli, "refusing to read an archive from a terminal");
    fd = cli_spool_open(cli, &path);
    if (fd < 0)
        return EXIT_ERROR;
    code = cli_spool_fill(fd, from, &e) == ERR_OK ? cli_bring_image(cli, path, name, quiet)
                                                  : cli_failed(cli, &e);
    cli_spool_close(fd);
    return code;
}

/* Sends an absolute path, since the daemon has another working directory and none of our descriptors. */
static int import(struct cli *cli, const char *file, const char *name, bool quiet)
{
    const bool streamed = strcmp(file, "-") == 0;
    fd_auto fd = streamed ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
    char path[PATH_MAX];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0)
        return cli_error(cli, "open %s: %s", file, strerror(errno));
    if (streamed || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return import_stream(cli, fd, name, quiet);
    if (realpath(file, path) == NULL)
        return cli_error(cli, "open %s: %s", file, strerror(errno));
    return cli_bring_image(cli, path, name, quiet);
}

static int pull(struct cli *cli, const char *reference, bool quiet)
{
    str_auto source = str_printf("docker://%s", reference);

    return source == NULL ? cli_error(cli, "out of memory") : cli_bring_image(cli, source, reference, quiet);
}

static int image_remove_one(struct cli *cli, const char *name)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code = EXIT_OK;

    buf_adds(&url, "/images?name=");
    percent_add(&url, name);
    if (cli_request(cli, "DELETE", url.p, false, NULL, NULL, &r, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    else
        cli_print(cli, "image \"%s\" deleted\n", name);
    buf_done(&r.body);
    return code;
}

struct image {
    const char *name, *format;
    bool no_headers, all, quiet;
    struct cli_image_login login;
};

static const struct cli_flag flags[] = {
    { "name", 0, FLAG_TEXT, offsetof(struct image, name), "REFERENCE",
      "import: the image's name (default: the names in the archive)" },
    CLI_OUTPUT(struct image, format, "wide|json|yaml|name", "ls: wide, json, yaml or name"),
    { "quiet", 'q', FLAG_SWITCH, offsetof(struct image, quiet), NULL, "import, pull: do not show progress" },
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct image, no_headers), NULL, "ls: do not print headers" },
    { "all", 'a', FLAG_SWITCH, offsetof(struct image, all), NULL, "prune: also images with a name" },
    { "username", 'u', FLAG_TEXT, offsetof(struct image, login.username), "USER",
      "login: the user name (default: prompt for it)" },
    { "password-stdin", 0, FLAG_SWITCH, offsetof(struct image, login.password_stdin), NULL,
      "login: read the password from standard input" },
    { "authfile", 0, FLAG_TEXT, offsetof(struct image, login.authfile), "FILE",
      "login, logout: use this file instead of registryAuthFile", "@file" },
    { "insecure", 0, FLAG_SWITCH, offsetof(struct image, login.insecure), NULL,
      "login: allow HTTP and untrusted certificates" },
    CLI_FLAGS_END,
};

/* Commands of this file. False: it is another one, or has the wrong number of words. */
static bool image_own(struct cli *cli, const struct image *x, int argc, char **argv, int *ret)
{
    const char *verb = argc > 0 ? argv[0] : "";

    if (strcmp(verb, "inspect") == 0 && argc >= 2)
        *ret = cli_list_images(cli, "json", false, argv + 1, argc - 1);
    else if (strcmp(verb, "import") == 0 && argc == 2)
        *ret = import(cli, argv[1], x->name, x->quiet);
    else if (strcmp(verb, "pull") == 0 && argc == 2)
        *ret = pull(cli, argv[1], x->quiet);
    else if (strcmp(verb, "tag") == 0 && argc >= 3)
        *ret = cli_image_tag(cli, argv[1], argc - 2, argv + 2);
    else if (strcmp(verb, "history") == 0 && argc == 2)
        *ret = cli_image_history(cli, argv[1], x->format, x->no_headers);
    else if (strcmp(verb, "login") == 0 && argc == 2)
        *ret = cli_image_login(cli, &x->login, argv[1]);
    else if (strcmp(verb, "logout") == 0 && argc == 2)
        *ret = cli_image_logout(cli, &x->login, argv[1]);
    else
        return false;
    return true;
}

static int image_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct image x = { 0 };
    int code = EXIT_OK;

    if (!cli_parse(cli, command, &x, &argc, argv, &code))
        return code;
    if (argc == 1 && (strcmp(argv[0], "ls") == 0 || strcmp(argv[0], "list") == 0)) {
        if (x.format != NULL && strcmp(x.format, "wide") != 0 && strcmp(x.format, "json") != 0 &&
            strcmp(x.format, "yaml") != 0 && strcmp(x.format, "name") != 0)
            return cli_wrong(cli, "unknown output format \"%s\": wide, json, yaml or name", x.format);
        return cli_list_images(cli, x.format, x.no_headers, NULL, 0);
    }
    if (argc >= 2 && strcmp(argv[0], "rm") == 0) {
        for (int i = 1; i < argc; i++)
            cli_keep_first(&code, image_remove_one(cli, argv[i]));
        return code;
    }
    if (image_own(cli, &x, argc, argv, &code) || cli_image_care(cli, argc, argv, x.all, &code))
        return code;
    return cli_usage_error(cli, command,
                           argc > 0 ? "image %s: wrong number of words, or no such command"
                                    : "you must specify ls, inspect, history, import, pull, tag, rm, verify, "
                                      "prune, pin, unpin, export, "
                                      "login or logout",
                           argc > 0 ? argv[0] : "");
}

static const struct cli_example examples[] = {
    { "list images", "coracle image ls" },
    { "import an archive made by another tool", "coracle image import web.tar --name localhost/web:1" },
    { "pull an image before a pod needs it", "coracle image pull docker.io/library/busybox:1.36" },
    { "export for another node, or for podman load", "coracle image export localhost/web:1 web.tar" },
    { "copy an image to another node",
      "coracle image export localhost/web:1 - | ssh node2 coracle image import -" },
    { "add another name", "coracle image tag localhost/web:1 localhost/web:stable" },
    { "store credentials for a registry",
      "coracle image login -u robot --password-stdin registry.example < secret" },
    { "check that the stored images are intact", "coracle image verify" },
    { NULL, NULL },
};

const struct cli_command command_image = {
    .name = "image",
    .run = image_run,
    .summary = "list, import, pull, tag, verify, export and remove images",
    .usage = "image ls [flags]\n"
             "image inspect REFERENCE...\n"
             "image import FILE|- [--name REFERENCE] [-q]\n"
             "image pull REFERENCE [-q]\n"
             "image tag REFERENCE NAME...\n"
             "image history REFERENCE [flags]\n"
             "image rm REFERENCE...\n"
             "image verify [REFERENCE...]\n"
             "image prune [--all]\n"
             "image pin|unpin REFERENCE...\n"
             "image export REFERENCE FILE|-\n"
             "image login REGISTRY [--username USER] [--password-stdin] [--insecure]\n"
             "image logout REGISTRY",
    .about = "Manages images.  verify compares the stored configurations and layers with the pulled "
             "ones.  prune removes unused images without a name; with --all also those with a name.  "
             "Pinned images are never garbage-collected or pruned.  FILE is an OCI or Docker archive, "
             "or the folder of an OCI layout; - is an archive on standard input or output.  import and "
             "pull show their progress on standard error.  login checks user and password against the "
             "registry and stores them in the file of registryAuthFile (mode 0600); all later pulls of "
             "this node can use them.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "get",
    .words =
        "ls|inspect|history|import|pull|tag|rm|verify|prune|pin|unpin|export|login|logout @image|@file ...",
};
