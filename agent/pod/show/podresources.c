/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/podresources.h"

#include "agent/pod/core/explain_step.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/provider.h"
#include "base/backoff.h"
#include "base/files/fs.h"
#include "base/grpc/server.h"
#include "base/log.h"
#include "deviceplugin/message/podresources.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE "/v1.PodResourcesLister/"
#define SERVICE_ALPHA "/v1alpha1.PodResourcesLister/"

/* pkg/kubelet/apis/podresources: DefaultQPS, DefaultBurstTokens */
enum { CALLS_PER_S = 100, BURST = 10 };

enum { AGAIN_FIRST_MS = 1000, AGAIN_MAX_MS = 60 * 1000 };

/* ---- the pods' resources ---- */

static bool is_listed(const struct pod *p)
{
    return p->state > POD_PENDING && p->state < POD_TERMINATED && p->phase[0] == '\0';
}

static void add_processors(struct dp_podres *a, const struct cpus *cpus)
{
    int64_t numbers[CPUS_MAX];
    size_t n = 0;

    cpus_each(cpu, cpus) numbers[n++] = cpu;
    dp_podres_cpus(a, numbers, n);
}

/* Processors and memory that only this container has. */
static void add_placement(struct dp_podres *a, const struct ctr *c)
{
    const struct pl_cpu_manager *cpus = placement_cpus(c->pod->node);
    const struct pl_memory_manager *memory = placement_memory(c->pod->node);
    const struct pl_cpu_entry *own =
        cpus != NULL ? pl_cpu_state_find(&cpus->state, c->pod->uid, c->spec->name) : NULL;
    const struct pl_memory_entry *blocks =
        memory != NULL ? pl_memory_state_find(&memory->state, c->pod->uid, c->spec->name) : NULL;

    if (own != NULL)
        add_processors(a, &own->cpus);
    for (size_t i = 0; blocks != NULL && i < blocks->n; i++)
        dp_podres_memory(a, blocks->v[i].type, blocks->v[i].size, blocks->v[i].nodes);
}

/* Resources that pods may get exclusively. With the policies `none` there are none, as in kubelet. */
static void add_allocatable(struct dp_podres *a, const struct node *n)
{
    const struct pl_cpu_manager *cpus = placement_cpus(n);
    const struct pl_memory_manager *memory = placement_memory(n);

    if (cpus != NULL) {
        struct cpus all = cpus_without(&cpus->m->cpus, &cpus->reserved);

        add_processors(a, &all);
    }
    for (size_t i = 0; memory != NULL && i < memory->state.n_cells; i++) {
        const struct pl_cell *cell = &memory->state.cell[i];

        for (size_t k = 0; k < cell->n; k++)
            if (cell->v[k].allocatable > 0)
                dp_podres_memory(a, cell->v[k].type, cell->v[k].allocatable, 1ull << cell->id);
    }
}

/* `v1`: with the members that v1alpha1 does not have. */
static void add_container(struct dp_podres *a, const struct ctr *c, bool v1)
{
    const struct api_resource_list *limits = &c->spec->resources.limits;
    const struct dp_holdings *all = devices_holdings(c->pod->node);

    dp_podres_container(a, c->spec->name);
    for (size_t i = 0; all != NULL && i < limits->n; i++) {
        const struct dp_holding *h = dp_holdings_find(all, c->pod->uid, c->spec->name, limits->v[i].name);

        for (size_t k = 0; h != NULL && k < h->n_devices; k++)
            dp_podres_device(a, h->resource, h->devices[k].id, h->devices[k].numa,
                             v1 ? h->devices[k].n_numa : 0);
    }
    if (v1)
        add_placement(a, c);
}

static void add_pod(struct dp_podres *a, const struct pod *p, bool v1)
{
    dp_podres_pod(a, p->api->meta.name, p->api->meta.namespace);
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (ctr_kind_lasts(p->ctrs[i]->kind))
            add_container(a, p->ctrs[i], v1);
}

/* ---- calls ---- */

/* Ends the answer that is being built, too. */
static void answer(struct grpc_request *r, struct dp_podres *a, uint64_t *errors)
{
    struct err e = { 0 };

    if (dp_podres_end(a, &e) == ERR_OK) {
        grpc_reply(r, (struct grpc_bytes){ (const uint8_t *)a->out.p, a->out.n });
    } else {
        ++*errors;
        grpc_fail(r, &e);
    }
    dp_podres_done(a);
}

static void list(struct grpc_request *r, struct node *n, unsigned call, bool v1)
{
    struct dp_podres a;

    show_node(n)->podresources.requests[call]++;
    dp_podres_begin(&a);
    pods_each (n, p)
        if (is_listed(p))
            add_pod(&a, p, v1);
    answer(r, &a, &show_node(n)->podresources.errors[call]);
}

static void on_list(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    (void)message; /* it has no fields */
    list(r, arg, PODRES_LIST, true);
}

/* The messages of v1alpha1 are those of v1 with names of devices only. dcgm-exporter asked it until 4.0. */
static void on_list_alpha(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    (void)message;
    list(r, arg, PODRES_LIST_ALPHA, false);
}

static void on_allocatable(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct node *n = arg;
    const struct dp_inventory *all = devices_inventory(n);
    const struct dp_resource *one = NULL;
    struct dp_podres a;

    (void)message;
    show_node(n)->podresources.requests[PODRES_ALLOCATABLE]++;
    dp_podres_begin(&a);
    while (all != NULL && (one = dp_inventory_next(all, one)) != NULL)
        for (size_t i = 0; one->provider != NULL && i < one->n_devices; i++)
            if (one->devices[i].healthy)
                dp_podres_device(&a, one->name, one->devices[i].id, one->devices[i].numa,
                                 one->devices[i].n_numa);
    add_allocatable(&a, n);
    answer(r, &a, &show_node(n)->podresources.errors[PODRES_ALLOCATABLE]);
}

