/* SPDX-License-Identifier: Apache-2.0 */
/* adopt - pods of workloads after a restart of the agent, and after the end of their workload. */
#include "agent/api/made_uid.h"
#include "agent/pod/core/pod.h"
#include "agent/workload/internal.h"
#include "base/log.h"

#include <string.h>

void workload_uid(enum api_kind kind, const char *namespace_, const char *name, char ret[WORKLOAD_UID_SIZE])
{
    api_made_uid(api_kind_name(kind), namespace_, name, ret);
}

void workloads_adopt(struct workloads *w)
{
    const bool complete = w->o.complete(w->o.arg);

    pods_each (w->o.node, p) {
        struct api_object o = { .kind = API_KIND_POD, .pod = p->api };
        struct err e = { 0 };

        if (p->api->owner_uid == NULL || p->api->origin != API_FROM_FOLDER || !p->recovered ||
            p->deletion_ns != 0 || (complete && workload_of_pod(w, p->api) == NULL))
            continue;
        if (src_store_put(w->store, &o, &e) != ERR_OK)
            log_error("cannot adopt a pod of a workload", F_STR("pod", p->key), F_ERR(&e));
    }
}

/* Whether the workload is provably removed. */
static bool is_removed(const struct workloads *w, const char *uid, bool complete)
{
    return complete || strs_has(&w->gone, uid);
}

static bool drop_pods(struct workloads *w, bool complete)
{
    bool all = true;

    pods_each (w->o.node, p) {
        const struct api_pod *kept;

        if (p->api->owner_uid == NULL || p->api->origin != API_FROM_FOLDER ||
            workload_of_pod(w, p->api) != NULL)
            continue;
        kept = src_store_pod(w->store, API_FROM_FOLDER, p->api->meta.namespace, p->api->meta.name);
        if (kept == NULL || !str_eq(kept->owner_uid, p->api->owner_uid))
            continue;
        if (is_removed(w, p->api->owner_uid, complete))
            src_store_remove(w->store, API_FROM_FOLDER, API_KIND_POD, kept->meta.namespace, kept->meta.name);
        else
            all = false;
    }
    return all;
}

/* Marks Jobs whose CronJob was removed, and revisions of a removed workload. */
static bool mark_made(struct workloads *w, bool complete)
{
    struct workload *one, *tmp;
    bool all = true;

    HASH_ITER (hh, w->all, one, tmp) {
        if (one->owner[0] == '\0' || workload_find(w, one->owner) != NULL)
            continue;
        if (is_removed(w, one->owner, complete))
            one->goes = true;
        else
            all = false;
    }
    return all;
}

/* Drops records of Jobs and CronJobs that were removed while no agent ran; needed once per start. */
static void drop_records(struct workloads *w)
{
    struct strs uids = { 0 };

    if (workload_records_list(w, &uids)) {
        w->swept = true;
        for (size_t i = 0; i < uids.n; i++)
            if (workload_find(w, uids.v[i]) == NULL)
                workload_record_remove(w, uids.v[i]);
    }
    strs_done(&uids);
}

bool workloads_drop_orphans(struct workloads *w)
{
    const bool complete = w->o.complete(w->o.arg), pods = drop_pods(w, complete),
               made = mark_made(w, complete);

    if (complete && !w->swept)
        drop_records(w);
    if (complete || pods)
        strs_done(&w->gone);
    return pods && made && w->swept;
}
