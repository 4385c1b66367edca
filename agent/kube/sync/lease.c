/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/lease.h"

#include "agent/kube/sync/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/" LEASE_NAMESPACE "/leases"

struct lease_part {
    struct kube_sync *sync;
    struct sync_call call;
    struct sync_timer timer;
    json_t *lease; /* as the apiserver had it last; NULL: not known */
    uint64_t wait_ms;
    int tries; /* PUTs of this round */
    enum { LEASE_IDLE, LEASE_GET, LEASE_CREATE, LEASE_RENEW } step;
    bool started;
};

json_t *lease_renewed(const json_t *before, const char *node, const char *node_uid, int seconds,
                      int64_t now_ns)
{
    json_t *lease = before != NULL ? json_deep_copy(before)
                                   : json_pack("{s:s, s:s, s:{s:s, s:s}}", "kind", "Lease", "apiVersion",
                                               "coordination.k8s.io/v1", "metadata", "name", node,
                                               "namespace", LEASE_NAMESPACE);
    json_t *meta = json_object_get(lease, "metadata"), *spec = json_object_get(lease, "spec");
    char now[CLOCK_RFC3339_SIZE];

    if (lease == NULL)
        return NULL;
    clock_format_us(now_ns, now);
    json_object_del(meta, "managedFields"); /* without them the apiserver keeps its own */
    if (json_array_size(json_object_get(meta, "ownerReferences")) == 0 && node_uid != NULL)
        json_object_set_new(meta, "ownerReferences",
                            json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind", "Node", "name",
                                      node, "uid", node_uid));
    if (spec == NULL) {
        spec = json_object();
        json_object_set_new(lease, "spec", spec);
    }
    json_object_set_new(spec, "holderIdentity", json_string(node));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(seconds));
    json_object_set_new(spec, "renewTime", json_string(now));
    return lease;
}

/* ---- rounds ---- */

static void lease_round(void *owner);
static void lease_answered(void *owner, const struct sync_answer *a);

static int lease_seconds(const struct lease_part *l)
{
    json_int_t n = json_int(l->sync->config, "leaseSeconds", LEASE_SECONDS);

    return n > 0 && n < 86400 ? (int)n : LEASE_SECONDS;
}

static uint64_t lease_every_ms(const struct lease_part *l)
{
    return (uint64_t)lease_seconds(l) * 1000 / 4;
}

static void lease_request(struct lease_part *l, int step, const char *method)
{
    const bool body = step != LEASE_GET;
    json_t *object = NULL;
    char path[512], subject[300], timeout[32];
    struct kube_request_spec spec = { .method = method, .path = path, .subject = subject, .unpaced = true };

    snprintf(timeout, sizeof(timeout), "?timeout=%ds", lease_seconds(l) / 4);
    snprintf(path, sizeof(path), "%s%s%s%s", LEASES, step == LEASE_CREATE ? "" : "/",
             step == LEASE_CREATE ? "" : l->sync->node_name, timeout);
    snprintf(subject, sizeof(subject), "lease %s", l->sync->node_name);
    spec.deadline_ms = lease_every_ms(l); /* kubelet: the timeout of this client */
    if (body)
        spec.body = object = lease_renewed(step == LEASE_RENEW ? l->lease : NULL, l->sync->node_name,
                                           node_part_uid(l->sync->node), lease_seconds(l), clock_wall_ns());
    l->step = step;
    sync_call(l->sync, &l->call, &spec, lease_answered, l);
    json_decref(object);
}

static void lease_wait(struct lease_part *l, uint64_t ms)
{
    l->step = LEASE_IDLE;
    sync_timer_start(l->sync, &l->timer, ms, lease_round, l);
}

static void lease_keep(struct lease_part *l, json_t *lease)
{
    json_decref(l->lease);
    l->lease = lease != NULL ? json_incref(lease) : NULL;
}

static void lease_good(struct lease_part *l)
{
    l->wait_ms = 0;
    state_part_report(l->sync->state, "lease", NULL);
    lease_wait(l, sync_jitter_ms(lease_every_ms(l), 0.04));
}

static void lease_failed(struct lease_part *l, const struct sync_answer *a)
{
    uint64_t wait_ms = sync_wait_ms(a, &l->wait_ms, 200, 7000);

    state_part_report(l->sync->state, "lease", a->error->text);
    lease_wait(l, wait_ms);
}

static void lease_answered(void *owner, const struct sync_answer *a)
{
    struct lease_part *l = owner;
    const enum err_code code = a->error->code;
    const int step = l->step;

    if (code == ERR_CANCELLED || !l->started)
        return;
    if (code == ERR_OK)
        lease_keep(l, a->object);
    if (step == LEASE_GET && code == ERR_OK)
        lease_request(l, LEASE_RENEW, "PUT");
    else if (step == LEASE_GET && code == ERR_NOT_FOUND && node_part_uid(l->sync->node) != NULL)
        lease_request(l, LEASE_CREATE, "POST"); /* else: it would have no owner */
    else if (code == ERR_OK)
        lease_good(l);
    else if (step == LEASE_CREATE && code == ERR_EXISTS)
        lease_request(l, LEASE_GET, "GET");
    else if (step == LEASE_RENEW && (code == ERR_ABORTED || code == ERR_NOT_FOUND) &&
             ++l->tries < LEASE_TRIES) {
        lease_keep(l, NULL);
        lease_request(l, LEASE_GET, "GET");
    } else {
        lease_failed(l, a);
    }
}

static void lease_round(void *owner)
{
    struct lease_part *l = owner;

    if (l->call.busy)
        return;
    l->tries = 0;
    if (l->lease != NULL)
        lease_request(l, LEASE_RENEW, "PUT");
    else
        lease_request(l, LEASE_GET, "GET");
}

/* ---- the part ---- */

struct lease_part *lease_part_new(struct kube_sync *s)
{
    struct lease_part *l = calloc(1, sizeof(*l));

    if (l != NULL)
        l->sync = s;
    return l;
}

void lease_part_start(struct lease_part *l)
{
    if (l->started)
        return;
    l->started = true;
    lease_round(l);
}

void lease_part_anew(struct lease_part *l)
{
    if (!l->started || l->call.busy || l->wait_ms == 0)
        return; /* it is renewed in its time */
    sync_timer_start(l->sync, &l->timer, 0, lease_round, l);
}

void lease_part_stop(struct lease_part *l)
{
    l->started = false;
    sync_timer_stop(l->sync, &l->timer);
    sync_call_cancel(&l->call);
}

void lease_part_free(struct lease_part *l)
{
    if (l == NULL)
        return;
    json_decref(l->lease);
    free(l);
}
