/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle label` and `coracle annotate`, like kubectl's: a merge patch of one map of metadata. */
#include "agent/cli/change/internal.h"

#include <string.h>

struct label {
    struct what what;
    const char *fields;
    bool overwrite, list;
    bool dry;
    const char *note;
    const char *map;    /* "labels" */
    const char *one;    /* "label" */
    const char *done;   /* "labeled" */
    json_t *values;     /* {"app": "web", "tier": null} */
    bool changes, adds; /* of the object at hand: something; something besides removals */
};

/* ---- the words ---- */

/* "app=web", "tier-" */
static bool is_value(const char *word)
{
    const size_t n = strlen(word);

    return strchr(word, '=') != NULL || (n > 1 && word[n - 1] == '-');
}

static int take_value(struct cli *cli, struct label *o, const char *word)
{
    const char *equals = strchr(word, '=');
    const size_t n = equals != NULL ? (size_t)(equals - word) : strlen(word) - 1;
    str_auto key = strndup(word, n);

    if (key == NULL)
        return cli_error(cli, "out of memory");
    if (n == 0)
        return cli_wrong(cli, "\"%s\": a %s is KEY=VALUE, or KEY- to remove it", word, o->one);
    if (json_object_get(o->values, key) != NULL)
        return cli_wrong(cli, "the %s %s is given twice", o->one, key);
    if (json_object_set_new(o->values, key, equals != NULL ? json_string(equals + 1) : json_null()) == 0)
        return EXIT_OK;
    return cli_wrong(cli, "\"%s\" is not text in UTF-8", word);
}

/* Takes the values off the end of the words; *argc: the number of words left. */
static int take_values(struct cli *cli, const struct cli_command *command, struct label *o, int *argc,
                       char **argv)
{
    int first = 0, code = EXIT_OK;

    while (first < *argc && !is_value(argv[first]))
        first++;
    for (int i = first; i < *argc && code == EXIT_OK; i++)
        code = is_value(argv[i]) ? take_value(cli, o, argv[i])
                                 : cli_wrong(cli,
                                             "\"%s\" is behind the %ss: a %s is KEY=VALUE, or KEY- to "
                                             "remove it",
                                             argv[i], o->one, o->one);
    *argc = first;
    if (code == EXIT_OK && json_object_size(o->values) == 0 && !o->list)
        return cli_usage_error(cli, command, "at least one %s is expected: KEY=VALUE, or KEY- to remove it",
                               o->one);
    if (code == EXIT_OK && json_object_size(o->values) > 0 && o->list)
        return cli_usage_error(cli, command, "--list changes nothing: leave out KEY=VALUE");
    return code;
}

/* ---- one object ---- */

static int make_patch(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    struct label *o = c->arg;
    const json_t *now = json_object_get(json_object_get(live, "metadata"), o->map);
    const char *key;
    json_t *value;

    o->changes = o->adds = false;
    json_object_foreach (o->values, key, value) {
        const char *old = json_string_value(json_object_get(now, key));

        if (json_is_null(value) && old == NULL)
            cli_print(cli, "%s \"%s\" not found.\n", o->one, key);
        if (json_is_string(value) && old != NULL && strcmp(old, json_string_value(value)) != 0 &&
            !o->overwrite)
            return cli_error(cli, "'%s' already has a value (%s), and --overwrite is false", key, old);
        if (json_is_null(value) ? old != NULL : !str_eq(old, json_string_value(value))) {
            o->changes = true;
            o->adds = o->adds || json_is_string(value);
        }
    }
    if (!o->changes)
        return EXIT_OK;
    *ret = json_pack("{s:{s:o}}", "metadata", o->map, json_deep_copy(o->values)); /* the patch is wiped */
    return *ret != NULL ? EXIT_OK : cli_error(cli, "out of memory");
}

static int label_one(struct cli *cli, struct label *o, const struct cli_target *t)
{
    const struct change c = { .target = t, .dry = o->dry, .make = make_patch, .arg = o };
    char name[CLI_FULL_NAME_SIZE];
    bool same = false;
    int code = change_object(cli, &c, &same, NULL);

    if (code != EXIT_OK)
        return code;
    cli_full_name(t->kind, t->name, name);
    if (strcmp(o->one, "annotation") == 0)
        cli_print(cli, "%s %s%s\n", name, o->done, o->note);
    else
        cli_print(cli, "%s %s%s%s\n", name, same ? "not " : o->adds ? "" : "un", o->done, o->note);
    return EXIT_OK;
}

static int list_one(struct cli *cli, const struct label *o, const struct cli_target *t, bool many)
{
    int code;
    json_auto_t *object = cli_get_one(cli, t->kind, t->namespace_, t->name, &code);
    char name[CLI_FULL_NAME_SIZE];
    const char *key;
    json_t *value;

    if (object == NULL)
        return code;
    cli_full_name(t->kind, t->name, name);
    if (many)
        cli_print(cli, "Listing %ss for %s:\n", o->one, name);
    json_object_foreach (json_object_get(json_object_get(object, "metadata"), o->map), key, value)
        cli_print(cli, "%s%s=%s\n", many ? " " : "", key, json_string_value(value));
    return EXIT_OK;
}

/* ---- the commands ---- */

#define LABEL_FLAGS(what)                                                                                      \
    WHAT_FLAGS(struct label), WHAT_EVERYWHERE(struct label),                                                   \
        { "field-selector", 0,                                                                                 \
          FLAG_TEXT,        offsetof(struct label, fields),                                                    \
          "SELECTOR",       "all objects with these fields: status.phase=Running" },                           \
        { "overwrite", 0, FLAG_SWITCH, offsetof(struct label, overwrite), NULL, "change existing " what "s" }, \
        { "list", 0, FLAG_SWITCH, offsetof(struct label, list), NULL, "show the " what "s" },                  \
        WHAT_DRY_RUN(struct label), CLI_FLAGS_END

static const struct cli_flag label_flags[] = { LABEL_FLAGS("label") };
static const struct cli_flag annotate_flags[] = { LABEL_FLAGS("annotation") };

static int change_all(struct cli *cli, const struct cli_command *command, struct label *o, int argc,
                      char **argv)
{
    struct cli_targets targets;
    int code = what_dry(cli, &o->what, &o->dry, &o->note);

    if (code == EXIT_OK)
        code = take_values(cli, command, o, &argc, argv);
    if (code == EXIT_OK)
        code = what_targets(cli, command, &o->what, o->fields, argc, argv, &targets);
    if (code != EXIT_OK)
        return code;
    if (targets.n == 0)
        cli_note(cli, "No resources found\n");
    for (size_t i = 0; i < targets.n; i++)
        cli_keep_first(&code, o->list ? list_one(cli, o, &targets.v[i], targets.n > 1)
                                      : label_one(cli, o, &targets.v[i]));
    cli_targets_done(&targets);
    return code;
}

static int run_with(struct cli *cli, const struct cli_command *command, struct label *o, int argc,
                    char **argv)
{
    int code;

    o->values = json_object();
    if (o->values == NULL)
        return cli_error(cli, "out of memory");
    if (cli_parse(cli, command, o, &argc, argv, &code))
        code = change_all(cli, command, o, argc, argv);
    json_decref(o->values);
    return code;
}

static int cli_label_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct label o = { .map = "labels", .one = "label", .done = "labeled" };

    return run_with(cli, command, &o, argc, argv);
}

static int cli_annotate_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct label o = { .map = "annotations", .one = "annotation", .done = "annotated" };

    return run_with(cli, command, &o, argc, argv);
}

static const struct cli_exit exits[] = { CLI_EXITS, CLI_EXITS_DAEMON, { 0, NULL } };

static const struct cli_example label_examples[] = {
    { "set one label and remove another", "coracle label pod web app=shop tier-" },
    { "change an existing label", "coracle label pod/web app=store --overwrite" },
    { "all pods of the namespace", "coracle label pods --all stage=test" },
    { "the labels of an object", "coracle label deployment/web --list" },
    { NULL, NULL },
};

const struct cli_command command_label = {
    .name = "label",
    .run = cli_label_run,
    .summary = "set and remove labels of objects",
    .usage = "label KIND NAME...|--all|-l SELECTOR KEY=VALUE|KEY-... [flags]\n"
             "label KIND/NAME... KEY=VALUE|KEY-... [flags]\n"
             "label -f FILE|FOLDER|- KEY=VALUE|KEY-... [flags]",
    .about = "Changes the labels in the object's manifest file.  KEY- removes the key.  Existing labels are "
             "changed only with --overwrite.  The setting nodeLabels defines the initial labels of the node.",
    .flags = label_flags,
    .examples = label_examples,
    .exits = exits,
    .see_also = "annotate get",
    .words = "pod|deployment|statefulset|daemonset|job|configmap|secret @named @nothing ...",
};

static const struct cli_example annotate_examples[] = {
    { "set an annotation", "coracle annotate pod web description='the shop'" },
    { "remove it", "coracle annotate pod/web description-" },
    { "the annotations of an object", "coracle annotate deployment/web --list" },
    { NULL, NULL },
};

const struct cli_command command_annotate = {
    .name = "annotate",
    .run = cli_annotate_run,
    .summary = "set and remove annotations of objects",
    .usage = "annotate KIND NAME...|--all|-l SELECTOR KEY=VALUE|KEY-... [flags]\n"
             "annotate KIND/NAME... KEY=VALUE|KEY-... [flags]\n"
             "annotate -f FILE|FOLDER|- KEY=VALUE|KEY-... [flags]",
    .about = "Changes the annotations in the object's manifest file.  KEY- removes the key.  Existing "
             "annotations are changed only with --overwrite.",
    .flags = annotate_flags,
    .examples = annotate_examples,
    .exits = exits,
    .see_also = "label get",
    .words = "pod|deployment|statefulset|daemonset|job|configmap|secret @named @nothing ...",
};
