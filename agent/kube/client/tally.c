/* SPDX-License-Identifier: Apache-2.0 */
/* tally - requests by method and status: client-go's rest_client_requests_total. */
#include "agent/kube/client/internal.h"

#include <stdio.h>
#include <string.h>

void kube_tally_add(struct kube_tally *t, const char *method, int http)
{
    size_t i = 0;

    while (i < t->n && (t->rows[i].http != http || strcmp(t->rows[i].method, method) != 0))
        i++;
    if (i == KUBE_TALLY_MAX)
        return;
    if (i == t->n) {
        snprintf(t->rows[i].method, sizeof(t->rows[i].method), "%s", method);
        t->rows[i].http = http;
        t->n++;
    }
    t->rows[i].requests++;
}

void kube_tally_server(struct kube_tally *t, const char *before, const char *now)
{
    if (before == NULL || strcmp(before, now) != 0)
        t->n = 0;
    if (t->n == 0)
        memset(t->rows, 0, sizeof(t->rows));
}

json_t *kube_client_answers(const struct kube_client *c)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < c->tally.n; i++)
        json_array_append_new(rows, json_pack("[s, i, I]", c->tally.rows[i].method, c->tally.rows[i].http,
                                              (json_int_t)c->tally.rows[i].requests));
    return json_pack("{s:s, s:o}", "host", c->access != NULL ? c->access->host : "", "counts", rows);
}
