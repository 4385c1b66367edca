/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/server.h"

#include "base/scope.h"

#include <stdlib.h>

struct kube_server {
    struct kube_server_options o;
};

enum err_code kube_server_open(struct kube_server **ret, const struct kube_server_options *o, struct err *e)
{
    struct kube_server *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->o = *o;
    *ret = s;
    return ERR_OK;
}

void kube_server_message(struct kube_server *s, const char *type, json_t *message, int fd)
{
    fd_auto taken = fd;

    (void)s;
    (void)type;
    (void)message;
    (void)taken;
}

void kube_server_close(struct kube_server *s)
{
    free(s);
}
