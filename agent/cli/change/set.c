/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle set image`: the images of containers. */
#include "agent/cli/change/internal.h"

#include <string.h>

struct set {
    struct what what;
    bool dry;
    const char *note;
    json_t *images; /* {"web": "nginx:2", "*": ...} */
};

/* ---- one object ---- */

/* The path of the pod's spec in an object of this kind; NULL: it has none. */
static const char *spec_path(enum api_kind kind)
{
    switch (kind) {
    case API_KIND_POD:
        return "spec";
    case API_KIND_CRON_JOB:
        return "spec.jobTemplate.spec.template.spec";
    case API_KIND_DEPLOYMENT:
    case API_KIND_REPLICA_SET:
    case API_KIND_STATEFUL_SET:
    case API_KIND_DAEMON_SET:
    case API_KIND_JOB:
        return "spec.template.spec";
    default:
        return NULL;
    }
}

/* Sets the images of one list; the names that it has are put into `seen`. False: out of memory. */
static bool set_images(const struct set *o, json_t *containers, json_t *seen)
{
    json_t *c;
    size_t i;

    json_array_foreach (containers, i, c) {
        const char *name = cli_text(c, "name");
        json_t *image = json_object_get(o->images, name);

        if (image == NULL)
            image = json_object_get(o->images, "*");
        if (json_object_set_new(seen, name, json_true()) != 0 ||
            (image != NULL && json_object_set_new(c, "image", json_copy(image)) != 0)) /* c is wiped */
            return false;
    }
    return true;
}

/* The whole object with other images, for an update: an apiserver refuses one that changes more. */
static int make_object(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    const struct set *o = c->arg;
    json_t *made = json_deep_copy(live), *spec = cli_at(made, spec_path(c->target->kind->id));
    json_auto_t *seen = json_object();
    const char *name;
    json_t *image;
    int code = EXIT_OK;

    if (made == NULL || seen == NULL || !set_images(o, json_object_get(spec, "containers"), seen) ||
        !set_images(o, json_object_get(spec, "initContainers"), seen))
        code = cli_error(cli, "out of memory");
    json_object_foreach (o->images, name, image)
        if (code == EXIT_OK && strcmp(name, "*") != 0 && json_object_get(seen, name) == NULL) {
            buf_auto all = BUF_INIT(64 * 1024);
            const char *one;
            json_t *unused;

            json_object_foreach (seen, one, unused)
                buf_addf(&all, "%s%s", all.n > 0 ? ", " : "", one);
            code = cli_error(cli, "unable to find container named \"%s\": %s has %s", name, c->target->name,
                             all.p);
        }
    if (code == EXIT_OK)
        *ret = json_incref(made);
    json_decref(made);
    return code;
}

static int set_one(struct cli *cli, const struct set *o, const struct cli_target *t)
{
    const struct change c = {
        .target = t, .dry = o->dry, .whole = true, .make = make_object, .arg = (void *)(uintptr_t)o
    };
    char name[CLI_FULL_NAME_SIZE];
    bool same = false;
    int code;

    if (spec_path(t->kind->id) == NULL)
        return cli_wrong(cli, "%s have no containers", t->kind->plural);
    code = change_object(cli, &c, &same, NULL);
    cli_full_name(t->kind, t->name, name);
    if (code == EXIT_OK && !same) /* kubectl prints nothing otherwise */
        cli_print(cli, "%s image updated%s\n", name, o->note);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    WHAT_FLAGS(struct set),
    WHAT_DRY_RUN(struct set),
    CLI_FLAGS_END,
};

/* Takes "web=nginx:2" off the end of the words. */
static int take_images(struct cli *cli, const struct cli_command *command, struct set *o, int *argc,
                       char **argv)
{
    int first = 0;

    while (first < *argc && strchr(argv[first], '=') == NULL)
        first++;
    for (int i = first; i < *argc; i++) {
        const char *equals = strchr(argv[i], '=');
        str_auto name = equals != NULL ? strndup(argv[i], (size_t)(equals - argv[i])) : NULL;

        if (name == NULL || name[0] == '\0' || equals[1] == '\0' ||
            json_object_set_new(o->images, name, json_string(equals + 1)) != 0)
            return cli_wrong(cli, "\"%s\": CONTAINER=IMAGE is expected; * means all containers", argv[i]);
    }
    *argc = first;
    return json_object_size(o->images) > 0
               ? EXIT_OK
               : cli_usage_error(cli, command, "at least one image update is required: CONTAINER=IMAGE");
}

static int set_all(struct cli *cli, const struct cli_command *command, struct set *o, int argc, char **argv)
{
    struct cli_targets targets;
    int code = take_images(cli, command, o, &argc, argv);

    if (code == EXIT_OK)
        code = what_targets(cli, command, &o->what, NULL, argc, argv, &targets);
    if (code != EXIT_OK)
        return code;
    if (targets.n == 0)
        cli_note(cli, "No resources found\n");
    for (size_t i = 0; i < targets.n; i++)
        cli_keep_first(&code, set_one(cli, o, &targets.v[i]));
    cli_targets_done(&targets);
    return code;
}

static int cli_set_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct set o = { 0 };
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code) ||
        (code = what_dry(cli, &o.what, &o.dry, &o.note)) != EXIT_OK)
        return code;
    if (argc < 1 || strcmp(argv[0], "image") != 0)
        return cli_usage_error(cli, command, "set%s%s: image is expected; other fields: coracle edit",
                               argc > 0 ? " " : "", argc > 0 ? argv[0] : "");
    o.images = json_object();
    code = o.images != NULL ? set_all(cli, command, &o, argc - 1, argv + 1) : cli_error(cli, "out of memory");
    json_decref(o.images);
    return code;
}

static const struct cli_example examples[] = {
    { "set the image of a container in a Deployment",
      "coracle set image deployment/web web=docker.io/library/nginx:1.29" },
    { "set the image of all containers of a pod",
      "coracle set image pod web '*=docker.io/library/busybox:1.36'" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };

const struct cli_command command_set = {
    .name = "set",
    .run = cli_set_run,
    .summary = "set the images of containers",
    .usage = "set image KIND/NAME... CONTAINER=IMAGE... [flags]\n"
             "set image KIND NAME...|--all|-l SELECTOR CONTAINER=IMAGE... [flags]\n"
             "set image -f FILE|FOLDER|- CONTAINER=IMAGE... [flags]",
    .about = "Sets the images of containers and init containers in the object's manifest; * stands for "
             "all of them.  A workload then replaces its pods; a pod restarts the containers in place.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "edit rollout",
    .words = "image deployment|statefulset|daemonset|pod @named ...",
};
