/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/sync.h"

#include <stdlib.h>

struct kube_sync {
    struct kube_sync_options o;
};

enum err_code kube_sync_open(struct kube_sync **ret, const struct kube_sync_options *o, struct err *e)
{
    struct kube_sync *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->o = *o;
    *ret = s;
    return ERR_OK;
}

void kube_sync_message(struct kube_sync *s, const char *type, json_t *message)
{
    (void)s;
    (void)type;
    (void)message;
}

void kube_sync_close(struct kube_sync *s)
{
    free(s);
}
