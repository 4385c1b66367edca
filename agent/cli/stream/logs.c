/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/stream/internal.h"

#include "base/clock.h"
#include "base/codec/percent.h"
#include "base/parse.h"

#include <string.h>

#define SELECTED_TAIL "10" /* kubectl's default with a selector and without --tail */
#define STREAMS_MAX "5"

struct logs {
    const char *namespace_, *container, *tail, *since, *since_time, *limit, *selector, *max_streams;
    bool follow, previous, timestamps, all_containers, prefix, ignore_errors;
};

static void cli_logs_add_param(struct buf *url, const char *key, const char *value)
{
    buf_addf(url, "&%s=", key);
    percent_add(url, value);
}

static enum err_code add_options(const struct logs *l, struct buf *url, struct err *e)
{
    int64_t tail = -1, since_ns;
    uint64_t limit;
    char text[24];

    if (l->tail != NULL && parse_i64(l->tail, -1, INT64_MAX, &tail, "--tail", e) != ERR_OK)
        return e->code;
    if (tail >= 0)
        cli_logs_add_param(url, "tailLines", l->tail);
    if (l->limit != NULL && parse_u64(l->limit, 1, INT64_MAX, &limit, "--limit-bytes", e) != ERR_OK)
        return e->code;
    if (l->limit != NULL)
        cli_logs_add_param(url, "limitBytes", l->limit);
    if (l->since != NULL && l->since_time != NULL)
        return err_set(e, ERR_INVALID, "at most one of --since and --since-time may be used");
    if (l->since_time != NULL) {
        if (clock_parse(l->since_time, &since_ns, e) != ERR_OK)
            return err_wrap(e, "--since-time");
        cli_logs_add_param(url, "sinceTime", l->since_time);
    }
    if (l->since != NULL) {
        if (cli_parse_duration(l->since, &since_ns, e) != ERR_OK)
            return err_wrap(e, "--since");
        if (since_ns > 0) { /* as in kubectl, "0s" means everything */
            snprintf(text, sizeof(text), "%lld", (long long)((since_ns + 999999999) / 1000000000));
            cli_logs_add_param(url, "sinceSeconds", text);
        }
    }
    if (l->follow)
        cli_logs_add_param(url, "follow", "true");
    if (l->previous)
        cli_logs_add_param(url, "previous", "true");
    if (l->timestamps)
        cli_logs_add_param(url, "timestamps", "true");
    return ERR_OK;
}

/* ---- selecting logs ---- */

static enum err_code cli_logs_add_container(const struct logs *l, const char *pod, const char *container,
                                            struct log_streams *streams, struct err *e)
{
    buf_auto url = BUF_INIT(64 * 1024), origin = BUF_INIT(1024);

    cli_add_pod_path(&url, l->namespace_, pod);
    buf_adds(&url, "/log?container=");
    percent_add(&url, container);
    if (add_options(l, &url, e) != ERR_OK || buf_check(&url, e) != ERR_OK)
        return e->code;
    buf_addf(&origin, "pod/%s/%s", pod, container);
    return log_streams_add(streams, url.p, origin.p, l->prefix) ? ERR_OK : err_nomem(e);
}

static enum err_code add_all_containers(const struct logs *l, const json_t *pod, struct log_streams *streams,
                                        struct err *e)
{
    static const char *const lists[] = { "spec.initContainers", "spec.containers",
                                         "spec.ephemeralContainers" };
    const json_t *c;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        json_array_foreach (cli_at(pod, lists[k]), i, c) {
            if (cli_logs_add_container(l, cli_text(pod, "metadata.name"), cli_text(c, "name"), streams, e) !=
                ERR_OK)
                return e->code;
        }
    }
    return ERR_OK;
}

static enum err_code cli_logs_add_pod(struct cli *cli, const struct logs *l, const json_t *pod,
                                      struct log_streams *streams, struct err *e)
{
    const char *name = cli_text(pod, "metadata.name");

    if (l->all_containers)
        return add_all_containers(l, pod, streams, e);
    if (l->container != NULL && cli_find_container(pod, l->container) == NULL)
        return err_set(e, ERR_NOT_FOUND, "container %s is not valid for pod %s", l->container, name);
    return cli_logs_add_container(
        l, name, l->container != NULL ? l->container : cli_choose_container(cli, pod), streams, e);
}

static json_t *cli_logs_selected(struct cli *cli, const struct logs *l, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);

    buf_adds(&url, "/api/v1/namespaces/");
    percent_add(&url, l->namespace_);
    buf_adds(&url, "/pods?labelSelector=");
    percent_add(&url, l->selector);
    return cli_get(cli, url.p, ret_code);
}

static int find_logs(struct cli *cli, struct logs *l, const char *name, struct log_streams *streams)
{
    int code;
    json_auto_t *found =
        l->selector != NULL ? cli_logs_selected(cli, l, &code) : cli_get_pod(cli, l->namespace_, name, &code);
    const json_t *items = cli_at(found, "items"), *pod;
    struct err e = { 0 };
    size_t i;

    if (found == NULL)
        return code;
    if (l->selector == NULL)
        return cli_logs_add_pod(cli, l, found, streams, &e) == ERR_OK ? EXIT_OK : cli_failed(cli, &e);
    if (l->tail == NULL)
        l->tail = SELECTED_TAIL;
    json_array_foreach (items, i, pod) {
        if (cli_logs_add_pod(cli, l, pod, streams, &e) != ERR_OK)
            return cli_failed(cli, &e);
    }
    if (json_array_size(items) == 0)
        cli_note(cli, "No resources found in %s namespace.\n", l->namespace_);
    return EXIT_OK;
}

