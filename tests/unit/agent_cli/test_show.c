/* SPDX-License-Identifier: Apache-2.0 */
/* get, describe, events and explain against a daemon's socket. */
#include "tests/unit/agent_cli/served.h"

#define KINDS                                                                                                \
    ": there are pods, nodes, configmaps, secrets, priorityclasses, images, persistentvolumeclaims, "        \
    "persistentvolumes, controllerrevisions, daemonsets, deployments, replicasets, statefulsets, cronjobs, " \
    "jobs, csidrivers"

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
    expect(f, "get gizmos", 2, "",
           "error: the server doesn't have a resource type \"gizmos\"" KINDS
           ", devices, evictions, manifests, events\n");
    expect(f, "get pods -o table", 2, "",
           "error: unable to match a printer suitable for the output format \"table\", allowed formats are: "
           "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-file,name,"
           "wide,yaml\n");
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
    expect(f, "events --for svc/a", 2, "",
           "error: --for: there are events of pods, workloads and nodes only, not of \"svc\"\n");
    assert_int_equal(run(f, "events web"), 2);
}

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
    expect(f, "describe gizmo x", 2, "",
           "error: the server doesn't have a resource type \"gizmo\"" KINDS "\n");
    free(want);
}

static void explain_shows_fields_and_what_is_done_with_them(void **state)
{
    struct fixture *f = *state;

    expect(f, "explain pod.spec.restartPolicy --socket /nonexistent/c.sock", 0,
           "KIND:     Pod\nVERSION:  v1\nFIELD:    spec.restartPolicy\nTYPE:     string\n"
           "DEFAULT:  Always\nALLOWED:  Always, OnFailure, Never\nSUPPORT:  acted on\n"
           "ABOUT:    When containers that have ended are started again.\n",
           "");
    expect(f, "explain pods.spec.containers[0].ports[*].hostPort", 0,
           "KIND:     Pod\nVERSION:  v1\nFIELD:    spec.containers[0].ports[*].hostPort\nTYPE:     number\n"
           "ALLOWED:  1 to 65535\nSUPPORT:  acted on\n"
           "ABOUT:    A port of the node that is forwarded to it.\n",
           "");
    /* The same type where it is acted on, and where it is not. */
#define AFFINITY "spec.affinity.nodeAffinity."
#define REQUIRED AFFINITY "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchFields.key"
#define PREFERRED AFFINITY "preferredDuringSchedulingIgnoredDuringExecution.preference.matchFields.key"
    expect(f, "explain po." REQUIRED, 0,
           "KIND:     Pod\nVERSION:  v1\nFIELD:    " REQUIRED "\nTYPE:     string, required\n"
           "SUPPORT:  acted on\nABOUT:    The name of the label or field.\n",
           "");
    expect(f, "explain po." PREFERRED, 0,
           "KIND:     Pod\nVERSION:  v1\nFIELD:    " PREFERRED "\nTYPE:     string, required\n"
           "SUPPORT:  accepted\nABOUT:    The name of the label or field.\n",
           "");
    expect(
        f, "explain pod.spec.os", 0,
        "KIND:     Pod\nVERSION:  v1\nFIELD:    spec.os\nTYPE:     PodOS\nSUPPORT:  acted on\n"
        "ABOUT:    The operating system of the pod.\n\n"
        "FIELD   TYPE               DEFAULT   ALLOWED          SUPPORT    NOTE   ABOUT\n"
        "name    string, required             linux, windows   acted on          The name of the system.\n",
        "");
    assert_int_equal(run(f, "explain pod"), 0);
    assert_non_null(strstr(f->out, "\nspec         PodSpec      {} "));
    assert_int_equal(run(f, "explain pod.spec.ephemeralContainers"), 0);
    assert_non_null(strstr(f->out, "\nNOTE:     ephemeral containers cannot be set when a pod is created; "));
    assert_non_null(strstr(f->out, "\ntargetContainerName "));
    assert_non_null(strstr(f->out, "\nimagePullPolicy ")); /* of Container */
    assert_null(strstr(f->out, "acted on"));
    assert_int_equal(run(f, "explain priorityclasses.value"), 0);
    assert_int_equal(run(f, "explain cm.data"), 0);
    assert_int_equal(run(f, "explain deploy.spec.strategy"), 0);
    assert_non_null(strstr(f->out, "KIND:     Deployment\nVERSION:  apps/v1\n"));
    expect(f, "explain pod.spec.contaners", 2, "",
           "error: pod.spec.contaners: PodSpec has no field contaners (did you mean containers?)\n");
    expect(f, "explain pod.spec.containers.name.x", 2, "",
           "error: pod.spec.containers.name.x: name has no fields\n");
    expect(f, "explain pod.spec -o json", 2, "", "error: -o is for a pod or the node, not for fields\n");
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(pods_are_shown_as_a_table_with_warnings_after_it),
        T(labels_and_fields_choose_and_are_shown),
        T(objects_are_sorted_by_what_a_path_leads_to),
        T(a_jsonpath_prints_what_it_leads_to),
        T(other_formats_print_whole_objects_or_names),
        T(errors_move_no_cursor),
        T(what_is_not_there_is_said_as_kubectl_does),
        T(events_manifests_and_images_have_tables_too),
        T(events_are_those_of_kubectl),
        T(a_watch_prints_rows_that_changed),
        T(describe_shows_everything_about_a_pod),
        T(explain_shows_fields_and_what_is_done_with_them),
        T(explain_says_what_a_pod_waits_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
