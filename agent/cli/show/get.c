/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "agent/cli/files/files.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const manifest_kinds[] = { "manifests", "manifest", NULL };
static const char *const device_kinds[] = { "devices", "device", NULL };
static const char *const eviction_kinds[] = { "evictions", "eviction", NULL };
static const char *const event_kinds[] = { "events", "event", "ev", NULL };

bool get_is_format(const struct get *g, const char *format)
{
    return g->format != NULL && strcmp(g->format, format) == 0;
}

bool get_is_table(const struct get *g)
{
    return g->format == NULL || strcmp(g->format, "wide") == 0;
}

int get_nothing_found(const struct get *g)
{
    if (g->many || g->cli->ignore_not_found)
        return EXIT_OK;
    if (g->all)
        fputs("No resources found\n", g->cli->err);
    else
        cli_note(g->cli, "No resources found in %s namespace.\n", g->namespace_);
    return EXIT_OK;
}

int get_check_names(const struct get *g)
{
    if (g->n_names > 0 && (g->selector != NULL || g->field_selector != NULL || g->all))
        return cli_wrong(g->cli, g->all ? "a resource cannot be retrieved by name across all namespaces"
                                        : "name cannot be provided when a selector is specified");
    return EXIT_OK;
}

static json_t *get_list_of(const json_t *items)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", "v1", "kind", "List", "metadata",
                     "resourceVersion", "", "items", items);
}

int get_print_objects(const struct get *g, const char *kind, const json_t *items, bool single)
{
    json_auto_t *list = NULL;
    json_t *item;
    size_t i;

    if (get_is_format(g, "name")) {
        json_array_foreach (items, i, item)
            cli_print(g->cli, "%s/%s\n", kind,
                      cli_text(item, "metadata.name")[0] != '\0' ? cli_text(item, "metadata.name")
                                                                 : cli_text(item, "name"));
        return EXIT_OK;
    }
    if (g->all_items != NULL) { /* of several kinds: printed at the end */
        json_array_extend(g->all_items, (json_t *)(uintptr_t)items);
        return EXIT_OK;
    }
    if (str_starts(g->format, CLI_CUSTOM_COLUMNS))
        return cli_print_columns(g->cli, items, g->format, !g->no_headers);
    if (single)
        return cli_print_value(g->cli, json_array_get(items, 0), g->format);
    list = get_list_of(items);
    return cli_print_value(g->cli, list, g->format);
}

/* ---- the command ---- */

static int check_template(const struct get *g)
{
    buf_auto nothing = BUF_INIT(CLI_OUTPUT_MAX);
    json_auto_t *empty = json_object();
    struct err e = { 0 };

    if (str_starts(g->format, CLI_JSONPATH))
        ERR_IGNORE(cli_jsonpath(g->format + strlen(CLI_JSONPATH), empty, &nothing, &e));
    else if (str_starts(g->format, CLI_GO_TEMPLATE))
        ERR_IGNORE(cli_go_template_check(g->format + strlen(CLI_GO_TEMPLATE), &e));
    else
        ERR_IGNORE(cli_columns(g->format + strlen(CLI_CUSTOM_COLUMNS), NULL, false, &nothing, &e));
    return e.code != ERR_OK ? cli_failed(g->cli, &e) : EXIT_OK;
}

/* "jsonpath-file=FILE" becomes "jsonpath=..." */
static int read_template(struct get *g, struct buf *ret)
{
    static const char *const files[][2] = { { "custom-columns-file=", CLI_CUSTOM_COLUMNS },
                                            { "go-template-file=", CLI_GO_TEMPLATE },
                                            { "jsonpath-file=", CLI_JSONPATH } };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_auto text = NULL;

        if (!str_starts(g->format, files[i][0]))
            continue;
        if (fs_read_at(AT_FDCWD, g->format + strlen(files[i][0]), TEMPLATE_MAX, &text, NULL, &e) != ERR_OK)
            return cli_failed(g->cli, &e);
        buf_adds(ret, files[i][1]);
        if (i > 0)
            buf_adds(ret, text);
        else if (cli_columns_of_file(text, ret, &e) != ERR_OK)
            return cli_failed(g->cli, &e);
        g->format = ret->p;
        break;
    }
    return EXIT_OK;
}