static int print_logs(struct cli *cli, struct logs *l, const char *name)
{
    struct log_streams streams = { 0 };
    struct err e = { 0 };
    uint64_t max;
    int code;

    if (parse_u64(l->max_streams, 1, 1000, &max, "--max-log-requests", &e) != ERR_OK)
        return cli_failed(cli, &e);
    code = find_logs(cli, l, name, &streams);
    if (code == EXIT_OK && l->follow && streams.n > max)
        code = cli_wrong(cli,
                         "you are attempting to follow %zu log streams, but maximum allowed concurrency is "
                         "%llu, use --max-log-requests to increase the limit",
                         streams.n, (unsigned long long)max);
    else if (code == EXIT_OK)
        code = log_streams_print(cli, &streams, l->follow, l->ignore_errors);
    log_streams_done(&streams);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct logs, namespace_, "the pod's namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct logs, container), "NAME",
      "the container (default: the first)", "@container" },
    { "follow", 'f', FLAG_SWITCH, offsetof(struct logs, follow), NULL,
      "follow the log until the container ends" },
    { "previous", 'p', FLAG_SWITCH, offsetof(struct logs, previous), NULL,
      "the log of the previous run of the container" },
    { "tail", 0, FLAG_TEXT, offsetof(struct logs, tail), "N", "only the last N lines (-1: all)" },
    { "since", 0, FLAG_TEXT, offsetof(struct logs, since), "DURATION",
      "only lines newer than this: 10s, 5m, 1h30m" },
    { "since-time", 0, FLAG_TEXT, offsetof(struct logs, since_time), "TIME",
      "only lines newer than this time: 2026-01-02T03:04:05Z" },
    { "timestamps", 0, FLAG_SWITCH, offsetof(struct logs, timestamps), NULL,
      "prefix each line with its time" },
    { "limit-bytes", 0, FLAG_TEXT, offsetof(struct logs, limit), "N", "maximum number of bytes per log" },
    { "selector", 'l', FLAG_TEXT, offsetof(struct logs, selector), "LABELS",
      "logs of all pods with these labels (app=web,tier!=db), the last " SELECTED_TAIL " lines by default" },
    { "all-containers", 0, FLAG_SWITCH, offsetof(struct logs, all_containers), NULL,
      "logs of all containers of the pod" },
    { "prefix", 0, FLAG_SWITCH, offsetof(struct logs, prefix), NULL,
      "prefix each line with its pod and container" },
    { "max-log-requests", 0, FLAG_TEXT, offsetof(struct logs, max_streams), "N",
      "maximum number of logs to follow in parallel (" STREAMS_MAX ")" },
    { "ignore-errors", 0, FLAG_SWITCH, offsetof(struct logs, ignore_errors), NULL,
      "continue if a log cannot be read (as -f does), and exit with 0" },
    CLI_FLAGS_END,
};

static int cli_logs_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct logs l = { .namespace_ = "default", .max_streams = STREAMS_MAX };
    const char *name = NULL;
    str_auto made = NULL;
    int code;

    if (!cli_parse(cli, command, &l, &argc, argv, &code))
        return code;
    if (l.selector != NULL && argc > 0)
        return cli_usage_error(cli, command, "only a selector (-l) or a POD name is allowed");
    if (argc > 0 && (name = cli_pod_of(cli, argv[0], l.namespace_, &made, &code)) == NULL)
        return code;
    if (l.selector == NULL && (name == NULL || argc > 2))
        return cli_usage_error(cli, command, "expected 'logs [-f] [-p] (POD [CONTAINER] | -l LABELS)'");
    if (argc == 2 && l.container != NULL)
        return cli_usage_error(cli, command, "only one of -c or an inline CONTAINER is allowed");
    if (argc == 2)
        l.container = argv[1];
    if (l.all_containers && l.container != NULL)
        return cli_usage_error(cli, command, "--all-containers should not be specified with container name");
    return print_logs(cli, &l, name);
}

static const struct cli_example examples[] = {
    { "follow new lines only", "coracle logs -f --tail 0 web" },
    { "find out why it crashed", "coracle logs -p web" },
    { "follow all pods of an application, each line with its origin",
      "coracle logs -f -l app=web --all-containers --prefix" },
    { "the last five minutes of one of several containers", "coracle logs --since 5m web proxy" },
    { NULL, NULL },
};

const struct cli_command command_logs = {
    .name = "logs",
    .run = cli_logs_run,
    .summary = "print a container's log",
    .usage = "logs [-f] [-p] POD [CONTAINER] [flags]\nlogs [-f] [-p] -l LABELS [flags]",
    .about = "Prints the logs of one or more containers, including rotated files.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe exec",
    .words = "@pod @container",
};
