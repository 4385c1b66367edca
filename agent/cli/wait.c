/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle wait`, like `kubectl wait`: waits until objects meet a condition. Pods are watched, objects of
 * other kinds, of which the socket has no watch, are polled. */
#include "agent/cli/internal.h"

#include "base/clock.h"
#include "base/codec/percent.h"

#include <string.h>
#include <time.h>

struct wait {
    const char *namespace_, *what, *timeout, *selector;
    bool all;
    uint64_t until_ms;
    struct wait_goal goal;
};

/* ---- one pod ---- */

struct one {
    const struct wait_goal *goal;
    char uid[64]; /* "": not known yet */
    bool met, lost, gone;
    json_t *pod; /* that is lost; owned */
};

static void judge(struct one *o, const json_t *pod)
{
    o->met = wait_goal_is_met(o->goal, pod);
    o->lost = !o->met && wait_goal_is_lost(o->goal, pod);
    if (o->lost && o->pod == NULL)
        o->pod = json_deep_copy(pod);
}

static bool wait_on_change(const char *type, json_t *pod, void *arg)
{
    struct one *o = arg;

    if (o->uid[0] == '\0')
        snprintf(o->uid, sizeof(o->uid), "%s", cli_text(pod, "metadata.uid"));
    o->gone = strcmp(type, "DELETED") == 0 || strcmp(cli_text(pod, "metadata.uid"), o->uid) != 0;
    if (o->gone)
        o->met = o->goal->kind == WAIT_DELETE;
    else
        judge(o, pod);
    return !o->met && !o->lost && !o->gone;
}

/* The watch begins with the pod's current state; a pod that ended just before is not in it, so check now and
 * then. */
static enum err_code wait_follow(struct cli *cli, const char *namespace_, const char *name, uint64_t until_ms,
                                 struct one *o, struct cli_response *r, struct err *e)
{
    buf_auto url = BUF_INIT(64 * 1024);

    /* of the list, since the pod itself may not be there yet */
    buf_adds(&url, "/api/v1/namespaces/");
    percent_add(&url, namespace_);
    buf_adds(&url, "/pods?watch=true&fieldSelector=metadata.name%3D");
    percent_add(&url, name);
    do {
        const uint64_t soon = clock_mono_ms() + CLI_LOOK_AGAIN_MS;

        *e = (struct err){ 0 };
        cli->until_ms = soon < until_ms ? soon : until_ms;
        if (cli_follow(cli, url.p, wait_on_change, o, r, e) == ERR_DEADLINE && o->uid[0] != '\0' &&
            !cli_pod_is_there(cli, namespace_, name)) {
            e->code = ERR_OK;
            o->gone = true;
            o->met = o->goal->kind == WAIT_DELETE;
        }
    } while (e->code == ERR_DEADLINE && clock_mono_ms() < until_ms);
    return e->code;
}

int wait_take_timeout(struct cli *cli, const char *text, uint64_t *ret_until_ms)
{
    int64_t ns = INT64_C(7) * 24 * 3600 * 1000000000;
    struct err e = { 0 };

    if (text[0] != '-' && cli_parse_duration(text, &ns, &e) != ERR_OK) {
        err_wrap(&e, "--timeout");
        return cli_failed(cli, &e);
    }
    *ret_until_ms = clock_mono_ms() + (uint64_t)(ns / 1000000) + 1;
    return EXIT_OK;
}

int wait_for_pod(struct cli *cli, const struct wait_goal *g, const char *namespace_, const char *name,
                 const char *uid, uint64_t until_ms)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    struct one o = { .goal = g };
    struct err e = { 0 };
    int code = EXIT_OK;

    snprintf(o.uid, sizeof(o.uid), "%s", uid);
    if (wait_follow(cli, namespace_, name, until_ms, &o, &r, &e) == ERR_DEADLINE)
        code = cli_error(cli, "timed out waiting for the condition on pods/%s", name);
    else if (e.code != ERR_OK)
        code = cli_failed(cli, &e);
    else if (o.lost)
        code = wait_goal_print_lost(cli, g, name, o.pod);
    else if (!o.met && !o.gone)
        code = cli_server_error(cli, &r);
    else if (!o.met)
        code = cli_error(cli, "pod %s was deleted before the condition was met", name);
    json_decref(o.pod);
    buf_done(&r.body);
    return code;
}

static int wait_for_named_pod(struct cli *cli, const struct wait *w, const char *name)
{
    const bool there = w->goal.kind == WAIT_CONDITION || w->goal.kind == WAIT_JSONPATH ||
                       cli_pod_is_there(cli, w->namespace_, name);
    json_auto_t *pod = NULL;
    int code = EXIT_OK;

    if (there) {
        pod = cli_get_pod(cli, w->namespace_, name, &code);
        if (pod == NULL)
            return code;
    }
    if (pod == NULL ? w->goal.kind == WAIT_CREATE : !wait_goal_is_met(&w->goal, pod))
        code = pod != NULL && wait_goal_is_lost(&w->goal, pod)
                   ? wait_goal_print_lost(cli, &w->goal, name, pod)
                   : wait_for_pod(cli, &w->goal, w->namespace_, name, cli_text(pod, "metadata.uid"),
                                  w->until_ms);
    return code;
}

/* ---- an object of another kind ---- */

enum { LOOK_AGAIN_MS = 200 };

/* NULL with EXIT_OK: it is not there. */
static json_t *look(struct cli *cli, const struct wait *w, const struct cli_target *t, int *ret_code)
{
    const bool before = cli->ignore_not_found;
    json_t *found;

    cli->ignore_not_found = true;
    found = cli_get_one(cli, t->kind, w->namespace_, t->name, ret_code);
    cli->ignore_not_found = before;
    return found;
}

static int wait_for_object(struct cli *cli, const struct wait *w, const struct cli_target *t)
{
    const struct timespec pause = { .tv_nsec = LOOK_AGAIN_MS * 1000000L };
    bool first = true;

    for (;; first = false) {
        int code;
        json_auto_t *found = look(cli, w, t, &code);

        if (code != EXIT_OK)
            return code;
        if (found == NULL ? w->goal.kind == WAIT_DELETE : wait_goal_is_met(&w->goal, found))
            return EXIT_OK;
        if (found == NULL && w->goal.kind != WAIT_CREATE) {
            if (!first)
                return cli_error(cli, "%s %s was deleted before the condition was met", t->kind->singular,
                                 t->name);
            json_decref(cli_get_one(cli, t->kind, w->namespace_, t->name, &code)); /* prints the error */
            if (code != EXIT_OK)
                return code;
            continue; /* it has just come */
        }
        if (clock_mono_ms() >= w->until_ms)
            return cli_error(cli, "timed out waiting for the condition on %s/%s", t->kind->plural, t->name);
        nanosleep(&pause, NULL);
    }
}

static int wait_for_one(struct cli *cli, const struct wait *w, const struct cli_target *t)
{
    const int code =
        t->kind->id == API_KIND_POD ? wait_for_named_pod(cli, w, t->name) : wait_for_object(cli, w, t);
    char name[CLI_FULL_NAME_SIZE];

    cli_full_name(t->kind, t->name, name);
    if (code == EXIT_OK)
        cli_print(cli, "%s condition met\n", name);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct wait, namespace_, "the objects' namespace (default)"),
    { "for", 0, FLAG_TEXT, offsetof(struct wait, what), "WHAT",
      "condition=Ready (default), condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create or delete",
      "condition=Ready|create|delete" },
    { "selector", 'l', FLAG_TEXT, offsetof(struct wait, selector), "SELECTOR",
      "wait for all objects with these labels: app=web,tier!=db" },
    { "all", 0, FLAG_SWITCH, offsetof(struct wait, all), NULL, "wait for all objects of the namespace" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct wait, timeout), "DURATION",
      "total time limit (30s); negative: one week" },
    CLI_FLAGS_END,
};

static int cli_wait_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct wait w = { .namespace_ = "default", .what = "condition=Ready", .timeout = "30s" };
    struct cli_targets targets;
    struct err e = { 0 };
    int code;

    if (!cli_parse(cli, command, &w, &argc, argv, &code))
        return code;
    if (wait_goal_parse(&w.goal, w.what, &e) != ERR_OK)
        return cli_wrong(cli, "--for: %s, not \"%s\"", e.text, w.what);
    if ((w.all || w.selector != NULL) && w.goal.kind == WAIT_CREATE)
        return cli_usage_error(cli, command, "--for create waits for objects with names");
    code = wait_take_timeout(cli, w.timeout, &w.until_ms);
    if (code == EXIT_OK)
        code = cli_targets(
            cli, command,
            &(struct cli_choice){ .namespace_ = w.namespace_, .selector = w.selector, .all = w.all }, argc,
            argv, &targets);
    if (code != EXIT_OK)
        return code;
    if (targets.n == 0 && w.goal.kind != WAIT_DELETE)
        code = cli_error(cli, "no matching resources found");
    for (size_t i = 0; i < targets.n; i++)
        cli_keep_first(&code, wait_for_one(cli, &w, &targets.v[i]));
    cli_targets_done(&targets);
    return code;
}

static const struct cli_example examples[] = {
    { "wait at most a minute until a pod is ready", "coracle wait pod/web --timeout 1m" },
    { "wait until a pod is gone", "coracle wait pod/web --for delete" },
    { "wait until a pod has succeeded", "coracle wait pod/job --for jsonpath={.status.phase}=Succeeded" },
    { "wait until all pods of an application are ready", "coracle wait pods -l app=web" },
    { "wait until a Deployment is complete",
      "coracle wait deployment/web --for condition=Available --timeout 5m" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "all objects met the condition" },
    { 1, "the time limit expired, an object was deleted, or a pod has ended and can no longer meet the "
         "condition" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_wait = {
    .name = "wait",
    .run = cli_wait_run,
    .summary = "wait for a condition, a value, or the deletion of objects",
    .usage = "wait KIND/NAME... [--for WHAT] [--timeout DURATION] [flags]\n"
             "wait KIND NAME...|--all|-l SELECTOR [--for WHAT] [--timeout DURATION] [flags]",
    .about = "Waits until objects meet a condition, have a value, are created or are deleted.  A "
             "missing object is an error, unless the command waits for its creation or deletion.  A "
             "pod that has Succeeded or Failed cannot become ready any more; then the command fails at "
             "once and prints the reason.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "get explain",
    .words = "pod @pod ...",
};
