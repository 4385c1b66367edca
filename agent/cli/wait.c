/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle wait`, like `kubectl wait`: waits until pods meet a condition. */
#include "agent/cli/internal.h"

#include "base/clock.h"

#include <string.h>
#include <strings.h>

struct wait {
    const char *namespace_, *what, *timeout, *selector;
    bool all;
    uint64_t until_ms;
    /* parts of `what`: */
    char condition[128], status[32]; /* condition "": deletion */
};

/* ---- the condition ---- */

/* "delete", "condition=Ready", "condition=Ready=False" */
static bool parse_what(struct wait *w)
{
    const char *condition = w->what + strlen("condition="), *equals;

    if (strcmp(w->what, "delete") == 0)
        return true;
    if (!str_starts(w->what, "condition="))
        return false;
    equals = strchr(condition, '=');
    snprintf(w->condition, sizeof(w->condition), "%.*s", (int)strcspn(condition, "="), condition);
    snprintf(w->status, sizeof(w->status), "%s", equals != NULL ? equals + 1 : "True");
    return w->condition[0] != '\0' && w->status[0] != '\0';
}

static bool is_met(const struct wait *w, const json_t *pod)
{
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(pod, "status.conditions"), i, c) {
        if (strcasecmp(cli_text(c, "type"), w->condition) == 0)
            return strcasecmp(cli_text(c, "status"), w->status) == 0;
    }
    return false;
}

/* ---- one pod ---- */

struct one {
    const struct wait *w;
    char uid[64];
    bool met, gone;
};

static bool wait_on_change(const char *type, json_t *pod, void *arg)
{
    struct one *o = arg;

    o->gone = strcmp(type, "DELETED") == 0 || strcmp(cli_text(pod, "metadata.uid"), o->uid) != 0;
    o->met = o->w->condition[0] == '\0' ? o->gone : !o->gone && is_met(o->w, pod);
    return !o->met && !o->gone;
}

/* The watch begins with the pod's current state; a pod that ended just before is not in it, so check now and
 * then. */
static int wait_follow(struct cli *cli, const char *name, struct one *o)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code = EXIT_OK;

    cli_add_pod_path(&url, o->w->namespace_, name);
    buf_adds(&url, "?watch=true");
    do {
        const uint64_t soon = clock_mono_ms() + CLI_LOOK_AGAIN_MS;

        e = (struct err){ 0 };
        cli->until_ms = soon < o->w->until_ms ? soon : o->w->until_ms;
        if (cli_follow(cli, url.p, wait_on_change, o, &r, &e) == ERR_DEADLINE &&
            !cli_pod_is_there(cli, o->w->namespace_, name)) {
            e.code = ERR_OK;
            o->gone = true;
            o->met = o->w->condition[0] == '\0';
        }
    } while (e.code == ERR_DEADLINE && clock_mono_ms() < o->w->until_ms);
    if (e.code == ERR_DEADLINE)
        code = cli_error(cli, "timed out waiting for the condition on pods/%s", name);
    else if (e.code != ERR_OK)
        code = cli_failed(cli, &e);
    else if (!o->met && !o->gone)
        code = cli_server_error(cli, &r);
    else if (!o->met)
        code = cli_error(cli, "pod %s was deleted before the condition was met", name);
    buf_done(&r.body);
    return code;
}

static int wait_for_one(struct cli *cli, const struct wait *w, const char *name)
{
    struct one o = { .w = w, .met = w->condition[0] == '\0' && !cli_pod_is_there(cli, w->namespace_, name) };
    json_auto_t *pod = NULL;
    int code;

    if (!o.met) {
        pod = cli_get_pod(cli, w->namespace_, name, &code);
        if (pod == NULL)
            return code;
        snprintf(o.uid, sizeof(o.uid), "%s", cli_text(pod, "metadata.uid"));
        o.met = is_met(w, pod); /* never true for a deletion */
        code = o.met ? EXIT_OK : wait_follow(cli, name, &o);
        if (code != EXIT_OK)
            return code;
    }
    cli_say(cli, "pod/%s condition met\n", name);
    return EXIT_OK;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct wait, namespace_, "the pods' namespace (default)"),
    { "for", 0, FLAG_TEXT, offsetof(struct wait, what), "WHAT",
      "condition=Ready (default), condition=TYPE[=STATUS] or delete", "condition=Ready|delete" },
    { "selector", 'l', FLAG_TEXT, offsetof(struct wait, selector), "SELECTOR",
      "wait for all pods with these labels: app=web,tier!=db" },
    { "all", 0, FLAG_SWITCH, offsetof(struct wait, all), NULL, "wait for all pods of the namespace" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct wait, timeout), "DURATION",
      "total time limit (30s); negative: a week" },
    CLI_FLAGS_END,
};

static int wait_for_all(struct cli *cli, const struct wait *w, int argc, char **argv)
{
    const bool kind = strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds);
    int code = EXIT_OK;

    for (int i = kind; i < argc; i++) {
        const char *name = cli_resource_name(argv[i], cli_pod_kinds);

        cli_keep_first(&code, name != NULL ? wait_for_one(cli, w, name) : cli_no_pod(cli, argv[i]));
    }
    return code;
}

/* Collects the pods that exist. */
static int wait_for_selected(struct cli *cli, const struct wait *w)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL, *sorted = NULL;
    const json_t *pod;
    size_t i;
    int code;

    buf_adds(&url, "/api/v1/namespaces/");
    cli_add_escaped(&url, w->namespace_);
    buf_adds(&url, "/pods?labelSelector=");
    cli_add_escaped(&url, w->selector != NULL ? w->selector : "");
    list = cli_get(cli, url.p, &code);
    if (list == NULL)
        return code;
    sorted = cli_sorted(cli_at(list, "items"), cli_by_namespace_and_name);
    if (json_array_size(sorted) == 0 && w->condition[0] != '\0')
        return cli_error(cli, "no matching resources found");
    json_array_foreach (sorted, i, pod)
        cli_keep_first(&code, wait_for_one(cli, w, cli_text(pod, "metadata.name")));
    return code;
}

static int cli_wait_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct wait w = { .namespace_ = "default", .what = "condition=Ready", .timeout = "30s" };
    int64_t timeout_ns = INT64_C(7) * 24 * 3600 * 1000000000;
    struct err e = { 0 };
    bool selected, kind;
    int code;

    if (!cli_parse(cli, command, &w, &argc, argv, &code))
        return code;
    selected = w.all || w.selector != NULL;
    kind = argc == 1 && strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds);
    if (selected && !kind)
        return cli_usage_error(cli, command, "expected 'wait pods' with --all or -l, and no names");
    if (!selected && (argc == 0 || kind))
        return cli_usage_error(cli, command, "you must specify pods");
    if (!parse_what(&w))
        return cli_wrong(cli, "--for: condition=TYPE, condition=TYPE=STATUS or delete, not \"%s\"", w.what);
    if (w.timeout[0] != '-' && cli_parse_duration(w.timeout, &timeout_ns, &e) != ERR_OK) {
        err_wrap(&e, "--timeout");
        return cli_failed(cli, &e);
    }
    w.until_ms = clock_mono_ms() + (uint64_t)(timeout_ns / 1000000) + 1;
    return selected ? wait_for_selected(cli, &w) : wait_for_all(cli, &w, argc, argv);
}

static const struct cli_example examples[] = {
    { "wait at most a minute until a pod is ready", "coracle wait pod/web --timeout 1m" },
    { "wait until a pod is gone", "coracle wait pod/web --for delete" },
    { "wait until all pods of an application are ready", "coracle wait pods -l app=web" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "all pods met the condition" },
    { 1, "the time limit expired, or a pod was deleted; see standard error" },
    { 2, "wrong usage: a word, a flag or its value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_wait = {
    .name = "wait",
    .run = cli_wait_run,
    .summary = "wait until pods are ready, or gone",
    .usage = "wait pod/NAME... [--for WHAT] [--timeout DURATION] [flags]\n"
             "wait pods --all|-l SELECTOR [--for WHAT] [--timeout DURATION] [flags]",
    .about = "Waits until pods meet a condition or are gone.  A missing pod is an error, unless waiting for "
             "its deletion.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "get explain",
    .words = "pod @pod ...",
};
