/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "base/clock.h"
#include "base/codec/percent.h"

#include <string.h>

/* " (next try in 12s)" */
static void add_next_try(const struct cli *cli, const char *when, struct buf *text)
{
    char left[CLI_AGE_SIZE];
    int64_t ns;

    if (clock_parse(when, &ns, ERR_IGNORED) != ERR_OK)
        return;
    cli_duration(ns - cli_now(cli) + 999999999, left); /* rounded up, so that a countdown does not show 0 */
    if (ns <= cli_now(cli))
        buf_adds(text, " (next try now)");
    else
        buf_addf(text, " (next try in %s)", left);
}

static void add_steps(const struct cli *cli, const json_t *steps, struct buf *text)
{
    const json_t *s;
    size_t i;

    json_array_foreach (steps, i, s) {
        char age[CLI_AGE_SIZE] = "";

        if (cli_text(s, "since")[0] != '\0')
            cli_age(cli, cli_text(s, "since"), age);
        buf_addf(text, "  %s\t%s\t%s\t", cli_text(s, "name"), cli_text(s, "state"), age);
        cli_add_clean(text, cli_text(s, "detail"));
        add_next_try(cli, cli_text(s, "nextTry"), text);
        buf_addc(text, '\n');
    }
}

/* Printed before the steps, because users look for them first. */
static void add_why(const json_t *why, struct buf *text)
{
    const json_t *line;
    size_t i;

    if (json_array_size(why) > 0)
        buf_adds(text, "Why:\n");
    json_array_foreach (why, i, line) {
        buf_adds(text, "  ");
        cli_add_clean(text, json_string_value(line) != NULL ? json_string_value(line) : "");
        buf_addc(text, '\n');
    }
}

static void add_operations(const json_t *operations, struct buf *text)
{
    const json_t *o;
    size_t i;

    if (json_array_size(operations) == 0)
        return;
    buf_adds(text, "Operations in progress:\n");
    json_array_foreach (operations, i, o) {
        char age[CLI_AGE_SIZE];

        cli_duration(cli_number(o, "ageMs") * 1000000, age);
        buf_addf(text, "  %s\t%s\t", cli_text(o, "name"), age);
        cli_add_clean(text, cli_text(o, "subject"));
        buf_addc(text, '\n');
    }
}

/* Warnings and errors of the daemon, the newest of identical ones. */
static void cli_explain_add_said(const struct cli *cli, const json_t *said, struct buf *text)
{
    const json_t *s;
    size_t i;

    if (json_array_size(said) == 0)
        return;
    buf_adds(text, "Recent log messages:\n");
    json_array_foreach (said, i, s) {
        char age[CLI_AGE_SIZE] = "";

        cli_age(cli, cli_text(s, "last"), age);
        buf_addf(text, "  %s\t%s ago", cli_text(s, "level"), age);
        if (cli_number(s, "times") > 1)
            buf_addf(text, " (x%lld)", (long long)cli_number(s, "times"));
        buf_addc(text, '\t');
        cli_add_clean(text, cli_text(s, "text"));
        buf_addc(text, '\n');
    }
}

struct explain {
    const char *namespace_, *format;
};

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct explain, namespace_, "the pod's namespace (default)"),
    CLI_OUTPUT(struct explain, format, "json|yaml", "json or yaml: all data, as sent by the daemon"),
    CLI_FLAGS_END,
};

/* "node", or the pod's name; NULL: neither. */
static const char *cli_explain_parse(int argc, char **argv, bool *ret_node)
{
    *ret_node = argc == 1 && strcmp(argv[0], "node") == 0; /* a pod of that name: "pod node" */
    if (argc == 2 && strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds))
        return argv[1];
    if (argc != 1 || (strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds)))
        return NULL; /* a pod is called "pod": "pod pod" */
    return cli_resource_name(argv[0], cli_pod_kinds);
}

static json_t *cli_explain_ask(struct cli *cli, const struct explain *x, const char *pod /* NULL: the node */,
                               int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *value;

    buf_adds(&url, "/explain");
    if (pod != NULL) {
        buf_addc(&url, '/');
        percent_add(&url, x->namespace_);
        buf_addc(&url, '/');
        percent_add(&url, pod);
    }
    value = cli_get(cli, url.p, ret_code);
    if (*ret_code == EXIT_NOT_FOUND && pod != NULL)
        cli_hint_pod(cli, x->namespace_, pod);
    return value;
}

static void cli_explain_show(struct cli *cli, const json_t *value, bool node)
{
    buf_auto text = BUF_INIT(64u << 20), shown = BUF_INIT(64u << 20);
    char age[CLI_AGE_SIZE] = "";

    if (cli_text(value, "since")[0] != '\0')
        cli_age(cli, cli_text(value, "since"), age);
    if (node)
        buf_addf(&text, "Node:\t%s\n", cli_text(value, "node"));
    else
        buf_addf(&text, "Pod:\t%s\nUID:\t%s\n", cli_text(value, "pod"), cli_text(value, "uid"));
    buf_addf(&text, "State:\t%s%s%s\n", cli_text(value, "state"), age[0] != '\0' ? " for " : "", age);
    add_why(cli_at(value, "why"), &text);
    buf_adds(&text, "Steps:\n");
    add_steps(cli, cli_at(value, "steps"), &text);
    add_operations(cli_at(value, "operations"), &text);
    cli_explain_add_said(cli, cli_at(value, "said"), &text);
    cli_align(text.p, 0, 2, &shown);
    cli_show_described(cli, &shown);
}

static int cli_explain_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct explain x = { .namespace_ = "default" };
    json_auto_t *value = NULL;
    const char *name;
    bool node;
    int code;

    if (!cli_parse(cli, command, &x, &argc, argv, &code))
        return code;
    if (argc == 1 && cli_explain_is_path(argv[0]))
        return x.format == NULL ? cli_explain_fields(cli, argv[0])
                                : cli_wrong(cli, "-o is for a pod or the node, not for fields");
    name = cli_explain_parse(argc, argv, &node);
    if (name == NULL)
        return cli_usage_error(cli, command, "you must specify one pod, node, or a field like pod.spec");
    if (cli_check_format(cli, x.format) != EXIT_OK)
        return EXIT_USAGE;
    value = cli_explain_ask(cli, &x, node ? NULL : name, &code);
    if (value == NULL)
        return code;
    if (x.format != NULL)
        return cli_print_value(cli, value, x.format);
    cli_explain_show(cli, value, node);
    return EXIT_OK;
}

static const struct cli_example examples[] = {
    { "find out why a pod is not starting", "coracle explain pod web" },
    { "list the problems of the node", "coracle explain node" },
    { "the fields of a container, and their support", "coracle explain pod.spec.containers" },
    { NULL, NULL },
};

const struct cli_command command_explain = {
    .name = "explain",
    .run = cli_explain_run,
    .summary = "show why a pod is not running, and what it is waiting for",
    .usage = "explain pod NAME [flags]\n"
             "explain node [flags]\n"
             "explain pod[.FIELD...]",
    .about = "For a pod: shows why it is not running, or how it ended, with exit codes, output of "
             "failed probes and hooks, OOM kills and limits; then its steps with their times, and what "
             "the pod is waiting for.  For the node: shows its problems, operations in progress and "
             "the latest warnings.  For a field such as pod.spec (also of a configmap, secret or "
             "priorityclass): shows its type, default, allowed values, support and subfields, without "
             "contacting the daemon.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe get",
    .words = "pod|node @pod",
};