static int check_format(struct get *g, struct buf *template)
{
    static const char *const formats[] = { "json", "name", "wide", "yaml" };
    static const char *const templates[] = { CLI_CUSTOM_COLUMNS, CLI_GO_TEMPLATE, CLI_JSONPATH };
    int code;

    if (g->format == NULL)
        return EXIT_OK;
    code = read_template(g, template);
    for (size_t i = 0; i < ARRAY_LEN(templates) && code == EXIT_OK; i++)
        if (str_starts(g->format, templates[i]))
            return check_template(g);
    for (size_t i = 0; i < ARRAY_LEN(formats) && code == EXIT_OK; i++)
        if (strcmp(g->format, formats[i]) == 0)
            return EXIT_OK;
    if (code != EXIT_OK)
        return code;
    if (strcmp(g->format, "jsonpath") == 0)
        return cli_wrong(g->cli, "-o jsonpath needs a template: -o jsonpath={.status.podIP}");
    return cli_wrong(g->cli,
                     "unable to match a printer suitable for the output format \"%s\", allowed formats are: "
                     "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,"
                     "jsonpath-file,name,wide,yaml",
                     g->format);
}

/* "pods web db", "pod/web pod/db"; image names contain slashes */
static int get_take_names(struct get *g, const struct api_kind_row *kind, char **words, int n)
{
    const bool slashes = strchr(words[0], '/') != NULL, image = kind->id == API_KINDS;

    g->names = slashes ? words : words + 1;
    g->n_names = slashes ? n : n - 1;
    for (int i = 0; i < g->n_names && (slashes || !image); i++) {
        const char *slash = strchr(g->names[i], '/');
        const char *name = slash == NULL                        ? g->names[i]
                           : cli_kind_find(g->names[i]) == kind ? slash + 1
                                                                : NULL;

        if (name != NULL && name[0] == '\0')
            return cli_wrong(g->cli, "the name of a resource may not be empty");
        if (slashes != (slash != NULL) || name == NULL)
            return cli_wrong(
                g->cli, "there is no need to specify a resource type as a separate argument when passing "
                        "arguments in resource/name form (e.g. 'coracle get pod/NAME')");
        g->names[i] = (char *)(uintptr_t)name;
    }
    return EXIT_OK;
}

static int get_images(const struct get *g)
{
    if (g->watch || g->selector != NULL || g->field_selector != NULL || g->sort_by != NULL ||
        g->label_columns.n > 0)
        return cli_wrong(g->cli, "images have no labels, and cannot be watched or sorted");
    if (g->many)
        return cli_wrong(g->cli, "images are listed alone, without other kinds");
    return cli_list_images(g->cli, g->format, g->no_headers, g->names, g->n_names);
}

static int get_devices_of(struct get *g, const char *word)
{
    if (g->watch || g->selector != NULL || g->field_selector != NULL)
        return cli_wrong(g->cli, "devices cannot be watched or selected by labels");
    if (strchr(word, '/') != NULL)
        return cli_wrong(g->cli, "devices are listed by resource: 'coracle get devices example.com/gpu'");
    return get_devices(g);
}

