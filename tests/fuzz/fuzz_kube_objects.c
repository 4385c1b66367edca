/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of an apiserver: what the room `sync` makes of two of them, "[theirs, ours]", with members of any
 * type. */
#include "agent/kube/sync/certs.h"
#include "agent/kube/sync/event_correlate.h"
#include "agent/kube/sync/lease.h"
#include "agent/kube/sync/mirror.h"
#include "agent/kube/sync/node_merge.h"
#include "agent/kube/sync/patch.h"
#include "agent/kube/sync/pod_merge.h"
#include "agent/kube/sync/seen.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_pods(const json_t *theirs, const json_t *ours)
{
    json_t *a = json_object_get(theirs, "status"), *b = json_object_get(ours, "status");
    char hash[MIRROR_HASH_SIZE];

    for (int ended = 0; ended <= 1; ended++) {
        json_t *merged = pod_merge(a, b, ended), *patch = pod_status_patch("u", a, merged);

        if (merged != NULL && !patch_equal(merged, merged))
            abort();
        json_decref(patch);
        json_decref(merged);
    }
    mirror_hash(ours, hash);
    json_decref(mirror_body(ours, hash, "node", "u"));
}

static void use_nodes(const json_t *theirs, const json_t *ours)
{
    json_t *status = node_status_merge(theirs, ours, "2027-01-15T08:00:00Z"), *patch;

    patch = node_status_patch(theirs, ours, status, true);
    node_status_differs(json_object_get(theirs, "status"), status);
    json_decref(patch);
    json_decref(status);
    json_decref(node_registration(ours, theirs, "2027-01-15T08:00:00Z"));
    json_decref(lease_renewed(theirs, "node", "u", 40, 0));
}

static void use_events(const json_t *ours)
{
    struct event_correlator c;
    json_t *event = event_object(ours, "node", 1);

    event_correlator_init(&c);
    for (int i = 0; event != NULL && i < 3; i++) {
        struct event_verdict v = event_correlate(&c, event, 1, 1);

        if (!v.dropped)
            event_correlate_sent(&c, v.key, ours);
        event_verdict_done(&v);
    }
    event_correlator_done(&c);
    json_decref(event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *both = json_loadb((const char *)data, size, 0, NULL);
    const json_t *theirs = json_array_get(both, 0), *ours = json_array_get(both, 1);
    char why[64], *pem = NULL;

    if (json_is_object(theirs) && json_is_object(ours)) {
        use_pods(theirs, ours);
        use_nodes(theirs, ours);
        use_events(ours);
        seen_is_older(theirs, ours);
        seen_hash(theirs, "status");
        if (certs_judge(theirs, &pem, why, sizeof(why)) == CERTS_ISSUED && pem == NULL)
            abort();
        free(pem);
    }
    json_decref(both);
    return 0;
}
