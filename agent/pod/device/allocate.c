/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocate - the devices of a pod, want by want: choose, ask for the provider's preference if it has one,
 * reserve, ask it to allocate. Each question is an operation; its end wakes the pod, which continues here.
 *
 * Between two turns other pods take devices, and providers come and go. So only the reservation is kept while
 * a question is open: when the preference is known, the choice is made again.
 */
#include "agent/pod/device/allocation.h"
#include "agent/pod/placement/placement.h"
#include "base/log.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

/* Limit of calls for one want: while a plugin computes its preference, other pods may take these devices, and
 * the plugin is called again. */
#define PREFERRED_MAX 3
/* Answers become part of the pod's record, which holds 12 MiB. */
#define ANSWERS_MAX (4 * 1024 * 1024)

void device_drop_answer(struct dp_ask *a)
{
    free(take_ptr(&a->answer));
    free(take_ptr(&a->raw));
    free(take_ptr(&a->preferred));
}

/* ---- questions ---- */

static void on_answer(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    struct device_pod *part = device_of(p);

    part->answered = true;
    part->outcome = *result;
    pod_wake(p, "a provider of devices answered");
}

static void ask(const struct allocation *a, enum device_question question)
{
    struct device_pod *part = device_of(a->p);

    device_drop_answer(&part->ask); /* the answer to a question that was cancelled */
    part->ask = (struct dp_ask){ 0 };
    part->question = question;
    part->answered = false;
    part->changes = allocation_node(a)->changes;
    part->asked_at = clock_boot();
    device_set_state(a->p, DEVICES_ASKING);
    *a->asking = true;
}

static void ask_preferred(const struct allocation *a, const struct device_want *w,
                          const struct dp_resource *r, const struct dp_choice *c)
{
    struct device_pod *part = device_of(a->p);

    ask(a, ASK_PREFERRED);
    part->n_preferred++;
    r->provider->preferred(r->provider, &part->ask, c->available, c->n_available, c->must, c->n_must,
                           (int32_t)w->count, on_answer, a->p);
}

/* From here on the container holds the devices. */
static enum err_code reserve(const struct allocation *a, const struct device_want *w,
                             const struct dp_resource *r, const struct dp_choice *c, struct err *e)
{
    struct dp_holding x = { .pod_uid = a->p->uid,
                            .container = allocation_ctr(a, w)->spec->name,
                            .resource = w->resource,
                            .devices = c->devices,
                            .n_devices = c->n };

    if (!c->kept && dp_holdings_put(allocation_node(a)->holdings, &x, e) != ERR_OK)
        return e->code;
    ask(a, ASK_ALLOCATE);
    r->provider->allocate(r->provider, &device_of(a->p)->ask, c->ids, c->n, on_answer, a->p);
    return ERR_OK;
}

/* ---- choices ---- */

/* The devices are those that an earlier process of the plugin listed. kubelet, which does not wait, uses
 * them. */
static bool is_unlisted(const struct allocation *a, const struct dp_resource *r)
{
    return r != NULL && r->provider != NULL && !r->listed && a->p->node->o.device_plugin_wait_ms > 0;
}

/* `preferred`: the provider's answer, n ids; NULL: it was not asked. */
static enum err_code choose(const struct allocation *a, const struct device_want *w,
                            const char *const *preferred, size_t n, struct err *e)
{
    struct device_pod *part = device_of(a->p);
    const struct dp_resource *r = allocation_resource(a, w->resource);
    struct dp_wish wish = { .pod_uid = a->p->uid,
                            .container = allocation_ctr(a, w)->spec->name,
                            .count = w->count,
                            .has_hint = part->has_hint,
                            .numa = part->numa };
    struct dp_choice choice = { 0 };
    struct strs reusable = { 0 };
    bool taken = false;

    if (is_unlisted(a, r))
        return err_set(e, ERR_UNAVAILABLE, "no healthy devices present; cannot allocate unhealthy devices %s",
                       w->resource);
    if (allocation_reusable(a, w, &reusable, e) != ERR_OK) {
        strs_done(&reusable);
        return e->code;
    }
    wish.reusable = strs_list(&reusable);
    wish.n_reusable = reusable.n;
    for (size_t i = 0; i < n; i++) {
        const char *owner = dp_holdings_owner(allocation_node(a)->holdings, w->resource, preferred[i]);
        taken = taken || (owner != NULL && strcmp(owner, a->p->uid) != 0);
    }
    if (dp_choose_begin(r, w->resource, allocation_node(a)->holdings, &wish, &choice, e) == ERR_OK &&
        choice.ask && preferred != NULL && (!taken || part->n_preferred >= PREFERRED_MAX))
        ERR_IGNORE(
            dp_choose_end(r, w->resource, allocation_node(a)->holdings, &wish, preferred, n, &choice, e));
    strs_done(&reusable);
    if (e->code == ERR_OK && choice.ask)
        ask_preferred(a, w, r, &choice);
    else if (e->code == ERR_OK && choice.n > 0)
        ERR_IGNORE(reserve(a, w, r, &choice, e));
    dp_choice_done(&choice);
    return e->code;
}

/* ---- answers ---- */

static size_t answers_of(const struct allocation *a)
{
    const struct dp_holding *h = NULL;
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        h = dp_holdings_find(allocation_node(a)->holdings, a->p->uid, allocation_ctr(a, &a->v[i])->spec->name,
                             a->v[i].resource);
        n += h != NULL ? h->n_answer : 0;
    }
    return n;
}

