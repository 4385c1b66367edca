/* SPDX-License-Identifier: Apache-2.0 */
/* node - objects that the daemon makes when it is asked: the Node with its heart-beat, and measurements. */
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

#define NODE_MAX (8u << 20)
#define STATS_MAX (64u << 20)

struct look { /* a request that waits for an answer of the daemon */
    struct api_request request;
    struct ask *ask;
    void (*next)(const struct api_request *r);
};

static void look_gone(struct caller *c)
{
    struct look *l = c->job;

    ask_close(l->ask);
    free(l);
}

static const struct caller_source look_source = { .gone = look_gone };

static void look_begin(const struct api_request *r, const char *target, size_t max, ask_done_fn done,
                       void (*next)(const struct api_request *r))
{
    struct look *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    if (l != NULL)
        l->ask = ask_open(r->api->o.server, target, max, done, l, &e);
    if (l == NULL || l->ask == NULL) {
        free(l);
        if (e.code == ERR_OK)
            err_nomem(&e);
        api_answer_err(r->caller, &e);
        return;
    }
    l->request = *r;
    l->next = next;
    r->caller->state = CALLER_SERVED;
    r->caller->source = &look_source;
    r->caller->job = l;
}

/* ---- the node ---- */

/* Its version is the one of the stock: a heart-beat is a change. */
static void node_put(struct kube_api *a, json_t *node)
{
    const struct api_kind_row *row = api_kind_of_object("v1", "Node");
    const struct stock_object *known =
        row != NULL ? stock_find(&a->stock, row, "", json_str(json_object_get(node, "metadata"), "name"))
                    : NULL;
    const struct stock_change *change = NULL;
    json_t *meta = json_object_get(node, "metadata");
    uint64_t version = known != NULL ? known->version : a->stock.version;

    json_object_set_new(meta, "resourceVersion", json_sprintf("%llu", (unsigned long long)version));
    if (known != NULL && json_equal(known->object, node))
        return;
    version = a->stock.version;
    json_object_set_new(meta, "resourceVersion", json_sprintf("%llu", (unsigned long long)version));
    if (stock_put(&a->stock, node, 16 * 1024, 0, &change) && change != NULL)
        api_changed(a, change);
}

static void node_on_answer(int http, json_t *body, const struct err *e, void *owner)
{
    struct look *l = owner;
    const struct api_request r = l->request;
    void (*next)(const struct api_request *r) = l->next;

    r.caller->source = NULL;
    if (http == 200 && json_is_object(body))
        node_put(r.api, body);
    if (e->code != ERR_OK)
        api_answer_err(r.caller, e);
    else if (http != 200)
        api_answer_status(r.caller, json_incref(body));
    else
        next(&r);
    ask_close(l->ask);
    free(l);
}

void api_node_first(const struct api_request *r, void (*next)(const struct api_request *r))
{
    look_begin(r, "/store/node", NODE_MAX, node_on_answer, next);
}

/* ---- kubectl top ---- */

void api_metrics(const struct api_request *r)
{
    api_answer_status(r->caller,
                      api_status(503, "ServiceUnavailable", NULL, "metrics are not available yet"));
}
