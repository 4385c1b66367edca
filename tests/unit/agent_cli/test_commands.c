#include "agent/cli/internal.h"

#include "agent/status/server.h"
#include "base/clock.h"
#include "base/fs.h"
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

/*
 * The commands against a real status server with made-up content, in a child: commands block.  Ages are
 * counted to 2026-01-02T03:06:05Z.
 */
static const int64_t now_ns = 1767323165LL * 1000000000;

struct fixture {
    char dir[64], socket[100];
    pid_t server;
    char *out, *err;
};

/* ---- the server in the child ----------------------------------------------------------------- */

struct fake {
    uv_loop_t loop;
    struct status_server *server;
    json_t *pods, *events, *manifests;
    char log[200];
    uv_signal_t usr1;
    uv_timer_t timer;
    int step;
};

static json_t *load(const char *name)
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

static json_t *pods(void *arg, struct err *e)
{
    (void)e;
    return json_incref(((struct fake *)arg)->pods);
}

static json_t *one_pod(void *arg, const char *namespace_, const char *name, struct err *e)
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

static json_t *events(void *arg, struct err *e)
{
    (void)e;
    return json_incref(((struct fake *)arg)->events);
}

static json_t *explain(void *arg, const char *namespace_, const char *name, struct err *e)
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

static json_t *manifests(void *arg, struct err *e)
{
    (void)e;
    return json_incref(((struct fake *)arg)->manifests);
}

static json_t *images(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return json_pack("[{s:s, s:[s, s], s:i, s:s}, {s:s, s:[], s:i}]", "id", "sha256:0123456789abcdef0123",
                     "names", "docker.io/library/busybox:1", "localhost/b:1", "sizeBytes", 4300000, "created",
                     "2025-12-28T03:06:05Z", "id", "sha256:ff", "names", "sizeBytes", 5);
}

static json_t *ready(void *arg, bool *ret_ready)
{
    (void)arg;
    *ret_ready = true;
    return json_pack("{s:[]}", "checks");
}

static enum err_code log_path(void *arg, const char *namespace_, const char *name, const char *container,
                              bool previous, char *ret, size_t size, bool *ret_running, struct err *e)
{
    struct fake *f = arg;

    (void)namespace_;
    if (previous)
        return err_set(e, ERR_PRECONDITION, "previous terminated container \"%s\" in pod \"%s\" not found",
                       container, name);
    snprintf(ret, size, "%s", f->log);
    *ret_running = false;
    return ERR_OK;
}

static void image_add(void *arg, const char *source, const char *name, struct status_reply *r)
{
    struct err e = { 0 };

    (void)arg;
    if (strstr(source, "bad") != NULL) {
        err_set(&e, ERR_INVALID, "import %s: not an image", source);
        status_reply_err(r, &e);
        return;
    }
    status_reply_json(r, 200,
                      json_pack("{s:[s], s:s}", "names", name != NULL ? name : source, "id", "sha256:1"));
}

static enum err_code image_remove(void *arg, const char *name, struct err *e)
{
    (void)arg;
    return strcmp(name, "absent") == 0 ? err_set(e, ERR_NOT_FOUND, "image \"absent\" not found") : ERR_OK;
}

/* A new status, the same again, and gone: as soon as somebody watches. */
static void on_tick(uv_timer_t *timer)
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
static void on_usr1(uv_signal_t *handle, int signo)
{
    struct fake *f = handle->data;

    (void)signo;
    if (f->step++ == 0)
        uv_timer_start(&f->timer, on_tick, 0, 5);
    else
        status_server_close(f->server);
}

