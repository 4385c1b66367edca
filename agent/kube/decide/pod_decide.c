/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/pod_decide.h"

static enum pod_action decide_mirror(const struct pod_facts *f)
{
    if (!f->there)
        return f->synced && f->node_known ? POD_CREATE_MIRROR : POD_NOTHING;
    if (!f->there_is_mirror)
        return POD_NOTHING; /* an ordinary pod has this name */
    if (f->there_is_leaving || !f->same_hash)
        return f->there_was_deleted ? POD_NOTHING : POD_DELETE;
    return f->differs ? POD_PATCH : POD_NOTHING;
}

enum pod_action pod_decide(const struct pod_facts *f)
{
    if (f->ours && f->ours_is_static)
        return decide_mirror(f);
    if (!f->there)
        return POD_NOTHING;
    if (f->there_is_mirror)
        return f->told && !f->there_was_deleted ? POD_DELETE : POD_NOTHING;
    if (!f->ours)
        return POD_NOTHING;
    if (f->differs)
        return POD_PATCH; /* the last status first */
    if (f->ours_ended && f->there_is_leaving && f->there_is_final && !f->there_was_deleted)
        return POD_DELETE;
    return POD_NOTHING;
}
