/* SPDX-License-Identifier: Apache-2.0 */
/* served - the commands against a real status server with made-up content. */
#ifndef TESTS_UNIT_AGENT_CLI_SERVED_H
#define TESTS_UNIT_AGENT_CLI_SERVED_H
#include "agent/cli/internal.h"

#include "agent/status/server.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What follows a table of pods: two manifests of data/manifests.json are damaged. */
#define WARNINGS                                                                                             \
    "/m/bad.yaml:7:5: warning: spec.containers[0].image: required\n"                                         \
    "/m/web.yaml:2:1: warning: kind: unknown (the running pod stays as it was)\n"

/*
 * The server is in a child, since commands block.  Ages are
 * counted to 2026-01-02T03:06:05Z.
 */
static const int64_t now_ns = 1767323165LL * 1000000000;

struct fixture {
    char dir[64], socket[100];
    pid_t server;
    char *out, *err;
    bool colours, terminal;
};

/* ---- the server in the child ----------------------------------------------------------------- */

struct fake {
    uv_loop_t loop;
    struct status_server *server;
    json_t *pods, *events, *manifests, *objects;
    char log[200];
    uv_signal_t usr1;
    uv_timer_t timer;
    int step;
    struct status_reply *slow; /* of an image that takes its time */
    bool slow_fails;
    int slow_step;
    uv_timer_t slow_timer;
};

static inline json_t *load(const char *name)
{
    char here[300], path[400];
    json_error_t why;
    json_t *value;

    snprintf(here, sizeof(here), "%s", __FILE__);
    snprintf(path, sizeof(path), "%s/data/%s", dirname(here), name);
    value = json_load_file(path, 0, &why);
    if (value == NULL)
        fprintf(stderr, "%s: %s\n", path, why.text);
    return value;
}

static inline json_t *one_pod(void *arg, const char *namespace_, const char *name, struct err *e)
{
    struct fake *f = arg;
    json_t *pod;
    size_t i;

    json_array_foreach (f->pods, i, pod) {
        if (strcmp(cli_text(pod, "metadata.name"), name) == 0 &&
            strcmp(cli_text(pod, "metadata.namespace"), namespace_) == 0)
            return json_incref(pod);
    }
    err_set(e, ERR_NOT_FOUND, "none");
    return NULL;
}

static const char *const kind_members[] = { "node",  "configmap", "secret", "priorityclass",
                                            "image", "device",    "device" };

/* Pods are called by their names, others by their number. */
static inline const json_t *all_of(const struct fake *f, enum status_kind kind)
{
    return kind == KIND_POD     ? f->pods
           : kind == KIND_EVENT ? f->events
                                : json_object_get(f->objects, kind_members[kind]);
}

static inline json_t *keys(void *arg, enum status_kind kind, struct err *e)
{
    json_t *found = json_array(), *one;
    size_t i;

    (void)e;
    json_array_foreach (all_of(arg, kind), i, one) {
        const json_t *meta = json_object_get(one, "metadata");
        const char *namespace_ = json_str(meta, "namespace");
        char number[24];

        snprintf(number, sizeof(number), "%05zu", i);
        json_array_append_new(found, json_sprintf("%s/%s", namespace_ != NULL ? namespace_ : "",
                                                  kind == KIND_POD ? json_str(meta, "name") : number));
    }
    return found;
}

/* As the daemon gives them: a list of ConfigMaps has no values. */
static inline json_t *listed(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                             struct err *e)
{
    json_t *one;

    if (kind == KIND_POD)
        return one_pod(arg, namespace_, name, e);
    one = json_copy(json_array_get(all_of(arg, kind), (size_t)atoi(name)));
    json_object_del(one, "data");
    return one;
}

static inline json_t *pod_restart(void *arg, const char *namespace_, const char *name, const char *container,
                                  struct err *e)
{
    (void)container;
    json_t *pod = one_pod(arg, namespace_, name, e), *runs = NULL, *status;
    size_t i;

