/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's projects, needed before anything is written: its volumes, its folders of logs, the layers of the
 * next runs. */
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/internal.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_place(const struct pod *p, enum project_kind kind)
{
    return project_node(p->node)->places[kind].fs != NULL;
}

static void wish_add(const struct pod *p, struct request *r, enum project_kind kind, const char *path,
                     const char *volume)
{
    struct wish *w = &r->v[r->n];

    *w = (struct wish){ .kind = kind, .fs = project_node(p->node)->places[kind].fs };
    w->path = strdup(path);
    w->volume = volume != NULL ? strdup(volume) : NULL;
    if (w->path != NULL && (volume == NULL || w->volume != NULL)) {
        r->n++;
        return;
    }
    free(w->path);
    free(w->volume);
}

static void wish_volumes(const struct pod *p, struct request *r)
{
    char path[1024];

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (v->kind == API_VOL_EMPTY_DIR && (v->medium == NULL || v->medium[0] == '\0') &&
            volumes_is_mounted(p, v->name) &&
            volumes_host_path(p, v, path, sizeof(path), ERR_IGNORED) == ERR_OK)
            wish_add(p, r, PROJECT_VOLUME, path, v->name);
    }
}

/* Its folder exists: it was taken before. */
static void wish_claims(const struct pod *p, struct request *r)
{
    struct claim_place at;
    size_t n;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];

        if (v->kind != API_VOL_CLAIM || !volumes_is_mounted(p, v->name) ||
            claim_place(p, v, &at, ERR_IGNORED) != ERR_OK || !claim_place_is_own(&at))
            continue;
        n = r->n;
        wish_add(p, r, PROJECT_CLAIM, at.path, NULL);
        if (r->n > n)
            r->v[n].limit_bytes = at.bytes;
    }
}

static void wish_logs(const struct pod *p, struct request *r)
{
    char path[1024];

    for (size_t i = 0; i < p->n_ctrs; i++)
        if (project_log_path(p->ctrs[i], path, sizeof(path)))
            wish_add(p, r, PROJECT_LOG, path, NULL);
}

/* Whether it will probably run again: a container that is over and does not run again needs no layer. */
static bool runs_next(const struct ctr *c)
{
    return c->state == CTR_NONE && ctr_restart_wanted(c);
}

static void wish_layer(const struct ctr *c, struct request *r)
{
    struct project_ctr *own = project_ctr(c);
    char path[1024];

    if (own->next[0] != '\0' || own->plain)
        return;
    id_random_hex(own->next, 64);
    if (project_layer_path(c->pod, own->next, path, sizeof(path)))
        wish_add(c->pod, r, PROJECT_LAYER, path, NULL);
    else
        own->next[0] = '\0';
}

static void go_without(struct pod *p)
{
    project_pod(p)->asked = true;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        project_ctr(p->ctrs[i])->next[0] = '\0';
        project_ctr(p->ctrs[i])->plain = true;
    }
}

static void layer_made(struct pod *p, const struct wish *w)
{
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct project_ctr *own = project_ctr(p->ctrs[i]);

        if (own->next[0] == '\0' || !str_ends(w->path, own->next) || w->over)
            continue;
        own->next[0] = '\0';
        own->plain = true;
    }
}

static void note_given(struct pod *p, const struct request *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].over)
            index_add(project_node(p->node), p->uid, r->v[i].path, r->v[i].fs, r->v[i].id);
        if (r->v[i].kind == PROJECT_LAYER)
            layer_made(p, &r->v[i]);
    }
}

/* ---- at once, with ids of the stock ---- */

static struct stock *stock_of(struct project_node *part, const struct quota_fs *fs)
{
    for (size_t i = 0; i < part->n_open; i++)
        if (part->open[i] == fs)
            return &part->stock[i];
    return NULL;
}

/* Whether the stock is enough, and no tree was known before: the table may say more about those. */
static bool can_give_now(const struct node *n, const struct request *r)
{
    struct project_node *part = project_node(n);
    struct project_tree known;

    for (size_t i = 0; i < part->n_open; i++) {
        size_t wanted = 0;

        for (size_t k = 0; k < r->n; k++)
            wanted += r->v[k].fs == part->open[i];
        if (wanted > part->stock[i].n)
            return false;
    }
    for (size_t i = 0; i < r->n; i++)
        if (project_find(n, r->v[i].path, &known))
            return false;
    return true;
}

/* An id whose folder could not get it is not given to another one. */
static void give_now(struct pod *p, struct request *r)
{
    struct project_node *part = project_node(p->node);

    for (size_t i = 0; i < r->n; i++) {
        struct stock *s = stock_of(part, r->v[i].fs);
        struct err e = { 0 };

        if (s == NULL || s->n == 0 || !tree_is_new(r->v[i].path))
            continue;
        r->v[i].id = s->ids[--s->n];
        r->v[i].over = tree_give(r, &r->v[i], &e) == ERR_OK;
        if (!r->v[i].over)
            log_warn("cannot set the project of a pod's folder; scanning it instead", F_STR("pod", p->key),
                     F_ERR(&e));
    }
    note_given(p, r);
    r->kind = REQUEST_NAME;
    request_add(p->node, r);
    pool_stock(p->node);
}

