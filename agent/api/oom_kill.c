/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/oom_kill.h"

#include <stddef.h>
#include <string.h>

bool api_oom_kill_parse(const char *value, enum api_oom_kill *ret)
{
    static const char *const words[] = {
        [API_OOM_KILL_PROCESS] = "process", [API_OOM_KILL_CONTAINER] = "container", [API_OOM_KILL_POD] = "pod"
    };

    *ret = API_OOM_KILL_UNSET;
    if (value == NULL)
        return true;
    for (int i = API_OOM_KILL_PROCESS; i <= API_OOM_KILL_POD; i++)
        if (strcmp(words[i], value) == 0) {
            *ret = (enum api_oom_kill)i;
            return true;
        }
    return false;
}
