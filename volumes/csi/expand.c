/* SPDX-License-Identifier: Apache-2.0 */
/* expand - NodeExpandVolume of a volume that is published. */
#include "volumes/csi/internal.h"

#include "base/scope.h"

static void expand_end(struct csi_expand *x, const struct err *result)
{
    grpc_channel_close(x->channel);
    x->channel = NULL;
    arena_done(&x->memory);
    op_finish(&x->op, result);
}

static void expand_abort(struct op *op)
{
    struct csi_expand *x = container_of(op, struct csi_expand, op);

    if (op_live(&x->call.op))
        op_cancel(&x->call.op);
}

static void on_expanded(struct op *op, const struct err *result)
{
    struct csi_expand *x = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(csi_expand_unpack(&x->bytes, x->call.response.p, x->call.response.n, &e));
    expand_end(x, &e);
}

static void ask(struct csi_expand *x, const struct csi_paths *p)
{
    struct csi_expand_request r;
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    /* kubelet names the staging path whether the driver stages or not. */
    csi_expand_request(x->volume, x->caps, p->staging, p->target, x->wanted, &r);
    if (csi_expand_pack(&r, &bytes, &n, &e) != ERR_OK) {
        expand_end(x, &e);
        return;
    }
    csi_call(&x->call, x->channel, "/csi.v1.Node/NodeExpandVolume", &(struct grpc_bytes){ bytes, n },
             x->volume->spec_name, on_expanded, x);
    csi_wipe(bytes, n);
}

void csi_expand_start(struct csi_expand *x, struct csi *c, const struct csi_volume *v, csi_caps caps,
                      uint64_t bytes, op_done_fn done, void *owner)
{
    const struct csi_id id = csi_id_of(v);
    struct csi_paths p;
    struct err e = { 0 };

    *x = (struct csi_expand){ .csi = c, .volume = v, .caps = caps, .wanted = bytes };
    op_init(&x->op, c->o.loop, "expand CSI volume", 0, expand_abort, done, owner);
    op_set_subject(&x->op, v->spec_name);
    if (!csi_can(caps, CSI_CAN_EXPAND))
        err_set(&e, ERR_UNIMPLEMENTED, "NodeExpand is not supported by the CSI driver %.80s", v->driver);
    else if (csi_paths_make(&p, c->o.root_dir, &id, v->pod_uid, &x->memory, &e) == ERR_OK &&
             csi_connect(c, v->driver, &x->channel, &e) == ERR_OK) {
        ask(x, &p);
        return;
    }
    expand_end(x, &e);
}
