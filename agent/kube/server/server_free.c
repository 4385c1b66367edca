/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a server, when the last of its parts has ended. */
#include "agent/kube/server/internal.h"

#include <string.h>

void kube_server_maybe_free(struct kube_server *s)
{
    if (!s->closing || s->open_handles > 0 || s->n_callers > 0 || s->n_upstreams > 0 || s->n_access > 0)
        return;
    free(s->spare);
    SSL_CTX_free(s->context);
    review_cache_done(&s->tokens);
    review_cache_done(&s->decisions);
    json_decref(s->config);
    free(s->node_name);
    free(s->self_certificate);
    if (s->self_key != NULL)
        explicit_bzero(s->self_key, strlen(s->self_key));
    free(s->self_key);
    free(s);
}
