/* SPDX-License-Identifier: Apache-2.0 */
/* Building JSON without a check at each step: one failure empties the value, and the end shows it. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(json_t **to, json_t *value)
{
    json_decref(value);
    json_decref(*to);
    *to = NULL;
}

void api_put(json_t **object, const char *name, json_t *value)
{
    if (*object == NULL || value == NULL)
        fail(object, value);
    else if (json_object_set_new(*object, name, value) != 0)
        fail(object, NULL);
}

void api_append(json_t **list, json_t *value)
{
    if (*list == NULL || value == NULL)
        fail(list, value);
    else if (json_array_append_new(*list, value) != 0)
        fail(list, NULL);
}

json_t *api_status_failure(int code, const char *reason, const char *fmt, ...)
{
    char *message = NULL;
    json_t *o;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        message = NULL;
    va_end(ap);
    if (message == NULL)
        return NULL;
    o = json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status", "apiVersion", "v1", "metadata", "status",
                  "Failure");
    api_put(&o, "message", json_string_of(message)); /* it may quote a request, of any bytes */
    api_put(&o, "reason", json_string(reason));
    api_put(&o, "code", json_integer(code));
    free(message);
    return o;
}
