/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a file each, and what all commands have in common, against a daemon's socket. */
#include "tests/unit/agent_cli/served.h"

#include "base/codec/json.h"

#include <unistd.h>

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
    char good[200], bad[200], half[200], twin[200], line[700], want[900];

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
    snprintf(want, sizeof(want),
             "%s:4:21: spec.containers[0].image: required\n%s:4:31: spec.containers[0].imag: unknown field, "
             "did you mean "
             "image?\n",
             bad, bad);
    assert_string_equal(f->err, want);

    write_file(f, "half.yaml", POD("B") "---\n" POD("c") "---\n" POD("d"), half);
    snprintf(line, sizeof(line), "validate %s", half);
    assert_int_equal(run(f, line), 1);
    assert_non_null(
        strstr(f->err, "letter or digit (also holds back Pod default/c and 1 more object of this file)\n"));

    write_file(f, "twin.yaml", POD("a"), twin);
    snprintf(line, sizeof(line), "validate %s %s", good, twin);
    snprintf(want, sizeof(want), "%s:3:12: metadata.name: Pod default/a is already defined in %s:3:12\n",
             twin, good);
    assert_int_equal(run(f, line), 1);
    assert_string_equal(f->err, want);
}

#define LETTERS_60 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefgh"

/* The daemon accepts these. */
static void validate_tells_what_can_never_run(void **state)
{
    struct fixture *f = *state;
    char path[200], line[300];
    buf_auto want = BUF_INIT(10000);

    write_file(f, "never.yaml",
               "apiVersion: v1\nkind: Pod\nmetadata:\n"
               "  name: " LETTERS_60 "." LETTERS_60 "." LETTERS_60 "\n"
               "  namespace: " LETTERS_60 "\n"
               "  annotations:\n"
               "    coracle.dev/on-config-chnage: restart\n"
               "    coracle.dev/something-else: x\n"
               "    coracle.dev/subpath: live\n"
               "    example.com/any: x\n"
               "spec:\n"
               "  initContainers: [{name: a, image: 'x:1'}]\n"
               "  containers:\n"
               "  - name: b\n"
               "    image: Busybox:1\n"
               "  - name: c\n"
               "    image: 'x:y:z'\n",
               path);
    snprintf(line, sizeof(line), "validate %s", path);
    assert_int_equal(run(f, line), 1);
    buf_addf(&want,
             "%s:4:3: metadata.name: the pod cannot run: its folder of logs, <namespace>_<name>_<uid>, would "
             "have a "
             "name of 280 characters, at most 255 are possible\n",
             path);
    buf_addf(&want,
             "%s:7:5: metadata.annotations[coracle.dev/on-config-chnage]: unknown annotation, did you mean "
             "coracle.dev/on-config-change?\n",
             path);
    buf_addf(&want, "%s:8:5: metadata.annotations[coracle.dev/something-else]: unknown annotation\n", path);
    buf_addf(&want,
             "%s:15:5: spec.containers[0].image: the container cannot run: couldn't parse image name "
             "\"Busybox:1\": "
             "invalid reference format: repository name (library/Busybox) must be lowercase\n",
             path);
    buf_addf(
        &want,
        "%s:17:5: spec.containers[1].image: the container cannot run: couldn't parse image name \"x:y:z\": "
        "invalid reference format\n",
        path);
    assert_string_equal(f->err, want.p);
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
    snprintf(fifo, sizeof(fifo), "%s/empty", f->dir);
    assert_int_equal(mkdir(fifo, 0700), 0);
    snprintf(line, sizeof(line), "validate -R -f %s", fifo);
    snprintf(want, sizeof(want), "error: %s has no manifests\n", fifo);
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
    assert_non_null(strstr(f->out, "  ok: false\n  problems:\n  - column: 1\n    document: 1\n"
                                   "    field: spec.containers\n    file: "));
    assert_non_null(strstr(f->out, "    line: 4\n    message: required\n"));
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
    expect(f, "restart pod web", 0, "pod/web restarting\n", "");
    expect(f, "restart pod/web", 0, "pod/web restarting\n", "");
    expect(f, "restart db", 1, "",
           "Error from server (Conflict): pod db has no containers to restart: it is Pending\n");
    expect(f, "restart dbb", 5, "",
           "Error from server (NotFound): pods \"dbb\" not found\nDid you mean \"db\"?\n");
    expect(f, "restart pod/web --wait --timeout 1ms", 1, "pod/web restarting\n",
           "error: timed out waiting for the condition on pods/web\n"); /* the same container */
    expect(f, "restart pod/web --timeout soon", 2, "",
           "error: --timeout: \"soon\" is not a duration such as 10s, 5m or 1h30m\n");
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
    assert_int_equal(run(f, "wait nothing/web"), 2);
    expect(f, "wait pod/", 2, "", "error: the name of a resource may not be empty\n");
    expect(f, "wait web --for=ready", 2, "",
           "error: --for: condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create or delete is expected, not "
           "\"ready\"\n");
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

static void pods_are_waited_for_by_their_values(void **state)
{
    struct fixture *f = *state;

    expect(f, "wait pod/web --for=jsonpath={.status.phase}=Running", 0, "pod/web condition met\n", "");
    expect(f, "wait pod/web --for=jsonpath='{.status.phase}'=Running", 2, "",
           "error: --for: jsonpath={PATH} or jsonpath={PATH}=VALUE is expected, not "
           "\"jsonpath='{.status.phase}'=Running\"\n"); /* these quotes are a shell's */
    expect(f, "wait pod/web --for=jsonpath=.status.phase=\"Running\"", 0, "pod/web condition met\n", "");
    expect(f, "wait pod/web --for jsonpath={.metadata.name}", 0, "pod/web condition met\n", "");
    expect(f, "wait pod/web --for jsonpath={.metadata.nothing} --timeout 1ms", 1, "",
           "error: timed out waiting for the condition on pods/web\n");
    expect(f, "wait pod/web --for jsonpath={.metadata.name", 2, "",
           "error: --for: jsonpath={PATH} or jsonpath={PATH}=VALUE is expected, not "
           "\"jsonpath={.metadata.name\"\n");
    expect(f, "wait pod/web --for jsonpath={.metadata.name}=", 2, "",
           "error: --for: jsonpath={PATH} or jsonpath={PATH}=VALUE is expected, not "
           "\"jsonpath={.metadata.name}=\"\n");
    expect(f, "wait pod/web --for condition=Ready=", 2, "",
           "error: --for: condition=NAME or condition=NAME=VALUE is expected, not \"condition=Ready=\"\n");
    expect(f, "wait pod/web --for create", 0, "pod/web condition met\n", "");
    expect(f, "wait pod/absent --for create --timeout 1ms", 1, "",
           "error: timed out waiting for the condition on pods/absent\n");
    assert_int_equal(run(f, "wait pods --all --for create"), 2);
}

/* ---- a pod that has ended ---- */

#define ENDED(phase)                                                                                         \
    "{'status': {'phase': '" phase "', 'conditions': [{'type': 'Ready', 'status': 'False'}]}}"

static void what_an_ended_pod_no_longer_meets_is_lost(void **state)
{
    static const struct {
        const char *pod, *what;
        bool lost;
    } cases[] = {
        { ENDED("Failed"), "condition=Ready", true },
        { ENDED("Succeeded"), "condition=Ready=true", true },
        { ENDED("Succeeded"), "condition=Absent", true },
        { ENDED("Running"), "condition=Ready", false },
        { ENDED("Failed"), "condition=PodReadyToStartContainers=False", false },
        { ENDED("Failed"), "jsonpath={.status.phase}=Running", true },
        { ENDED("Pending"), "jsonpath={.status.phase}=Running", false },
        { ENDED("Failed"), "jsonpath={.metadata.labels.app}=web", false },
        { ENDED("Failed"), "delete", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *pod = NULL;
        str_auto text = strdup(cases[i].pod);
        struct wait_goal g;
        struct err e = { 0 };

        for (char *p = text; *p != '\0'; p++)
            *p = *p == '\'' ? '"' : *p;
        pod = json_loads(text, 0, NULL);
        assert_int_equal(wait_goal_parse(&g, cases[i].what, &e), ERR_OK);
        assert_false(wait_goal_is_met(&g, pod));
        if (wait_goal_is_lost(&g, pod) != cases[i].lost)
            fail_msg("%s of %s", cases[i].what, cases[i].pod);
    }
}

/* ---- a restart ---- */

#define WEB(a, b)                                                                                            \
    "{'spec': {'containers': [{'name': 'a'}], 'initContainers': [{'name': 'i'}, "                            \
    "{'name': 'b', 'restartPolicy': 'Always'}]}, 'status': {'containerStatuses': [" a                        \
    "], 'initContainerStatuses': [{'name': 'i', 'ready': true, 'containerID': 'coracle://i'}, " b "]}}"
#define CTR(name, ready, id) "{'name': '" name "', 'ready': " ready ", 'containerID': 'coracle://" id "'}"

static json_t *quoted(const char *text)
{
    str_auto copy = strdup(text);
    json_t *value;

    for (char *p = copy; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    value = json_loads(copy, 0, NULL);
    assert_non_null(value);
    return value;
}

/* The status may not have shown the run that ends: its postStart hook was running, or it began later. */
static void a_restart_is_over_when_no_run_that_ends_is_left(void **state)
{
    static const struct {
        const char *ending, *pod;
        bool met;
    } cases[] = {
        { "[{'name': 'a', 'containerID': 'coracle://a1'}]",
          WEB(CTR("a", "true", "a1"), CTR("b", "true", "b1")), false },
        { "[{'name': 'a', 'containerID': 'coracle://a1'}]",
          WEB(CTR("a", "false", "a2"), CTR("b", "true", "b1")), false },
        { "[{'name': 'a', 'containerID': 'coracle://a1'}]",
          WEB(CTR("a", "true", "a2"), CTR("b", "true", "b1")), true },
        { "[{'name': 'a', 'containerID': 'coracle://a1'}, {'name': 'b', 'containerID': 'coracle://b1'}]",
          WEB(CTR("a", "true", "a2"), CTR("b", "true", "b1")), false },
        { "[{'name': 'a', 'containerID': 'coracle://a1'}, {'name': 'b', 'containerID': 'coracle://b1'}]",
          WEB(CTR("a", "true", "a2"), CTR("b", "true", "b2")), true },
        { "[]", WEB(CTR("a", "true", "a1"), CTR("b", "true", "b1")), true },
        { "[]", WEB(CTR("a", "true", "a1"), CTR("b", "false", "b1")), false },
        { "[]", WEB("", CTR("b", "true", "b1")), false }, /* not in the status yet */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *ending = quoted(cases[i].ending);
        json_auto_t *pod = quoted(cases[i].pod);
        const struct wait_goal g = { .kind = WAIT_RESTART, .ending = ending, .text = "--wait" };

        if (wait_goal_is_met(&g, pod) != cases[i].met)
            fail_msg("%s of %s", cases[i].ending, cases[i].pod);
    }
}

/* ---- no daemon; configuration ------------------------------------------------------------------ */

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

static void a_kubeconfig_is_shown_with_its_files_and_without_secrets(void **state)
{
    struct fixture *f = *state;
    char path[200];
    str_auto line = NULL;
    str_auto want = NULL;
    str_auto json = NULL;

    write_file(
        f, "kubeconfig",
        "clusters: [{name: c, cluster: {server: 'https://h.test'}}]\n"
        "users: [{name: u, user: {token: hushhush}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}, {name: z, context: {cluster: c, user: w}}]\n"
        "current-context: x\n",
        path);
    line = str_printf("config kubeconfig --kubeconfig %s", path);
    assert_int_equal(run(f, line), EXIT_OK);
    want = str_printf("# %s\n", path);
    assert_non_null(strstr(f->out, "\n  token: (secret, 8 bytes)   "));
    assert_non_null(strstr(f->out, want));
    assert_null(strstr(f->out, "hush"));
    json = str_printf("%s -o json", line);
    assert_int_equal(run(f, json), EXIT_OK);
    assert_null(strstr(f->out, "hush"));
    free(want);
    want = str_printf("error: user \"w\", named by context \"z\" in %s, does not exist\n", path);
    free(line);
    line = str_printf("config kubeconfig --kubeconfig=%s --context=z", path);
    assert_int_equal(run(f, line), EXIT_ERROR);
    assert_string_equal(f->err, want);
    assert_int_equal(run(f, "config kubeconfig stray"), EXIT_USAGE);
    expect(f, "config kubeconfig --kubeconfig /does/not/exist", EXIT_ERROR, "",
           "error: stat /does/not/exist: No such file or directory\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(config_tells_a_wrong_command_line_from_a_wrong_file),
        T(config_names_everything_that_is_wrong_in_a_file),
        T(a_kubeconfig_is_shown_with_its_files_and_without_secrets),
        T(flags_may_stand_before_the_command),
        T(a_daemon_that_does_not_answer_is_given_up),
        T(versions_of_both_are_shown_also_without_a_daemon),
        T(files_are_validated_without_a_daemon),
        T(validate_tells_what_can_never_run),
        T(what_is_no_file_is_not_validated),
        T(describe_and_validate_print_objects_too),
        T(a_pod_that_was_most_likely_meant_is_named),
        T(a_pod_is_restarted),
        T(pods_are_waited_for),
        T(pods_are_waited_for_by_their_values),
        T(what_an_ended_pod_no_longer_meets_is_lost),
        T(a_restart_is_over_when_no_run_that_ends_is_left),
        T(a_file_is_removed_only_while_it_holds_that_pod_and_nothing_else),
        T(a_daemon_that_is_not_there_is_named_with_its_socket),
        T(a_socket_that_one_may_not_use_is_another_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
