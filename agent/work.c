/* SPDX-License-Identifier: Apache-2.0 */
/* work - opens the workloads of the manifest folder as parts of the daemon. */
#include "agent/internal.h"
#include "agent/pod/core/node_written.h"
#include "agent/pod/core/workload_link.h"
#include "agent/pod/show/provider.h"

#include <unistd.h>

static void note_problem(const struct src_file *f, void *arg)
{
    bool *complete = arg;

    *complete = *complete && f->ok;
}

static bool folder_is_complete(void *arg)
{
    struct agent *a = arg;
    bool complete = a->folder != NULL && access(a->config.manifests, F_OK) == 0;

    if (complete)
        src_folder_each(a->folder, note_problem, &complete);
    return complete;
}

static void remove_object(void *arg, enum api_kind kind, const char *namespace_, const char *name)
{
    struct agent *a = arg;

    provider_remove(a->node, kind, namespace_, name);
}

enum err_code work_open(struct agent *a, struct err *e)
{
    const struct claims_options claims = { .node = a->node, .complete = folder_is_complete, .arg = a };
    struct workloads_options o = {
        .node = a->node, .complete = folder_is_complete, .remove = remove_object, .arg = a
    };

    if (!join_wanted(a) && node_written_open(a->node, e) != ERR_OK)
        return e->code;
    if (claims_open(&a->claims, &claims, e) != ERR_OK)
        return err_wrap(e, "claims");
    node_set_claims(a->node, claims_link(a->claims));
    o.claims = a->claims;
    if (workloads_open(&a->workloads, &o, e) != ERR_OK)
        return e->code;
    node_set_workloads(a->node, workloads_link(a->workloads));
    return ERR_OK;
}
