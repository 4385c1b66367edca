/*
 * `coracle delete`.  A pod of a standalone node is there because a file says so, and ends when the file goes:
 * which file that is, and with --file the file's removal, as far as it holds nothing else.
 */
#include "agent/cli/internal.h"

#include "base/json.h"
#include "base/scope.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct delete_options {
    const char *namespace_;
    bool file, wait;
};

static bool is_pod(const json_t *object, const char *namespace_, const char *name)
{
    return strcmp(cli_text(object, "kind"), "Pod") == 0 &&
           strcmp(cli_text(object, "namespace"), namespace_) == 0 &&
           strcmp(cli_text(object, "name"), name) == 0;
}

static const json_t *file_of(const json_t *manifests, const char *namespace_, const char *name)
{
    const json_t *file, *object;
    size_t i, k;

    json_array_foreach (manifests, i, file) {
        json_array_foreach (cli_at(file, "holds"), k, object) {
            if (is_pod(object, namespace_, name))
                return file;
        }
    }
    return NULL;
}

/* "; it also holds ConfigMap default/a, Pod default/b" */
static void add_others(const json_t *file, const char *namespace_, const char *name, struct buf *out)
{
    const json_t *object;
    size_t i, n = 0;

    json_array_foreach (cli_at(file, "holds"), i, object) {
        const char *its = cli_text(object, "namespace");

        if (!is_pod(object, namespace_, name))
            buf_addf(out, "%s%s %s%s%s", n++ == 0 ? "" : ", ", cli_text(object, "kind"), its,
                     its[0] != '\0' ? "/" : "", cli_text(object, "name"));
    }
}

/* ---- the file goes, then the pod ------------------------------------------------------------- */

struct removal {
    struct cli *cli;
    const char *path, *uid;
    bool wait;
    struct buf line;
    bool removed, over;
    int code;
};

static void remove_file(struct removal *r)
{
    if (unlink(r->path) != 0) {
        r->code = cli_error(r->cli, "remove %s: %s", r->path, strerror(errno));
        r->over = true;
        return;
    }
    cli_say(r->cli, "%s removed\n", r->path);
    cli_flush(r->cli);
    r->removed = true;
    r->over = !r->wait;
}

/* The first event says that the watch stands: what becomes of the pod from now on is not missed. */
static void take_event(struct removal *r)
{
    json_auto_t *event = NULL;
    struct err e = { 0 };

    if (json_parse(r->line.p, r->line.n, CLI_BODY_MAX, &event, "watch event", &e) != ERR_OK) {
        r->code = cli_error(r->cli, "%s", e.text);
        r->over = true;
    } else if (!r->removed) {
        remove_file(r);
    } else {
        r->over = strcmp(cli_text(event, "type"), "DELETED") == 0 ||
                  strcmp(cli_text(event, "object.metadata.uid"), r->uid) != 0;
    }
}

static bool on_data(const char *data, size_t n, void *arg)
{
    struct removal *r = arg;

    for (size_t i = 0; i < n && !r->over; i++) {
        if (data[i] != '\n') {
            buf_addc(&r->line, data[i]);
            continue;
        }
        take_event(r);
        buf_reset(&r->line);
    }
    return !r->over && !r->line.failed;
}

static int remove_and_wait(struct cli *cli, const struct delete_options *o, const char *name,
                           const char *path, const char *uid)
{
    struct removal removal = {
        .cli = cli, .path = path, .uid = uid, .wait = o->wait, .line = BUF_INIT(CLI_BODY_MAX)
    };
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    struct err e = { 0 };
    int code;

    cli_add_pod_path(&url, o->namespace_, name);
    buf_adds(&url, "?watch=true");
    if (cli_request(cli, "GET", url.p, true, on_data, &removal, &r, &e) != ERR_OK)
        code = cli_error(cli, "%s", e.text);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    else
        code =
            removal.over ? removal.code : cli_error(cli, "coracle ended the watch before the pod was gone");
    buf_done(&removal.line);
    buf_done(&r.body);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int delete_pod(struct cli *cli, const struct delete_options *o, const char *name)
{
    json_auto_t *pod = cli_get_pod(cli, o->namespace_, name);
    json_auto_t *list = pod != NULL ? cli_get(cli, "/manifests", NULL) : NULL;
    const json_t *file = file_of(cli_at(list, "items"), o->namespace_, name);
    buf_auto others = BUF_INIT(1u << 20);
    const char *path = cli_text(file, "path");

    if (list == NULL)
        return EXIT_ERROR;
    if (file == NULL)
        return cli_error(cli, "no file holds pod %s any more: it is on its way out, or its folder is missing",
                         name);
    add_others(file, o->namespace_, name, &others);
    if (!o->file) {
        cli_error(cli, "pod %s is there because %s says so; removing that file ends it%s%s", name, path,
                  others.n > 0 ? ", and takes away what else it holds: " : "", others.p);
        fprintf(cli->err, others.n > 0 ? "Take the pod out of that file\n"
                                       : "With --file this command removes the file\n");
        return EXIT_ERROR;
    }
    if (others.n > 0)
        return cli_error(cli, "%s is not removed, as it also holds %s: take the pod out of it", path,
                         others.p);
    if (remove_and_wait(cli, o, name, path, cli_text(pod, "metadata.uid")) != EXIT_OK)
        return EXIT_ERROR;
    cli_say(cli, "pod \"%s\" %s\n", name, o->wait ? "deleted" : "will be deleted");
    return EXIT_OK;
}

static const struct cli_flag flags[] = {
    CLI_NAMESPACE(struct delete_options, namespace_, "the pod's namespace (default)"),
    { "file", 0, FLAG_SWITCH, offsetof(struct delete_options, file), NULL,
      "remove the file, if it holds nothing but this pod" },
    { "wait", 0, FLAG_SWITCH, offsetof(struct delete_options, wait), NULL,
      "wait until the pod is gone (--wait=false: do not)" },
    CLI_FLAGS_END,
};

static int run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct delete_options o = { .namespace_ = "default", .wait = true };
    const char *name;
    int code;

    if (!cli_parse(cli, command, &o, &argc, argv, &code))
        return code;
    name = cli_pod_word(argc, argv);
    if (name == NULL)
        return cli_usage_error(cli, command, "you must specify one pod");
    return delete_pod(cli, &o, name);
}

static const struct cli_example examples[] = {
    { "which file holds a pod", "coracle delete pod web" },
    { "remove that file, and wait until the pod is gone", "coracle delete pod web --file" },
    { NULL, NULL },
};

static const struct cli_exit exits[] = {
    { 0, "the pod is gone, or will be (--wait=false)" },
    { 1, "nothing was removed, or the pod did not go; standard error says why" },
    { 2, "wrong usage" },
    { 0, NULL },
};

const struct cli_command command_delete = {
    .name = "delete",
    .run = run,
    .summary = "end a pod by way of its manifest file",
    .usage = "delete pod NAME [--file] [flags]",
    .about = "Says which file of the manifest folder holds the pod: the pod is there because the file is, "
             "and ends "
             "when the file goes.  With --file that file is removed, unless it holds something else, too.",
    .flags = flags,
    .examples = examples,
    .exits = exits,
    .see_also = "get restart",
    .words = "pod @pod",
};
