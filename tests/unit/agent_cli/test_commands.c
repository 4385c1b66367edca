/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_cli/served.h"

#include "base/codec/json.h"

#include <glob.h>
#include <unistd.h>

#define KINDS ": there are pods, nodes, configmaps, secrets, priorityclasses, images"
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

static void labels_and_fields_choose_and_are_shown(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pods --show-labels", 0,
           "NAME   READY   STATUS             RESTARTS       AGE   LABELS\n"
           "db     0/1     Pending            0              5s    app=db\n"
           "web    1/2     CrashLoopBackOff   8 (116s ago)   2m    app=web,tier=a\n",
           WARNINGS);
    expect(f, "get pods --field-selector status.phase=Pending -l app=db --no-headers", 0,
           "db    0/1   Pending   0     5s\n", WARNINGS);
    expect(f, "get pods --field-selector status.phase=Running -l app=db -o name", 0, "", "");
    assert_int_equal(run(f, "get pods --field-selector spec.x=y"), 2);
    assert_non_null(strstr(f->err, "field label not supported: spec.x"));
}

static void objects_are_sorted_by_what_a_path_leads_to(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pods -o name --sort-by .metadata.creationTimestamp", 0, "pod/web\npod/db\n", "");
    expect(f, "get pods -o name --sort-by={.metadata.name}", 0, "pod/db\npod/web\n", "");
    expect(f, "get events --no-headers --sort-by=.count --field-selector type=Normal", 0,
           "2m    Normal   Pulled   pod/web   Container image present\n", "");
    expect(f, "get pods --sort-by {.x", 2, "", "error: jsonpath: a } is missing: {.x}\n");
    expect(f, "get pods --sort-by .x -w", 2, "", "error: --sort-by and --watch cannot be given together\n");
}

