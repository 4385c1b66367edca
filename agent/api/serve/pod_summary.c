/* SPDX-License-Identifier: Apache-2.0 */
/* READY, STATUS and RESTARTS as computed by the apiserver's table printer (printPod). */
#include "agent/api/serve/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/duration.h"

#include <stdio.h>
#include <string.h>

struct tally {
    int64_t restarts;
    int64_t last_ns; /* when the previous instance ended, the newest */
    bool ended;      /* there is one */
};

static bool true_at(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void count_restarts(struct tally *t, const json_t *status)
{
    int64_t ns;

    t->restarts += api_number_at(status, "restartCount");
    if (clock_parse(api_text_at(status, "lastState.terminated.finishedAt"), &ns, ERR_IGNORED) == ERR_OK &&
        (!t->ended || ns > t->last_ns)) {
        t->ended = true;
        t->last_ns = ns;
    }
}

bool api_is_sidecar(const json_t *container)
{
    return strcmp(api_text_at(container, "restartPolicy"), "Always") == 0;
}

/* "Error", "Signal:9", "ExitCode:3" */
static void add_end(char *ret, size_t size, const char *prefix, const json_t *terminated)
{
    if (api_text_at(terminated, "reason")[0] != '\0')
        snprintf(ret, size, "%s%s", prefix, api_text_at(terminated, "reason"));
    else if (api_number_at(terminated, "signal") != 0)
        snprintf(ret, size, "%sSignal:%lld", prefix, (long long)api_number_at(terminated, "signal"));
    else
        snprintf(ret, size, "%sExitCode:%lld", prefix, (long long)api_number_at(terminated, "exitCode"));
}

/* Returns true if an init container determines the status, which is then in *status. */
static bool init_status(const json_t *pod, char *status, size_t size, struct tally *all,
                        struct tally *sidecars, int64_t *ready)
{
    const json_t *containers = json_at(pod, "spec.initContainers"), *s;
    size_t i;

    json_array_foreach (json_at(pod, "status.initContainerStatuses"), i, s) {
        const json_t *terminated = json_at(s, "state.terminated");
        const char *waiting = api_text_at(s, "state.waiting.reason");
        bool sidecar = api_is_sidecar(api_find(containers, "name", api_text_at(s, "name")));

        count_restarts(all, s);
        if (sidecar)
            count_restarts(sidecars, s);
        if (terminated != NULL && api_number_at(terminated, "exitCode") == 0)
            continue;
        if (sidecar && true_at(s, "started")) {
            *ready += true_at(s, "ready");
            continue;
        }
        if (terminated != NULL)
            add_end(status, size, "Init:", terminated);
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
    const json_t *statuses = json_at(pod, "status.containerStatuses");
    bool running = false;

    for (size_t i = json_array_size(statuses); i-- > 0;) {
        const json_t *s = json_array_get(statuses, i);
        const char *waiting = api_text_at(s, "state.waiting.reason");

        count_restarts(tally, s);
        if (waiting[0] != '\0') {
            snprintf(status, size, "%s", waiting);
        } else if (json_at(s, "state.terminated") != NULL) {
            add_end(status, size, "", json_at(s, "state.terminated"));
        } else if (true_at(s, "ready") && json_at(s, "state.running") != NULL) {
            running = true;
            ++*ready;
        }
    }
    if (running && strcmp(status, "Completed") == 0)
        snprintf(status, size, "%s", api_condition_is(pod, "Ready", "True") ? "Running" : "NotReady");
}

void api_pod_summary(const json_t *pod, int64_t now_ns, struct api_pod_summary *ret)
{
    const json_t *init = json_at(pod, "spec.initContainers"), *c;
    const char *phase = api_text_at(pod, "status.phase"), *reason = api_text_at(pod, "status.reason");
    struct tally all = { 0 }, counted = { 0 };
    int64_t ready = 0, total = (int64_t)json_array_size(json_at(pod, "spec.containers"));
    bool deleted = api_text_at(pod, "metadata.deletionTimestamp")[0] != '\0';
    size_t i;

    *ret = (struct api_pod_summary){ 0 };
    snprintf(ret->status, sizeof(ret->status), "%s", reason[0] != '\0' ? reason : phase);
    json_array_foreach (init, i, c)
        total += api_is_sidecar(c);
    if (!init_status(pod, ret->status, sizeof(ret->status), &all, &counted, &ready) ||
        api_condition_is(pod, "Initialized", "True"))
        main_status(pod, ret->status, sizeof(ret->status), &counted, &ready);
    else
        counted = all;

    if (deleted && strcmp(reason, "NodeLost") == 0)
        strcpy(ret->status, "Unknown");
    else if (deleted && strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0)
        strcpy(ret->status, "Terminating");

    snprintf(ret->ready, sizeof(ret->ready), "%lld/%lld", (long long)ready, (long long)total);
    if (counted.restarts != 0 && counted.ended)
        snprintf(ret->restarts, sizeof(ret->restarts), "%lld (%s ago)", (long long)counted.restarts,
                 duration_human(now_ns - counted.last_ns).s);
    else
        snprintf(ret->restarts, sizeof(ret->restarts), "%lld", (long long)counted.restarts);
}
