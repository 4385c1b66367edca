/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle rollout`: restart, status, pause, resume, history and undo of a workload's template. */
#include "agent/cli/change/internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct rollout {
    struct what what;
    const char *timeout, *revision, *to_revision;
    int64_t number, to_number; /* of these two; 0: not given */
    bool watch;
    bool dry;
    const char *note;
    const struct rollout_verb *verb;
    uint64_t until_ms; /* 0: no limit */
};

struct rollout_verb {
    const char *name, *done; /* "restart", "restarted"; done NULL: it changes nothing */
    bool deployments_only;
    int (*run)(struct cli *cli, struct rollout *o, const struct cli_target *t);
};

/* "deployments.apps" */
static const char *plural_of(const struct cli_target *t, char ret[CLI_FULL_NAME_SIZE])
{
    snprintf(ret, CLI_FULL_NAME_SIZE, "%s%s%s", t->kind->plural, t->kind->group[0] != '\0' ? "." : "",
             t->kind->group);
    return ret;
}

/* ---- restart, pause, resume ---- */

static int make_patch(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    const struct rollout *o = c->arg;
    const bool paused = cli_true(live, "spec.paused"), restart = strcmp(o->verb->name, "restart") == 0,
               pause = strcmp(o->verb->name, "pause") == 0;
    char now[CLOCK_RFC3339_SIZE], plural[CLI_FULL_NAME_SIZE];

    plural_of(c->target, plural);
    clock_format_s(clock_wall_ns(), now);
    if (restart && paused)
        return cli_error(cli, "%s \"%s\" can't restart paused deployment (run rollout resume first)", plural,
                         c->target->name);
    if (!restart && paused == pause)
        return cli_error(cli, "%s \"%s\" is %s paused", plural, c->target->name, pause ? "already" : "not");
    *ret = restart ? json_pack("{s:{s:{s:{s:{s:s}}}}}", "spec", "template", "metadata", "annotations",
                               "kubectl.kubernetes.io/restartedAt", now)
                   : json_pack("{s:{s:o}}", "spec", "paused", pause ? json_true() : json_null());
    return *ret != NULL ? EXIT_OK : cli_error(cli, "out of memory");
}

static int rollout_change(struct cli *cli, struct rollout *o, const struct cli_target *t)
{
    const struct change c = { .target = t, .dry = o->dry, .make = make_patch, .arg = o };
    char name[CLI_FULL_NAME_SIZE];
    const int code = change_object(cli, &c, NULL, NULL);

    cli_full_name(t->kind, t->name, name);
    if (code == EXIT_OK)
        cli_print(cli, "%s %s%s\n", name, o->verb->done, o->note);
    return code;
}

/* ---- status ---- */

static int rollout_status(struct cli *cli, struct rollout *o, const struct cli_target *t)
{
    const struct timespec pause = { .tv_nsec = 100 * 1000000L };
    buf_auto text = BUF_INIT(64 * 1024), last = BUF_INIT(64 * 1024);
    enum rollout_state state = ROLLOUT_GOES_ON;

    while (state == ROLLOUT_GOES_ON) {
        int code;
        json_auto_t *now = cli_get_one(cli, t->kind, t->namespace_, t->name, &code);

        if (now == NULL)
            return code;
        state = rollout_state_of(t->kind->id, now, &text);
        if (state == ROLLOUT_FAILED)
            return cli_error(cli, "%s", text.p);
        if (last.n == 0 || strcmp(last.p, text.p) != 0) {
            cli_print(cli, "%s\n", text.p);
            if (!cli_flush(cli))
                return EXIT_OK;
            buf_reset(&last);
            buf_adds(&last, text.p);
        }
        if (!o->watch)
            return EXIT_OK;
        if (state == ROLLOUT_GOES_ON && o->until_ms != 0 && clock_mono_ms() >= o->until_ms)
            return cli_error(cli, "timed out waiting for the condition: %s", text.p);
        if (state == ROLLOUT_GOES_ON)
            nanosleep(&pause, NULL);
    }
    return EXIT_OK;
}

/* ---- history, undo ---- */

static int run_history(struct cli *cli, struct rollout *o, const struct cli_target *t)
{
    return rollout_history(cli, t, o->number);
}

static int run_undo(struct cli *cli, struct rollout *o, const struct cli_target *t)
{
    return rollout_undo(cli, t, o->to_number, o->dry, o->note);
}

/* ---- the command ---- */

static const struct rollout_verb verbs[] = {
    { "restart", "restarted", false, rollout_change }, { "status", NULL, false, rollout_status },
    { "pause", "paused", true, rollout_change },       { "resume", "resumed", true, rollout_change },
    { "history", NULL, false, run_history },           { "undo", NULL, false, run_undo },
};

static const struct cli_flag flags[] = {
    { "watch", 'w', FLAG_SWITCH, offsetof(struct rollout, watch), NULL,
      "status: wait until the rollout ends (--watch=false: do not)" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct rollout, timeout), "DURATION",
      "status: time limit (0: none)" },
    { "revision", 0, FLAG_TEXT, offsetof(struct rollout, revision), "NUMBER",
      "history: the template of this revision" },
    { "to-revision", 0, FLAG_TEXT, offsetof(struct rollout, to_revision), "NUMBER",
      "undo: the revision to restore (default: the previous one)" },
    WHAT_FLAGS(struct rollout),
    WHAT_DRY_RUN(struct rollout),
    CLI_FLAGS_END,
};

static int run_all(struct cli *cli, struct rollout *o, const struct cli_targets *targets)
{
    int code = targets->n > 0 ? EXIT_OK : cli_error(cli, "no matching resources found");

    for (size_t i = 0; i < targets->n; i++) {
        const struct cli_target *t = &targets->v[i];
        const enum api_kind kind = t->kind->id;

        if (kind != API_KIND_DEPLOYMENT && kind != API_KIND_DAEMON_SET && kind != API_KIND_STATEFUL_SET)
            cli_keep_first(&code, cli_wrong(cli,
                                            "%s have no rollouts: deployments, daemonsets and statefulsets "
                                            "have",
                                            t->kind->plural));
        else if (o->verb->deployments_only && kind != API_KIND_DEPLOYMENT)
            cli_keep_first(&code, cli_wrong(cli, "%s cannot be %s: only deployments can", t->kind->plural,
                                            o->verb->done));
        else
            cli_keep_first(&code, o->verb->run(cli, o, t));
    }
    return code;
}

static bool take_number(const char *text, int64_t *ret)
{
    char *end = NULL;

    if (text == NULL)
        return true;
    *ret = strtoll(text, &end, 10);
    return end != text && *end == '\0' && *ret >= 0;
}

static int take_flags(struct cli *cli, struct rollout *o)
{
    struct err e = { 0 };
    int64_t ns = 0;

    if (o->timeout != NULL && strcmp(o->timeout, "0") != 0 &&
        (cli_parse_duration(o->timeout, &ns, &e) != ERR_OK || ns < 0))
        return cli_wrong(cli, "--timeout: \"%s\" is not a duration such as 10s, 5m or 1h30m; 0: no limit",
                         o->timeout);
    if (!take_number(o->revision, &o->number))
        return cli_wrong(cli, "--revision: \"%s\" is not a number of a revision", o->revision);
    if (!take_number(o->to_revision, &o->to_number))
        return cli_wrong(cli, "--to-revision: \"%s\" is not a number of a revision", o->to_revision);
    o->until_ms = ns > 0 ? clock_mono_ms() + (uint64_t)(ns / 1000000) + 1 : 0;
    return what_dry(cli, &o->what, &o->dry, &o->note);
}

static int cli_rollout_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct rollout o = { .watch = true };
    struct cli_targets targets;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code) || (code = take_flags(cli, &o)) != EXIT_OK)
        return code;
    for (size_t i = 0; i < ARRAY_LEN(verbs) && argc > 0; i++)
        if (strcmp(verbs[i].name, argv[0]) == 0)
            o.verb = &verbs[i];
    if (o.verb == NULL)
        return cli_usage_error(cli, command,
                               "rollout%s%s: restart, status, pause, resume, history or undo is "
                               "expected",
                               argc > 0 ? " " : "", argc > 0 ? argv[0] : "");
    code = what_targets(cli, command, &o.what, NULL, argc - 1, argv + 1, &targets);
    if (code != EXIT_OK)
        return code;
    code = run_all(cli, &o, &targets);
    cli_targets_done(&targets);
    return code;
}

static const struct cli_example examples[] = {
    { "replace all pods of a Deployment, step by step", "coracle rollout restart deployment/web" },
    { "wait until the rollout is complete", "coracle rollout status deployment/web --timeout 5m" },
    { "pause, to combine several changes into one rollout", "coracle rollout pause deployment/web" },
    { "list the stored revisions", "coracle rollout history deployment/web" },
    { "restore the previous revision", "coracle rollout undo deployment/web" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "done; status: the rollout is complete" },
    { 1, "an error; status: the time limit or the progress deadline expired" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_rollout = {
    .name = "rollout",
    .run = cli_rollout_run,
    .summary = "restart, watch, pause and undo the rollout of a workload",
    .usage = "rollout restart|status|pause|resume|history|undo KIND/NAME... [flags]\n"
             "rollout restart|status|pause|resume|history|undo KIND NAME...|--all|-l SELECTOR [flags]\n"
             "rollout restart|status|pause|resume|history|undo -f FILE|FOLDER|- [flags]",
    .about = "restart adds an annotation to the template of a Deployment, DaemonSet or StatefulSet, so "
             "that its pods are replaced.  status waits until the rollout is complete.  pause and "
             "resume apply to Deployments.  history lists the stored revisions (earlier templates, up "
             "to revisionHistoryLimit).  undo restores the template of a revision in the manifest.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "scale restart wait",
    .words = "restart|status|pause|resume|history|undo deployment|daemonset|statefulset @named ...",
};
