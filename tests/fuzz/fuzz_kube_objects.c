/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of an apiserver: what the room `sync` makes of two of them, "[theirs, ours]", with members of any
 * type; and what the daemon makes of claims, volumes and attachments. */
#include "agent/cluster/claim_state.h"
#include "agent/kube/decide/claim_resize.h"
#include "agent/kube/decide/csi_node.h"
#include "agent/kube/decide/event_correlate.h"
#include "agent/kube/decide/mirror.h"
#include "agent/kube/decide/node_merge.h"
#include "agent/kube/decide/patch.h"
#include "agent/kube/decide/pod_merge.h"
#include "agent/kube/decide/seen.h"
#include "agent/kube/sync/certs.h"
#include "agent/kube/sync/lease.h"

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

/* `ours`: a driver. */
static void use_csi_node(const json_t *theirs, const json_t *ours)
{
    json_t *with = csi_node_with(theirs, ours), *patch = NULL;
    const json_t *name = json_object_get(ours, "name");
    struct err e = { 0 };

    if (with != NULL && !csi_node_has(with, ours))
        abort();
    json_decref(with);
    csi_node_clashes(theirs, ours);
    if (json_is_string(name)) {
        json_t *without = csi_node_without(theirs, json_string_value(name));

        if (without != NULL && csi_node_names(without, json_string_value(name)))
            abort();
        json_decref(without);
        json_decref(csi_node_metadata_without(theirs, json_string_value(name)));
    }
    if (csi_node_metadata(theirs, ours, &patch, &e) == ERR_OK)
        json_decref(patch);
    else if (e.text[0] == '\0')
        abort();
}

/* `ours`: a volume, an attachment, or how a resize goes. */
static void use_claims(const json_t *theirs, const json_t *ours)
{
    const struct claim_user user = { "default", "app", "u", true, true };
    const struct attachment_want want = { "csi-1", "vol-1" };
    const char *volume = NULL;
    const json_t *found = NULL;
    struct err e = { 0 };

    if (claim_state_volume(theirs, &user, &volume, &e) == ERR_OK && volume[0] == '\0')
        abort();
    if (claim_state_is_bound(theirs, ours, &e) != ERR_OK && e.text[0] == '\0')
        abort();
    if (attachment_state(ours, &want, &found, &e) != ERR_OK && e.text[0] == '\0')
        abort();
    attachable_is_in(json_object_get(ours, "spec"), "kubernetes.io/csi/d^h");
    json_decref(claim_resize_patch(theirs, ours, "2027-01-15T08:00:00Z"));
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
        use_csi_node(theirs, ours);
        use_claims(theirs, ours);
        seen_is_older(theirs, ours);
        seen_hash(theirs, "status");
        if (certs_judge(theirs, &pem, why, sizeof(why)) == CERTS_ISSUED && pem == NULL)
            abort();
        free(pem);
    }
    json_decref(both);
    return 0;
}
