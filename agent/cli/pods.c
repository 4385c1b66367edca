/* SPDX-License-Identifier: Apache-2.0 */
/* pods - READY, STATUS and RESTARTS as computed by the apiserver's table printer (printPod). */
#include "agent/cli/internal.h"

#include "base/clock.h"

#include <string.h>

struct tally {
    int64_t restarts;
    const char *last; /* when the previous instance ended, the newest; may be NULL */
    int64_t last_ns;
};

static void count_restarts(struct tally *t, const json_t *status)
{
    const char *finished = cli_text(status, "lastState.terminated.finishedAt");
    int64_t ns;

    t->restarts += cli_number(status, "restartCount");
    if (clock_parse(finished, &ns, ERR_IGNORED) == ERR_OK && (t->last == NULL || ns > t->last_ns)) {
        t->last = finished;
        t->last_ns = ns;
    }
}

bool cli_is_sidecar(const json_t *container)
{
    return strcmp(cli_text(container, "restartPolicy"), "Always") == 0;
}

static const json_t *cli_pods_by_name(const json_t *containers, const char *name)
{
    const json_t *c;
    size_t i;

    json_array_foreach (containers, i, c) {
        if (strcmp(cli_text(c, "name"), name) == 0)
            return c;
    }
    return NULL;
}

static bool condition_true(const json_t *pod, const char *type)
{
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(pod, "status.conditions"), i, c) {
        if (strcmp(cli_text(c, "type"), type) == 0)
            return strcmp(cli_text(c, "status"), "True") == 0;
    }
    return false;
}

/* "Error", "Signal:9", "ExitCode:3" */
static void cli_pods_add_end(char *ret, size_t size, const char *prefix, const json_t *terminated)
{
    if (cli_text(terminated, "reason")[0] != '\0')
        snprintf(ret, size, "%s%s", prefix, cli_text(terminated, "reason"));
    else if (cli_number(terminated, "signal") != 0)
        snprintf(ret, size, "%sSignal:%lld", prefix, (long long)cli_number(terminated, "signal"));
    else
        snprintf(ret, size, "%sExitCode:%lld", prefix, (long long)cli_number(terminated, "exitCode"));
}

/* Returns true if an init container determines the status, which is then in *status. */
static bool init_status(const json_t *pod, char *status, size_t size, struct tally *all,
                        struct tally *sidecars, int64_t *ready)
{
    const json_t *containers = cli_at(pod, "spec.initContainers"), *s;
    size_t i;

    json_array_foreach (cli_at(pod, "status.initContainerStatuses"), i, s) {
        const json_t *terminated = cli_at(s, "state.terminated");
        const char *waiting = cli_text(s, "state.waiting.reason");
        bool sidecar = cli_is_sidecar(cli_pods_by_name(containers, cli_text(s, "name")));

        count_restarts(all, s);
        if (sidecar)
            count_restarts(sidecars, s);
        if (terminated != NULL && cli_number(terminated, "exitCode") == 0)
            continue;
        if (sidecar && cli_true(s, "started")) {
            *ready += cli_true(s, "ready");
            continue;
        }
        if (terminated != NULL)
            cli_pods_add_end(status, size, "Init:", terminated);
        else if (waiting[0] != '\0' && strcmp(waiting, "PodInitializing") != 0)
            snprintf(status, size, "Init:%s", waiting);
        else
            snprintf(status, size, "Init:%zu/%zu", i, json_array_size(containers));
        return true;
    }
    return false;
}

static void main_status(const json_t *pod, char *status, size_t size, struct tally *tally, int64_t *ready)
{
    const json_t *statuses = cli_at(pod, "status.containerStatuses");
    bool running = false;

    for (size_t i = json_array_size(statuses); i-- > 0;) {
        const json_t *s = json_array_get(statuses, i);
        const char *waiting = cli_text(s, "state.waiting.reason");

        count_restarts(tally, s);
        if (waiting[0] != '\0') {
            snprintf(status, size, "%s", waiting);
        } else if (cli_at(s, "state.terminated") != NULL) {
            cli_pods_add_end(status, size, "", cli_at(s, "state.terminated"));
        } else if (cli_true(s, "ready") && cli_at(s, "state.running") != NULL) {
            running = true;
            ++*ready;
        }
    }
    if (running && strcmp(status, "Completed") == 0)
        snprintf(status, size, "%s", condition_true(pod, "Ready") ? "Running" : "NotReady");
}

