/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/provider.h"
#include "agent/pod/container/container.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/project/project.h"
#include "agent/pod/show/agent_metrics.h"
#include "agent/pod/show/devices.h"
#include "agent/pod/show/explain.h"
#include "agent/pod/show/internal.h"
#include "agent/pod/show/placements.h"
#include "agent/pod/show/podresources.h"
#include "agent/pod/show/write.h"
#include "agent/pod/status/status.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/runtime/stream.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <string.h>

static json_t *pod(void *arg, const char *namespace_, const char *name, struct err *e)
{
    struct pod *p = pods_find(arg, namespace_, name);
    json_t *o = p != NULL ? pod_status_json(p) : NULL;

    if (p == NULL)
        err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    else if (o == NULL)
        err_nomem(e);
    return o;
}

static json_t *pod_restart(void *arg, const char *namespace_, const char *name, const char *container,
                           struct err *e)
{
    struct pod *p = pods_find(arg, namespace_, name);

    if (p != NULL)
        return restart_ask(p, container, e);
    err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    return NULL;
}

static json_t *pod_debug(void *arg, const char *namespace_, const char *name, json_t *container,
                         struct err *e)
{
    struct pod *p = pods_find(arg, namespace_, name);

    if (p == NULL) {
        err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
        return NULL;
    }
    return pods_debug(p, container, e) == ERR_OK ? pod(arg, namespace_, name, e) : NULL;
}

static json_t *explain(void *arg, const char *namespace_, const char *name, struct err *e)
{
    struct pod *p;

    if (name[0] == '\0')
        return explain_node_json(arg);
    p = pods_find(arg, namespace_, name);
    if (p == NULL) {
        err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
        return NULL;
    }
    return explain_json(p);
}

/* ---- manifests ---- */

static void provider_add_object(const struct api_object *o, json_t *list)
{
    const struct api_meta *meta = api_object_meta(o);

    json_array_append_new(list, json_pack("{s:s, s:s*, s:s}", "kind", api_kind_name(o->kind), "namespace",
                                          meta->namespace, "name", meta->name));
}

static void add_file(const struct src_file *f, void *arg)
{
    json_t *o = json_object(), *problems = json_array(), *holds = json_array();
    str_auto path = str_printf("%s/%s", f->dir, f->name);
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(f->read_ns, text);
    json_put_str(o, "name", f->name);
    json_put_str(o, "path", path);
    json_object_set_new(o, "ok", json_boolean(f->ok));
    json_object_set_new(o, "stale", json_boolean(f->stale));
    json_object_set_new(o, "objects", json_integer((json_int_t)f->n_objects));
    json_put_str(o, "read", text);
    for (size_t i = 0; i < f->n_problems; i++) {
        struct api_problem p = f->problems[i];

        p.file = path; /* rather than its name in the folder: editors open it */
        json_array_append_new(problems, api_problem_json(&p));
    }
    json_object_set_new(o, "problems", problems);
    json_object_set_new(o, "holds", holds);
    for (size_t i = 0; i < f->n_objects; i++)
        provider_add_object(&f->in_force[i], holds);
    json_array_append_new(arg, o);
}

static json_t *manifests(void *arg, struct err *e)
{
    struct node *n = arg;
    json_t *list = json_array();

    (void)e;
    if (n->folder != NULL && list != NULL)
        src_folder_each(n->folder, add_file, list);
    return list;
}

static json_t *evictions(void *arg, struct err *e)
{
    json_t *list = eviction_records(arg);

    if (list == NULL)
        err_nomem(e);
    return list;
}

static json_t *placements(void *arg, struct err *e)
{
    json_t *list = placements_json(arg);

    if (list == NULL)
        err_nomem(e);
    return list;
}

static json_t *provider_config(void *arg, struct err *e)
{
    struct node *n = arg;
    json_t *o = n->o.config != NULL ? n->o.config(n->o.config_arg) : json_object();

    if (o == NULL)
        err_nomem(e);
    return o;
}

