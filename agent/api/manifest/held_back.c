/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/manifest/decode.h"

#include <string.h>

void api_problems_hold_back(struct api_problems *p, const struct api_object *first, size_t n)
{
    const struct api_meta *meta;
    const char *message;
    char more[48] = "";

    if (p->n == 0 || n == 0 || first == NULL)
        return;
    meta = api_object_meta(first);
    if (n > 1)
        snprintf(more, sizeof(more), " and %zu more object%s", n - 1, n > 2 ? "s" : "");
    message = arena_printf(&p->arena, "%s (also holds back %s %s%s%s%s of this file)", p->v[0].message,
                           api_kind_name(first->kind), meta->namespace != NULL ? meta->namespace : "",
                           meta->namespace != NULL ? "/" : "", meta->name, more);
    if (message != NULL)
        p->v[0].message = message;
}