    if (pod != NULL && strcmp(name, "db") == 0) {
        err_set(e, ERR_PRECONDITION, "pod db has no containers to restart: it is Pending");
    } else if (pod != NULL) {
        runs = json_array();
        json_array_foreach (cli_at(pod, "status.containerStatuses"), i, status)
            json_array_append_new(runs, json_pack("{s:s, s:s}", "name", cli_text(status, "name"),
                                                  "containerID", cli_text(status, "containerID")));
    }
    json_decref(pod);
    return runs;
}

static inline json_t *explain(void *arg, const char *namespace_, const char *name, struct err *e)
{
    if (name[0] == '\0')
        return json_pack("{s:s, s:s, s:[{s:s, s:s, s:s}], s:[], s:[{s:s, s:s, s:i, s:s}]}", "node", "n1",
                         "state", "running", "steps", "name", "pod records", "state", "failed", "detail",
                         "1 of 2 pods: disk full", "operations", "said", "level", "warning", "last",
                         "2026-01-02T03:06:01Z", "times", 3, "text", "CNI result is damaged");
    json_t *pod = one_pod(arg, namespace_, name, e);

    json_decref(pod);
    if (pod == NULL)
        return NULL;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s, s:s, s:s}], s:[{s:s, s:s, s:i}]}", "pod",
        "default/web", "uid", "u-1", "state", "starting", "since", "2026-01-02T03:06:00Z", "steps", "name",
        "network", "state", "done", "since", "2026-01-02T03:06:01Z", "name", "image nginx:1", "state",
        "failed", "since", "2026-01-02T03:06:02Z", "detail", "pull: no such host", "nextTry",
        "2026-01-02T03:06:14.5Z", "operations", "name", "crun start", "subject", "default/web", "ageMs",
        3500);
}

static inline json_t *manifests(void *arg, struct err *e)
{
    (void)e;
    return json_incref(((struct fake *)arg)->manifests);
}

static inline bool is_called(const json_t *object, const char *namespace_, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach (cli_at(object, "names"), i, one) {
        if (strcmp(json_string_value(one), name) == 0)
            return true;
    }
    return strcmp(cli_text(object, "metadata.name"), name) == 0 &&
           (namespace_ == NULL || strcmp(cli_text(object, "metadata.namespace"), namespace_) == 0);
}

static inline json_t *objects(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                              struct err *e)
{
    json_t *items = json_array(), *object;
    size_t i;

    json_array_foreach (json_object_get(((struct fake *)arg)->objects, kind_members[kind]), i, object) {
        if (name != NULL && is_called(object, namespace_, name)) {
            json_decref(items);
            return json_incref(object);
        }
        if (namespace_ == NULL || strcmp(cli_text(object, "metadata.namespace"), namespace_) == 0)
            json_array_append_new(items, json_copy(object));
    }
    json_array_foreach (items, i, object)
        json_object_del(object, "data");
    if (name == NULL)
        return items;
    json_decref(items);
    err_set(e, ERR_NOT_FOUND, "none");
    return NULL;
}

static inline json_t *ready(void *arg, bool *ret_ready)
{
    (void)arg;
    *ret_ready = true;
    return json_pack("{s:[]}", "checks");
}

static inline enum err_code log_path(void *arg, const char *namespace_, const char *name,
                                     const char *container, bool previous, char *ret, size_t size,
                                     bool *ret_running, struct err *e)
{
    struct fake *f = arg;

    (void)namespace_;
    if (previous && strcmp(container, "main") != 0)
        return err_set(e, ERR_PRECONDITION, "previous terminated container \"%s\" in pod \"%s\" not found",
                       container, name);
    snprintf(ret, size, "%s", f->log);
    *ret_running = false;
    return ERR_OK;
}

/* Each look finds it a step further; with the last one it is there. */
static const struct {
    const char *step;
    int bytes, layers, of;
} slow_steps[] = { { "asking", 0, 0, 0 },    { "pulling", 0, 0, 0 },        { "pulling", 700000, 0, 0 },
                   { "unpacking", 0, 0, 2 }, { "unpacking", 900000, 1, 2 }, { "unpacking", 900000, 2, 2 } };

