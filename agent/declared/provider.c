/* SPDX-License-Identifier: Apache-2.0 */
/* A declared resource as a provider of the inventory: each question is answered at once. */
#include "agent/declared/internal.h"

#include "deviceplugin/messages.h"

#include <stdio.h>
#include <stdlib.h>

static void allocate(struct dp_provider *p, struct dp_ask *a, const char *const *ids, size_t n,
                     op_done_fn done, void *owner)
{
    struct declared_resource *r = container_of(p, struct declared_resource, provider);
    struct err e = { 0 };

    op_init(&a->op, r->declared->o.loop, "allocate declared devices", 0, NULL, done, owner);
    op_set_subject(&a->op, r->name);
    a->answer = NULL;
    a->raw = NULL;
    a->n_raw = 0;
    if (decl_list_answer(&r->list, ids, n, &a->answer, &e) == ERR_OK &&
        dp_answer_pack(a->answer, &a->raw, &a->n_raw, &e) != ERR_OK) {
        free(a->answer);
        a->answer = NULL;
    }
    op_finish(&a->op, e.code == ERR_OK ? NULL : &e);
}

static void describe(const struct dp_provider *p, char *ret, size_t size)
{
    const struct declared_resource *r = container_of(p, struct declared_resource, provider);

    snprintf(ret, size, "declared in %s/%s", r->declared->o.dir, r->file);
}

void declared_provider_init(struct declared_resource *r)
{
    r->provider = (struct dp_provider){
        .rank = DP_RANK_DECLARATION, .kind = "declaration", .allocate = allocate, .describe = describe
    };
}
