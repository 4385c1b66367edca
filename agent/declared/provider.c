/* SPDX-License-Identifier: Apache-2.0 */
/* A declared resource as a provider of the inventory: each question is answered at once. */
#include "agent/declared/internal.h"

#include "deviceplugin/message/messages.h"

#include <stdio.h>
#include <stdlib.h>

static void begin(struct dp_provider *p, struct dp_ask *a, const char *name, op_done_fn done, void *owner)
{
    struct declared_resource *r = container_of(p, struct declared_resource, provider);

    op_init(&a->op, r->declared->o.loop, name, 0, NULL, done, owner);
    op_set_subject(&a->op, r->name);
    a->answer = NULL;
    a->raw = NULL;
    a->n_raw = 0;
}

static enum err_code answer(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                            struct err *e)
{
    struct declared_resource *r = container_of(p, struct declared_resource, provider);

    if (decl_list_answer(&r->list, ids, n, &a->answer, e) == ERR_OK &&
        dp_answer_pack(a->answer, &a->raw, &a->n_raw, e) != ERR_OK) {
        free(a->answer);
        a->answer = NULL;
    }
    return e->code;
}

static void allocate(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                     op_done_fn done, void *owner)
{
    struct err e = { 0 };

    begin(p, a, "allocate declared devices", done, owner);
    op_finish(&a->op, answer(p, a, ids, n, &e) == ERR_OK ? NULL : &e);
}

/* Answers with the present nodes. If a device no longer exists, or its declaration has changed, the container
 * keeps its earlier answer. */
static void pre_start(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                      op_done_fn done, void *owner)
{
    struct err e = { 0 };

    begin(p, a, "prepare declared devices", done, owner);
    ERR_IGNORE(answer(p, a, ids, n, &e));
    op_finish(&a->op, NULL);
}

static void describe(const struct dp_provider *p, char *ret, size_t size)
{
    const struct declared_resource *r = container_of(p, struct declared_resource, provider);

    snprintf(ret, size, "%s/%s", r->declared->o.dir, r->file);
}

void declared_provider_init(struct declared_resource *r)
{
    r->provider = (struct dp_provider){
        .rank = DP_RANK_DECLARATION,
        .kind = "declaration",
        .allocate = allocate,
        .pre_start = pre_start,
        .describe = describe,
    };
}
