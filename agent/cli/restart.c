/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include <jansson.h>

struct restart {
    const char *namespace_;
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct restart, namespace_, "the pod's namespace (default)"),
    CLI_FLAGS_END,
};

static int cli_restart_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct restart o = { .namespace_ = "default" };
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *answer;
    const char *name;
    int code;

    if (!cli_parse_one_pod(cli, command, &o, argc, argv, &name, &code))
        return code;
    cli_add_pod_path(&url, o.namespace_, name);
    buf_adds(&url, "/restart");
    answer = cli_call(cli, "POST", url.p, &code);
    if (answer == NULL) {
        if (code == EXIT_NOT_FOUND)
            cli_hint_pod(cli, o.namespace_, name);
        return code;
    }
    json_decref(answer);
    cli_say(cli, "pod/%s restarted\n", name);
    return EXIT_OK;
}

static const struct cli_example examples[] = {
    { "restart all containers of a pod", "coracle restart pod web" },
    { "watch the result", "coracle get pod web -w" },
    { NULL, NULL },
};

const struct cli_command command_restart = {
    .name = "restart",
    .run = cli_restart_run,
    .summary = "restart the containers of a pod, in place",
    .usage = "restart pod NAME [flags]",
    .about = "Ends all containers of a pod, with their hooks and grace period, and starts them again in "
             "place: the "
             "pod keeps its address and its volumes, init containers do not run again, and the back-off of a "
             "crashing container is neither awaited nor increased.  It does not wait until they run "
             "again.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "delete describe",
    .words = "pod @pod",
};