/* Kinds that are not objects of Kubernetes' API, or have no names. */
static int get_others(struct get *g, const char *word)
{
    bool evictions = cli_is_kind(word, eviction_kinds);

    if (cli_is_kind(word, event_kinds))
        return get_events(g);
    if (g->many && (evictions || cli_is_kind(word, device_kinds) || cli_is_kind(word, manifest_kinds)))
        return cli_wrong(g->cli, "%s are listed alone, without other kinds", word);
    if (cli_is_kind(word, device_kinds))
        return get_devices_of(g, word);
    if (!evictions && !cli_is_kind(word, manifest_kinds))
        return cli_unknown_kind(g->cli, word, ", devices, evictions, manifests, events");
    if (g->n_names > 0 || g->watch || g->selector != NULL || g->field_selector != NULL ||
        g->sort_by != NULL || strchr(word, '/') != NULL)
        return cli_wrong(g->cli, "%s are listed as a whole: no names, selectors, order or watch",
                         evictions ? "evictions" : "manifests");
    return evictions ? get_evictions(g) : get_manifests(g);
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct get, namespace_, "the namespace (default)"),
    { "all-namespaces", 'A', FLAG_SWITCH, offsetof(struct get, all), NULL, "all namespaces" },
    CLI_OUTPUT(
        struct get, format,
        "wide|json|yaml|name|jsonpath=|jsonpath-file=|custom-columns=|custom-columns-file=|go-template="
        "|go-template-file=",
        "wide, json, yaml, name, jsonpath={.status.podIP}, custom-columns=NAME:.metadata.name,... or "
        "go-template={{.kind}}; with a template in a file: jsonpath-file=, custom-columns-file=, "
        "go-template-file="),
    { "selector", 'l', FLAG_TEXT, offsetof(struct get, selector), "SELECTOR",
      "only objects with these labels: app=web,tier!=db" },
    { "field-selector", 0, FLAG_TEXT, offsetof(struct get, field_selector), "SELECTOR",
      "only objects with these fields: status.phase=Running,spec.nodeName!=a" },
    { "filename", 'f', FLAG_LIST, offsetof(struct get, files), "FILE",
      "the objects in a file, a folder, or standard input (-)", "@file" },
    { "recursive", 'R', FLAG_SWITCH, offsetof(struct get, deep), NULL, "also read subfolders" },
    { "show-labels", 0, FLAG_SWITCH, offsetof(struct get, show_labels), NULL,
      "add a column with all labels" },
    { "label-columns", 'L', FLAG_LIST, offsetof(struct get, label_columns), "LABEL,...",
      "add a column for each of these labels" },
    { "ignore-not-found", 0, FLAG_SWITCH, offsetof(struct get, ignore_not_found), NULL,
      "do not fail if an object does not exist" },
    { "sort-by", 0, FLAG_TEXT, offsetof(struct get, sort_by), "PATH",
      "sort by this path, lowest first: .metadata.creationTimestamp" },
    { "watch", 'w', FLAG_SWITCH, offsetof(struct get, watch), NULL, "watch for changes" },
    { "no-headers", 0, FLAG_SWITCH, offsetof(struct get, no_headers), NULL, "do not print headers" },
    CLI_FLAGS_END,
};

/* ---- one kind, or several ---- */

/* "pods web", "pod/web pod/db": all of one kind. */
static int get_kind(struct get *g, char **words, int n)
{
    const struct api_kind_row *kind = cli_kind_find(words[0]);
    int code;

    if (kind == NULL) {
        g->names = words + 1;
        g->n_names = n - 1;
        return get_others(g, words[0]);
    }
    code = get_take_names(g, kind, words, n);
    if (code != EXIT_OK)
        return code;
    cli_full_kind(kind, g->kind_text);
    g->kind = g->kind_text;
    return kind->id == API_KIND_POD ? get_pods(g)
           : kind->id == API_KINDS  ? get_images(g)
                                    : get_objects(g, kind);
}

/* The objects of several kinds, collected. */
static int print_all(struct get *g, int code)
{
    json_auto_t *items = g->all_items;

    g->all_items = NULL;
    g->many = false;
    if (items != NULL && json_array_size(items) > 0)
        cli_keep_first(&code, get_print_objects(g, "", items, false));
    else if (items != NULL ? code == EXIT_OK : !g->shown && code == EXIT_OK && !get_is_format(g, "name"))
        get_nothing_found(g);
    return code;
}