static enum err_code take_answer(const struct allocation *a, const struct device_want *w,
                                 const struct dp_ask *answer, struct err *e)
{
    const struct dp_holding *h = dp_holdings_find(allocation_node(a)->holdings, a->p->uid,
                                                  allocation_ctr(a, w)->spec->name, w->resource);
    struct dp_holding x;

    if (h == NULL)
        return err_set(e, ERR_INTERNAL, "the reservation of %s is lost", w->resource);
    if (answer->n_raw > DEVICE_ANSWER_MAX || answers_of(a) + answer->n_raw > ANSWERS_MAX)
        return err_set(e, ERR_EXHAUSTED,
                       "the answer for %s has %zu bytes; %d are allowed, and %d for the whole pod",
                       w->resource, answer->n_raw, DEVICE_ANSWER_MAX, ANSWERS_MAX);
    x = *h;
    x.answer = answer->raw != NULL ? answer->raw : (const uint8_t *)"";
    x.n_answer = answer->n_raw;
    return dp_holdings_put(allocation_node(a)->holdings, &x, e);
}

/* `ids`: NULL-terminated, or NULL. */
static enum err_code take_preference(const struct allocation *a, const struct device_want *w,
                                     char *const *ids, struct err *e)
{
    static const char *const none[] = { NULL };
    const char *const *v = ids != NULL ? (const char *const *)ids : none;
    size_t n = 0;

    while (v[n] != NULL)
        n++;
    return choose(a, w, v, n, e);
}

static enum err_code take_failure(const struct allocation *a, struct err *e)
{
    const struct device_pod *part = device_of(a->p);

    a->failure->by_provider = true;
    *e = part->outcome;
    if (part->question == ASK_PREFERRED)
        err_wrap(e, "device plugin GetPreferredAllocation rpc failed with err");
    return e->code;
}

/* The question about *w was answered. */
static enum err_code go_on(const struct allocation *a, const struct device_want *w, struct err *e)
{
    struct device_pod *part = device_of(a->p);
    struct dp_ask answer = part->ask; /* copied: the next question may use part->ask */
    enum err_code code = ERR_OK;

    part->ask = (struct dp_ask){ 0 };
    part->answered = false;
    if (part->outcome.code != ERR_OK)
        code = take_failure(a, e);
    else if (part->question == ASK_PREFERRED)
        code = take_preference(a, w, answer.preferred, e);
    else
        code = take_answer(a, w, &answer, e);
    device_drop_answer(&answer);
    return code;
}

/* ---- one want ---- */

bool device_has_answer(const struct pod *p, const struct device_want *w)
{
    const struct dp_holding *x =
        dp_holdings_find(devices_holdings(p->node), p->uid, p->ctrs[w->ctr]->spec->name, w->resource);

    return x != NULL && x->answer != NULL && (int64_t)x->n_devices == w->count;
}

static enum err_code step(const struct allocation *a, const struct device_want *w, struct err *e)
{
    struct device_pod *part = device_of(a->p);

    if (part->answered)
        return go_on(a, w, e);
    switch (device_offer(dp_inventory_find(allocation_node(a)->inventory, w->resource))) {
    case OFFER_UNKNOWN:
    case OFFER_NUMBER:
        return ERR_OK; /* there is nothing to hold; the pod runs without it */
    case OFFER_AWAY:
    case OFFER_HERE:
        break;
    }
    if (device_has_answer(a->p, w))
        return ERR_OK;
    part->n_preferred = 0;
    if (allocation_align(a, w->ctr, e) != ERR_OK)
        return e->code;
    return choose(a, w, NULL, 0, e);
}

/* ---- processors and memory ---- */

/* Gives the containers up to p->ctrs[last] theirs, in order: at once, before devices of that container. */
static enum err_code place_until(const struct allocation *a, size_t last, struct err *e)
{
    struct device_pod *part = device_of(a->p);

    if (!placement_is_on(a->p->node))
        return ERR_OK;
    for (; part->placed <= last && part->placed < a->p->n_ctrs; part->placed++) {
        struct pl_hint hint = { 0 };

        if (a->p->ctrs[part->placed]->kind == CTR_EPHEMERAL)
            continue;
        a->failure->by_placement = true;
        if (allocation_align(a, part->placed, e) != ERR_OK)
            return e->code;
        if (part->has_hint)
            hint = (struct pl_hint){ .nodes = part->numa, .preferred = part->hint_preferred };
        if (placement_allocate(a->p, part->placed, &hint, e) != ERR_OK) {
            if (e->code == ERR_INVALID)
                a->failure->reason = "SMTAlignmentError";
            return e->code;
        }
        a->failure->by_placement = false;
    }
    return ERR_OK;
}

enum err_code device_allocate(struct pod *p, const struct device_want *v, size_t n, bool *ret_asking,
                              struct device_failure *ret, struct err *e)
{
    struct allocation a = { p, v, n, ret_asking, ret };
    struct device_pod *part = device_of(p);

    *ret_asking = false;
    *ret = (struct device_failure){ .reason = "UnexpectedAdmissionError" };
    for (; part->at < n; part->at++) {
        if (place_until(&a, v[part->at].ctr, e) != ERR_OK || step(&a, &v[part->at], e) != ERR_OK ||
            *ret_asking)
            return e->code;
    }
    return place_until(&a, p->n_ctrs, e);
}