/* NULL with *e. */
static struct pod *find_pod(struct node *n, struct grpc_bytes message, struct err *e)
{
    struct dp_podres_request asked;
    struct pod *found = NULL;

    if (dp_podres_request_unpack(&asked, message.p, message.n, e) == ERR_OK) {
        found = pods_find(n, asked.namespace_, asked.name);
        if (found == NULL || !is_listed(found)) {
            err_set(e, ERR_UNKNOWN, "pod %.253s in namespace %.253s not found", asked.name, asked.namespace_);
            found = NULL;
        }
    }
    dp_podres_request_done(&asked);
    return found;
}

static void on_get(struct grpc_request *r, struct grpc_bytes message, void *arg)
{
    struct node *n = arg;
    struct dp_podres a;
    struct err e = { 0 };
    struct pod *p = find_pod(n, message, &e);

    show_node(n)->podresources.requests[PODRES_GET]++;
    if (p == NULL) {
        show_node(n)->podresources.errors[PODRES_GET]++;
        grpc_fail(r, &e);
        return;
    }
    dp_podres_begin(&a);
    add_pod(&a, p, true);
    answer(r, &a, &show_node(n)->podresources.errors[PODRES_GET]);
}

static const struct grpc_method methods[] = {
    { SERVICE "List", on_list },
    { SERVICE "GetAllocatableResources", on_allocatable },
    { SERVICE "Get", on_get },
    { SERVICE_ALPHA "List", on_list_alpha },
};

/* ---- life ---- */

static enum err_code listen_at(struct node *n, struct err *e)
{
    str_auto dir = str_printf("%s/pod-resources", n->o.root_dir);
    str_auto path = dir != NULL ? str_printf("%s/kubelet.sock", dir) : NULL;
    const struct grpc_server_options o = { .loop = n->o.loop,
                                           .path = path,
                                           .mode =
                                               0755, /* kubelet's mode; the peer's user is checked as well */
                                           .root_only = true,
                                           .methods = methods,
                                           .n_methods = ARRAY_LEN(methods),
                                           .arg = n,
                                           .calls_per_s = CALLS_PER_S,
                                           .burst = BURST };

    if (path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(n->o.root_dir, 0755, e) != ERR_OK || fs_mkdirs(dir, 0750, e) != ERR_OK)
        return e->code;
    return grpc_server_open(&show_node(n)->podresources.server, &o, e);
}

static void on_again(uv_timer_t *timer)
{
    podresources_begin(timer->data);
}

static void try_later(struct podresources *r)
{
    r->pause_ms = backoff_next_ms(r->pause_ms, AGAIN_FIRST_MS, AGAIN_MAX_MS);
    uv_timer_start(&r->again, on_again, r->pause_ms, 0);
}

void podresources_begin(struct node *n)
{
    struct podresources *r = &show_node(n)->podresources;
    struct err e = { 0 };

    if (n->o.root_dir == NULL)
        return;
    if (listen_at(n, &e) == ERR_OK) {
        r->error = e;
        return;
    }
    if (strcmp(r->error.text, e.text) != 0)
        log_warn("podresources cannot be served", F_ERR(&e));
    r->error = e;
    if (e.code != ERR_INVALID) /* a path that no socket can have */
        try_later(r);
}

void podresources_open(struct node *n)
{
    uv_timer_init(n->o.loop, &show_node(n)->podresources.again);
    show_node(n)->podresources.again.data = n;
}

void podresources_close(struct node *n)
{
    rooms_close_handle(n, (uv_handle_t *)&show_node(n)->podresources.again);
}

void podresources_end(struct node *n)
{
    struct podresources *r = &show_node(n)->podresources;

    uv_timer_stop(&r->again);
    if (r->server != NULL)
        grpc_server_close(take_ptr(&r->server));
}

void podresources_explain(const struct node *n, json_t *steps)
{
    const struct podresources *r = &show_node(n)->podresources;

    if (r->error.code != ERR_OK)
        explain_step(steps, "podresources", "failed", 0, r->error.text, 0);
}

/* ---- metrics ---- */

#define PREFIX "kubelet_pod_resources_endpoint_"

static void put_value(struct buf *out, const char *name, const char *version, uint64_t value)
{
    if (value > 0)
        buf_addf(out, PREFIX "%s{server_api_version=\"%s\"} %llu\n", name, version,
                 (unsigned long long)value);
}

/* As in kubelet, a counter is shown from its first call on. */
static void put_counter(struct buf *out, const char *name, uint64_t value, uint64_t alpha, const char *help)
{
    if (value == 0 && alpha == 0)
        return;
    buf_addf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s counter\n", name, help, name);
    put_value(out, name, "v1", value);
    put_value(out, name, "v1alpha1", alpha);
}

/* For v1alpha1, kubelet counts only the calls. */
void podresources_metrics(const struct node *n, struct buf *out)
{
    static const char *const names[PODRES_LIST_ALPHA][2] = {
        [PODRES_LIST] = { "requests_list", "errors_list" },
        [PODRES_ALLOCATABLE] = { "requests_get_allocatable", "errors_get_allocatable" },
        [PODRES_GET] = { "requests_get", "errors_get" },
    };
    const struct podresources *r = &show_node(n)->podresources;
    uint64_t all = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        all += r->requests[i];
    put_counter(out, "requests_total", all, r->requests[PODRES_LIST_ALPHA], "Calls of podresources.");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put_counter(out, names[i][0], r->requests[i], 0, "Calls of this method of podresources.");
        put_counter(out, names[i][1], r->errors[i], 0, "Calls of this method that failed.");
    }
}
