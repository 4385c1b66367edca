/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle delete pod NAME --file`: the file that defines a pod is removed by this process, if it has nothing
 * else. On a node of a cluster that is the only way: the daemon does not write the manifest folder there. */
#include "agent/cli/change/internal.h"

#include "agent/api/manifest/decode.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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

/* ---- removing the file and waiting for the pod ---- */

struct removal {
    struct cli *cli;
    const char *path, *uid, *namespace_, *name;
    bool wait, removed;
    bool gone; /* although the watch did not report it */
    int code;  /* the result of removing the file */
};

/* Reads the current file, not the daemon's version: it may have just been rewritten. */
static bool still_holds_it_alone(const struct removal *r, struct err *e)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    str_auto text = NULL;
    size_t n = 0;
    bool holds = fs_read_at(AT_FDCWD, r->path, API_FILE_MAX, &text, &n, e) == ERR_OK &&
                 api_decode_file(r->path, text, n, &objects, &problems, e) == ERR_OK && problems.n == 0 &&
                 objects.n == 1 && objects.v[0].kind == API_KIND_POD &&
                 strcmp(objects.v[0].pod->meta.namespace, r->namespace_) == 0 &&
                 strcmp(objects.v[0].pod->meta.name, r->name) == 0;

    api_objects_done(&objects);
    api_problems_done(&problems);
    if (text != NULL)
        explicit_bzero(text, n);
    return holds;
}

static int remove_file(struct removal *r)
{
    struct err e = { 0 };

    if (!still_holds_it_alone(r, &e))
        return e.code == ERR_PERMISSION
                   ? cli_failed(r->cli, &e)
                   : cli_error(r->cli, "%s is not removed because it has changed: please check it", r->path);
    if (unlink(r->path) != 0)
        return err_sys(&e, errno, "remove %s", r->path) == ERR_PERMISSION ? cli_failed(r->cli, &e)
                                                                          : cli_error(r->cli, "%s", e.text);
    cli_print(r->cli, "%s removed\n", r->path);
    cli_flush(r->cli);
    r->removed = true;
    return EXIT_OK;
}

/* The first event shows that the watch is established: no later change of the pod is missed. */
static bool cli_delete_on_change(const char *type, json_t *pod, void *arg)
{
    struct removal *r = arg;

    if (!r->removed) {
        r->code = remove_file(r);
        return r->code == EXIT_OK && r->wait;
    }
    return strcmp(type, "DELETED") != 0 && strcmp(cli_text(pod, "metadata.uid"), r->uid) == 0;
}

/* A watch reports nothing if the pod was already gone, so check now and then. */
static enum err_code cli_delete_follow(struct removal *r, struct cli_response *answer, struct err *e)
{
    buf_auto url = BUF_INIT(64 * 1024);

    cli_add_pod_path(&url, r->namespace_, r->name);
    buf_adds(&url, "?watch=true");
    for (;;) {
        r->cli->until_ms = clock_mono_ms() + CLI_LOOK_AGAIN_MS;
        if (cli_follow(r->cli, url.p, cli_delete_on_change, r, answer, e) != ERR_DEADLINE)
            return e->code;
        *e = (struct err){ 0 };
        if (!cli_pod_is_there(r->cli, r->namespace_, r->name)) {
            r->gone = true;
            return ERR_OK;
        }
    }
}

static int remove_and_wait(struct removal *r)
{
    struct cli_response answer = CLI_RESPONSE_INIT;
    struct err e = { 0 };
    int code;

    if (cli_delete_follow(r, &answer, &e) != ERR_OK)
        code = cli_failed(r->cli, &e);
    else if (r->gone)
        code =
            r->removed ? EXIT_OK : cli_error(r->cli, "pod %s is gone, %s is not removed", r->name, r->path);
    else
        code = answer.code == 200 ? r->code : cli_server_error(r->cli, &answer);
    buf_done(&answer.body);
    return code;
}

/* ---- the whole ---- */

int delete_pod_file(struct cli *cli, const char *namespace_, const char *name, bool wait)
{
    int code;
    json_auto_t *pod = cli_get_pod(cli, namespace_, name, &code);
    json_auto_t *list = pod != NULL ? cli_get(cli, "/manifests", &code) : NULL;
    const json_t *file = file_of(cli_at(list, "items"), namespace_, name);
    buf_auto others = BUF_INIT(1u << 20);
    const char *path = cli_text(file, "path");
    struct removal removal;

    if (list == NULL)
        return code;
    if (file == NULL)
        return cli_error(cli,
                         "no file defines pod %s: it is terminating, its folder is missing, or a workload "
                         "made it (coracle describe pod %s says which)",
                         name, name);
    add_others(file, namespace_, name, &others);
    if (others.n > 0)
        return cli_error(cli,
                         "%s is not removed because it also defines %s: take the pod out of it, or leave out "
                         "--file",
                         path, others.p);
    removal = (struct removal){ .cli = cli,
                                .path = path,
                                .uid = cli_text(pod, "metadata.uid"),
                                .namespace_ = namespace_,
                                .name = name,
                                .wait = wait };
    code = remove_and_wait(&removal);
    if (code != EXIT_OK)
        return code;
    cli_print(cli, "pod \"%s\" %s\n", name, wait ? "deleted" : "will be deleted");
    return EXIT_OK;
}
