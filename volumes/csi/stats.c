/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/internal.h"

#include "base/scope.h"

static void stats_abort(struct op *op)
{
    struct csi_stats *s = container_of(op, struct csi_stats, op);

    if (op_live(&s->call.op))
        op_cancel(&s->call.op);
}

static void stats_end(struct csi_stats *s, const struct err *result)
{
    grpc_channel_close(s->channel);
    s->channel = NULL;
    op_finish(&s->op, result);
}

static void on_stats(struct op *op, const struct err *result)
{
    struct csi_stats *s = op->owner;
    struct err e = *result;

    if (e.code == ERR_OK)
        ERR_IGNORE(csi_usage_unpack(&s->usage, s->call.response.p, s->call.response.n, &e));
    stats_end(s, &e);
}

void csi_stats_start(struct csi_stats *s, struct csi *c, const char *driver, const char *handle,
                     const char *path, op_done_fn done, void *owner)
{
    struct err e = { 0 };
    uint8_t *bytes = NULL;
    size_t n = 0;

    *s = (struct csi_stats){ 0 };
    op_init(&s->op, c->o.loop, "ask for the usage of a CSI volume", 0, stats_abort, done, owner);
    op_set_subject(&s->op, driver);
    if (csi_connect(c, driver, &s->channel, &e) != ERR_OK ||
        csi_stats_pack(handle, path, &bytes, &n, &e) != ERR_OK) {
        stats_end(s, &e);
        return;
    }
    csi_call(&s->call, s->channel, "/csi.v1.Node/NodeGetVolumeStats", &(struct grpc_bytes){ bytes, n },
             driver, on_stats, s);
    csi_wipe(bytes, n);
}