void cli_pod_summary(const struct cli *cli, const json_t *pod, struct cli_pod_summary *ret)
{
    const json_t *init = cli_at(pod, "spec.initContainers"), *c;
    const char *phase = cli_text(pod, "status.phase"), *reason = cli_text(pod, "status.reason");
    struct tally all = { 0 }, counted = { 0 };
    int64_t ready = 0, total = (int64_t)json_array_size(cli_at(pod, "spec.containers"));
    bool deleted = cli_text(pod, "metadata.deletionTimestamp")[0] != '\0';
    char age[CLI_AGE_SIZE];
    size_t i;

    snprintf(ret->status, sizeof(ret->status), "%s", reason[0] != '\0' ? reason : phase);
    json_array_foreach (init, i, c)
        total += cli_is_sidecar(c);
    if (!init_status(pod, ret->status, sizeof(ret->status), &all, &counted, &ready) ||
        condition_true(pod, "Initialized"))
        main_status(pod, ret->status, sizeof(ret->status), &counted, &ready);
    else
        counted = all;

    if (deleted && strcmp(reason, "NodeLost") == 0)
        strcpy(ret->status, "Unknown");
    else if (deleted && strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0)
        strcpy(ret->status, "Terminating");

    snprintf(ret->ready, sizeof(ret->ready), "%lld/%lld", (long long)ready, (long long)total);
    if (counted.restarts != 0 && counted.last != NULL) {
        cli_age(cli, counted.last, age);
        snprintf(ret->restarts, sizeof(ret->restarts), "%lld (%s ago)", (long long)counted.restarts, age);
    } else {
        snprintf(ret->restarts, sizeof(ret->restarts), "%lld", (long long)counted.restarts);
    }
}

/* ---- selecting a pod ---- */

bool cli_parse_one_pod(struct cli *cli, const struct cli_command *command, void *options, int argc,
                       char **argv, const char **ret_name, int *ret)
{
    if (!cli_parse(cli, command, options, &argc, argv, ret))
        return false;
    *ret_name = NULL;
    if (argc == 2 && strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds))
        *ret_name = argv[1];
    else if (argc == 1 && strchr(argv[0], '/') != NULL &&
             (*ret_name = cli_resource_name(argv[0], cli_pod_kinds)) == NULL)
        *ret = cli_no_pod(cli, argv[0]);
    else if (argc == 1 && strchr(argv[0], '/') == NULL && !cli_is_kind(argv[0], cli_pod_kinds))
        *ret_name = argv[0]; /* one that is called "pod": "pod pod" */
    else if (argc == 2 && !cli_is_kind(argv[0], cli_pod_kinds) && cli_kind_find(argv[0]) != NULL)
        *ret = cli_wrong(cli, "\"%s\" is not a pod: coracle %s only accepts a pod, as pod NAME", argv[0],
                         command->name);
    else if (*ret_name == NULL)
        *ret = cli_usage_error(cli, command, "you must specify one pod");
    return *ret_name != NULL;
}

int cli_no_pod(struct cli *cli, const char *word)
{
    return cli_wrong(cli, "%s: a pod is expected, as NAME or pod/NAME", word);
}

/* ---- selecting a container ---- */

const json_t *cli_find_container(const json_t *pod, const char *name)
{
    const json_t *found = cli_pods_by_name(cli_at(pod, "spec.containers"), name);

    return found != NULL ? found : cli_pods_by_name(cli_at(pod, "spec.initContainers"), name);
}

int cli_no_container(struct cli *cli, const char *name, const char *pod)
{
    cli_error(cli, "container %s is not valid for pod %s", name, pod);
    return EXIT_NOT_FOUND;
}

const char *cli_choose_container(struct cli *cli, const json_t *pod)
{
    const json_t *containers = cli_at(pod, "spec.containers"), *init = cli_at(pod, "spec.initContainers"), *c;
    const char *named = json_string_value(
        json_object_get(cli_at(pod, "metadata.annotations"), "kubectl.kubernetes.io/default-container"));
    buf_auto all = BUF_INIT(64 * 1024);
    size_t i;

    if (named != NULL && cli_find_container(pod, named) != NULL)
        return named;
    if (json_array_size(containers) + json_array_size(init) > 1) {
        json_array_foreach (containers, i, c)
            buf_addf(&all, "%s%s", i > 0 ? ", " : "", cli_text(c, "name"));
        json_array_foreach (init, i, c)
            buf_addf(&all, ", %s (init)", cli_text(c, "name"));
        fprintf(cli->err, "Defaulted container \"%s\" out of: %s\n",
                cli_text(json_array_get(containers, 0), "name"), all.p);
    }
    return cli_text(json_array_get(containers, 0), "name");
}