/* `now`: a run of it begins. */
static void ask(struct pod *p, const struct ctr *now)
{
    struct project_pod *own = project_pod(p);
    struct request *r;

    if (own->pending || project_node(p->node)->table == NULL || p->node->closing)
        return;
    r = request_new(REQUEST_TAKE, p->uid, p->api->spec.n_volumes + 2 * p->n_ctrs);
    if (r == NULL) {
        log_error("no memory for the project quotas of a pod; scanning its files instead",
                  F_STR("pod", p->key));
        go_without(p);
        return;
    }
    r->volumes = p->node->o.volumes;
    if (!own->asked && has_place(p, PROJECT_VOLUME))
        wish_volumes(p, r);
    if (!own->asked && has_place(p, PROJECT_CLAIM))
        wish_claims(p, r);
    if (!own->asked && has_place(p, PROJECT_LOG))
        wish_logs(p, r);
    for (size_t i = 0; i < p->n_ctrs && has_place(p, PROJECT_LAYER); i++)
        if (runs_next(p->ctrs[i]) || p->ctrs[i] == now)
            wish_layer(p->ctrs[i], r);
    own->asked = true;
    if (r->n == 0) {
        request_free(r);
        return;
    }
    if (can_give_now(p->node, r)) {
        give_now(p, r);
        return;
    }
    own->pending = true;
    request_add(p->node, r);
    pool_stock(p->node);
}

void ask_step(struct pod *p)
{
    const struct project_pod *own = project_pod(p);
    bool wanted = !own->asked;

    for (size_t i = 0; i < p->n_ctrs && !wanted; i++)
        wanted = runs_next(p->ctrs[i]) && project_ctr(p->ctrs[i])->next[0] == '\0' &&
                 !project_ctr(p->ctrs[i])->plain;
    if (wanted)
        ask(p, NULL);
}

/* ---- answers ---- */

void ask_done(struct node *n, const struct request *r)
{
    struct pod *p = pods_by_uid(n, r->owner);

    if (p == NULL) {
        for (size_t i = 0; i < r->n; i++)
            if (r->v[i].over)
                index_add(project_node(n), r->owner, r->v[i].path, r->v[i].fs, r->v[i].id);
        return;
    }
    project_pod(p)->pending = false;
    note_given(p, r);
    if (p->state != POD_STARTING && p->state != POD_RUNNING)
        ask_end(p);
    pod_wake(p, "projects are given");
}

bool project_counts(const struct node *n)
{
    for (size_t i = 0; i < PROJECT_KINDS; i++)
        if (project_node(n)->places[i].fs != NULL)
            return true;
    return false;
}

bool project_volumes_ready(struct pod *p)
{
    if ((has_place(p, PROJECT_VOLUME) || has_place(p, PROJECT_CLAIM)) && !project_pod(p)->asked)
        ask(p, NULL);
    return !project_pod(p)->pending;
}

bool project_working(const struct pod *p)
{
    return project_pod(p)->pending;
}

bool project_layer_ready(struct ctr *c)
{
    const struct project_ctr *own = project_ctr(c);

    if (own->next[0] == '\0' && !own->plain && has_place(c->pod, PROJECT_LAYER))
        ask(c->pod, c);
    return !project_pod(c->pod)->pending;
}

const char *project_layer_id(const struct ctr *c)
{
    return project_ctr(c)->next;
}

void project_layer_used(struct ctr *c)
{
    struct project_ctr *own = project_ctr(c);

    own->next[0] = '\0';
    own->plain = false;
}

bool ask_knows(const struct pod *p, const char *id)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (strcmp(project_ctr(p->ctrs[i])->next, id) == 0)
            return true;
    return false;
}

/* While a request is being carried out, its end does this. */
void ask_end(struct pod *p)
{
    struct project_pod *own = project_pod(p);
    struct request *r;
    char path[1024];

    if (own->pending || project_node(p->node)->table == NULL)
        return;
    r = request_new(REQUEST_DROP, p->uid, p->n_ctrs);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct project_ctr *of = project_ctr(p->ctrs[i]);

        if (of->next[0] != '\0' && r != NULL && project_layer_path(p, of->next, path, sizeof(path)))
            wish_add(p, r, PROJECT_LAYER, path, NULL);
        *of = (struct project_ctr){ 0 };
    }
    if (r == NULL || r->n == 0 || p->node->closing) { /* the next start removes leftover layers */
        request_free(r);
        return;
    }
    request_add(p->node, r);
}

void ask_reset(struct pod *p)
{
    ask_end(p);
    project_pod(p)->asked = false;
}
