/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle scale`: how many pods a workload has. */
#include "agent/cli/change/internal.h"

#include "base/clock.h"
#include "base/parse.h"

#include <string.h>
#include <time.h>

struct scale {
    struct what what;
    const char *replicas, *current, *timeout;
    bool dry;
    const char *note;
    int64_t n, n_current; /* current -1: any */
    uint64_t until_ms;    /* 0: do not wait */
};

static bool has_replicas(enum api_kind kind)
{
    return kind == API_KIND_DEPLOYMENT || kind == API_KIND_REPLICA_SET || kind == API_KIND_STATEFUL_SET;
}

static int make_patch(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    const struct scale *o = c->arg;
    const int64_t now = cli_at(live, "spec.replicas") != NULL ? cli_number(live, "spec.replicas") : 1;

    if (o->n_current >= 0 && now != o->n_current)
        return cli_error(cli, "Expected replicas to be %lld, was %lld", (long long)o->n_current,
                         (long long)now);
    *ret = json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)o->n);
    return *ret != NULL ? EXIT_OK : cli_error(cli, "out of memory");
}

static int await(struct cli *cli, const struct scale *o, const struct cli_target *t)
{
    const struct timespec pause = { .tv_nsec = 100 * 1000000L };

    for (;;) {
        int code;
        json_auto_t *now = cli_get_one(cli, t->kind, t->namespace_, t->name, &code);

        if (now == NULL ||
            (cli_number(now, "status.observedGeneration") >= cli_number(now, "metadata.generation") &&
             cli_number(now, "status.replicas") == o->n))
            return code;
        if (clock_mono_ms() >= o->until_ms)
            return cli_error(cli, "timed out waiting for %s \"%s\" to be scaled", t->kind->plural, t->name);
        nanosleep(&pause, NULL);
    }
}

static int scale_one(struct cli *cli, const struct scale *o, const struct cli_target *t)
{
    const struct change c = { .target = t, .dry = o->dry, .make = make_patch, .arg = (void *)(uintptr_t)o };
    char name[CLI_FULL_NAME_SIZE];
    int code;

    if (!has_replicas(t->kind->id))
        return cli_wrong(cli, "%s have no replicas: deployments, replicasets and statefulsets can be scaled",
                         t->kind->plural);
    code = change_object(cli, &c, NULL, NULL);
    if (code == EXIT_OK && o->until_ms != 0 && !o->dry)
        code = await(cli, o, t);
    cli_full_name(t->kind, t->name, name);
    if (code == EXIT_OK)
        cli_print(cli, "%s scaled%s\n", name, o->note);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    { "replicas", 0, FLAG_TEXT, offsetof(struct scale, replicas), "N", "the number of pods (required)" },
    { "current-replicas", 0, FLAG_TEXT, offsetof(struct scale, current), "N",
      "only if spec.replicas has this value now" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct scale, timeout), "DURATION",
      "maximum time to wait for the pods to start or end (0: do not wait)" },
    WHAT_FLAGS(struct scale),
    WHAT_DRY_RUN(struct scale),
    CLI_FLAGS_END,
};

static int check(struct cli *cli, const struct cli_command *command, struct scale *o)
{
    struct err e = { 0 };
    int64_t ns = 0;

    if (o->replicas == NULL)
        return cli_usage_error(cli, command, "the --replicas=N flag is required");
    if (parse_i64(o->replicas, 0, INT32_MAX, &o->n, "--replicas", &e) != ERR_OK)
        return cli_wrong(cli, "--replicas is a number, 0 or more, not \"%s\"", o->replicas);
    o->n_current = -1;
    if (o->current != NULL &&
        parse_i64(o->current, -1, INT32_MAX, &o->n_current, "--current-replicas", &e) != ERR_OK)
        return cli_wrong(cli, "--current-replicas is a number, 0 or more, not \"%s\"", o->current);
    if (o->timeout != NULL && strcmp(o->timeout, "0") != 0 &&
        (cli_parse_duration(o->timeout, &ns, &e) != ERR_OK || ns < 0))
        return cli_wrong(cli, "--timeout: \"%s\" is not a duration such as 10s, 5m or 1h30m", o->timeout);
    o->until_ms = ns > 0 ? clock_mono_ms() + (uint64_t)(ns / 1000000) + 1 : 0;
    return what_dry(cli, &o->what, &o->dry, &o->note);
}

static int cli_scale_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct cli_targets targets;
    struct scale o = { 0 };
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code) || (code = check(cli, command, &o)) != EXIT_OK)
        return code;
    code = what_targets(cli, command, &o.what, NULL, argc, argv, &targets);
    if (code != EXIT_OK)
        return code;
    if (targets.n == 0)
        code = cli_error(cli, "no objects passed to scale");
    for (size_t i = 0; i < targets.n; i++)
        cli_keep_first(&code, scale_one(cli, &o, &targets.v[i]));
    cli_targets_done(&targets);
    return code;
}

static const struct cli_example examples[] = {
    { "three pods of a Deployment", "coracle scale deployment/web --replicas=3" },
    { "scale to zero and wait until the pods are gone",
      "coracle scale statefulset db --replicas=0 --timeout=1m" },
    { "only if spec.replicas is 2", "coracle scale deployment/web --current-replicas=2 --replicas=3" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };

const struct cli_command command_scale = {
    .name = "scale",
    .run = cli_scale_run,
    .summary = "set the number of pods of a workload",
    .usage = "scale KIND/NAME... --replicas=N [flags]\n"
             "scale KIND NAME...|--all|-l SELECTOR --replicas=N [flags]\n"
             "scale -f FILE|FOLDER|- --replicas=N [flags]",
    .about = "Sets spec.replicas of Deployments, ReplicaSets and StatefulSets in their manifests.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "rollout get",
    .words = "deployment|statefulset|replicaset @named ...",
};