static void serve(const char *socket, const char *log, int ready_fd)
{
    struct fake f = { 0 };
    const struct status_provider provider = {
        .arg = &f,
        .pods = pods,
        .pod = one_pod,
        .events = events,
        .explain = explain,
        .manifests = manifests,
        .images = images,
        .ready = ready,
        .log_path = log_path,
        .image_add = image_add,
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
    if (f.pods == NULL || status_server_open(&f.server, &o, &e) != ERR_OK)
        _exit(1);
    uv_signal_init(&f.loop, &f.usr1);
    uv_timer_init(&f.loop, &f.timer);
    f.usr1.data = f.timer.data = &f;
    uv_signal_start(&f.usr1, on_usr1, SIGUSR1);
    if (write(ready_fd, "x", 1) != 1)
        _exit(1);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    _exit(0);
}

/* ---- fixture --------------------------------------------------------------------------------- */

static int setup(void **state)
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

static int teardown(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };

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
static int run(struct fixture *f, const char *line)
{
    char program[] = "coracle", *argv[32] = { program }, *copy = strdup(line), *save = NULL;
    struct cli cli = { .socket = f->socket, .now_ns = now_ns };
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

static void expect(struct fixture *f, const char *line, int code, const char *out, const char *err)
{
    int got = run(f, line);

    if (got != code || strcmp(f->out, out) != 0 || strcmp(f->err, err) != 0)
        fail_msg("coracle %s: %d\n--- out\n%s--- want\n%s--- err\n%s--- want\n%s", line, got, f->out, out,
                 f->err, err);
}

#define WARNINGS                                                                                             \
    "warning: manifest bad.yaml: bad.yaml:1:spec.containers[0].image: required\n"                            \
    "warning: manifest web.yaml: web.yaml:1:kind: unknown (the running pod stays as it was)\n"

/* ---- get ------------------------------------------------------------------------------------- */

static void pods_are_shown_as_a_table_with_warnings_after_it(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pods", 0,
           "NAME   READY   STATUS             RESTARTS       AGE\n"
           "db     0/1     Pending            0              5s\n"
           "web    1/2     CrashLoopBackOff   8 (116s ago)   2m\n",
           WARNINGS);
    expect(f, "get po -A --no-headers", 0,
           "a         z     0/1                      0              <unknown>\n"
           "default   db    0/1   Pending            0              5s\n"
           "default   web   1/2   CrashLoopBackOff   8 (116s ago)   2m\n",
           WARNINGS);
    expect(
        f, "get pod web -o wide -ndefault", 0,
        "NAME   READY   STATUS             RESTARTS       AGE   IP         NODE     NOMINATED NODE   "
        "READINESS GATES\n"
        "web    1/2     CrashLoopBackOff   8 (116s ago)   2m    10.1.0.5   node-1   <none>           1/1\n",
        WARNINGS);
    expect(f, "get pods -l app=db", 0,
           "NAME   READY   STATUS    RESTARTS   AGE\n"
           "db     0/1     Pending   0          5s\n",
           WARNINGS);
}

static void other_formats_print_whole_objects_or_names(void **state)
{
    struct fixture *f = *state;
    json_t *value;

    expect(f, "get pods -o name", 0, "pod/db\npod/web\n", "");
    expect(f, "get pod/web pod/db --output=name", 0, "pod/web\npod/db\n", "");
    assert_int_equal(run(f, "get pods -A -o json"), 0);
    value = json_loads(f->out, 0, NULL);
    assert_string_equal(cli_text(value, "kind"), "List");
    assert_int_equal(json_array_size(cli_at(value, "items")), 3);
    json_decref(value);
    assert_int_equal(run(f, "get pod db -ojson"), 0);
    assert_non_null(strstr(f->out, "{\n    \"kind\": \"Pod\",\n    \"metadata\": {\n"));
    assert_int_equal(run(f, "get pod db -o yaml"), 0);
    assert_non_null(strstr(f->out, "kind: Pod\nmetadata:\n"));
}

static void what_is_not_there_is_said_as_kubectl_does(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pods -n empty", 0, "", "No resources found in empty namespace.\n" WARNINGS);
    expect(f, "get pods -A -l app=none", 0, "", "No resources found\n" WARNINGS);
    expect(f, "get pods absent db", 1,
           "NAME   READY   STATUS    RESTARTS   AGE\n"
           "db     0/1     Pending   0          5s\n",
           "Error from server (NotFound): pods \"absent\" not found\n" WARNINGS);
    assert_int_equal(run(f, "get pods -l a=b=c"), 1);
    assert_non_null(strstr(f->err, "Error from server (BadRequest): "));
    expect(f, "get deployments", 1, "", "error: the server doesn't have a resource type \"deployments\"\n");
    expect(f, "get pods -o table", 1, "",
           "error: unable to match a printer suitable for the output format \"table\", allowed formats are: "
           "json,name,wide,yaml\n");
    expect(f, "get pods web -l a=b", 1, "", "error: name cannot be provided when a selector is specified\n");
    expect(f, "get pods web -A", 1, "",
           "error: a resource cannot be retrieved by name across all namespaces\n");
}

static void events_manifests_and_images_have_tables_too(void **state)
{
    struct fixture *f = *state;

    expect(f, "get events", 0,
           "LAST SEEN   TYPE      REASON    OBJECT    MESSAGE\n"
           "2m          Normal    Pulled    pod/web   Container image present\n"
           "60s         Warning   BackOff   pod/web   Back-off restarting\n",
           "");
    expect(f, "get events -n empty", 0, "", "No resources found in empty namespace.\n");
    expect(f, "get manifests", 0,
           "NAME       STATUS    OBJECTS   PROBLEMS   READ\n"
           "bad.yaml   Invalid   0         1          5s\n"
           "ok.yaml    OK        2         0          5s\n"
           "web.yaml   Stale     1         1          5s\n",
           WARNINGS);
    expect(f, "get images", 0,
           "NAME                          IMAGE ID       CREATED     SIZE\n"
           "docker.io/library/busybox:1   0123456789ab   5d          4.3MB\n"
           "localhost/b:1                 0123456789ab   5d          4.3MB\n"
           "<none>                        ff             <unknown>   5B\n",
           "");
    expect(f, "image ls -o name", 0, "image/docker.io/library/busybox:1\nimage/localhost/b:1\n", "");
}

/* ---- watching: in a child, because it does not end ------------------------------------------- */

static void read_until(int fd, char *text, size_t size, const char *want)
{
    uint64_t until = clock_mono_ms() + 10000;
    size_t n = strlen(text);

    while (strstr(text, want) == NULL) {
        struct pollfd p = { fd, POLLIN, 0 };
        ssize_t got;

        if (clock_mono_ms() > until)
            fail_msg("waited for \"%s\", got: %s", want, text);
        if (poll(&p, 1, 100) != 1)
            continue;
        got = read(fd, text + n, size - n - 1);
        if (got <= 0)
            fail_msg("ended before \"%s\", got: %s", want, text);
        n += (size_t)got;
        text[n] = '\0';
    }
}

static void a_watch_prints_rows_that_changed(void **state)
{
    struct fixture *f = *state;
    char words[][10] = { "coracle", "get", "pods", "-w" },
         *argv[] = { words[0], words[1], words[2], words[3], NULL };
    char text[4000] = "";
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct cli cli = { .socket = f->socket, .now_ns = now_ns };

        cli.out = fdopen(ends[1], "w");
        cli.err = fopen("/dev/null", "w");
        _exit(cli_run(&cli, 4, argv));
    }
    close(ends[1]);
    read_until(ends[0], text, sizeof(text), "2m\n");
    kill(f->server, SIGUSR1);
    read_until(ends[0], text, sizeof(text),
               "Running            0              5s\ndb     0/1     Running            0              5s\n");
    kill(f->server, SIGUSR1);
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_string_equal(text, "NAME   READY   STATUS             RESTARTS       AGE\n"
                              "db     0/1     Pending            0              5s\n"
                              "web    1/2     CrashLoopBackOff   8 (116s ago)   2m\n"
                              "db     0/1     Running            0              5s\n"
                              "db     0/1     Running            0              5s\n");
    close(ends[0]);
}

