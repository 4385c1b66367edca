/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle apply`. Objects of a standalone node are files of the manifest folder: this writes them there, by
 * rename. All files are read and checked before the first is written. */
#include "agent/cli/files/files.h"
#include "agent/cli/internal.h"

#include "agent/api/yaml/yaml.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct apply {
    struct cli_list files;
    const char *namespace_, *dry_run;
    bool deep, dry, prune;
    struct cli *cli;
    json_t *manifests;  /* the daemon's */
    const char *folder; /* "/etc/coracle/manifests" */
};

/* ---- texts of objects ---- */

/* The objects of a file as JSON, a reference each, in the order of `f->objects`; NULL: an error was printed.
 */
static json_t *documents_of(struct cli *cli, const struct cli_file *f)
{
    json_auto_t *documents = NULL;
    mem_auto int *numbers = NULL;
    json_t *ret = json_array(), *d, *item;
    struct err e = { 0 };
    size_t i, k, n;

    if (yaml_to_json(f->text, f->n, &documents, &numbers, NULL, &e) != ERR_OK) {
        json_decref(ret);
        cli_failed(cli, &e);
        return NULL;
    }
    for (n = 0; n < f->objects.n; n++) {
        const struct api_object *o = &f->objects.v[n];
        const struct api_meta *meta = api_object_meta(o);

        json_array_foreach (documents, i, d) {
            if (numbers[i] != o->document)
                continue;
            if (!json_is_array(json_object_get(d, "items"))) {
                json_array_append(ret, d);
                continue;
            }
            json_array_foreach (json_object_get(d, "items"), k, item) {
                const char *its = cli_text(item, "metadata.namespace"), *kind = cli_text(item, "kind");

                if (json_array_size(ret) == n && strcmp(cli_text(item, "metadata.name"), meta->name) == 0 &&
                    (kind[0] == '\0' || strcmp(kind, api_kind_name(o->kind)) == 0) &&
                    (meta->namespace == NULL ||
                     strcmp(its[0] != '\0' ? its : "default", meta->namespace) == 0))
                    json_array_append(ret, item);
            }
        }
    }
    if (json_array_size(ret) == f->objects.n)
        return ret;
    json_decref(ret);
    cli_error(cli, "%s: an item of a list has no kind and name of its own", f->name);
    return NULL;
}

/* "Pod" and "v1" of an item of a PodList, which may have none. */
static bool has_type(const json_t *document)
{
    return cli_text(document, "kind")[0] != '\0' && cli_text(document, "apiVersion")[0] != '\0';
}

/* ---- one object ---- */

/* Reads a file of the folder; false: it is not there, or has not just this object. */
static bool read_home(const char *path, const struct api_object *o, json_t **ret_document)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    json_auto_t *documents = NULL;
    mem_auto int *numbers = NULL;
    size_t n = 0;
    bool ok = fs_read_at(AT_FDCWD, path, API_FILE_MAX, &text, &n, &e) == ERR_OK &&
              api_decode_file(path, text, n, &objects, &problems, &e) == ERR_OK && problems.n == 0 &&
              objects.n == 1 && objects.v[0].kind == o->kind &&
              strcmp(api_object_meta(&objects.v[0])->name, api_object_meta(o)->name) == 0 &&
              str_eq(api_object_meta(&objects.v[0])->namespace, api_object_meta(o)->namespace) &&
              yaml_to_json(text, n, &documents, &numbers, NULL, &e) == ERR_OK;

    if (ok)
        *ret_document = json_incref(json_array_get(documents, 0));
    api_objects_done(&objects);
    api_problems_done(&problems);
    if (text != NULL)
        explicit_bzero(text, n);
    return ok;
}

static int write_object(const struct apply *a, const char *path, const struct api_object *o, const char *text,
                        bool there, const struct stat *st)
{
    mode_t mode = there ? st->st_mode & 07777 : o->kind == API_KIND_SECRET ? 0600 : 0644;
    struct err e = { 0 };

    if (a->dry || fs_replace_at(AT_FDCWD, path, text, strlen(text), mode, true, &e) == ERR_OK)
        return EXIT_OK;
    return cli_failed(a->cli, &e);
}

/* "<folder>/pod-default-web.yaml"; NULL: no memory. */
static char *new_path(const struct apply *a, const struct api_object *o)
{
    const struct api_meta *meta = api_object_meta(o);
    char kind[HOME_KIND_SIZE];

    home_kind(o, kind);
    return str_printf("%s/%s-%s%s%s.yaml", a->folder, kind, meta->namespace != NULL ? meta->namespace : "",
                      meta->namespace != NULL ? "-" : "", meta->name);
}

static int apply_one(const struct apply *a, const struct cli_file *f, const struct api_object *o,
                     const json_t *document)
{
    const json_t *home = home_of(a->manifests, o);
    str_auto path = home != NULL ? strdup(cli_text(home, "path")) : new_path(a, o);
    str_auto made = f->objects.n == 1 ? strdup(f->text) : yaml_from_json(document);
    const char *what = home != NULL ? "configured" : "created";
    buf_auto others = BUF_INIT(1u << 20);
    json_auto_t *old = NULL;
    char kind[HOME_KIND_SIZE];
    struct stat st;
    bool there;
    int code;

    if (f->objects.n > 1 && !has_type(document))
        return cli_error(a->cli, "%s: an item of a list has no kind and apiVersion", f->name);
    if (path == NULL || made == NULL)
        return cli_error(a->cli, "out of memory");
    home_kind(o, kind);
    if (home != NULL)
        home_add_others(home, o, &others);
    if (others.n > 0)
        return cli_error(a->cli, "%s/%s is defined in %s, which also defines %s: edit that file", kind,
                         api_object_meta(o)->name, path, others.p);
    there = lstat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode))
        return cli_error(a->cli, "%s is not a regular file: edit its target", path);
    if (there && !read_home(path, o, &old))
        return cli_error(
            a->cli, "%s is not replaced, because it has something else, or problems: please check it", path);
    if (there && json_equal(old, document))
        what = "unchanged";
    else if (there)
        what = "configured";
    code = strcmp(what, "unchanged") == 0 ? EXIT_OK : write_object(a, path, o, made, there, &st);
    if (code == EXIT_OK)
        cli_print(a->cli, "%s/%s %s in %s%s\n", kind, api_object_meta(o)->name, what, path,
                  a->dry ? " (dry run)" : "");
    explicit_bzero(made, strlen(made));
    return code;
}

/* ---- files ---- */

/* Gives objects without a namespace the one of -n. False: the error was printed. */
static bool set_namespace(const struct apply *a, const struct api_object *o, const json_t *document)
{
    const char *its = cli_text(document, "metadata.namespace");

    if (a->namespace_ == NULL || api_object_meta(o)->namespace == NULL || strcmp(its, a->namespace_) == 0)
        return true;
    if (its[0] == '\0')
        cli_error(
            a->cli,
            "%s \"%s\" has no namespace: write \"namespace: %s\" into its file, or leave out --namespace",
            api_kind_name(o->kind), api_object_meta(o)->name, a->namespace_);
    else
        cli_error(
            a->cli,
            "the namespace from the provided object \"%s\" does not match the namespace \"%s\". You must "
            "pass '--namespace=%s' to perform this operation.",
            its, a->namespace_, its);
    return false;
}

/* Copied into the folder by hand, a file has several objects: it is replaced as it is. */
static int apply_whole(const struct apply *a, const struct cli_file *f, const json_t *home)
{
    const char *path = cli_text(home, "path"), *what = "unchanged";
    struct err e = { 0 };
    str_auto old = NULL;
    struct stat st;
    size_t n = 0;

    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return cli_error(a->cli, "%s is not a regular file: edit its target", path);
    if (fs_read_at(AT_FDCWD, path, API_FILE_MAX, &old, &n, &e) != ERR_OK)
        return cli_failed(a->cli, &e);
    if (n != f->n || memcmp(old, f->text, n) != 0) {
        what = "configured";
        if (!a->dry && fs_replace_at(AT_FDCWD, path, f->text, f->n, st.st_mode & 07777, true, &e) != ERR_OK)
            return cli_failed(a->cli, &e);
    }
    explicit_bzero(old, n);
    for (size_t i = 0; i < f->objects.n; i++) {
        char kind[HOME_KIND_SIZE];

        home_kind(&f->objects.v[i], kind);
        cli_print(a->cli, "%s/%s %s in %s%s\n", kind, api_object_meta(&f->objects.v[i])->name, what, path,
                  a->dry ? " (dry run)" : "");
    }
    return EXIT_OK;
}

static int apply_file(const struct apply *a, const struct cli_file *f)
{
    const json_t *home = home_of(a->manifests, &f->objects.v[0]);
    json_auto_t *documents = documents_of(a->cli, f);
    int code = EXIT_OK;

    if (documents == NULL)
        return EXIT_ERROR;
    for (size_t i = 0; i < f->objects.n; i++)
        if (!set_namespace(a, &f->objects.v[i], json_array_get(documents, i)))
            return EXIT_ERROR;
    if (f->objects.n > 1 && home != NULL && json_array_size(cli_at(home, "holds")) > 1 &&
        home_is_within(home, f->objects.v, f->objects.n))
        return apply_whole(a, f, home);
    for (size_t i = 0; i < f->objects.n; i++)
        cli_keep_first(&code, apply_one(a, f, &f->objects.v[i], json_array_get(documents, i)));
    return code;
}

static int apply_all(const struct apply *a, const struct strs *paths)
{
    struct cli_file *files = calloc(paths->n, sizeof(*files));
    int code = EXIT_OK;

    if (files == NULL)
        return cli_error(a->cli, "out of memory");
    for (size_t i = 0; i < paths->n; i++)
        cli_keep_first(&code, cli_files_read(a->cli, paths->v[i], &files[i]));
    if (code != EXIT_OK)
        cli_note(a->cli, "nothing is written\n");
    for (size_t i = 0; i < paths->n && code == EXIT_OK; i++)
        cli_keep_first(&code, apply_file(a, &files[i]));
    for (size_t i = 0; i < paths->n; i++)
        cli_file_done(&files[i]);
    free(files);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct apply, namespace_, "the namespace of all objects; any other namespace is an error"),
    { "filename", 'f', FLAG_LIST, offsetof(struct apply, files), "FILE", "a file, a folder, or - (required)",
      "@file" },
    { "recursive", 'R', FLAG_SWITCH, offsetof(struct apply, deep), NULL, "also read subfolders" },
    { "dry-run", 0, FLAG_TEXT, offsetof(struct apply, dry_run), "HOW",
      "client or server: write nothing, show the result", "client|server|none" },
    { "prune", 0, FLAG_SWITCH, offsetof(struct apply, prune), NULL, "not supported, see above" },
    CLI_FLAGS_END,
};

static int apply_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct apply a = { .cli = cli };
    json_auto_t *config = NULL, *manifests = NULL;
    struct strs paths = { 0 };
    int code;

    if (!cli_parse(cli, command, &a, &argc, argv, &code))
        return code;
    if (argc > 0 || a.files.n == 0)
        return cli_usage_error(cli, command, "you must specify files with -f");
    if (a.prune)
        return cli_wrong(
            cli, "--prune: objects do not say which apply made them; remove what is not wanted any more "
                 "with coracle delete -f FILE, or coracle delete KIND -l SELECTOR");
    if (a.dry_run != NULL && strcmp(a.dry_run, "client") != 0 && strcmp(a.dry_run, "server") != 0 &&
        strcmp(a.dry_run, "none") != 0)
        return cli_wrong(cli, "--dry-run is client, server or none, not \"%s\"", a.dry_run);
    a.dry = a.dry_run != NULL && strcmp(a.dry_run, "none") != 0;
    for (size_t i = 0; i < a.files.n && code == EXIT_OK; i++)
        code = cli_files_add(cli, a.files.v[i], CLI_FILES_MANIFESTS, a.deep, &paths);
    if (code == EXIT_OK)
        manifests = cli_get(cli, "/manifests", &code);
    if (code == EXIT_OK)
        config = cli_get(cli, "/configz", &code);
    a.manifests = manifests;
    a.folder = cli_text(config, "kubeletconfig.staticPodPath");
    if (code == EXIT_OK && a.folder[0] == '\0')
        code = cli_error(cli, "the daemon has no manifest folder");
    if (code == EXIT_OK)
        code = apply_all(&a, &paths);
    strs_done(&paths);
    return code;
}

static const struct cli_example examples[] = {
    { "add a pod to the node, or change it", "coracle apply -f web.yaml" },
    { "show what would be written", "coracle apply -f web.yaml --dry-run=client" },
    { "the output of another program", "kustomize build . | coracle apply -f -" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the files were written, or are unchanged" },
    { 1, "an error was found, or a file cannot be written; see standard error" },
    { 2, "a usage error: an invalid word, flag or value" },
    { 3, "no daemon answers at the socket" },
    { 4, "not permitted" },
    { 0, NULL },
};

const struct cli_command command_apply = {
    .name = "apply",
    .run = apply_run,
    .summary = "check manifests and copy them to the manifest folder",
    .usage = "apply -f FILE|FOLDER|- [flags]",
    .about = "Checks all files, then writes each object to the manifest folder and prints the name of "
             "the file: the file that already defines the object, or KIND-NAMESPACE-NAME.yaml.  A file "
             "with one object is copied unchanged, with its comments.  Objects without changes are not "
             "written.  A file in the folder that contains several objects is replaced only by a file "
             "that contains all of them.  --prune is not supported, because objects do not record "
             "which apply created them; use coracle delete -f FILE.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "validate delete get",
    .words = "@nothing",
};
