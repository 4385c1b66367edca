/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle edit`: opens an object in the user's editor. If a file contains only this object, the command
 * edits the text of the file, with its comments, and replaces the file by rename; otherwise it edits the
 * object, and the daemon writes it. */
#include "agent/cli/change/internal.h"

#include "agent/api/manifest/decode.h"
#include "agent/api/yaml/yaml.h"
#include "agent/cli/files/files.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char introduction[] = EDIT_COMMENT
    " Please edit the object below. These lines are left out, and an empty file ends the edit.\n" EDIT_COMMENT
    " If it cannot be saved, the file is opened again, with the reasons here.\n";

struct edit {
    struct cli *cli;
    const struct cli_target *target;
    const char *note; /* of a dry run */
    bool dry;
    struct edit_file file;
    json_t *manifests;      /* the daemon's */
    const char *home;       /* the path of the object's own file, borrowed; NULL: it has none */
    mode_t mode;            /* of that file */
    char *before, *refused; /* the text at first, and the one that was refused last; owned, wiped */
    json_t *live;           /* the object at first; NULL with `home`; owned, wiped */
    json_t *made;           /* the object that was edited; owned, wiped */
    char name[CLI_FULL_NAME_SIZE];
};

static void wipe_text(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* ---- the edited text ---- */

static bool is_alone_in(const struct cli_target *t, const json_t *file)
{
    const json_t *holds = cli_at(file, "holds"), *first = json_array_get(holds, 0);

    return json_array_size(holds) == 1 && strcmp(cli_text(first, "kind"), t->kind->kind) == 0 &&
           strcmp(cli_text(first, "name"), t->name) == 0 &&
           strcmp(cli_text(first, "namespace"), t->namespace_ != NULL ? t->namespace_ : "") == 0;
}

/* Finds a plain file that has just this object, and reads it. */
static int find_home(struct edit *x)
{
    const json_t *file;
    struct err e = { 0 };
    struct stat st;
    size_t i;
    int code;

    x->manifests = cli_get(x->cli, "/manifests", &code);
    json_array_foreach (cli_at(x->manifests, "items"), i, file)
        if (is_alone_in(x->target, file))
            x->home = cli_text(file, "path");
    if (x->home == NULL)
        return code;
    if (lstat(x->home, &st) != 0 || !S_ISREG(st.st_mode) || str_ends(x->home, ".json")) {
        x->home = NULL;
        return code;
    }
    x->mode = st.st_mode & 07777;
    return fs_read_at(AT_FDCWD, x->home, API_FILE_MAX, &x->before, NULL, &e) == ERR_OK
               ? EXIT_OK
               : cli_failed(x->cli, &e);
}

/* Without members that a client does not write. */
static void strip(json_t *object)
{
    json_t *meta = json_object_get(object, "metadata");

    json_object_del(object, "status");
    json_object_del(meta, "managedFields");
    json_object_del(meta, "resourceVersion");
}

/* Puts that back. False: out of memory. */
static bool unstrip(json_t *object, const json_t *live)
{
    json_t *meta = json_object_get(object, "metadata"),
           *managed = json_object_get(json_object_get(live, "metadata"), "managedFields"),
           *status = json_object_get(live, "status");

    return (managed == NULL || json_object_set(meta, "managedFields", managed) == 0) &&
           (status == NULL || json_object_set(object, "status", status) == 0);
}

static int read_object(struct edit *x)
{
    char mark[CHANGE_MARK_SIZE];
    int code;

    x->live = change_look(x->cli, x->target, mark, &code);
    if (x->live == NULL)
        return code;
    strip(x->live);
    x->before = yaml_from_json(x->live);
    return x->before != NULL ? EXIT_OK : cli_error(x->cli, "out of memory");
}

/* ---- its problems ---- */

static bool is_target(const struct edit *x, const struct api_object *o)
{
    const struct api_meta *meta = api_object_meta(o);

    return o->kind == x->target->kind->id && strcmp(meta->name, x->target->name) == 0 &&
           str_eq(meta->namespace, x->target->namespace_);
}

static void add_reason(struct buf *reasons, const char *text)
{
    buf_adds(reasons, EDIT_COMMENT " * ");
    cli_add_clean(reasons, text);
    if (reasons->n > 0 && reasons->p[reasons->n - 1] != '\n')
        buf_addc(reasons, '\n');
}

static size_t lines_of(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/* With lines as they will be below the reasons. */
static void add_problems(const struct api_problems *p, struct buf *reasons)
{
    const size_t above = lines_of(introduction) + 1 + p->n;

    for (size_t i = 0; i < p->n; i++) {
        struct api_problem one = p->v[i];
        buf_auto text = BUF_INIT(64 * 1024);

        one.file = NULL;
        if (one.place.line > 0)
            buf_addf(&text, "line %zu: ", (size_t)one.place.line + above);
        one.place = (struct api_place){ 0 };
        api_problem_add_text(&one, "", &text);
        add_reason(reasons, text.p);
    }
}

/* Adds reasons to `reasons`; none: the text is right. False: an error was printed. */
static bool check_text(struct edit *x, const char *text, size_t n, struct buf *reasons)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    json_auto_t *documents = NULL;
    mem_auto int *numbers = NULL;
    struct err e = { 0 };

    if (api_decode_file("object", text, n, &objects, &problems, &e) != ERR_OK)
        add_reason(reasons, e.text);
    add_problems(&problems, reasons);
    if (reasons->n == 0 && (objects.n != 1 || !is_target(x, &objects.v[0])))
        add_reason(reasons, "kind, name and namespace must stay, and there may be one object");
    change_wipe(x->made);
    x->made = NULL;
    if (reasons->n == 0 && yaml_to_json(text, n, &documents, &numbers, NULL, &e) == ERR_OK)
        x->made = json_incref(json_array_get(documents, 0));
    api_objects_done(&objects);
    api_problems_done(&problems);
    return true;
}

/* ---- saving ---- */

static int save_file(struct edit *x, const char *text, size_t n, struct buf *reasons)
{
    struct err e = { 0 };
    char *now = NULL;
    bool same;

    if (fs_read_at(AT_FDCWD, x->home, API_FILE_MAX, &now, NULL, &e) != ERR_OK)
        return cli_failed(x->cli, &e);
    same = strcmp(now, x->before) == 0;
    wipe_text(now);
    if (!same)
        return cli_error(x->cli, "%s was changed meanwhile", x->home);
    (void)reasons;
    if (x->dry || fs_replace_at(AT_FDCWD, x->home, text, n, x->mode, true, &e) == ERR_OK)
        return EXIT_OK;
    return cli_failed(x->cli, &e);
}

static int make_object(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    const struct edit *x = c->arg;
    json_t *now = json_deep_copy(live);
    bool same;

    if (now == NULL)
        return cli_error(cli, "out of memory");
    strip(now);
    same = json_equal(now, x->live);
    change_wipe(now);
    if (!same)
        return cli_error(cli, "the object was changed meanwhile");
    *ret = json_deep_copy(x->made);
    if (*ret != NULL && unstrip(*ret, live))
        return EXIT_OK;
    return cli_error(cli, "out of memory");
}

/* A refusal of the daemon becomes a reason. */
static int save_object(struct edit *x, struct buf *reasons)
{
    const struct change c = {
        .target = x->target, .dry = x->dry, .whole = true, .make = make_object, .arg = x
    };
    FILE *err = x->cli->err;
    char *said = NULL;
    size_t n = 0;
    int code;

    x->cli->err = open_memstream(&said, &n);
    if (x->cli->err == NULL) {
        x->cli->err = err;
        return cli_error(x->cli, "out of memory");
    }
    code = change_object(x->cli, &c, NULL, NULL);
    fclose(x->cli->err);
    x->cli->err = err;
    if (code == EXIT_ERROR && strstr(said, "meanwhile") == NULL)
        add_reason(reasons, said);
    else if (n > 0)
        fputs(said, err);
    free(said);
    return reasons->n > 0 ? EXIT_OK : code;
}

/* ---- one edit ---- */

static bool is_empty(const char *text)
{
    for (bool comment = false; *text != '\0'; text++) {
        comment = *text == '#' || (comment && *text != '\n');
        if (!comment && strchr(" \t\r\n", *text) == NULL)
            return false;
    }
    return true;
}

/* After the editor. *ret_again: the file is opened once more, with `reasons`. */
static int take_text(struct edit *x, const char *text, size_t n, struct buf *reasons, bool *ret_again)
{
    int code = EXIT_OK;

    *ret_again = false;
    if (is_empty(text)) {
        cli_note(x->cli, "Edit cancelled, saved file was empty.\n");
        return EXIT_OK;
    }
    if (x->refused != NULL && strcmp(text, x->refused) == 0)
        return cli_error(x->cli, "Edit cancelled, no valid changes were saved.");
    if (strcmp(text, x->before) == 0) {
        cli_note(x->cli, "Edit cancelled, no changes made.\n");
        return EXIT_OK;
    }
    if (!check_text(x, text, n, reasons))
        return EXIT_ERROR;
    if (reasons->n == 0)
        code = x->home != NULL ? save_file(x, text, n, reasons) : save_object(x, reasons);
    *ret_again = reasons->n > 0;
    if (!*ret_again && code == EXIT_OK)
        cli_print(x->cli, "%s edited%s%s%s\n", x->name, x->home != NULL ? " in " : "",
                  x->home != NULL ? x->home : "", x->note);
    return code;
}

static int open_text(struct edit *x, const char *text, const struct buf *reasons)
{
    buf_auto whole = BUF_INIT(2 * API_FILE_MAX);
    int code;

    buf_adds(&whole, introduction);
    if (reasons->n > 0)
        buf_addf(&whole, EDIT_COMMENT " %s \"%s\" was not valid:\n%s", x->target->kind->plural,
                 x->target->name, reasons->p);
    buf_adds(&whole, text);
    code = whole.failed ? cli_error(x->cli, "out of memory") : edit_file_make(x->cli, &x->file, whole.p);
    buf_wipe(&whole);
    return code == EXIT_OK ? edit_file_run(x->cli, &x->file) : code;
}

static int edit_until_right(struct edit *x)
{
    char *text = strdup(x->before);
    buf_auto reasons = BUF_INIT(API_FILE_MAX);
    bool again = true;
    int code = text != NULL ? EXIT_OK : cli_error(x->cli, "out of memory");

    while (again && code == EXIT_OK) {
        size_t n = 0;

        code = open_text(x, text, &reasons);
        wipe_text(text);
        text = code == EXIT_OK ? edit_file_read(x->cli, &x->file, &n) : NULL;
        if (text == NULL)
            return code != EXIT_OK ? code : EXIT_ERROR;
        buf_reset(&reasons);
        code = take_text(x, text, n, &reasons, &again);
        if (again) {
            wipe_text(x->refused);
            x->refused = strdup(text);
            again = x->refused != NULL;
        }
    }
    wipe_text(text);
    return code;
}

static int edit_one(struct cli *cli, const struct cli_target *t, bool dry, const char *note)
{
    struct edit x = { .cli = cli, .target = t, .dry = dry, .note = note };
    int code;

    cli_full_name(t->kind, t->name, x.name);
    code = find_home(&x);
    if (code == EXIT_OK && x.home == NULL)
        code = read_object(&x);
    if (code == EXIT_OK)
        code = edit_until_right(&x);
    if (code != EXIT_OK && x.file.path[0] != '\0')
        cli_note(cli, "A copy of your changes has been stored to \"%s\"\n", x.file.path);
    else
        edit_file_remove(&x.file);
    json_decref(x.manifests);
    wipe_text(x.before);
    wipe_text(x.refused);
    change_wipe(x.live);
    change_wipe(x.made);
    return code;
}

/* ---- the command ---- */

static const struct cli_flag flags[] = {
    WHAT_FLAGS(struct what_alone),
    WHAT_DRY_RUN(struct what_alone),
    CLI_FLAGS_END,
};

static int cli_edit_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct what_alone o = { 0 };
    struct cli_targets targets;
    const char *note;
    bool dry;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code) ||
        (code = what_dry(cli, &o.what, &dry, &note)) != EXIT_OK)
        return code;
    code = what_targets(cli, command, &o.what, NULL, argc, argv, &targets);
    if (code != EXIT_OK)
        return code;
    if (targets.n == 0)
        code = cli_error(cli, "edit cancelled, no objects found");
    for (size_t i = 0; i < targets.n && code == EXIT_OK; i++)
        code = edit_one(cli, &targets.v[i], dry, note);
    cli_targets_done(&targets);
    return code;
}

static const struct cli_example examples[] = {
    { "change a pod", "coracle edit pod web" },
    { "with another editor", "EDITOR='emacs -nw' coracle edit deployment/web" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the object was changed, or there was nothing to change" },
    { 1, "the editor failed, or the saved text is invalid; a copy of the text is kept" },
    { 2, "a usage error: an invalid word, flag or value" },
    CLI_EXITS_DAEMON,
    { 0, NULL },
};

const struct cli_command command_edit = {
    .name = "edit",
    .run = cli_edit_run,
    .summary = "edit an object in an editor",
    .usage = "edit KIND NAME... [flags]\n"
             "edit KIND/NAME... [flags]\n"
             "edit -f FILE|FOLDER|- [flags]",
    .about = "Opens the object in the editor that KUBE_EDITOR, VISUAL or EDITOR names (default: vi).  "
             "If the manifest file contains only this object, the editor shows the file itself, with "
             "its comments; otherwise it shows the object.  The saved text is validated.  If it has "
             "errors, it is not applied, and the editor opens it again with the errors at the top.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "apply get validate",
    .words = "pod|deployment|statefulset|daemonset|job|configmap|secret @named ...",
};
