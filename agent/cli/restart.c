/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include "base/codec/percent.h"

#include <jansson.h>

struct restart {
    const char *namespace_, *timeout, *container, *selector;
    bool wait, all;
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct restart, namespace_, "the pods' namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct restart, container), "NAME", "only this container",
      "@container" },
    { "selector", 'l', FLAG_TEXT, offsetof(struct restart, selector), "SELECTOR",
      "all pods with these labels: app=web,tier!=db" },
    { "all", 0, FLAG_SWITCH, offsetof(struct restart, all), NULL, "all pods of the namespace" },
    { "wait", 0, FLAG_SWITCH, offsetof(struct restart, wait), NULL,
      "wait until the new containers are ready" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct restart, timeout), "DURATION",
      "total time limit of --wait (5m); negative: one week" },
    CLI_FLAGS_END,
};

/* The daemon's answer, new; NULL: an error was printed. */
static json_t *ask(struct cli *cli, const struct restart *o, const char *name, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *answer;

    cli_add_pod_path(&url, o->namespace_, name);
    buf_adds(&url, "/restart");
    if (o->container != NULL) {
        buf_adds(&url, "?container=");
        percent_add(&url, o->container);
    }
    answer = cli_call(cli, "POST", url.p, ret_code);
    if (answer != NULL)
        cli_print(cli, "pod/%s restarting\n", name);
    else if (*ret_code == EXIT_NOT_FOUND)
        cli_hint_pod(cli, o->namespace_, name);
    return answer;
}

static int ask_only(struct cli *cli, const struct restart *o, const char *name)
{
    int code = EXIT_OK;

    json_decref(ask(cli, o, name, &code));
    return code;
}

static int ask_and_wait(struct cli *cli, const struct restart *o, const char *name, uint64_t until_ms)
{
    struct wait_goal goal = { .kind = WAIT_RESTART, .text = "--wait" };
    json_auto_t *before = NULL;
    json_auto_t *answer = NULL;
    int code;

    before = cli_get_pod(cli, o->namespace_, name, &code);
    if (before != NULL)
        answer = ask(cli, o, name, &code);
    if (code != EXIT_OK)
        return code;
    cli_flush(cli);
    goal.ending = cli_at(answer, "details.containers");
    if (!json_is_array(goal.ending))
        return cli_error(cli, "the daemon does not say which containers end: it is older than this program");
    code = wait_for_pod(cli, &goal, o->namespace_, name, cli_text(before, "metadata.uid"), until_ms);
    if (code == EXIT_OK)
        cli_print(cli, "pod/%s restarted\n", name);
    return code;
}

/* One pod after the other, so that not all of an application are away. */
static int cli_restart_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct restart o = { .namespace_ = "default", .timeout = "5m" };
    struct cli_targets pods;
    uint64_t until_ms;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    code = wait_take_timeout(cli, o.timeout, &until_ms); /* before anything is restarted */
    if (code == EXIT_OK)
        code = cli_targets(
            cli, command,
            &(struct cli_choice){
                .namespace_ = o.namespace_, .selector = o.selector, .all = o.all, .only_pods = true },
            argc, argv, &pods);
    if (code != EXIT_OK)
        return code;
    if (pods.n == 0)
        code = cli_error(cli, "no matching resources found");
    for (size_t i = 0; i < pods.n; i++)
        cli_keep_first(&code, o.wait ? ask_and_wait(cli, &o, pods.v[i].name, until_ms)
                                     : ask_only(cli, &o, pods.v[i].name));
    cli_targets_done(&pods);
    return code;
}

static const struct cli_exit exits[] = {
    { 0, "the containers are being restarted; with --wait: they are ready" },
    { 1, "there was nothing to restart, the time limit expired, or the pod ended; see standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

static const struct cli_example examples[] = {
    { "restart all containers of a pod", "coracle restart pod web" },
    { "restart all containers and wait until they are ready", "coracle restart pod web --wait" },
    { "one container", "coracle restart pod web -c proxy" },
    { "all pods of an application, one at a time", "coracle restart pods -l app=web --wait" },
    { NULL, NULL },
};

const struct cli_command command_restart = {
    .name = "restart",
    .run = cli_restart_run,
    .summary = "restart containers of pods in place",
    .usage = "restart pod NAME... [-c CONTAINER] [flags]\n"
             "restart pods --all|-l SELECTOR [flags]",
    .about = "Stops all containers of a pod, or one of them, with their hooks and grace period, and "
             "starts them again in place.  The pod keeps its address and its volumes, init containers "
             "do not run again, and the back-off of a crashing container is skipped and not "
             "increased.  Without --wait the command returns as soon as the restart has begun.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "wait delete describe",
    .words = "pod @pod ...",
};
