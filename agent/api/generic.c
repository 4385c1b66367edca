/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/generic.h"

#include <stdlib.h>

struct api_generic *api_generic_ref(struct api_generic *g)
{
    g->refs++;
    return g;
}

void api_generic_unref(struct api_generic *g)
{
    if (g == NULL || --g->refs > 0)
        return;
    if (g->workload != NULL) {
        api_pod_unref(g->workload->pods.pod);
        api_generic_unref(g->workload->job);
    }
    arena_done(&g->arena);
    free(g);
}