static inline json_t *image_progress(void *arg, const struct status_reply *r)
{
    struct fake *f = arg;
    const int i = f->slow_step < (int)ARRAY_LEN(slow_steps) ? f->slow_step++ : f->slow_step - 1;

    if (r != f->slow)
        return NULL;
    return json_pack("{s:s, s:i, s:i, s:i}", "step", slow_steps[i].step, "bytes", slow_steps[i].bytes,
                     "layers", slow_steps[i].layers, "ofLayers", slow_steps[i].of);
}

static inline void on_slow(uv_timer_t *timer)
{
    struct fake *f = timer->data;
    struct err e = { 0 };

    if (f->slow_step < (int)ARRAY_LEN(slow_steps))
        return;
    uv_timer_stop(timer);
    err_set(&e, ERR_NOT_FOUND, "pull slow: manifest unknown");
    if (f->slow_fails)
        status_reply_err(f->slow, &e);
    else
        status_reply_json(
            f->slow, 200,
            json_pack("{s:[s], s:i}", "names", "docker.io/library/slow:1", "sizeBytes", 900000));
}

static inline void image_add(void *arg, const char *source, const char *name, struct status_reply *r)
{
    struct fake *f = arg;
    struct err e = { 0 };

    if (strstr(source, "slow") != NULL) {
        f->slow = r;
        f->slow_fails = strstr(source, "bad") != NULL;
        f->slow_step = 0;
        uv_timer_start(&f->slow_timer, on_slow, 5, 5);
        return;
    }
    if (strstr(source, "bad") != NULL) {
        err_set(&e, ERR_INVALID, "import %s: not an image", source);
        status_reply_err(r, &e);
        return;
    }
    status_reply_json(r, 200,
                      json_pack("{s:[s], s:s}", "names", name != NULL ? name : source, "id", "sha256:1"));
}

/* An export writes which image it is. */
static inline void image_task(void *arg, const struct status_image_task *task, struct status_reply *r)
{
    FILE *out = task->verb == IMAGE_EXPORT ? fopen(task->file, "we") : NULL;

    (void)arg;
    if (out != NULL) {
        fprintf(out, "archive of %s\n", task->name);
        fclose(out);
    }
    status_reply_json(r, 200, json_pack("{}"));
}

static inline enum err_code image_remove(void *arg, const char *name, struct err *e)
{
    (void)arg;
    return strcmp(name, "absent") == 0 ? err_set(e, ERR_NOT_FOUND, "image \"absent\" not found") : ERR_OK;
}

/* A new status, the same again, and gone: as soon as somebody watches. */
static inline void on_tick(uv_timer_t *timer)
{
    struct fake *f = timer->data;
    json_t *pod = json_array_get(f->pods, 1);

    if (!status_server_has_watchers(f->server))
        return;
    uv_timer_stop(timer);
    json_object_set_new(json_object_get(pod, "status"), "phase", json_string("Running"));
    status_server_pod_event(f->server, "MODIFIED", pod);
    status_server_pod_event(f->server, "MODIFIED", pod);
    status_server_pod_event(f->server, "DELETED", pod);
}

/* The first begins the changes, the second ends the server. */
static inline void on_usr1(uv_signal_t *handle, int signo)
{
    struct fake *f = handle->data;

    (void)signo;
    if (f->step++ == 0)
        uv_timer_start(&f->timer, on_tick, 0, 5);
    else
        status_server_close(f->server);
}

/* No policy is in force. */
static inline json_t *placements(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return json_array();
}