static void begin_many(struct get *g)
{
    g->many = true;
    if (!get_is_table(g) && !get_is_format(g, "name"))
        g->all_items = json_array();
}

/* "pods,cm [NAME...]", "all" */
static int get_kinds(struct get *g, char **words, int n)
{
    str_auto kinds = strdup(strcmp(words[0], "all") == 0 ? CLI_KINDS_OF_ALL : words[0]);
    char *rest = kinds, *word;
    int code = EXIT_OK;

    if (kinds == NULL)
        return cli_error(g->cli, "out of memory");
    if (strcmp(words[0], "all") == 0 && n > 1)
        return cli_wrong(g->cli, "get all takes no names");
    begin_many(g);
    while ((word = strsep(&rest, ",")) != NULL) {
        char **part = calloc((size_t)n, sizeof(*part));

        if (part != NULL) {
            part[0] = word;
            memcpy(part + 1, words + 1, (size_t)(n - 1) * sizeof(*part));
            cli_keep_first(&code, get_kind(g, part, n));
        }
        free(part);
        if (code == EXIT_USAGE)
            break;
    }
    return print_all(g, code);
}

/* "pod/web cm/settings": those of one kind together, in the order of the kinds. */
static int get_each_pair(struct get *g, char **words, int n)
{
    mem_auto char **part = calloc((size_t)n, sizeof(*part));
    int code = EXIT_OK;

    if (part == NULL)
        return cli_error(g->cli, "out of memory");
    for (int i = 0; i < n && code != EXIT_USAGE; i++) {
        const struct api_kind_row *kind = words[i] != NULL ? cli_kind_find(words[i]) : NULL;
        int m = 0;

        for (int k = i; k < n; k++) {
            if (words[k] != NULL && (k == i || (kind != NULL && cli_kind_find(words[k]) == kind))) {
                part[m++] = words[k];
                words[k] = NULL;
            }
        }
        if (m > 0)
            cli_keep_first(&code, get_kind(g, part, m));
    }
    return code;
}

static int get_pairs(struct get *g, char **words, int n)
{
    begin_many(g);
    return print_all(g, get_each_pair(g, words, n));
}

/* ---- the objects of files ---- */

static char *pair_of(const struct api_object *o)
{
    return str_printf("%s/%s", api_kinds[o->kind].singular, api_object_meta(o)->name);
}

/* The objects of a file, those of one namespace after the other. */
static int get_file(struct get *g, const char *path)
{
    struct cli_file f = { 0 };
    int code = cli_files_read(g->cli, path, &f);
    size_t i = 0;

    while (i < f.objects.n && code == EXIT_OK) {
        const char *namespace_ = api_object_meta(&f.objects.v[i])->namespace;
        struct strs words = { 0 };

        for (; i < f.objects.n &&
               (words.n == 0 || str_eq(api_object_meta(&f.objects.v[i])->namespace, namespace_));
             i++)
            if (!strs_take(&words, pair_of(&f.objects.v[i])))
                code = cli_error(g->cli, "out of memory");
        g->namespace_ = namespace_ != NULL ? namespace_ : "default";
        if (code == EXIT_OK) { /* the words are changed on the way */
            mem_auto char **copies = calloc(words.n, sizeof(*copies));

            if (copies != NULL)
                memcpy(copies, words.v, words.n * sizeof(*copies));
            cli_keep_first(&code, copies != NULL ? get_each_pair(g, copies, (int)words.n)
                                                 : cli_error(g->cli, "out of memory"));
        }
        strs_done(&words);
    }
    cli_file_done(&f);
    return code;
}

static int get_files(struct get *g)
{
    struct strs paths = { 0 };
    int code = EXIT_OK;

    for (size_t i = 0; i < g->files.n && code == EXIT_OK; i++)
        code = cli_files_add(g->cli, g->files.v[i], CLI_FILES_MANIFESTS, g->deep, &paths);
    begin_many(g);
    for (size_t i = 0; i < paths.n && code != EXIT_USAGE; i++)
        cli_keep_first(&code, get_file(g, paths.v[i]));
    strs_done(&paths);
    return print_all(g, code);
}

