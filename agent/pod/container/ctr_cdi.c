/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CDI devices of containers: those of their devices' answers, then those of annotations cdi.k8s.io/..., of
 * the answers and of the pod. An annotation of the pod names no container, so all of its containers get them.
 */
#include "agent/cdi/cdi.h"
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/explain_step.h"
#include "base/log.h"
#include "deviceplugin/inventory.h"

#include <string.h>

#define EXPLAINED_MAX 10 /* names of devices in `explain node` */

/* ---- of the node ---- */

/* The folders were read: containers that waited for that try again. */
static void on_specs(void *arg)
{
    struct node *n = arg;

    pods_each (n, p) {
        bool waited = false;

        for (size_t i = 0; i < p->n_ctrs; i++) {
            struct ctr_own *own = own_of(p->ctrs[i]);

            if (own->cdi_missing)
                own->retry_at = CLOCK_BOOT_NONE;
            waited = waited || own->cdi_missing;
        }
        if (waited)
            pod_wake(p, "CDI specs were read");
    }
}

void ctr_cdi_open(struct node *n)
{
    struct err e = { 0 };

    if (n->o.cdi_dirs != NULL && n->o.cdi_dirs[0] != NULL &&
        cdi_open(&container_node(n)->cdi, n->o.loop, n->o.cdi_dirs, on_specs, n, &e) != ERR_OK)
        log_error("no CDI device can be used", F_ERR(&e));
}

static void add_problem(const struct api_problem *p, void *arg)
{
    buf_auto text = BUF_INIT(8192);

    api_problem_add_text(p, "", &text);
    if (!text.failed)
        explain_step(arg, "CDI spec", "failed", 0, text.p, 0);
}

struct known {
    size_t n;
    struct buf first; /* the names of some */
};

static void note_known(const char *name, const char *path, void *arg)
{
    struct known *known = arg;

    (void)path;
    if (known->n++ < EXPLAINED_MAX)
        buf_addf(&known->first, "%s%s", known->n > 1 ? ", " : "", name);
}

void containers_cdi_explain(const struct node *n, json_t *steps)
{
    const struct cdi *cdi = container_node(n)->cdi;
    struct known known = { .first = BUF_INIT(8192) };

    if (cdi == NULL)
        return;
    cdi_devices(cdi, note_known, &known);
    if (known.n > EXPLAINED_MAX)
        buf_addf(&known.first, " and %zu more", known.n - EXPLAINED_MAX);
    if (known.n > 0)
        explain_step(steps, "CDI devices", "done", 0, known.first.p, 0);
    buf_done(&known.first);
    cdi_problems(cdi, add_problem, steps);
}

/* ---- of a container ---- */

static enum err_code collect(const struct pod *p, const struct dp_answer *devices, struct strs *names,
                             struct err *e)
{
    const struct api_kvs *a = &p->api->meta.annotations;

    if (devices->n_cdi > CDI_NAMES_MAX)
        return err_set(e, ERR_INVALID, CDI_FAILED ": more than %d devices", CDI_NAMES_MAX);
    for (size_t i = 0; i < devices->n_cdi; i++)
        if (!strs_add_once(names, devices->cdi[i]))
            return err_nomem(e);
    for (size_t i = 0; i < devices->n_annotations; i++)
        if (cdi_annotation_names(devices->annotations[i].name, devices->annotations[i].value, names, e) !=
            ERR_OK)
            return e->code;
    for (size_t i = 0; i < a->n; i++)
        if (cdi_annotation_names(a->v[i].key, a->v[i].value, names, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code resolve(struct ctr *c, const struct strs *names, struct cdi_resolved *ret, struct err *e)
{
    struct cdi *cdi = container_node(c->pod->node)->cdi;
    struct ctr_own *own = own_of(c);

    if (cdi == NULL)
        return err_set(e, ERR_NOT_FOUND,
                       CDI_FAILED ": unresolvable CDI devices %s: no folder is set in cdiSpecDirs",
                       names->v[0]);
    own->cdi_missing = true;
    if (!cdi_is_ready(cdi) || cdi_is_busy(cdi)) {
        cdi_await(cdi);
        return err_set(e, ERR_UNAVAILABLE, CDI_FAILED ": the specs are being read");
    }
    if (cdi_resolve(cdi, strs_list(names), names->n, ret, e) == ERR_OK) {
        own->cdi_missing = own->cdi_looked = false;
        return ERR_OK;
    }
    if (e->code == ERR_NOT_FOUND && !own->cdi_looked) { /* the event of a new file may be on its way */
        own->cdi_looked = true;
        cdi_refresh(cdi);
        return err_set(e, ERR_UNAVAILABLE, CDI_FAILED ": the specs are being read");
    }
    return e->code;
}

enum err_code ctr_cdi_add(struct ctr *c, const struct dp_answer *devices, struct cdi_resolved *ret,
                          struct err *e)
{
    struct strs names = { 0 };
    enum err_code code;

    own_of(c)->cdi_missing = false;
    code = collect(c->pod, devices, &names, e);
    if (code == ERR_OK && names.n > 0)
        code = resolve(c, &names, ret, e);
    strs_done(&names);
    return code;
}

bool ctr_cdi_waits(const struct ctr *c, const struct err *e)
{
    return e->code == ERR_UNAVAILABLE && own_of(c)->cdi_missing;
}

bool ctr_cdi_failed(const struct err *e)
{
    return str_starts(e->text, CDI_FAILED) || str_starts(e->text, CDI_BAD_ANNOTATION);
}
