/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include "agent/api/check.h"
#include "agent/api/manifest/decode.h"
#include "agent/cli/files/files.h"
#include "agent/image/image.h"
#include "base/files/fs.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct seen { /* objects of all files: a second one of the same name would not be applied */
    struct strs keys, places;
};

/* False: out of memory. */
static bool check_duplicate(struct seen *s, const char *file, const struct api_object *o,
                            struct api_problems *problems)
{
    const struct api_meta *meta = api_object_meta(o);
    str_auto key =
        str_printf("%s %s%s%s", api_kind_name(o->kind), meta->namespace != NULL ? meta->namespace : "",
                   meta->namespace != NULL ? "/" : "", meta->name);
    str_auto where = str_printf("%s:%u:%u", file, (unsigned)o->place.line, (unsigned)o->place.column);
    const struct api_problem at = {
        .file = file, .document = o->document, .place = o->place, .field = "metadata.name"
    };

    if (key == NULL || where == NULL)
        return false;
    for (size_t i = 0; i < s->keys.n; i++) {
        if (strcmp(s->keys.v[i], key) == 0) {
            api_problems_add_at(problems, &at, "%s is already defined in %s", key, s->places.v[i]);
            return true;
        }
    }
    return strs_take(&s->keys, take_ptr(&key)) && strs_take(&s->places, take_ptr(&where));
}

static void check_duplicates(struct seen *s, const char *file, const struct api_objects *objects,
                             struct api_problems *problems)
{
    const struct api_object *held = NULL;
    size_t n_held = 0;

    for (size_t i = 0; i < objects->n; i++) {
        size_t before = problems->n;

        if (!check_duplicate(s, file, &objects->v[i], problems))
            api_problems_add(problems, file, "out of memory");
        else if (problems->n == before && n_held++ == 0)
            held = &objects->v[i];
    }
    api_problems_sort(problems);
    api_problems_hold_back(problems, held, n_held);
}

static void print_ignored(struct cli *cli, const char *name, const struct api_object *o)
{
    for (size_t i = 0; o->kind == API_KIND_POD && i < o->pod->ignored.n; i++)
        cli_print(cli, "%s: note: Pod %s/%s: %s\n", name, o->pod->meta.namespace, o->pod->meta.name,
                  o->pod->ignored.v[i]);
}

/* {"file", "ok", "objects", "problems": [see api_problem_json()], "notes": [...]} */
static json_t *file_json(const char *name, bool ok, const struct api_objects *objects,
                         const struct api_problems *problems)
{
    json_t *found = json_array(), *notes = json_array();

    for (size_t i = 0; i < problems->n; i++)
        json_array_append_new(found, api_problem_json(&problems->v[i]));
    for (size_t i = 0; ok && i < objects->n; i++) {
        const struct api_object *o = &objects->v[i];

        for (size_t k = 0; o->kind == API_KIND_POD && k < o->pod->ignored.n; k++)
            json_array_append_new(notes, json_sprintf("Pod %s/%s: %s", o->pod->meta.namespace,
                                                      o->pod->meta.name, o->pod->ignored.v[k]));
    }
    return json_pack("{s:s, s:b, s:I, s:o, s:o}", "file", name, "ok", ok, "objects", (json_int_t)objects->n,
                     "problems", found, "notes", notes);
}

static void print_file(struct cli *cli, const char *name, bool ok, const struct api_objects *objects,
                       const struct api_problems *problems)
{
    cli_files_print(cli, problems);
    if (ok)
        cli_print(cli, "%s: %zu object%s, no problems\n", name, objects->n, objects->n == 1 ? "" : "s");
    for (size_t i = 0; ok && i < objects->n; i++)
        print_ignored(cli, name, &objects->v[i]);
}

static enum err_code check_image(const char *reference, struct err *e)
{
    char name[IMG_NAME_MAX];

    return img_normalise(reference, name, e);
}

static const struct api_lint lint = { check_image };