static inline void serve(const char *socket, const char *log, int ready_fd)
{
    struct fake f = { 0 };
    const struct status_provider provider = {
        .arg = &f,
        .keys = keys,
        .listed = listed,
        .pod = one_pod,
        .pod_restart = pod_restart,
        .explain = explain,
        .manifests = manifests,
        .objects = objects,
        .placements = placements,
        .ready = ready,
        .log_path = log_path,
        .image_add = image_add,
        .image_progress = image_progress,
        .image_task = image_task,
        .image_remove = image_remove,
    };
    const struct status_options o = { .loop = &f.loop, .path = socket, .provider = &provider };
    struct err e = { 0 };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    uv_loop_init(&f.loop);
    snprintf(f.log, sizeof(f.log), "%s", log);
    f.pods = json_pack("[o, {s:s, s:{s:s, s:s, s:s, s:{s:s}}, s:{s:[{s:s}]}, s:{s:s}}, {s:s, s:{s:s, s:s}, "
                       "s:{s:[{s:s}]}, s:{}}]",
                       load("web.json"), "kind", "Pod", "metadata", "namespace", "default", "name", "db",
                       "creationTimestamp", "2026-01-02T03:06:00Z", "labels", "app", "db", "spec",
                       "containers", "name", "c", "status", "phase", "Pending", "kind", "Pod", "metadata",
                       "namespace", "a", "name", "z", "spec", "containers", "name", "c", "status");
    f.events = load("events.json");
    f.manifests = load("manifests.json");
    json_object_set_new(json_array_get(f.manifests, 1), "path",
                        json_sprintf("%.*s/ok.yaml", (int)(strrchr(log, '/') - log), log));
    json_object_set_new(json_array_get(f.manifests, 1), "holds",
                        json_pack("[{s:s, s:s, s:s}]", "kind", "Pod", "namespace", "default", "name", "web"));
    f.objects = load("objects.json");
    if (f.pods == NULL || status_server_open(&f.server, &o, &e) != ERR_OK)
        _exit(1);
    uv_signal_init(&f.loop, &f.usr1);
    uv_timer_init(&f.loop, &f.timer);
    uv_timer_init(&f.loop, &f.slow_timer);
    f.usr1.data = f.timer.data = f.slow_timer.data = &f;
    uv_signal_start(&f.usr1, on_usr1, SIGUSR1);
    if (write(ready_fd, "x", 1) != 1)
        _exit(1);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    _exit(0);
}

/* ---- fixture --------------------------------------------------------------------------------- */

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char log[120], one;
    int ends[2];
    FILE *out;

    setenv("TZ", "UTC", 1);
    tzset();
    strcpy(f->dir, "/tmp/test-cli.XXXXXX");
    if (mkdtemp(f->dir) == NULL || pipe(ends) < 0)
        return -1;
    snprintf(f->socket, sizeof(f->socket), "%s/s.sock", f->dir);
    snprintf(log, sizeof(log), "%s/0.log", f->dir);
    out = fopen(log, "we");
    fputs("2026-01-02T03:04:05.5Z stdout F one\n2026-01-02T03:04:06Z stderr F two\n", out);
    fclose(out);
    f->server = fork();
    if (f->server == 0)
        serve(f->socket, log, ends[1]);
    close(ends[1]);
    if (read(ends[0], &one, 1) != 1)
        return -1;
    close(ends[0]);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

    if (getuid() == 0 && seteuid(0) != 0) /* a test may have been somebody else */
        return -1;
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    free(f->out);
    free(f->err);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        return -1;
    free(f);
    return 0;
}

/* Runs "coracle <line>", words at blanks. */
static inline int run(struct fixture *f, const char *line)
{
    char program[] = "coracle", *argv[32] = { program }, *copy = strdup(line), *save = NULL;
    struct cli cli = {
        .socket = f->socket, .now_ns = now_ns, .colours = f->colours, .terminal = f->terminal
    };
    size_t out_n, err_n;
    int argc = 1, code;

    free(f->out);
    free(f->err);
    cli.out = open_memstream(&f->out, &out_n);
    cli.err = open_memstream(&f->err, &err_n);
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    code = cli_run(&cli, argc, argv);
    fclose(cli.out);
    fclose(cli.err);
    free(copy);
    return code;
}

static inline void expect(struct fixture *f, const char *line, int code, const char *out, const char *err)
{
    int got = run(f, line);

    if (got != code || strcmp(f->out, out) != 0 || strcmp(f->err, err) != 0)
        fail_msg("coracle %s: %d\n--- out\n%s--- want\n%s--- err\n%s--- want\n%s", line, got, f->out, out,
                 f->err, err);
}
#endif