/* Whether the words name several kinds. */
static bool are_pairs(char **words, int n)
{
    const struct api_kind_row *first = cli_kind_find(words[0]);
    bool differ = false;

    for (int i = 0; i < n; i++) {
        if (strchr(words[i], '/') == NULL || cli_kind_find(words[i]) == NULL)
            return false;
        differ |= cli_kind_find(words[i]) != first;
    }
    return differ;
}

static int get_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct get g = { .cli = cli, .command = command, .namespace_ = "default" };
    buf_auto template = BUF_INIT(TEMPLATE_MAX * 2);
    bool many;
    int code;

    if (!cli_parse(cli, command, &g, &argc, argv, &code))
        return code;
    if (g.files.n > 0 && argc > 0)
        return cli_usage_error(cli, command, "objects are named by -f or by words, not by both");
    if (argc < 1 && g.files.n == 0)
        return cli_usage_error(
            cli, command,
            "you must specify what to get: pods, nodes, configmaps, secrets, priorityclasses, "
            "images, devices, evictions, manifests or events");
    code = check_format(&g, &template);
    if (code == EXIT_OK)
        code = get_check_labels(&g);
    if (code != EXIT_OK)
        return code;
    if (g.sort_by != NULL && g.watch)
        return cli_wrong(cli, "--sort-by and --watch cannot be given together");
    cli->ignore_not_found = g.ignore_not_found;
    if (g.files.n > 0)
        return g.watch ? cli_wrong(cli, "-f and --watch cannot be given together") : get_files(&g);
    many = strcmp(argv[0], "all") == 0 || strchr(argv[0], ',') != NULL;
    if (g.watch && (many || are_pairs(argv, argc)))
        return cli_wrong(cli, "you may only watch a single resource or type of resource at a time");
    return many                    ? get_kinds(&g, argv, argc)
           : are_pairs(argv, argc) ? get_pairs(&g, argv, argc)
                                   : get_kind(&g, argv, argc);
}

static const struct cli_example examples[] = {
    { "all pods of all namespaces, with their addresses", "coracle get pods -A -o wide" },
    { "one pod with its status", "coracle get pod web -o yaml" },
    { "a pod's address, for a script", "coracle get pod web -o jsonpath={.status.podIP}" },
    { "pods and ConfigMaps together", "coracle get pods,cm" },
    { "custom columns",
      "coracle get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image" },
    { "pods that are not running",
      "coracle get pods -o jsonpath='{.items[?(@.status.phase!=\"Running\")].metadata.name}'" },
    { "watch changes", "coracle get pods -w" },
    { "the current state of the objects in a file", "coracle get -f web.yaml" },
    { "the content of a ConfigMap", "coracle get configmap settings -o yaml" },
    { "the devices of a resource, and the pods that use them", "coracle get devices example.com/gpu" },
    { "why pods were evicted, and the other candidates", "coracle get evictions -o yaml" },
    { "the files of the manifest folder and their errors", "coracle get manifests" },
    { NULL, NULL },
};

const struct cli_command command_get = {
    .name = "get",
    .run = get_run,
    .summary = "list pods, nodes, configmaps, secrets, images ...",
    .usage = "get pods|nodes|configmaps|secrets|priorityclasses|images [NAME...] [flags]\n"
             "get KIND,KIND... [NAME...] | KIND/NAME... | all [flags]\n"
             "get -f FILE|FOLDER|- [-R] [flags]\n"
             "get devices [RESOURCE...] [flags]\n"
             "get evictions|manifests|events [flags]",
    .about = "Lists objects in a table, or whole objects with -o json|yaml.  For a Secret, only the keys and "
             "the sizes of the values are shown; the daemon never discloses values.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "describe explain",
    .words = "all|pods|nodes|configmaps|secrets|priorityclasses|images|devices|evictions|manifests|events "
             "@named ...",
};