/* `files`: the result as JSON; NULL: print it. */
static int validate(struct cli *cli, const char *path, struct seen *seen, json_t *files)
{
    const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    fd_auto fd = cli_files_open(cli, path);
    bool ok;
    size_t n;

    if (fd < 0)
        return EXIT_ERROR;
    if (fs_read_fd(fd, API_FILE_MAX, &text, &n, &e) == ERR_EXHAUSTED)
        return cli_error(cli, "%s has more than %d bytes", name, API_FILE_MAX);
    if (e.code != ERR_OK)
        return cli_error(cli, "read %s: %s", name, e.text);
    if (api_lint_file(name, text, n, &lint, &objects, &problems, &e) != ERR_OK)
        return cli_error(cli, "%s: %s", name, e.text);
    check_duplicates(seen, name, &objects, &problems);
    ok = problems.n == 0 && problems.dropped == 0;
    if (files != NULL)
        json_array_append_new(files, file_json(name, ok, &objects, &problems));
    else
        print_file(cli, name, ok, &objects, &problems);
    api_objects_done(&objects);
    api_problems_done(&problems);
    explicit_bzero(text, n);
    return ok ? EXIT_OK : EXIT_ERROR;
}

struct validate_options {
    const char *format;
    struct cli_list files;
    bool deep;
};

static const struct cli_flag flags[] = {
    CLI_OUTPUT(struct validate_options, format, "json|yaml",
               "json or yaml: {\"items\": [{\"file\", \"ok\", \"objects\", \"problems\", \"notes\"}]}"),
    { "filename", 'f', FLAG_LIST, offsetof(struct validate_options, files), "FILE",
      "the same as FILE without a flag", "@file" },
    { "recursive", 'R', FLAG_SWITCH, offsetof(struct validate_options, deep), NULL, "also read subfolders" },
    CLI_FLAGS_END,
};

static int validate_command(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct validate_options o = { 0 };
    json_auto_t *files = NULL;
    struct seen seen = { 0 };
    struct strs paths = { 0 };
    int code = EXIT_OK;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    if (argc == 0 && o.files.n == 0)
        return cli_usage_error(cli, command, "you must specify files, or - for standard input");
    if (cli_check_format(cli, o.format) != EXIT_OK)
        return EXIT_USAGE;
    files = o.format != NULL ? json_pack("{s:[]}", "items") : NULL;
    for (size_t i = 0; i < o.files.n; i++)
        cli_keep_first(&code, cli_files_add(cli, o.files.v[i], CLI_FILES_ALL, o.deep, &paths));
    for (int i = 0; i < argc; i++)
        cli_keep_first(&code, cli_files_add(cli, argv[i], CLI_FILES_ALL, o.deep, &paths));
    for (size_t i = 0; i < paths.n; i++)
        if (validate(cli, paths.v[i], &seen, json_object_get(files, "items")) != EXIT_OK)
            code = EXIT_ERROR;
    if (files != NULL && cli_print_value(cli, files, o.format) != EXIT_OK)
        code = EXIT_ERROR;
    strs_done(&seen.keys);
    strs_done(&seen.places);
    strs_done(&paths);
    return code;
}

static const struct cli_example examples[] = {
    { "check a file before adding it to the manifest folder", "coracle validate web.yaml" },
    { "check the manifest folder", "coracle validate /etc/coracle/manifests" },
    { "check the output of another program", "kustomize build . | coracle validate -" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "no errors were found" },
    { 1, "an error was found, or a file cannot be read" },
    { 2, "a usage error: an invalid word, flag or value" },
    { 0, NULL },
};

const struct cli_command command_validate = {
    .name = "validate",
    .run = validate_command,
    .summary = "check manifests, without a daemon",
    .usage = "validate [-o json|yaml] [-R] FILE|FOLDER|-...",
    .about = "Checks manifests as the daemon does, but needs no daemon.  Each error is a line "
             "FILE:LINE:COLUMN: FIELD: TEXT on standard error, in the format of compilers, so that "
             "editors can jump to the position.  With -o json an error has the members file, line, "
             "column, document, field and message; members without a value are omitted.  For a FOLDER, "
             "the command checks all files that the daemon would read there.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "get",
    .words = "@file ...",
};
