/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/on_change.h"

#include <signal.h>
#include <string.h>

static bool is_signal(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int n = 1; n < SIGRTMIN; n++) {
        const char *known = sigabbrev_np(n);

        if (known != NULL && strcmp(known, name) == 0)
            return true;
    }
    return false;
}

bool api_on_change_parse(const char *value, enum api_on_change *ret, const char **ret_signal)
{
    static const char signal_is[] = "signal=";
    size_t n = sizeof(signal_is) - 1;

    *ret = API_ON_CHANGE_IGNORE;
    *ret_signal = NULL;
    if (value == NULL || strcmp(value, "ignore") == 0)
        return true;
    if (strcmp(value, "restart") == 0) {
        *ret = API_ON_CHANGE_RESTART;
        return true;
    }
    if (strncmp(value, signal_is, n) != 0 || !is_signal(value + n))
        return false;
    *ret = API_ON_CHANGE_SIGNAL;
    *ret_signal = value + n;
    return true;
}

bool api_live_sub_path_parse(const char *value, bool *ret_live)
{
    *ret_live = value != NULL && strcmp(value, "live") == 0;
    return value == NULL || *ret_live;
}