static json_t *provider_kubeconfig(void *arg, struct err *e)
{
    struct node *n = arg;

    if (n->o.kubeconfig != NULL)
        return n->o.kubeconfig(n->o.config_arg, e);
    err_set(e, ERR_NOT_FOUND, "there is no local API");
    return NULL;
}

/* ---- life ---- */

bool provider_busy(const struct node *n)
{
    return provider_images_busy(n) || provider_writes_busy(n) || !TAILQ_EMPTY(&show_node(n)->execs);
}

void provider_cancel(struct node *n)
{
    provider_images_cancel(n);
    provider_exec_cancel_all(n);
}

/* ---- logs, readiness, metrics ---- */

struct ctr *provider_find_container(struct pod *p, const char *name, struct err *e)
{
    if (name == NULL) {
        if (p->api->spec.n_containers == 1 ||
            api_kvs_get(&p->api->meta.annotations, "kubectl.kubernetes.io/default-container") == NULL) {
            if (p->api->spec.n_containers > 1) {
                buf_auto b = BUF_INIT(16 * 1024);
                for (size_t i = 0; i < p->n_ctrs; i++)
                    buf_addf(&b, "%s%s", i > 0 ? " " : "", p->ctrs[i]->spec->name);
                err_set(e, ERR_INVALID, "a container name must be specified for pod %s, choose one of: [%s]",
                        p->api->meta.name, b.p);
                return NULL;
            }
            return p->ctrs[p->api->spec.n_init_containers];
        }
        name = api_kvs_get(&p->api->meta.annotations, "kubectl.kubernetes.io/default-container");
    }
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (strcmp(p->ctrs[i]->spec->name, name) == 0)
            return p->ctrs[i];
    err_set(e, ERR_INVALID, "container %s is not valid for pod %s", name, p->api->meta.name);
    return NULL;
}

static enum err_code log_path(void *arg, const char *namespace_, const char *name, const char *container,
                              bool previous, char *ret, size_t size, bool *ret_running, struct err *e)
{
    struct pod *p = pods_find(arg, namespace_, name);
    const struct instance *i;
    struct ctr *c;

    if (p == NULL)
        return err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    c = provider_find_container(p, container, e);
    if (c == NULL)
        return e->code;
    if (previous &&
        (c->last.id[0] == '\0' && !(c->cur.ended && ctr_restart_wanted(c) && p->state < POD_TERMINATING)))
        return err_set(e, ERR_PRECONDITION, "previous terminated container \"%s\" in pod \"%s\" not found",
                       c->spec->name, name);
    /* An ended instance is the previous run as soon as the next one is pending, as in the status. */
    i = previous && c->last.id[0] != '\0' && !(c->cur.ended && c->waiting_reason[0] != '\0') ? &c->last
                                                                                             : &c->cur;
    if (i->id[0] == '\0')
        return err_set(e, ERR_PRECONDITION, "container \"%s\" in pod \"%s\" is waiting to start: %s",
                       c->spec->name, name,
                       c->waiting_reason[0] != '\0'         ? c->waiting_reason
                       : p->api->spec.n_init_containers > 0 ? "PodInitializing"
                                                            : "ContainerCreating");
    if (!ctr_log_path(c, i->attempt, ret, size))
        return err_set(e, ERR_INVALID, "path of the log is too long");
    *ret_running = i == &c->cur && !i->ended;
    return ERR_OK;
}

static void provider_check(json_t *list, const char *name, bool ok, const char *message)
{
    json_t *o = json_object();

    json_put_str(o, "name", name);
    json_object_set_new(o, "ok", json_boolean(ok));
    json_put_str(o, "message", message);
    json_array_append_new(list, o);
}