static void a_jsonpath_prints_what_it_leads_to(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pod db -o jsonpath={.status.phase}", 0, "Pending", "");
    expect(f, "get pods -o jsonpath={.items[*].metadata.name}", 0, "db web", "");
    expect(f, "get pods -A -o jsonpath={range.items[*]}x", 2, "",
           "error: jsonpath: a path like .status.podIP or .items[0].metadata.name is expected: "
           "{range.items[*]}\n");
    assert_int_equal(run(f, "get pods -w -o jsonpath={range.items[*]}x"), 2); /* and it does not go on */
    expect(f, "get node n1 --output=jsonpath={.metadata.labels.zone}", 0, "a", "");
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

static void errors_move_no_cursor(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pod some\x1b[2J\xc2\x9bthing", 5, "",
           "Error from server (NotFound): pods \"some^[[2J<9b>thing\" not found\n" WARNINGS);
}

static void what_is_not_there_is_said_as_kubectl_does(void **state)
{
    struct fixture *f = *state;

    expect(f, "get pods -n empty", 0, "", "No resources found in empty namespace.\n" WARNINGS);
    expect(f, "get pods -A -l app=none", 0, "", "No resources found\n" WARNINGS);
    expect(f, "get pods absent db", 5,
           "NAME   READY   STATUS    RESTARTS   AGE\n"
           "db     0/1     Pending   0          5s\n",
           "Error from server (NotFound): pods \"absent\" not found\n" WARNINGS);
    assert_int_equal(run(f, "get pods -l a=b=c"), 2);
    assert_non_null(strstr(f->err, "Error from server (BadRequest): "));
    expect(f, "get deployments", 2, "",
           "error: the server doesn't have a resource type \"deployments\"" KINDS ", manifests, events\n");
    expect(f, "get pods -o table", 2, "",
           "error: unable to match a printer suitable for the output format \"table\", allowed formats are: "
           "json,jsonpath,name,wide,yaml\n");
    expect(f, "get pods web -l a=b", 2, "", "error: name cannot be provided when a selector is specified\n");
    expect(f, "get pods web -A", 2, "",
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
    expect(f, "get events --field-selector type=Normal --no-headers", 0,
           "2m    Normal   Pulled   pod/web   Container image present\n", "");
    expect(f, "get events -l a=b", 2, "",
           "error: events have no labels: use --field-selector, or 'coracle events'\n");
    assert_int_equal(run(f, "get events --field-selector x=y"), 2);
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

static void events_are_those_of_kubectl(void **state)
{
    struct fixture *f = *state;

    expect(f, "events", 0,
           "LAST SEEN          TYPE      REASON    OBJECT    MESSAGE\n"
           "2m                 Normal    Pulled    Pod/web   Container image present\n"
           "60s (x7 over 2m)   Warning   BackOff   Pod/web   Back-off restarting\n",
           "");
    expect(f, "events --for pod/web --types=Warning --no-headers", 0,
           "60s (x7 over 2m)   Warning   BackOff   Pod/web   Back-off restarting\n", "");
    expect(f, "events --for pod/db", 0, "", "No events found in default namespace.\n");
    expect(f, "events -A --types Normal", 0,
           "NAMESPACE   LAST SEEN   TYPE     REASON   OBJECT    MESSAGE\n"
           "default     2m          Normal   Pulled   Pod/web   Container image present\n",
           "");
    expect(f, "events -A --for node/n1", 0, "", "No events found.\n");
    assert_int_equal(run(f, "events -o json"), 0);
    assert_non_null(strstr(f->out, "\"kind\": \"EventList\""));
    expect(f, "events --types Odd", 2, "", "error: valid --types are Normal or Warning\n");
    expect(f, "events --for web", 2, "", "error: --for must be in resource/name form (pod/web)\n");
    expect(f, "events --for job/a", 2, "",
           "error: --for: there are events of pods and of nodes only, not of \"job\"\n");
    assert_int_equal(run(f, "events web"), 2);
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
    assert_int_equal(WEXITSTATUS(status), EXIT_NO_DAEMON);
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
    expect(f, "describe pod/absent", 5, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "describe job x", 2, "", "error: the server doesn't have a resource type \"job\"" KINDS "\n");
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
           "Operations in progress:\n"
           "  crun start  3s  default/web\n",
           "");
    assert_int_equal(run(f, "explain web -o json"), 0);
    assert_non_null(strstr(f->out, "\"ageMs\": 3500"));
    expect(f, "explain pod absent", 5, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "explain node", 0,
           "Node:   n1\n"
           "State:  running\n"
           "Steps:\n"
           "  pod records  failed    1 of 2 pods: disk full\n"
           "Recent log messages:\n"
           "  warning  4s ago (x3)  CNI result is damaged\n",
           "");
    expect(f, "explain pod node", 5, "", "Error from server (NotFound): pods \"node\" not found\n");
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
    expect(f, "logs web -c nope", 5, "", "error: container nope is not valid for pod web\n");
    expect(f, "logs absent", 5, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "logs db --tail many", 2, "",
           "error: --tail: \"many\" is not a whole number between -1 and 9223372036854775807\n");
    assert_int_equal(run(f, "logs db --since-time 2026-13-01"), 2);
    assert_non_null(strstr(f->err, "error: --since-time: "));
    expect(f, "logs db --since 5", 2, "",
           "error: --since: \"5\" is not a duration such as 10s, 5m or 1h30m\n");
}

static void logs_of_several_containers_come_in_turn_or_side_by_side(void **state)
{
    struct fixture *f = *state;

    expect(f, "logs web --all-containers --prefix --tail 1", 0,
           "[pod/web/init] two\n[pod/web/main] two\n[pod/web/side] two\n", "");
    expect(f, "logs -l app=db --prefix", 0, "[pod/db/c] one\n[pod/db/c] two\n", "");
    expect(f, "logs -l app=none", 0, "", "No resources found in default namespace.\n");
    assert_int_equal(run(f, "logs -f web --all-containers --prefix"), 0);
    assert_int_equal(strlen(f->out), 3 * strlen("[pod/web/init] one\n[pod/web/init] two\n"));
    for (size_t i = 0; i < 3; i++) {
        static const char *const both[] = { "[pod/web/init] one\n", "[pod/web/main] two\n",
                                            "[pod/web/side] two\n" };

        assert_non_null(strstr(f->out, both[i]));
    }
    expect(f, "logs -f web --all-containers --max-log-requests 2", 2, "",
           "error: you are attempting to follow 3 log streams, but maximum allowed concurrency is 2, use "
           "--max-log-requests to increase the limit\n");
    expect(f, "logs -l app=db -p", 1, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    expect(f, "logs -l app=db -p --ignore-errors", 0, "",
           "Error from server (BadRequest): previous terminated container \"c\" in pod \"db\" not found\n");
    assert_int_equal(run(f, "logs -f -p web --all-containers --prefix"), 1);
    assert_string_equal(f->out, "[pod/web/main] one\n[pod/web/main] two\n");
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = { "init", "side" };
        char want[200];

        snprintf(want, sizeof(want), "previous terminated container \"%s\" in pod \"web\" not found\n",
                 names[i]);
        assert_non_null(strstr(f->err, want));
    }
    if (strstr(f->err, "\nerror: not all logs were followed to their end: pod/web/init, pod/web/side\n") ==
            NULL &&
        strstr(f->err, "\nerror: not all logs were followed to their end: pod/web/side, pod/web/init\n") ==
            NULL)
        fail_msg("%s", f->err);
    assert_int_equal(run(f, "logs -f -p web --all-containers --ignore-errors"), 0);
    assert_string_equal(f->out, "one\ntwo\n");
    assert_null(strstr(f->err, "not all logs"));
    assert_int_equal(run(f, "logs web -l app=web"), 2);
    assert_non_null(strstr(f->err, "only a selector (-l) or a POD name is allowed"));
    assert_int_equal(run(f, "logs web -c main --all-containers"), 2);
    assert_non_null(strstr(f->err, "--all-containers should not be specified with container name"));
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
    expect(f, "image rm a absent b", 5, "image \"a\" deleted\nimage \"b\" deleted\n",
           "Error from server (NotFound): image \"absent\" not found\n");
}

static size_t spools(const struct fixture *f)
{
    str_auto pattern = str_printf("%s/coracle-image.*", f->dir);
    glob_t found;
    size_t n;

    n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void archives_come_and_go_through_pipes(void **state)
{
    struct fixture *f = *state;
    int ends[2], before = dup(STDIN_FILENO);
    char line[100];

    if (geteuid() != 0) {
        print_message("skipped: only root may bring images\n");
        skip();
    }
    setenv("TMPDIR", f->dir, 1);
    expect(f, "image export localhost/b:1 -", 0, "archive of localhost/b:1\n", "");
    f->terminal = true;
    expect(f, "image export localhost/b:1 -", 2, "",
           "error: refusing to write an archive to a terminal: use a pipe or a file\n");
    assert_int_equal(access("-", F_OK), -1);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    close(ends[1]);
    snprintf(line, sizeof(line), "image import /dev/fd/%d --name x:1", ends[0]);
    expect(f, line, 0, "image/x:1 imported\n", "");
    dup2(ends[0], STDIN_FILENO); /* at its end by now */
    close(ends[0]);
    expect(f, "image import - --name y:1", 0, "image/y:1 imported\n", "");
    dup2(before, STDIN_FILENO);
    close(before);
    assert_int_equal(spools(f), 0);
    unsetenv("TMPDIR");
}

#define SLOW_STEPS "asking\npulling\nunpacking\nlayer 1 of 2 unpacked\nlayer 2 of 2 unpacked\n"

static void what_takes_its_time_says_a_line_for_each_step(void **state)
{
    struct fixture *f = *state;

    if (geteuid() != 0) {
        print_message("skipped: only root may bring images\n");
        skip();
    }
    assert_int_equal(run(f, "image pull slow:1"), 0);
    assert_string_equal(f->out, "image/docker.io/library/slow:1 imported\n");
    assert_memory_equal(f->err, SLOW_STEPS "done: 900kB in ", strlen(SLOW_STEPS "done: 900kB in "));
    expect(f, "image pull slow-bad:1", 5, "",
           SLOW_STEPS "Error from server (NotFound): pull slow: manifest unknown\n");
    expect(f, "image pull --quiet x:1", 0, "image/x:1 imported\n", "");
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

static void flags_may_stand_before_the_command(void **state)
{
    struct fixture *f = *state;
    str_auto line = str_printf("--request-timeout 5s -n a --socket=%s -o=name get pods", f->socket);

    expect(f, line, 0, "pod/z\n", "");
    expect(f, "-A --output name get pods", 0, "pod/z\npod/db\npod/web\n", "");
    expect(f, "-nshop get pods -n a --no-headers", 0, "z     0/1         0     <unknown>\n", WARNINGS);
}

/* A daemon that is stopped: it is connected to, and nothing comes. */
static void a_daemon_that_does_not_answer_is_given_up(void **state)
{
    struct fixture *f = *state;
    str_auto want = str_printf(
        "error: coracle at %s does not answer within 0.1s (--request-timeout); is it stopped?\n", f->socket);
    uint64_t begun;

    kill(f->server, SIGSTOP);
    expect(f, "get pods --request-timeout=100ms", EXIT_NO_DAEMON, "", want);
    assert_int_equal(run(f, "--request-timeout 100ms version"), 0);
    assert_non_null(strstr(f->err, " does not answer within "));
    kill(f->server, SIGCONT);
    assert_int_equal(run(f, "get pods --request-timeout 0"), 0);
    kill(f->server, SIGSTOP);
    begun = clock_mono_ms();
    expect(f, "__complete logs w", 0, "", "");
    assert_true(clock_mono_ms() - begun < 20000); /* not as long as for a command */
    kill(f->server, SIGCONT);
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
    snprintf(want, sizeof(want), "%s:1:metadata.name: Pod default/a is already defined in %s\n", twin, good);
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

/* ---- objects, hints, restart ------------------------------------------------------------------- */

static void describe_and_validate_print_objects_too(void **state)
{
    struct fixture *f = *state;
    json_auto_t *all = NULL;
    char line[200];
    FILE *out;

    assert_int_equal(run(f, "describe pod web db -o json"), 0);
    all = json_loads(f->out, 0, NULL);
    assert_int_equal(json_array_size(cli_at(all, "items")), 2);
    assert_string_equal(cli_text(json_array_get(cli_at(all, "items"), 1), "pod.metadata.name"), "db");
    assert_true(json_array_size(cli_at(json_array_get(cli_at(all, "items"), 0), "events")) > 0);
    expect(f, "describe pod absent -o yaml", 5, "items: []\n",
           "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "describe pod web -o wide", 2, "", "error: unknown output format \"wide\": json or yaml\n");

    snprintf(line, sizeof(line), "%s/bad.yaml", f->dir);
    out = fopen(line, "we");
    fputs("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n", out);
    fclose(out);
    snprintf(line, sizeof(line), "validate -o yaml %s/bad.yaml", f->dir);
    assert_int_equal(run(f, line), 1);
    assert_string_equal(f->err, "");
    assert_non_null(strstr(f->out, "  ok: false\n  problems:\n  - what: required\n    where: "));
}

static void a_pod_that_was_most_likely_meant_is_named(void **state)
{
    struct fixture *f = *state;

    expect(f, "explain pod wbe", 5, "",
           "Error from server (NotFound): pods \"wbe\" not found\nDid you mean \"web\"?\n");
    expect(f, "logs z", 5, "",
           "Error from server (NotFound): pods \"z\" not found\nThere is one in namespace a: -n a\n");
}

static void a_pod_is_restarted(void **state)
{
    struct fixture *f = *state;

    if (geteuid() != 0) {
        print_message("skipped: only root may restart pods\n");
        skip();
    }
    expect(f, "restart pod web", 0, "pod/web restarted\n", "");
    expect(f, "restart pod/web", 0, "pod/web restarted\n", "");
    expect(f, "restart db", 1, "",
           "Error from server (Conflict): pod db has no containers to restart: it is Pending\n");
    expect(f, "restart dbb", 5, "",
           "Error from server (NotFound): pods \"dbb\" not found\nDid you mean \"db\"?\n");
    assert_int_equal(run(f, "restart"), 2);
}

static void a_file_is_removed_only_while_it_holds_that_pod_and_nothing_else(void **state)
{
    static const char *const others[] = { POD("web") "---\n" POD("more"), POD("another"), "kind: nonsense\n",
                                          "" };
    struct fixture *f = *state;
    char path[200], want[300];

    snprintf(path, sizeof(path), "%s/ok.yaml", f->dir);
    snprintf(want, sizeof(want), "error: %s is not removed because it has changed: please check it\n", path);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) { /* the daemon has not noticed yet */
        write_file(f, "ok.yaml", others[i], path);
        expect(f, "delete pod web --file", 1, "", want);
        assert_int_equal(access(path, F_OK), 0);
    }
    write_file(f, "ok.yaml", POD("web"), path);
    snprintf(want, sizeof(want), "%s removed\npod \"web\" will be deleted\n", path);
    expect(f, "delete pod web --file --wait=false", 0, want, "");
    assert_int_equal(access(path, F_OK), -1);
}

static void pods_are_waited_for(void **state)
{
    struct fixture *f = *state;

    expect(f, "wait pod web --for=condition=Initialized", 0, "pod/web condition met\n", "");
    expect(f, "wait pod db z --for=condition=Initialized --timeout=1ms", 1, "",
           "error: timed out waiting for the condition on pods/db\n"
           "Error from server (NotFound): pods \"z\" not found\nThere is one in namespace a: -n a\n");
    expect(f, "wait pod/web --for condition=initialized=false --timeout 50ms", 1, "",
           "error: timed out waiting for the condition on pods/web\n");
    expect(f, "wait pod/web --for=condition=Initialized --timeout=0s", 0, "pod/web condition met\n", "");
    expect(f, "wait db web --for=condition=Initialized --timeout=1ms", 1, "pod/web condition met\n",
           "error: timed out waiting for the condition on pods/db\n");
    expect(f, "wait pod/absent --for=delete", 0, "pod/absent condition met\n", "");
    expect(f, "wait pod/absent", 5, "", "Error from server (NotFound): pods \"absent\" not found\n");
    expect(f, "wait svc/web", 2, "", "error: svc/web: a pod is expected, as NAME or pod/NAME\n");
    expect(f, "wait web --for=ready", 2, "",
           "error: --for: condition=TYPE, condition=TYPE=STATUS or delete, not \"ready\"\n");
    expect(f, "wait web --timeout soon", 2, "",
           "error: --timeout: \"soon\" is not a duration such as 10s, 5m or 1h30m\n");
    assert_int_equal(run(f, "wait pods"), 2);
    assert_int_equal(run(f, "wait pod/web --all"), 2);
    expect(f, "wait pods -l app=db --for=condition=Initialized --timeout=1ms", 1, "",
           "error: timed out waiting for the condition on pods/db\n");
    expect(f, "wait pods --all --for=condition=Initialized --timeout=1ms", 1, "pod/web condition met\n",
           "error: timed out waiting for the condition on pods/db\n");
    expect(f, "wait pods -l app=none", 1, "", "error: no matching resources found\n");
    expect(f, "wait pods -l app=none --for delete", 0, "", "");
    kill(f->server, SIGUSR1); /* as soon as somebody watches, db runs, and goes */
    expect(f, "wait pod/db --for=delete --timeout=-1s", 0, "pod/db condition met\n", "");
}

/* ---- no daemon, no reader ---------------------------------------------------------------------- */

static void a_daemon_that_is_not_there_is_named_with_its_socket(void **state)
{
    struct fixture *f = *state;
    char want[300];

    expect(f, "get pods --socket /nonexistent/c.sock", 3, "",
           "error: cannot reach coracle at /nonexistent/c.sock: No such file or directory; is the daemon "
           "running?\n");
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    snprintf(want, sizeof(want),
             "error: cannot reach coracle at %s: Connection refused; is the daemon running?\n", f->socket);
    expect(f, "get pods", 3, "", want);
}

static void a_socket_that_one_may_not_use_is_another_failure(void **state)
{
    struct fixture *f = *state;
    const bool root = geteuid() == 0;
    char want[300];

    snprintf(want, sizeof(want),
             "error: cannot reach coracle at %s: Permission denied; root and members of the socket's group "
             "may\n",
             f->socket);
    assert_int_equal(root ? seteuid(65534) : chmod(f->socket, 0), 0);
    expect(f, "get pods", 4, "", want); /* teardown makes us root again, whatever comes of it */
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

static void config_tells_a_wrong_command_line_from_a_wrong_file(void **state)
{
    static const char *const wrong[] = { "config stray",      "config --local stray", "config --not-there=1",
                                         "config --max-pods", "config --max-pods=x",  "config -o xml",
                                         "config -x" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (run(f, wrong[i]) != EXIT_USAGE || !str_starts(f->err, "error: ") || f->out[0] != '\0')
            fail_msg("%s: %s%s", wrong[i], f->out, f->err);
    expect(f, "config --file /does/not/exist", EXIT_ERROR, "",
           "error: open /does/not/exist: No such file or directory\n");
    assert_int_equal(run(f, "config --local"), EXIT_OK);
}

static void config_names_everything_that_is_wrong_in_a_file(void **state)
{
    struct fixture *f = *state;
    char path[200];
    str_auto line = NULL;
    str_auto want = NULL;

    write_file(
        f, "config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPod: 3\nmaxPods: x\n"
        "authentication: {anonymous: {enable: true}}\n",
        path);
    line = str_printf("config --file %s", path);
    assert_int_equal(run(f, line), EXIT_ERROR);
    want = str_printf("error: %s:3: maxPod: unknown key in a KubeletConfiguration; did you mean maxPods?\n"
                      "error: %s:4: maxPods: ",
                      path, path);
    assert_memory_equal(f->err, want, strlen(want));
    free(want);
    want = str_printf("\nerror: %s:5: authentication.anonymous.enable: unknown key", path);
    assert_non_null(strstr(f->err, want));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(config_tells_a_wrong_command_line_from_a_wrong_file),
        T(config_names_everything_that_is_wrong_in_a_file),
        T(pods_are_shown_as_a_table_with_warnings_after_it),
        T(labels_and_fields_choose_and_are_shown),
        T(a_jsonpath_prints_what_it_leads_to),
        T(other_formats_print_whole_objects_or_names),
        T(errors_move_no_cursor),
        T(what_is_not_there_is_said_as_kubectl_does),
        T(events_manifests_and_images_have_tables_too),
        T(events_are_those_of_kubectl),
        T(a_watch_prints_rows_that_changed),
        T(describe_shows_everything_about_a_pod),
        T(explain_says_what_a_pod_waits_for),
        T(logs_choose_a_container_and_pass_on_what_was_asked_for),
        T(logs_of_several_containers_come_in_turn_or_side_by_side),
        T(images_are_brought_and_removed),
        T(archives_come_and_go_through_pipes),
        T(objects_are_sorted_by_what_a_path_leads_to),
        T(flags_may_stand_before_the_command),
        T(a_daemon_that_does_not_answer_is_given_up),
        T(what_takes_its_time_says_a_line_for_each_step),
        T(versions_of_both_are_shown_also_without_a_daemon),
        T(files_are_validated_without_a_daemon),
        T(what_is_no_file_is_not_validated),
        T(describe_and_validate_print_objects_too),
        T(a_pod_that_was_most_likely_meant_is_named),
        T(a_pod_is_restarted),
        T(pods_are_waited_for),
        T(a_file_is_removed_only_while_it_holds_that_pod_and_nothing_else),
        T(a_daemon_that_is_not_there_is_named_with_its_socket),
        T(a_socket_that_one_may_not_use_is_another_failure),
        T(a_reader_that_goes_away_ends_a_command_quietly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
