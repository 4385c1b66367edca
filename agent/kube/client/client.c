/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/client.h"

#include <stdlib.h>

struct kube_client {
    struct kube_client_options o;
};

enum err_code kube_client_open(struct kube_client **ret, const struct kube_client_options *o, struct err *e)
{
    struct kube_client *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    *ret = c;
    return ERR_OK;
}

void kube_client_close(struct kube_client *c)
{
    free(c);
}

enum err_code kube_client_credentials(struct kube_client *c, const json_t *credentials, struct err *e)
{
    (void)c;
    (void)credentials;
    return err_set(e, ERR_UNIMPLEMENTED, "requests cannot be sent yet");
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    struct err e = { 0 };

    op_init(&r->op, c->o.loop, "request", spec->deadline_ms, NULL, done, owner);
    err_set(&e, ERR_UNIMPLEMENTED, "requests cannot be sent yet");
    op_finish(&r->op, &e);
}

void kube_request_cancel(struct kube_request *r)
{
    op_cancel(&r->op);
}