static json_t *ready(void *arg, bool *ret_ready)
{
    struct node *n = arg;
    json_t *o = json_object(), *list = json_array();
    const char *why = NULL;
    bool network = cni_default_network(n->o.cni, &why) != NULL;

    provider_check(list, "sources", n->sources_ready,
                   n->sources_ready ? NULL : "the manifests have not been read yet");
    provider_check(list, "network", network, network ? NULL : why);
    if (shutdown_now(n))
        provider_check(list, "shutdown", false, "node is shutting down");
    json_object_set_new(o, "checks", list);
    *ret_ready = n->sources_ready && network && !shutdown_now(n);
    return o;
}

/* The first page, except usage. */
static void metrics_of_agent(struct node *n, struct buf *out)
{
    unsigned states[POD_TERMINATED + 1] = { 0 }, running = 0, restarts = 0;

    pods_each (n, p) {
        states[p->state]++;
        for (size_t i = 0; i < p->n_ctrs; i++) {
            running += p->ctrs[i]->state == CTR_RUNNING;
            restarts += p->ctrs[i]->restarts;
        }
    }
    buf_adds(out, "# HELP coracle_pods Pods by worker state.\n# TYPE coracle_pods gauge\n");
    for (int s = POD_PENDING; s <= POD_TERMINATED; s++)
        buf_addf(out, "coracle_pods{state=\"%s\"} %u\n", pod_state_name((enum pod_state)s), states[s]);
    buf_addf(
        out,
        "# HELP coracle_containers_running Running containers.\n# TYPE coracle_containers_running gauge\n"
        "coracle_containers_running %u\n",
        running);
    buf_addf(out,
             "# HELP coracle_container_restarts Restarts of known containers.\n"
             "# TYPE coracle_container_restarts gauge\ncoracle_container_restarts %u\n",
             restarts);
    buf_addf(out,
             "# HELP coracle_operations Operations in progress.\n# TYPE coracle_operations "
             "gauge\ncoracle_operations %zu\n",
             op_count());
    if (shutdown_is_on(n))
        shutdown_metrics(n, out);
    agent_metrics(n, out);
    network_metrics(n, out);
    if (n->cluster != NULL)
        n->cluster->metrics(out, n->cluster->arg);
    podresources_metrics(n, out);
    devices_metrics(n, out);
    placements_metrics(n, out);
    image_gc_metrics(n, out);
    eviction_metrics(n, out);
    project_metrics(n, out);
    volume_metrics(n, out);
}

static void metrics(void *arg, enum status_metrics which, struct buf *own, struct status_reply *r)
{
    if (which == METRICS_PROBES) { /* counted here: nothing is read */
        probes_metrics(arg, own);
        agent_metrics_start_time(own);
        status_reply_text(r, own);
        return;
    }
    if (which == METRICS_ALL)
        metrics_of_agent(arg, own);
    scrape_start(arg, which, own, r);
}

static void stats(void *arg, bool basic, struct status_reply *r)
{
    usage_summary(arg, basic, r);
}

void provider_init(struct node *n)
{
    show_node(n)->provider = (struct status_provider){
        .arg = n,
        .keys = provider_keys,
        .listed = provider_listed,
        .pod = pod,
        .pod_restart = pod_restart,
        .pod_debug = pod_debug,
        .explain = explain,
        .manifests = manifests,
        .evictions = evictions,
        .placements = placements,
        .config = provider_config,
        .whole = provider_whole,
        .stored = provider_stored,
        .write = provider_write,
        .kubeconfig = provider_kubeconfig,
        .objects = provider_objects,
        .ready = ready,
        .log_path = log_path,
        .image_add = provider_image_add,
        .image_progress = provider_image_progress,
        .image_remove = provider_image_remove,
        .image_task = provider_image_task,
        .exec_check = provider_exec_check,
        .exec = provider_exec,
        .exec_cancel = provider_exec_cancel,
        .forward = provider_forward,
        .archive = provider_archive,
        .attach = provider_attach,
        .attach_resize = rt_attach_resize,
        .metrics = metrics,
        .stats = stats,
    };
}

const struct status_provider *node_provider(struct node *n)
{
    return &show_node(n)->provider;
}
