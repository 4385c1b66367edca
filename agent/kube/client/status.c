/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/internal.h"
#include "base/codec/json.h"

#include <string.h>

static enum err_code status_code_of(int http, const char *reason)
{
    switch (http) {
    case 400:
    case 422:
        return ERR_INVALID;
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_PERMISSION;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return str_eq(reason, "AlreadyExists") ? ERR_EXISTS : ERR_ABORTED;
    case 410:
        return ERR_RANGE;
    case 429:
        return ERR_EXHAUSTED;
    case 504:
        return ERR_DEADLINE;
    default:
        return ERR_UNAVAILABLE;
    }
}

enum err_code kube_status_err(const json_t *status, int http, struct err *e)
{
    const char *message = json_str(status, "message"), *reason = json_str(status, "reason");

    if (http == 0)
        http = (int)json_int(status, "code", 500);
    if (message != NULL && *message != '\0')
        return err_set(e, status_code_of(http, reason), "%s", message);
    if (reason != NULL && *reason != '\0')
        return err_set(e, status_code_of(http, reason), "%s (HTTP status %d)", reason, http);
    return err_set(e, status_code_of(http, NULL), "HTTP status %d", http);
}
