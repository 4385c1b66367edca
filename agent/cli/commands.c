/* SPDX-License-Identifier: Apache-2.0 */
/* All commands, in the order in which they are listed; each is described in its own file. */
#include "agent/cli/internal.h"

#include "agent/cli/change/change.h"
#include "agent/cli/image/image.h"
#include "agent/cli/show/show.h"
#include "agent/cli/stream/stream.h"

#include <string.h>

const struct cli_command *const cli_commands[] = {
    &command_run,
    &command_get,
    &command_describe,
    &command_logs,
    &command_events,
    &command_exec,
    &command_attach,
    &command_debug,
    &command_port_forward,
    &command_cp,
    &command_explain,
    &command_wait,
    &command_top,
    &command_validate,
    &command_apply,
    &command_delete,
    &command_edit,
    &command_label,
    &command_annotate,
    &command_scale,
    &command_rollout,
    &command_set,
    &command_config,
    &command_kubeconfig,
    &command_print_kubeconfig,
    &command_kubectl,
    &command_restart,
    &command_image,
    &command_version,
    &command_help,
    &command_completion,
    &command_complete,
    NULL,
};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (strcmp(name, cli_commands[i]->name) == 0)
            return cli_commands[i];
    return NULL;
}

/* ---- run, which is not a client ---- */

static int run_elsewhere(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return cli_usage_error(
        cli, command,
        "run must be the first word, and is the agent itself; a pod: coracle apply -f FILE, "
        "or coracle kubectl run");
}

static const struct cli_example run_examples[] = {
    { "the agent with the pods of a folder", "coracle run --pod-manifest-path /etc/coracle/manifests" },
    { "try it: a node that removes everything when it ends",
      "coracle run --ephemeral --pod-manifest-path \"$PWD/manifests\"" },
    { NULL, NULL },
};

static const struct cli_exit run_exits[] = {
    { 0, "ended on request (SIGTERM, SIGINT)" },
    { 1, "it could not start, or a fatal error occurred" },
    { 2, "an invalid flag or setting" },
    { 0, NULL },
};

static const struct cli_flag run_flags[] = { CLI_FLAGS_END };

const struct cli_command command_run = {
    .name = "run",
    .run = run_elsewhere,
    .summary = "the agent itself (coracle run --help)",
    .usage = "run [FLAG...]",
    .about = "Runs the node agent in the foreground.  coracle(8) describes its flags, signals and "
             "files.",
    .flags = run_flags,
    .examples = run_examples,
    .exits = run_exits,
    .see_also = "config",
    .words = "@nothing",
};
