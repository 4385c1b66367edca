/* SPDX-License-Identifier: Apache-2.0 */
/* Building JSON without a check at each step: one failure empties the value, and the end shows it. */
#include "agent/api/serve/internal.h"

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
