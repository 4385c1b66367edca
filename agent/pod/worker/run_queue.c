/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_queue - the queue of pods to reconcile.  An event or a timer wakes a pod; it runs on a later step of
 * the loop, in the order in which pods may take resources.
 */
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/container.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/record/record.h"
#include "agent/pod/volume/volumes.h"
#include "agent/pod/worker/internal.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/pod/worker/worker.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trimmer.h"

/* Limit for one turn of the loop: a file with a thousand pods must not delay probes, exits and the socket. */
enum { RUN_QUEUE_MS = 10 };
/* The same for volumes that follow an edit: those of a hundred pods are written in one turn. */
enum { FOLLOW_MS = 25 };

/*
 * Write a changed ConfigMap to all its volumes before any container is examined. False: the rest follows in
 * the next turn; those that were written are skipped there.
 */
static bool volumes_follow(struct node *n)
{
    const uint64_t until_ms = clock_mono_ms() + FOLLOW_MS;
    struct pod *p;

    if (!n->sources_ready || n->closing)
        return true;
    TAILQ_FOREACH (p, &worker_node(n)->dirty, dirty_link)
        if (payloads_follow(p) && clock_mono_ms() >= until_ms)
            return false;
    return true;
}

static void on_run(uv_idle_t *handle)
{
    struct node *n = handle->data;
    struct worker_node *part = worker_node(n);
    struct pod *p;
    size_t bound = n->n_pods + 1; /* a pod that wakes itself runs again on the next step, not in this one */
    uint64_t until_ms;

    if (!volumes_follow(n))
        return;
    until_ms = clock_mono_ms() + RUN_QUEUE_MS;
    while (bound-- > 0 && (p = TAILQ_FIRST(&part->dirty)) != NULL) {
        TAILQ_REMOVE(&part->dirty, p, dirty_link);
        p->dirty_queued = false;
        pod_reconcile(p);
        if (clock_mono_ms() >= until_ms)
            break;
    }
    create_limit_pump(n);
    if (TAILQ_EMPTY(&part->dirty)) {
        uv_idle_stop(&part->runner);
        part->runner_active = false;
        trimmer_later(n->o.trimmer);
        shutdown_step(n);
        node_check_idle(n);
    }
}

static bool is_before(const struct pod *p, const struct pod *o)
{
    if (readmit_waits(p))
        return readmit_waits(o) && readmit_before(p, o);
    return resize_waits(p) && resize_waits(o) && !readmit_waits(o) && resize_before(p, o);
}

/* Pods to be admitted or resized are sorted: the first one takes the available resources. */
static void run_queue_enqueue(struct node *n, struct pod *p)
{
    struct worker_node *part = worker_node(n);
    struct pod *o;

    if (p->state == POD_PENDING)
        p->priority = pods_priority(n, p->api); /* its PriorityClass may have been read later than the pod */
    if (readmit_waits(p) || resize_waits(p))
        TAILQ_FOREACH (o, &part->dirty, dirty_link)
            if (is_before(p, o)) {
                TAILQ_INSERT_BEFORE(o, p, dirty_link);
                return;
            }
    TAILQ_INSERT_TAIL(&part->dirty, p, dirty_link);
}

void run_queue_add(struct pod *p)
{
    struct node *n = p->node;
    struct worker_node *part = worker_node(n);

    run_queue_enqueue(n, p);
    if (!part->runner_active) {
        part->runner_active = true;
        uv_idle_start(&part->runner, on_run);
    }
}

/* After a reboot, moments are converted with the last reading of both clocks in the record. */
void run_queue_clock_set(void *arg)
{
    struct node *n = arg;

    log_info("the wall clock was set, or the machine slept");
    pods_each (n, p) {
        record_outdated(p);
        pod_wake(p, "clock was set");
    }
    if (n->workloads != NULL)
        n->workloads->clock_set(n->workloads->arg);
}
