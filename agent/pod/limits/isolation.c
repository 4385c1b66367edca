/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/isolation.h"

#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/limits/internal.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"
#include "cgroups/partition.h"

#include <string.h>

#define LOOK_MS 10000 /* kubelet's cpuManagerReconcilePeriod */

static struct limits_ctr *part_of(const struct ctr *c)
{
    return c->parts[ROOM_LIMITS];
}

/* ---- telling ---- */

static void tell_failed(struct ctr *c, const char *cpus, const char *why)
{
    log_warn("processors of a container are not isolated", F_STR("pod", c->pod->key),
             F_STR("containerName", c->spec->name), F_STR("cpus", cpus), F_STR("why", why));
    pod_event(c->pod, c, true, "CPUsNotIsolated", "Processors %s are not isolated: %s", cpus, why);
}

/* Once for each run and reason. */
static void note(struct ctr *c, const char *why)
{
    struct limits_ctr *part = part_of(c);
    bool known = strcmp(part->isolation_id, c->cur.id) == 0 && strcmp(part->isolation_why, why) == 0;
    struct cpus own;
    char cpus[CPUS_TEXT_SIZE];

    if (known)
        return;
    snprintf(part->isolation_id, sizeof(part->isolation_id), "%s", c->cur.id);
    snprintf(part->isolation_why, sizeof(part->isolation_why), "%s", why);
    own = isolation_cpus(c);
    cpus_print(&own, cpus);
    if (isolation_node(c->pod->node)->impossible != NULL)
        return; /* the node reported it */
    if (why[0] != '\0')
        tell_failed(c, cpus, why);
    else
        log_info("processors of a container are isolated", F_STR("pod", c->pod->key),
                 F_STR("containerName", c->spec->name), F_STR("cpus", cpus));
}

static void note_results(struct node *n, const struct isolation_tree *t, const struct err *failed)
{
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr *c = p->ctrs[i];
            char why[ISOLATION_WHY];

            if (isolation_is_wanted(c)) {
                isolation_result(t, c, failed, why);
                note(c, why);
            } else {
                part_of(c)->isolation_id[0] = '\0';
            }
        }
}

/* ---- looking ---- */

static void look(struct node *n)
{
    struct isolation_node *own = isolation_node(n);
    struct isolation_tree t = { 0 };
    struct err e = { 0 };

    own->generation = placement_generation(n);
    if (own->impossible == NULL && isolation_read(n, &t, &e) == ERR_OK)
        isolation_write(n, &t, &e);
    if (own->impossible != NULL)
        err_set(&e, ERR_PRECONDITION, "%s", own->impossible);
    note_results(n, &t, &e);
    own->idle = e.code == ERR_OK && cpus_is_empty(&t.want);
    isolation_done(&t);
}

static void on_timer(uv_timer_t *timer)
{
    struct node *n = timer->data;

    if (n->rt != NULL && !n->closing && !isolation_node(n)->idle)
        look(n);
}

void isolation_step(struct pod *p)
{
    struct isolation_node *own = isolation_node(p->node);
    bool due = own->generation != placement_generation(p->node);

    if (!own->on || p->node->rt == NULL)
        return;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];

        due = due || strcmp(part_of(c)->isolation_id, isolation_is_wanted(c) ? c->cur.id : "") != 0;
    }
    if (due)
        look(p->node);
}

void isolation_pod_freed(struct pod *p)
{
    struct node *n = p->node;
    bool had = false;

    for (size_t i = 0; i < p->n_ctrs; i++)
        had = had || part_of(p->ctrs[i])->isolation_id[0] != '\0';
    if (had && n->rt != NULL && !n->closing)
        look(n);
}

/* ---- begin and end ---- */

void isolation_open(struct node *n)
{
    uv_timer_init(n->o.loop, &isolation_node(n)->timer);
    isolation_node(n)->timer.data = n;
}

void isolation_free(struct node *n)
{
    rooms_close_handle(n, (uv_handle_t *)&isolation_node(n)->timer);
}

void isolation_begin(struct node *n)
{
    struct isolation_node *own = isolation_node(n);

    own->on = placement_isolates(n);
    if (n->o.cgroups == NULL || (!cg_partition_possible(n->o.cgroups, &own->impossible) && !own->on))
        return;
    if (!own->on) {
        own->impossible = NULL;
        look(n);
    } else if (own->impossible != NULL) {
        log_warn("cannot isolate processors of containers on this machine (isolateExclusiveCPUs)",
                 F_STR("why", own->impossible));
    } else {
        uv_timer_start(&own->timer, on_timer, LOOK_MS, LOOK_MS);
    }
}

/* ---- showing ---- */

enum isolation isolation_of(const struct ctr *c, const char **ret_why)
{
    const struct limits_ctr *part = part_of(c);

    *ret_why = part->isolation_why;
    if (!isolation_is_wanted(c) || strcmp(part->isolation_id, c->cur.id) != 0)
        return ISOLATION_NONE;
    return part->isolation_why[0] == '\0' ? ISOLATION_DONE : ISOLATION_FAILED;
}

void isolation_explain(const struct pod *p, json_t *steps)
{
    bool possible = isolation_node(p->node)->impossible == NULL;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        const char *why;
        enum isolation state = isolation_of(c, &why);
        str_auto name = str_printf("processors of %s", c->spec->name);
        char cpus[CPUS_TEXT_SIZE];

        if (state == ISOLATION_NONE || name == NULL)
            continue;
        struct cpus own = isolation_cpus(c);
        cpus_print(&own, cpus);
        str_auto text =
            str_printf(state == ISOLATION_DONE ? "%s, isolated%s" : "%s, not isolated: %s", cpus, why);
        explain_step(steps, name,
                     state == ISOLATION_DONE ? "done"
                     : possible              ? "failed"
                                             : "ignored",
                     0, text, 0);
    }
}

void isolation_explain_node(const struct node *n, json_t *steps)
{
    const struct isolation_node *own = isolation_node(n);
    unsigned done = 0, failed = 0;
    const char *why;

    if (!own->on)
        return;
    if (own->impossible != NULL) {
        explain_step(steps, "isolated processors", "ignored", 0, own->impossible, 0);
        return;
    }
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++) {
            done += isolation_of(p->ctrs[i], &why) == ISOLATION_DONE;
            failed += isolation_of(p->ctrs[i], &why) == ISOLATION_FAILED;
        }
    str_auto text = str_printf("of %u containers%s", done,
                               failed > 0 ? "; others are refused by the kernel (explain pod)" : "");
    explain_step(steps, "isolated processors", failed > 0 ? "failed" : "done", 0, text, 0);
}
