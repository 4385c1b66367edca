/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/annotations.h"

#include "agent/api/on_change.h"
#include "agent/api/oom_kill.h"
#include "base/near.h"

#include <string.h>

enum { NEAR_MAX = 2 };

static bool is_on_change(const char *value)
{
    enum api_on_change what;
    const char *signal_name;

    return api_on_change_parse(value, &what, &signal_name);
}

static bool is_oom_kill(const char *value)
{
    enum api_oom_kill way;

    return api_oom_kill_parse(value, &way);
}

static bool is_storage_limits(const char *value)
{
    return strcmp(value, "evict") == 0 || strcmp(value, "enforce") == 0;
}

static bool is_sub_path(const char *value)
{
    bool live;

    return api_live_sub_path_parse(value, &live);
}

const struct api_annotation api_annotations[] = {
    { API_ON_CHANGE, "ignore, restart and signal=<name>, as signal=HUP", "ignore",
      "What happens to a running container when a ConfigMap or Secret in its environment changes: nothing, "
      "and the status says that the environment is outdated; a restart with the pod's grace period; or its "
      "first process gets the signal, once for each change.",
      is_on_change },
    { API_OOM_KILL, "process, container and pod", "the value of singleProcessOOMKill",
      "What an out-of-memory kill ends: the process that the kernel chose; all of its container; or, if the "
      "limit of the pod was reached, all containers of the pod.  On cgroup v1 it is always one process.",
      is_oom_kill },
    { API_STORAGE_LIMITS, "evict and enforce", "the value of storageLimits",
      "What limits of local storage do: a pod that exceeds one is evicted; or, on file systems with project "
      "quotas, the kernel refuses writes beyond them, and the pod continues. Logs are not counted then.",
      is_storage_limits },
    { API_SUB_PATH, "live", "they stay as they were at the container's start",
      "Mounts with a subPath of ConfigMaps, Secrets, the downward API and projected volumes follow changes "
      "of their source.",
      is_sub_path },
    { 0 },
};

const struct api_annotation *api_annotation_find(const char *key)
{
    for (const struct api_annotation *a = api_annotations; a->key != NULL; a++)
        if (strcmp(a->key, key) == 0)
            return a;
    return NULL;
}

const char *api_annotation_near(const char *key)
{
    struct near n = { .name = key };

    for (const struct api_annotation *a = api_annotations; a->key != NULL; a++)
        near_try(&n, a->key);
    return n.found != NULL && n.distance <= NEAR_MAX ? n.found : NULL;
}
