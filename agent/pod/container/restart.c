/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule that restarts all containers of the pod, and a requested restart: running ones are killed, without
 * hooks and grace; when none is alive all start again, init containers first, in the same sandbox with the
 * same volumes. (Whether an ended container runs again is decided in core's restart_rules.c.)
 */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "base/log.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ALL_REASON "RestartingAllContainers"
#define ALL_TEXT "The container is removed because RestartAllContainers in place"

/* ---- all of the pod's ---- */

/* Its last exit requires it, and that was not acted on yet. */
static bool asks_for_all(const struct ctr *c)
{
    const struct api_restart_rule *rule = c->again || c->replace ? NULL : restart_matching_rule(c);

    return rule != NULL && rule->all && c->state == CTR_NONE;
}

bool restart_all_wanted(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (asks_for_all(p->ctrs[i]))
            return true;
    return false;
}

/* Marks its last run as ended because of the others, regardless of the reason. */
static void start_anew(struct ctr *c)
{
    if (c->cur.id[0] == '\0' || !c->cur.ended)
        return;
    c->cur.exit_code = 137;
    snprintf(c->cur.reason, sizeof(c->cur.reason), ALL_REASON);
    free(c->cur.message);
    c->cur.message = strdup(ALL_TEXT);
    ctr_set_again(c, true);
    ctr_set_replace(c, true);
    ctr_waiting(c, ALL_REASON, ALL_TEXT);
}

bool restart_all_step(struct pod *p)
{
    bool alive = false;

    if (!restart_all_wanted(p))
        return false;
    for (size_t i = 0; i < p->n_ctrs && p->ctrs[i]->kind != CTR_EPHEMERAL; i++) {
        ctr_kill(p->ctrs[i]);
        alive = alive || p->ctrs[i]->state != CTR_NONE;
    }
    if (alive)
        return true;
    log_info("restarting all containers of the pod because of a restart rule", F_STR("pod", p->key));
    for (size_t i = 0; i < p->n_ctrs && p->ctrs[i]->kind != CTR_EPHEMERAL; i++)
        start_anew(p->ctrs[i]);
    pod_set_initialized(p, false);
    p->record_dirty = true;
    return false;
}

/* ---- one of them ---- */

void ctr_replace(struct ctr *c, const char *fmt, ...)
{
    struct ctr_own *own = own_of(c);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(own->stop_text, sizeof(own->stop_text), fmt, ap);
    va_end(ap);
    ctr_set_replace(c, true);
    own->backoff_ms = 0; /* it did not crash */
    c->pod->record_dirty = true;
}

void ctr_image_edited(struct ctr *c)
{
    struct ctr_own *own = own_of(c);

    ctr_set_replace(c, ctr_alive(c)); /* one that is just being created is compared when it is there */
    own->backoff_ms = 0;              /* kubelet: the image is part of the back-off's key */
    own->retry_at = CLOCK_BOOT_NONE;
    ctr_waits_no_more(c);
}

/* ---- the sandbox is gone ---- */

void containers_begin_anew(struct pod *p)
{
    struct err e = { 0 };

    for (size_t i = 0; i < p->n_ctrs; i++)
        if (p->ctrs[i]->state == CTR_RUNNING &&
            rt_signal(p->node->rt, p->ctrs[i]->cur.id, SIGKILL, &e) != ERR_OK && e.code != ERR_NOT_FOUND)
            ctr_kill(p->ctrs[i]); /* repeated until it is gone */
    /* As in kubelet: init containers run again, from the first. */
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (ctr_kind_of_init(p->ctrs[i]->kind) && p->ctrs[i]->state == CTR_NONE &&
            p->ctrs[i]->cur.id[0] != '\0')
            ctr_set_replace(p->ctrs[i], true);
    pod_set_initialized(p, false);
    p->record_dirty = true;
}

/* ---- on request ---- */

/* A container being made, or not yet made, is new anyway. */
static bool can_be_asked(const struct ctr *c)
{
    switch (c->state) {
    case CTR_NONE:
        return c->cur.id[0] != '\0' && c->cur.ended;
    case CTR_RUNNING:
    case CTR_PRESTOP:
    case CTR_STOPPING:
    case CTR_KILLING:
        return true;
    case CTR_MOUNTING:
    case CTR_CREATING:
    case CTR_CREATED:
    case CTR_STARTING:
        break;
    }
    return false;
}

static bool is_asked(const struct ctr *c, const char *name)
{
    return ctr_kind_lasts(c->kind) && can_be_asked(c) && (name == NULL || strcmp(c->spec->name, name) == 0);
}

static enum err_code check_asked(const struct pod *p, const char *name, struct err *e)
{
    for (size_t i = 0; name != NULL && i < p->n_ctrs; i++) {
        if (strcmp(p->ctrs[i]->spec->name, name) != 0)
            continue;
        return ctr_kind_lasts(p->ctrs[i]->kind)
                   ? ERR_OK
                   : err_set(e, ERR_INVALID, "container %s of pod %s runs once and is not restarted", name,
                             p->api->meta.name);
    }
    return name == NULL
               ? ERR_OK
               : err_set(e, ERR_INVALID, "container %s is not valid for pod %s", name, p->api->meta.name);
}

/* The runs that end for it; NULL: out of memory. */
static json_t *runs_asked(const struct pod *p, const char *name)
{
    json_t *runs = json_array();

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = p->ctrs[i];
        str_auto id = str_printf(POD_RUNTIME_SCHEME "%s", c->cur.id);

        if (!is_asked(c, name))
            continue;
        if (id == NULL || json_array_append_new(
                              runs, json_pack("{s:s, s:s}", "name", c->spec->name, "containerID", id)) < 0) {
            json_decref(runs);
            return NULL;
        }
    }
    return runs;
}

json_t *restart_ask(struct pod *p, const char *name, struct err *e)
{
    json_t *runs;

    if (p->state != POD_STARTING && p->state != POD_RUNNING) {
        err_set(e, ERR_PRECONDITION, "pod %s has no containers to restart: it is %s", p->api->meta.name,
                p->deletion_ns != 0 ? "terminating" : pod_phase(p));
        return NULL;
    }
    if (check_asked(p, name, e) != ERR_OK)
        return NULL;
    runs = runs_asked(p, name);
    if (runs == NULL) {
        err_nomem(e);
        return NULL;
    }
    if (name != NULL)
        pod_event(p, NULL, false, "Restarting", "Restarting container %s, as requested", name);
    else
        pod_event(p, NULL, false, "Restarting", "Restarting all containers, as requested");
    log_info("restarting containers of the pod, as requested", F_STR("pod", p->key),
             F_STR("containerName", name != NULL ? name : "(all)"));
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = p->ctrs[i];

        if (!is_asked(c, name))
            continue;
        own_of(c)->asked = true;
        ctr_set_again(c, true);
    }
    p->record_dirty = true;
    pod_wake(p, "restart was asked for");
    return runs;
}
