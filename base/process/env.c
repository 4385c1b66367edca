/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/env.h"

#include "base/buf.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

static bool env_is_systemds(const char *pair)
{
    static const char *const names[] = { "NOTIFY_SOCKET=",    "WATCHDOG_",      "LISTEN_",
                                         "JOURNAL_STREAM=",   "INVOCATION_ID=", "MANAGERPID=",
                                         "SYSTEMD_EXEC_PID=", "FDSTORE=",       "MEMORY_PRESSURE_" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_starts(pair, names[i]))
            return true;
    return false;
}

bool proc_env_put(struct strs *env, char *pair)
{
    size_t n = pair != NULL ? strcspn(pair, "=") + 1 : 0;

    for (size_t i = 0; pair != NULL && i < env->n; i++)
        if (strncmp(env->v[i], pair, n) == 0) {
            free(env->v[i]);
            env->v[i] = pair;
            return true;
        }
    return strs_take(env, pair);
}

bool proc_env_inherit(struct strs *env, const char *const *environment)
{
    for (; environment != NULL && *environment != NULL; environment++)
        if (strchr(*environment, '=') != NULL && !env_is_systemds(*environment) &&
            !proc_env_put(env, strdup(*environment)))
            return false;
    return true;
}