/* ---- describe, explain ------------------------------------------------------------------------ */

static void describe_shows_everything_about_a_pod(void **state)
{
    struct fixture *f = *state;
    char here[300], path[400];
    struct err e = { 0 };
    char *want = NULL;

    snprintf(here, sizeof(here), "%s", __FILE__);
    snprintf(path, sizeof(path), "%s/data/web.describe", dirname(here));
    assert_int_equal(fs_read_at(AT_FDCWD, path, 1 << 20, &want, NULL, &e), ERR_OK);
    assert_int_equal(run(f, "describe pod web"), 0);
    assert_string_equal(f->out, want);
    assert_string_equal(f->err, "");
    assert_int_equal(run(f, "describe pods -n default"), 0);
    assert_non_null(strstr(f->out, "\n\n\nName:                 web\n"));
    expect(f, "describe pod/absent", 1, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "describe node x", 1, "", "error: the server doesn't have a resource type \"node\"\n");
    free(want);
}

static void explain_says_what_a_pod_waits_for(void **state)
{
    struct fixture *f = *state;

    expect(f, "explain pod web", 0,
           "Pod:    default/web\n"
           "UID:    u-1\n"
           "State:  starting for 5s\n"
           "Steps:\n"
           "  network        done    4s  \n"
           "  image nginx:1  failed  3s  pull: no such host (next try in 10s)\n"
           "Operations under way:\n"
           "  crun start  3s  default/web\n",
           "");
    assert_int_equal(run(f, "explain web -o json"), 0);
    assert_non_null(strstr(f->out, "\"ageMs\": 3500"));
    expect(f, "explain pod absent", 1, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "explain node", 0,
           "Node:   n1\n"
           "State:  running\n"
           "Steps:\n"
           "  pod records  failed    1 of 2 pods: disk full\n"
           "Said lately:\n"
           "  warning  4s ago (x3)  CNI result is damaged\n",
           "");
    expect(f, "explain pod node", 1, "", "Error from server (NotFound): pods \"node\" not found\n");
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void logs_choose_a_container_and_pass_on_what_was_asked_for(void **state)
{
    struct fixture *f = *state;

    expect(f, "logs web", 0, "one\ntwo\n", "Defaulted container \"main\" out of: main, side, init (init)\n");
    expect(f, "logs web -c side --tail 1", 0, "two\n", "");
    expect(f, "logs pod/web side --timestamps --tail=1", 0, "2026-01-02T03:04:06.000000000Z two\n", "");
    expect(f, "logs db --limit-bytes 5", 0, "one\nt", "");
    expect(f, "logs db --since-time 2026-01-02T03:04:06Z", 0, "two\n", "");
    expect(f, "logs db -f", 0, "one\ntwo\n", "");
    expect(f, "logs db -p", 1, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    expect(f, "logs web -c nope", 1, "", "error: container nope is not valid for pod web\n");
    expect(f, "logs absent", 1, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "logs db --tail many", 1, "",
           "error: --tail: \"many\" is not a whole number between -1 and 9223372036854775807\n");
    expect(f, "logs db --since 5", 1, "",
           "error: --since: \"5\" is not a duration such as 10s, 5m or 1h30m\n");
}

/* ---- images, version ------------------------------------------------------------------------- */

static void images_are_brought_and_removed(void **state)
{
    struct fixture *f = *state;
    char line[300], path[200], want[400];

    if (geteuid() != 0) {
        assert_int_equal(run(f, "image pull busybox"), 1);
        assert_string_equal(
            f->err, "Error from server (Forbidden): only root may change something through this socket\n");
        print_message("skipped: only root may bring images\n");
        skip();
    }
    expect(f, "image pull busybox:1", 0, "image/busybox:1 imported\n", "");
    snprintf(path, sizeof(path), "%s/an image.tar", f->dir);
    fclose(fopen(path, "we"));
    snprintf(path, sizeof(path), "%s/bad.tar", f->dir);
    fclose(fopen(path, "we"));
    snprintf(line, sizeof(line), "image import %s --name x:1", path);
    snprintf(want, sizeof(want), "Error from server (BadRequest): import %s: not an image\n", path);
    expect(f, line, 1, "", want);
    expect(f, "image import /nonexistent", 1, "", "error: open /nonexistent: No such file or directory\n");
    expect(f, "image rm a absent b", 1, "image \"a\" deleted\nimage \"b\" deleted\n",
           "Error from server (NotFound): image \"absent\" not found\n");
}

static void versions_of_both_are_shown_also_without_a_daemon(void **state)
{
    struct fixture *f = *state;
    char want[400];

    expect(f, "version", 0, "Client Version: v" CORACLE_VERSION "\nServer Version: v" CORACLE_VERSION "\n",
           "");
    snprintf(want, sizeof(want),
             "cannot reach coracle at %s: No such file or directory; is the daemon running?\n",
             "/nonexistent/s");
    expect(f, "--socket /nonexistent/s version", 0, "Client Version: v" CORACLE_VERSION "\n", want);
    assert_int_equal(run(f, "version -o json"), 0);
    assert_non_null(strstr(f->out, "\"serverVersion\": {"));
}

/* ---- validate -------------------------------------------------------------------------------- */

static void write_file(struct fixture *f, const char *name, const char *text, char path[200])
{
    FILE *out;

    snprintf(path, 200, "%s/%s", f->dir, name);
    out = fopen(path, "we");
    fputs(text, out);
    fclose(out);
}

#define POD(name)                                                                                            \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\nspec: {containers: [{name: c, image: 'x:1'}]}\n"

static void files_are_validated_without_a_daemon(void **state)
{
    struct fixture *f = *state;
    char good[200], bad[200], twin[200], line[700], want[700];

    write_file(f, "good.yaml", POD("a") "---\n" POD("b"), good);
    snprintf(line, sizeof(line), "--socket /nonexistent validate %s", good);
    snprintf(want, sizeof(want), "%s: 2 objects, no problems\n", good);
    expect(f, line, 0, want, "");

    write_file(f, "bad.yaml",
               "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, imag: x}]}\n",
               bad);
    snprintf(line, sizeof(line), "validate %s %s", good, bad);
    assert_int_equal(run(f, line), 1);
    assert_string_equal(f->out, want);
    snprintf(want, sizeof(want), "%s:1:spec.containers[0].image: ", bad);
    assert_non_null(strstr(f->err, want));

    write_file(f, "twin.yaml", POD("a"), twin);
    snprintf(line, sizeof(line), "validate %s %s", good, twin);
    snprintf(want, sizeof(want), "%s:1:metadata.name: Pod default/a is defined in %s already\n", twin, good);
    assert_int_equal(run(f, line), 1);
    assert_string_equal(f->err, want);
}

static void what_is_no_file_is_not_validated(void **state)
{
    struct fixture *f = *state;
    char fifo[200], line[300], want[300];

    snprintf(fifo, sizeof(fifo), "%s/fifo", f->dir);
    mkfifo(fifo, 0600);
    snprintf(line, sizeof(line), "validate %s", fifo);
    snprintf(want, sizeof(want), "error: %s is a FIFO, not a file\n", fifo);
    expect(f, line, 1, "", want);
    snprintf(line, sizeof(line), "validate %s", f->dir);
    snprintf(want, sizeof(want), "error: %s is a folder, not a file\n", f->dir);
    expect(f, line, 1, "", want);
    expect(f, "validate /nonexistent.yaml", 1, "",
           "error: open /nonexistent.yaml: No such file or directory\n");
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void wrong_usage_shows_the_right_one_and_ends_with_2(void **state)
{
    static const struct {
        const char *line, *error;
    } wrong[] = {
        { "", "coracle - a node agent" },
        { "frobnicate", "error: unknown command \"frobnicate\"\n\ncoracle - " },
        { "get",
          "error: you must specify what to get: pods, manifests, images or events\n\nShows what runs" },
        { "get pods --frob", "error: unknown flag: --frob\n\n" },
        { "get pods -x", "error: unknown flag: -x\n\n" },
        { "get pods -n", "error: flag needs a value: -n\n\n" },
        { "get pods --namespace", "error: flag needs a value: --namespace\n\n" },
        { "get pods --watch=maybe", "error: invalid value \"maybe\" for --watch: true or false\n\n" },
        { "logs", "error: expected 'logs [-f] [-p] POD [CONTAINER]'\n\n" },
        { "logs a b -c c", "error: only one of -c or an inline CONTAINER is allowed\n\n" },
        { "describe", "error: you must specify the type of resource to describe: pod NAME\n\n" },
        { "explain", "error: you must specify one pod, or node\n\n" },
        { "validate", "error: you must specify files, or - for standard input\n\n" },
        { "image", "error: you must specify ls, import, pull or rm\n\n" },
        { "image pull", "error: image pull: wrong number of words, or no such command\n\n" },
        { "version now", "error: unexpected word \"now\"\n\n" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(run(f, wrong[i].line), 2);
        assert_string_equal(f->out, "");
        if (strncmp(f->err, wrong[i].error, strlen(wrong[i].error)) != 0)
            fail_msg("coracle %s: %s", wrong[i].line, f->err);
    }
}

static void every_command_has_help(void **state)
{
    static const char *const commands[] = { "get",      "describe", "logs", "explain",
                                            "validate", "version",  "image" };
    struct fixture *f = *state;
    char line[40];

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        snprintf(line, sizeof(line), "%s --help", commands[i]);
        assert_int_equal(run(f, line), 0);
        assert_non_null(strstr(f->out, "\nUsage:\n    coracle "));
        assert_non_null(strstr(f->out, "--socket PATH"));
        assert_string_equal(f->err, "");
    }
    assert_int_equal(run(f, "help"), 0);
    assert_int_equal(run(f, "-h"), 0);
    expect(f, "--version", 0, "coracle v" CORACLE_VERSION "\n", "");
}

static void a_daemon_that_is_not_there_is_named_with_its_socket(void **state)
{
    struct fixture *f = *state;
    char want[300];

    expect(f, "get pods --socket /nonexistent/c.sock", 1, "",
           "error: cannot reach coracle at /nonexistent/c.sock: No such file or directory; is the daemon "
           "running?\n");
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    snprintf(want, sizeof(want),
             "error: cannot reach coracle at %s: Connection refused; is the daemon running?\n", f->socket);
    expect(f, "get pods", 1, "", want);
}

static void a_reader_that_goes_away_ends_a_command_quietly(void **state)
{
    struct fixture *f = *state;
    struct cli cli = { .socket = f->socket, .now_ns = now_ns };
    char words[][10] = { "coracle", "logs", "db" }, *argv[] = { words[0], words[1], words[2], NULL };
    size_t n;
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    cli.out = fdopen(ends[1], "w");
    cli.err = open_memstream(&f->err, &n);
    assert_int_equal(cli_run(&cli, 3, argv), 0);
    fclose(cli.out);
    fclose(cli.err);
    assert_string_equal(f->err, "");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(pods_are_shown_as_a_table_with_warnings_after_it),
        T(other_formats_print_whole_objects_or_names),
        T(what_is_not_there_is_said_as_kubectl_does),
        T(events_manifests_and_images_have_tables_too),
        T(a_watch_prints_rows_that_changed),
        T(describe_shows_everything_about_a_pod),
        T(explain_says_what_a_pod_waits_for),
        T(logs_choose_a_container_and_pass_on_what_was_asked_for),
        T(images_are_brought_and_removed),
        T(versions_of_both_are_shown_also_without_a_daemon),
        T(files_are_validated_without_a_daemon),
        T(what_is_no_file_is_not_validated),
        T(wrong_usage_shows_the_right_one_and_ends_with_2),
        T(every_command_has_help),
        T(a_daemon_that_is_not_there_is_named_with_its_socket),
        T(a_reader_that_goes_away_ends_a_command_quietly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
