/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle delete`, like `kubectl delete`: the daemon takes objects out of the manifest folder. */
#include "agent/cli/change/internal.h"

#include "base/clock.h"
#include "base/parse.h"

#include <string.h>

struct delete_options {
    struct what what;
    const char *fields, *grace, *timeout, *format;
    bool now, force, wait, ignore_not_found, file;
    bool dry;
    const char *note; /* of a dry run */
    int64_t grace_s;  /* -1: the object's own */
    uint64_t until_ms;
};

/* ---- one object ---- */

static int delete_one(struct cli *cli, const struct delete_options *o, const struct cli_target *t,
                      char ret_uid[64])
{
    char file[256], name[CLI_FULL_NAME_SIZE];
    json_auto_t *last = NULL;
    int code = EXIT_OK;

    last = change_remove(cli, t, o->dry, o->grace_s, file, &code);
    if (last == NULL)
        return code;
    snprintf(ret_uid, 64, "%s", cli_text(last, "metadata.uid"));
    cli_full_name(t->kind, t->name, name);
    if (o->format != NULL)
        cli_print(cli, "%s\n", name);
    else
        cli_print(cli, "%.*s \"%s\" %sdeleted%s%s%s\n", (int)strcspn(name, "/"), name, t->name,
                  o->force ? "force " : "", file[0] != '\0' ? " from " : "", file, o->note);
    return EXIT_OK;
}

/* Requests the end of all objects before it waits for the first one. */
static int delete_all(struct cli *cli, const struct delete_options *o, const struct cli_targets *targets)
{
    struct uid {
        char text[64];
    } *uids = calloc(targets->n + 1, sizeof(*uids));
    int code = EXIT_OK;

    if (uids == NULL)
        return cli_error(cli, "out of memory");
    for (size_t i = 0; i < targets->n; i++)
        cli_keep_first(&code, delete_one(cli, o, &targets->v[i], uids[i].text));
    cli_flush(cli);
    for (size_t i = 0; i < targets->n && o->wait && !o->dry; i++)
        if (uids[i].text[0] != '\0')
            cli_keep_first(&code, delete_await(cli, &targets->v[i], uids[i].text, o->until_ms));
    free(uids);
    return code;
}

/* ---- the flags ---- */

static int take_grace(struct cli *cli, struct delete_options *o)
{
    struct err e = { 0 };

    o->grace_s = -1;
    if (o->grace != NULL && parse_i64(o->grace, -1, INT32_MAX, &o->grace_s, "--grace-period", &e) != ERR_OK)
        return cli_wrong(cli, "--grace-period is a number of seconds, or -1 for the pod's own, not \"%s\"",
                         o->grace);
    if (o->now && o->grace_s != -1)
        return cli_wrong(cli, "--now and --grace-period cannot be specified together");
    if (o->force && o->grace_s > 0)
        return cli_wrong(cli, "--force and --grace-period greater than 0 cannot be specified together");
    if (o->now || (o->grace_s == 0 && !o->force)) /* kubectl's rule: 0 needs --force */
        o->grace_s = o->force ? 0 : 1;
    if (o->force)
        o->grace_s = 0;
    return EXIT_OK;
}

static int take_timeout(struct cli *cli, struct delete_options *o)
{
    struct err e = { 0 };
    int64_t ns = 0;

    if (o->timeout == NULL || strcmp(o->timeout, "0") == 0)
        return EXIT_OK;
    if (cli_parse_duration(o->timeout, &ns, &e) != ERR_OK || ns < 0)
        return cli_wrong(cli, "--timeout: \"%s\" is not a duration such as 10s, 5m or 1h30m; 0: no limit",
                         o->timeout);
    o->until_ms = ns > 0 ? clock_mono_ms() + (uint64_t)(ns / 1000000) + 1 : 0;
    return EXIT_OK;
}

static int check(struct cli *cli, struct delete_options *o)
{
    int code = what_dry(cli, &o->what, &o->dry, &o->note);

    if (code == EXIT_OK)
        code = take_grace(cli, o);
    if (code == EXIT_OK)
        code = take_timeout(cli, o);
    if (code == EXIT_OK && o->format != NULL && strcmp(o->format, "name") != 0)
        code = cli_wrong(cli, "unknown output format \"%s\": only name", o->format);
    return code;
}

/* With --file: pods with names. */
static int delete_files(struct cli *cli, const struct cli_command *command, const struct delete_options *o,
                        const struct cli_targets *targets)
{
    int code = EXIT_OK;

    if (o->dry || o->what.files.n > 0)
        return cli_usage_error(cli, command, "--file takes pods with names, and neither --dry-run nor -f");
    for (size_t i = 0; i < targets->n; i++) {
        if (targets->v[i].kind->id != API_KIND_POD)
            return cli_usage_error(cli, command, "--file is for pods: %s are removed without it",
                                   targets->v[i].kind->plural);
        cli_keep_first(&code, delete_pod_file(cli, targets->v[i].namespace_, targets->v[i].name, o->wait));
    }
    return code;
}

static const struct cli_flag flags[] = {
    WHAT_FLAGS(struct delete_options),
    WHAT_EVERYWHERE(struct delete_options),
    { "field-selector", 0, FLAG_TEXT, offsetof(struct delete_options, fields), "SELECTOR",
      "all objects with these fields: status.phase=Failed" },
    { "grace-period", 0, FLAG_TEXT, offsetof(struct delete_options, grace), "SECONDS",
      "the grace period of the pods (-1: their own); 0 only with --force" },
    { "now", 0, FLAG_SWITCH, offsetof(struct delete_options, now), NULL, "the same as --grace-period=1" },
    { "force", 0, FLAG_SWITCH, offsetof(struct delete_options, force), NULL,
      "kill the pods at once (SIGKILL)" },
    { "wait", 0, FLAG_SWITCH, offsetof(struct delete_options, wait), NULL,
      "wait until the objects are gone (--wait=false: do not)" },
    { "timeout", 0, FLAG_TEXT, offsetof(struct delete_options, timeout), "DURATION",
      "total time limit of --wait (0: none)" },
    { "ignore-not-found", 0, FLAG_SWITCH, offsetof(struct delete_options, ignore_not_found), NULL,
      "do not fail if an object does not exist" },
    WHAT_DRY_RUN(struct delete_options),
    CLI_OUTPUT(struct delete_options, format, "name", "name: print only names"),
    { "file", 0, FLAG_SWITCH, offsetof(struct delete_options, file), NULL,
      "remove the file that defines a pod, if it contains nothing else (also on a node of a cluster)" },
    CLI_FLAGS_END,
};

static int cli_delete_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct delete_options o = { .wait = true };
    struct cli_targets targets;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code) || (code = check(cli, &o)) != EXIT_OK)
        return code;
    code = what_targets(cli, command, &o.what, o.fields, argc, argv, &targets);
    if (code != EXIT_OK)
        return code;
    cli->ignore_not_found = o.ignore_not_found || o.what.all;
    if (o.force && !o.dry)
        cli_note(cli, "Warning: pods are killed at once: what they have not saved is lost\n");
    if (targets.n == 0)
        cli_print(cli, "No resources found\n");
    else
        code = o.file ? delete_files(cli, command, &o, &targets) : delete_all(cli, &o, &targets);
    cli_targets_done(&targets);
    return code;
}

static const struct cli_example examples[] = {
    { "end a pod, and wait until it is gone", "coracle delete pod web" },
    { "the objects in a file", "coracle delete -f web.yaml" },
    { "objects of several kinds", "coracle delete pod/web cm/settings" },
    { "show what would be deleted", "coracle delete pods -l app=web --dry-run=client" },
    { "pods that have failed", "coracle delete pods --field-selector status.phase=Failed" },
    { "at once", "coracle delete pod web --force" },
    { "a pod of the manifest folder on a node of a cluster", "coracle delete pod web --file" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the objects are gone, or are being deleted (--wait=false)" },
    { 1, "an object was not deleted, or did not end within the time limit; see standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_delete = {
    .name = "delete",
    .run = cli_delete_run,
    .summary = "delete objects from the manifest folder",
    .usage = "delete KIND NAME...|--all|-l SELECTOR [flags]\n"
             "delete KIND/NAME... [flags]\n"
             "delete -f FILE|FOLDER|- [-R] [flags]\n"
             "delete pod NAME... --file [flags]",
    .about = "Removes objects from the manifest folder and prints the name of the file.  A file with "
             "one object is removed; in a file with several objects, only the object's document is "
             "removed.  A pod ends with its grace period.  Pods of a Deployment or another workload "
             "are created again; delete or scale the workload instead.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "apply get restart scale",
    .words = "pod|deployment|statefulset|daemonset|job|configmap|secret @named ...",
};
