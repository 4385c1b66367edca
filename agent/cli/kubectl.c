/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle kubeconfig` and `coracle kubectl`: the way to the local API of a lone node. */
#include "agent/api/yaml/yaml.h"
#include "agent/cli/internal.h"
#include "base/codec/json.h"
#include "base/files/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As YAML, malloc'ed: it has a key. NULL: an error was printed. */
static char *kubectl_config(struct cli *cli, int *ret_code)
{
    json_auto_t *config = cli_get(cli, "/kubeconfig", ret_code);
    char *text;

    if (config == NULL)
        return NULL;
    text = yaml_from_json(config);
    if (text == NULL)
        *ret_code = cli_error(cli, "out of memory");
    return text;
}

static int cli_kubectl_print(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    int code = EXIT_OK, unused = 0;
    char *text;

    if (!cli_parse(cli, command, &unused, &argc, argv, &code))
        return code;
    if (argc > 0)
        return cli_usage_error(cli, command, "unexpected word \"%s\"", argv[0]);
    text = kubectl_config(cli, &code);
    if (text == NULL)
        return code;
    cli_write(cli, text, strlen(text));
    explicit_bzero(text, strlen(text));
    free(text);
    return EXIT_OK;
}

static const struct cli_flag no_flags[] = { CLI_FLAGS_END };

static const struct cli_example print_examples[] = {
    { "store it for kubectl", "(umask 077; coracle kubeconfig > ~/.kube/config)" },
    { NULL, NULL },
};

static const struct cli_exit kubectl_exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };

const struct cli_command command_print_kubeconfig = {
    .name = "kubeconfig",
    .run = cli_kubectl_print,
    .summary = "print a kubeconfig for the local API of this node",
    .usage = "kubeconfig",
    .about = "Prints a kubeconfig for the API of this node; requires the setting localAPI "
             "(--local-api).  The kubeconfig contains the administrator's private key, so everyone who "
             "can read it has full control of the node.  Requires root.",
    .flags = no_flags,
    .examples = print_examples,
    .exits = kubectl_exits,
    .see_also = "kubectl",
    .words = "@nothing",
};

/* ---- kubectl ---- */

/* The file has no name: it is gone with the last process that has it open. */
static int kubectl_exec(struct cli *cli, char *text, int argc, char **argv)
{
    int fd = memfd_create("kubeconfig", 0), error = fd < 0 ? errno : fs_write_all(fd, text, strlen(text));
    char path[64], **words;

    explicit_bzero(text, strlen(text));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (error == 0 && setenv("KUBECONFIG", path, 1) != 0)
        error = errno;
    if (error != 0)
        return cli_error(cli, "cannot keep the kubeconfig in memory: %s", strerror(error));
    words = calloc((size_t)argc + 2, sizeof(*words));
    if (words == NULL)
        return cli_error(cli, "out of memory");
    words[0] = (char *)(uintptr_t) "kubectl";
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    cli_flush(cli);
    execvp("kubectl", words);
    error = errno;
    free(words);
    return cli_error(cli, "kubectl: %s%s", strerror(error),
                     error == ENOENT ? "; it is a program of its own (package kubernetes-client)" : "");
}

static int cli_kubectl_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    int code = EXIT_OK, unused = 0;
    char *text;

    if (!cli_parse(cli, command, &unused, &argc, argv, &code))
        return code;
    text = kubectl_config(cli, &code);
    if (text == NULL)
        return code;
    code = kubectl_exec(cli, text, argc, argv);
    free(text);
    return code;
}

static const struct cli_example kubectl_examples[] = {
    { "the pods of this node", "coracle kubectl get pods -A" },
    { "show what a manifest would change", "coracle kubectl diff -f web.yaml" },
    { NULL, NULL },
};

const struct cli_command command_kubectl = {
    .name = "kubectl",
    .run = cli_kubectl_run,
    .summary = "run kubectl against this node",
    .usage = "kubectl WORD...",
    .about = "Runs the installed kubectl with the kubeconfig of `coracle kubeconfig`, which is kept in "
             "memory only.  The exit code is that of kubectl.  Requires root.",
    .flags = no_flags,
    .examples = kubectl_examples,
    .exits = kubectl_exits,
    .see_also = "kubeconfig",
    .words = "@nothing...",
    .rest_from = 1,
};
