/* SPDX-License-Identifier: Apache-2.0 */
/* pod_columns - READY, STATUS and RESTARTS as computed by the apiserver's table printer (printPod). */
#include "agent/cli/show/internal.h"

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

static bool condition_true(const json_t *pod, const char *type)
{
    return strcmp(cli_text(cli_find(cli_at(pod, "status.conditions"), "type", type), "status"), "True") == 0;
}

/* "Error", "Signal:9", "ExitCode:3" */
static void pod_columns_add_end(char *ret, size_t size, const char *prefix, const json_t *terminated)
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
        bool sidecar = cli_is_sidecar(cli_find(containers, "name", cli_text(s, "name")));

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
            pod_columns_add_end(status, size, "Init:", terminated);
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
            pod_columns_add_end(status, size, "", cli_at(s, "state.terminated"));
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
