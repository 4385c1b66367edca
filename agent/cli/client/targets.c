/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a command is about: named one by one, or selected. */
#include "agent/cli/client/client.h"

#include "base/array.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

int cli_targets_add(struct cli *cli, struct cli_targets *t, const struct api_kind_row *kind,
                    const char *namespace_, const char *name)
{
    const bool placed = kind->namespaced && namespace_ != NULL;
    char *copy = strdup(name), *space = placed ? strdup(namespace_) : NULL;

    if (copy == NULL || (placed && space == NULL) || !array_room(t->v, t->n)) {
        free(copy);
        free(space);
        return cli_error(cli, "out of memory");
    }
    t->v[t->n++] = (struct cli_target){ .kind = kind, .name = copy, .namespace_ = space };
    return EXIT_OK;
}

void cli_full_kind(const struct api_kind_row *kind, char ret[CLI_FULL_NAME_SIZE])
{
    snprintf(ret, CLI_FULL_NAME_SIZE, "%s%s%s", kind->singular, kind->group[0] != '\0' ? "." : "",
             kind->group);
}

void cli_full_name(const struct api_kind_row *kind, const char *name, char ret[CLI_FULL_NAME_SIZE])
{
    snprintf(ret, CLI_FULL_NAME_SIZE, "%s%s%s/%s", kind->singular, kind->group[0] != '\0' ? "." : "",
             kind->group, name);
}

/* The kind of "pods" or "pod/web"; NULL after printing the error. */
static const struct api_kind_row *kind_of(struct cli *cli, const struct cli_choice *choice, const char *word)
{
    const struct api_kind_row *kind = cli_kind_find(word);

    if (choice->only_pods && (kind == NULL || kind->id != API_KIND_POD)) {
        cli_no_pod(cli, word);
        return NULL;
    }
    if (kind == NULL)
        cli_unknown_kind(cli, word, "");
    else if (kind->id == API_KINDS)
        cli_wrong(cli, "images are managed by coracle image");
    return kind != NULL && kind->id != API_KINDS ? kind : NULL;
}

/* ---- selected ---- */

static int select_kind(struct cli *cli, const struct cli_choice *choice, const char *word,
                       struct cli_targets *ret)
{
    const struct cli_selectors selectors = { .labels = choice->selector, .fields = choice->fields };
    const struct api_kind_row *kind = kind_of(cli, choice, word);
    json_auto_t *items = NULL, *sorted = NULL;
    const json_t *item;
    int code;
    size_t i;

    if (kind == NULL)
        return EXIT_USAGE;
    items = cli_get_all(cli, kind, choice->everywhere ? NULL : choice->namespace_, &selectors, &code);
    if (items == NULL)
        return code;
    sorted = cli_sorted(items, cli_by_namespace_and_name);
    json_array_foreach (sorted, i, item)
        cli_keep_first(&code, cli_targets_add(cli, ret, kind, cli_text(item, "metadata.namespace"),
                                              cli_text(item, "metadata.name")));
    return code;
}

static int select_kinds(struct cli *cli, const struct cli_choice *choice, const char *words,
                        struct cli_targets *ret)
{
    str_auto copy = strdup(strcmp(words, "all") == 0 && !choice->only_pods ? CLI_KINDS_OF_ALL : words);
    char *rest = copy, *word;
    int code = EXIT_OK;

    if (copy == NULL)
        return cli_error(cli, "out of memory");
    while (code == EXIT_OK && (word = strsep(&rest, ",")) != NULL)
        code = select_kind(cli, choice, word, ret);
    return code;
}

/* ---- named ---- */

/* Whether the words are "KIND NAME..."; a word that is no kind is a pod. */
static bool kind_comes_first(const struct cli_choice *choice, int argc, char **argv)
{
    return strchr(argv[0], '/') == NULL && cli_kind_find(argv[0]) != NULL &&
           (argc > 1 || !choice->only_pods || cli_is_kind(argv[0], cli_pod_kinds));
}

static int take_names(struct cli *cli, const struct cli_choice *choice, int argc, char **argv,
                      struct cli_targets *ret)
{
    const struct api_kind_row *first = NULL;
    int code = EXIT_OK, i = 0;

    if (choice->kinds && strchr(argv[0], '/') == NULL && cli_kind_find(argv[0]) == NULL)
        return cli_unknown_kind(cli, argv[0], "");
    if (kind_comes_first(choice, argc, argv) && (first = kind_of(cli, choice, argv[i++])) == NULL)
        return EXIT_USAGE;
    for (; i < argc && code == EXIT_OK; i++) {
        const char *slash = strchr(argv[i], '/');
        const struct api_kind_row *kind = first != NULL ? first : cli_kind_find("pods");

        if (first != NULL && slash != NULL)
            return cli_wrong(cli, "there is no need to specify a resource type as a separate argument when "
                                  "passing arguments in resource/name form (e.g. 'pod/NAME')");
        if (first == NULL && slash == NULL && choice->kinds)
            return cli_wrong(cli, "\"%s\" has no kind: with KIND/NAME every word is one", argv[i]);
        if (slash != NULL && (kind = kind_of(cli, choice, argv[i])) == NULL)
            return EXIT_USAGE;
        if (slash != NULL && slash[1] == '\0')
            return cli_wrong(cli, "the name of a resource may not be empty");
        code = cli_targets_add(cli, ret, kind, choice->namespace_, slash != NULL ? slash + 1 : argv[i]);
    }
    return code;
}

int cli_targets(struct cli *cli, const struct cli_command *command, const struct cli_choice *choice, int argc,
                char **argv, struct cli_targets *ret)
{
    const bool selected = choice->all || choice->selector != NULL || choice->fields != NULL;
    int code;

    *ret = (struct cli_targets){ 0 };
    if (selected && (argc != 1 || strchr(argv[0], '/') != NULL))
        return cli_usage_error(cli, command, "with --all or -l a kind is expected, and no names");
    if (!selected && argc == 0)
        return cli_usage_error(cli, command,
                               choice->only_pods ? "you must specify pods"
                                                 : "you must specify objects, as KIND/NAME");
    code = selected ? select_kinds(cli, choice, argv[0], ret) : take_names(cli, choice, argc, argv, ret);
    if (code == EXIT_OK && !selected && ret->n == 0)
        code = cli_usage_error(cli, command, "names are expected, or --all, or -l SELECTOR");
    if (code != EXIT_OK)
        cli_targets_done(ret);
    return code;
}

void cli_targets_done(struct cli_targets *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].name);
        free(t->v[i].namespace_);
    }
    free(t->v);
    *t = (struct cli_targets){ 0 };
}
