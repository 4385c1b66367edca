/* SPDX-License-Identifier: Apache-2.0 */
/* status - STATUS of the default network: whether its plugins can accept attachments. STATUS is run after
 * each load that changed the list, and repeated at growing intervals while it is not good, because no event
 * reports a change. A good status lasts until the next load: a plugin that cannot do an ADD will fail then.
 */
#include "cni/internal.h"

#include "base/backoff.h"
#include "cni/plugin/each.h"
#include "cni/plugin/names.h"

#include <string.h>

#define ASK_MS 5000        /* for the whole list */
#define AGAIN_FIRST_MS 500 /* CRI-O's interval */
#define AGAIN_MAX_MS 5000

struct cni_status { /* outlives struct cni while its child ends */
    struct cni *c;  /* NULL: closed */
    uv_timer_t again;
    struct cni_each each;
    json_t *asked;     /* the list that was last asked; may be NULL */
    bool asking, held; /* held: operations wait for the first answer, in c->n_held */
    bool stale;        /* the list changed meanwhile */
    uint64_t again_ms;
    char problem[512];
    char *cgroup_procs;
    struct strs bin_dirs;
};

static void status_free(struct cni_status *s)
{
    json_decref(s->asked);
    strs_done(&s->bin_dirs);
    free(s->cgroup_procs);
    free(s);
}

static void status_on_closed(uv_handle_t *handle)
{
    status_free(handle->data);
}

static void status_ask(struct cni_status *s);

static void status_on_again(uv_timer_t *timer)
{
    status_ask(timer->data);
}

static void status_on_answer(struct op *op, const struct err *result)
{
    struct cni_status *s = op->owner;
    struct cni *c = s->c;
    bool was_good = s->problem[0] == '\0';

    s->asking = false;
    if (c == NULL) {
        uv_close((uv_handle_t *)&s->again, status_on_closed);
        return;
    }
    if (s->held)
        c->n_held--;
    s->held = false;
    if (s->stale) {
        s->stale = false;
        status_ask(s);
        cni_run_next(c);
        return;
    }
    snprintf(s->problem, sizeof(s->problem), "%s", result->code != ERR_OK ? result->text : "");
    if (result->code != ERR_OK) {
        s->again_ms = backoff_next_ms(s->again_ms, AGAIN_FIRST_MS, AGAIN_MAX_MS);
        uv_timer_start(&s->again, status_on_again, s->again_ms, 0);
    } else {
        s->again_ms = 0;
    }
    if (was_good != (s->problem[0] == '\0') && c->changed != NULL)
        c->changed(c->changed_arg);
    cni_run_next(c);
}

static void status_ask(struct cni_status *s)
{
    struct cni *c = s->c;

    if (s->asking) {
        s->stale = true;
        return;
    }
    uv_timer_stop(&s->again);
    if (c->networks.n == 0 || c->networks.lists[0].version < CNI_V(1, 1, 0)) {
        s->problem[0] = '\0'; /* a list of an older version is always ready */
        return;
    }
    s->asking = true;
    cni_each_start(&s->each,
                   &(struct cni_each_call){ .verb = CNI_STATUS,
                                            .list = &c->networks.lists[0],
                                            .bin_dirs = strs_list(&s->bin_dirs),
                                            .cgroup_fd = c->cgroup_fd,
                                            .cgroup_procs = s->cgroup_procs,
                                            .deadline_ms = ASK_MS },
                   c->loop, status_on_answer, s);
}

void cni_status_ask(struct cni *c)
{
    struct cni_status *s = c->status;
    json_t *conf = c->networks.n > 0 ? c->networks.lists[0].conf : NULL;

    if ((conf == NULL && s->asked == NULL) || (conf != NULL && json_equal(conf, s->asked)))
        return;
    json_decref(s->asked);
    s->asked = json_incref(conf);
    s->again_ms = 0;
    status_ask(s);
    if (s->asking && !s->held) {
        s->held = true;
        c->n_held++;
    }
}

const char *cni_status_problem(const struct cni *c)
{
    return c->status->problem[0] != '\0' ? c->status->problem : NULL;
}

enum err_code cni_status_open(struct cni *c, struct err *e)
{
    struct cni_status *s = calloc(1, sizeof(*s));
    bool ok = s != NULL && strs_copy(&s->bin_dirs, &c->bin_dirs);

    if (ok && c->cgroup_procs != NULL)
        ok = (s->cgroup_procs = strdup(c->cgroup_procs)) != NULL;
    if (!ok) {
        if (s != NULL)
            status_free(s);
        return err_nomem(e);
    }
    s->c = c;
    uv_timer_init(c->loop, &s->again);
    s->again.data = s;
    c->status = s;
    return ERR_OK;
}

void cni_status_close(struct cni *c)
{
    struct cni_status *s = c->status;

    if (s == NULL)
        return;
    c->status = NULL;
    s->c = NULL;
    uv_timer_stop(&s->again);
    if (s->asking)
        op_cancel(&s->each.op);
    else
        uv_close((uv_handle_t *)&s->again, status_on_closed);
}
