#include "agent/cli/internal.h"

#include "base/parse.h"

#include <string.h>

struct logs {
    const char *namespace_, *container, *tail, *since, *since_time, *limit;
    bool follow, previous, timestamps;
};

struct sink {
    struct cli *cli;
    bool unread;
};

static bool on_data(const char *data, size_t n, void *arg)
{
    struct sink *s = arg;

    s->unread = !cli_write(s->cli, data, n);
    return !s->unread;
}

static void add_param(struct buf *url, const char *key, const char *value)
{
    buf_addf(url, "&%s=", key);
    cli_add_escaped(url, value);
}

static enum err_code add_options(const struct logs *l, struct buf *url, struct err *e)
{
    int64_t tail = -1, since_ns;
    uint64_t limit;
    char text[24];

    if (l->tail != NULL && parse_i64(l->tail, -1, INT64_MAX, &tail, "--tail", e) != ERR_OK)
        return e->code;
    if (tail >= 0)
        add_param(url, "tailLines", l->tail);
    if (l->limit != NULL && parse_u64(l->limit, 1, INT64_MAX, &limit, "--limit-bytes", e) != ERR_OK)
        return e->code;
    if (l->limit != NULL)
        add_param(url, "limitBytes", l->limit);
    if (l->since != NULL && l->since_time != NULL)
        return err_set(e, ERR_INVALID, "at most one of --since and --since-time may be used");
    if (l->since_time != NULL)
        add_param(url, "sinceTime", l->since_time);
    if (l->since != NULL) {
        if (cli_parse_duration(l->since, &since_ns, e) != ERR_OK)
            return err_wrap(e, "--since");
        if (since_ns > 0) { /* as kubectl: "0s" asks for all */
            snprintf(text, sizeof(text), "%lld", (long long)((since_ns + 999999999) / 1000000000));
            add_param(url, "sinceSeconds", text);
        }
    }
    if (l->follow)
        add_param(url, "follow", "true");
    if (l->previous)
        add_param(url, "previous", "true");
    if (l->timestamps)
        add_param(url, "timestamps", "true");
    return ERR_OK;
}

static int print_log(struct cli *cli, const struct logs *l, const char *name)
{
    json_auto_t *pod = cli_get_pod(cli, l->namespace_, name);
    struct cli_response r = CLI_RESPONSE_INIT;
    struct sink sink = { cli, false };
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code = EXIT_OK;

    if (pod == NULL)
        return EXIT_ERROR;
    if (l->container != NULL && !cli_has_container(pod, l->container))
        return cli_error(cli, "container %s is not valid for pod %s", l->container, name);
    cli_add_pod_path(&url, l->namespace_, name);
    buf_adds(&url, "/log?container=");
    cli_add_escaped(&url, l->container != NULL ? l->container : cli_choose_container(cli, pod));
    if (add_options(l, &url, &e) != ERR_OK)
        return cli_error(cli, "%s", e.text);
    if (cli_request(cli, "GET", url.p, true, on_data, &sink, &r, &e) != ERR_OK)
        code = cli_error(cli, "%s", e.text);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    buf_done(&r.body);
    return code;
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct logs, namespace_, "the pod's namespace (default)"),
    { "container", 'c', FLAG_TEXT, offsetof(struct logs, container), "NAME",
      "which container; else the first", "@container" },
    { "follow", 'f', FLAG_SWITCH, offsetof(struct logs, follow), NULL,
      "go on with what is written, until the container ends" },
    { "previous", 'p', FLAG_SWITCH, offsetof(struct logs, previous), NULL,
      "of the instance before the last restart" },
    { "tail", 0, FLAG_TEXT, offsetof(struct logs, tail), "N", "only the last N lines (-1: all)" },
    { "since", 0, FLAG_TEXT, offsetof(struct logs, since), "DURATION", "only what is newer: 10s, 5m, 1h30m" },
    { "since-time", 0, FLAG_TEXT, offsetof(struct logs, since_time), "TIME",
      "only what is newer than 2026-01-02T03:04:05Z" },
    { "timestamps", 0, FLAG_SWITCH, offsetof(struct logs, timestamps), NULL,
      "begin each line with its time" },
    { "limit-bytes", 0, FLAG_TEXT, offsetof(struct logs, limit), "N", "at most so many bytes" },
    CLI_FLAGS_END,
};

static int run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct logs l = { .namespace_ = "default" };
    const char *name;
    int code;

    if (!cli_parse(cli, command, &l, &argc, argv, &code))
        return code;
    name = argc > 0 ? cli_resource_name(argv[0], cli_pod_kinds) : NULL;
    if (name == NULL || argc > 2)
        return cli_usage_error(cli, command, "expected 'logs [-f] [-p] POD [CONTAINER]'");
    if (argc == 2 && l.container != NULL)
        return cli_usage_error(cli, command, "only one of -c or an inline CONTAINER is allowed");
    if (argc == 2)
        l.container = argv[1];
    return print_log(cli, &l, name);
}

static const struct cli_example examples[] = {
    { "what comes, from now on", "coracle logs -f --tail 0 web" },
    { "why it crashed", "coracle logs -p web" },
    { "the last five minutes of one of several containers", "coracle logs --since 5m web proxy" },
    { NULL, NULL },
};

const struct cli_command command_logs = {
    .name = "logs",
    .run = run,
    .summary = "a container's log",
    .usage = "logs [-f] [-p] POD [CONTAINER] [flags]",
    .about = "Prints the log of a container.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe exec",
    .words = "@pod @container",
};
