/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of the node itself and recent log messages, for `coracle explain node`. */
#include "agent/pod/container/container.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/image/images.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/limits/isolation.h"
#include "agent/pod/project/project.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/show/devices.h"
#include "agent/pod/show/explain.h"
#include "agent/pod/show/podresources.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/worker/pods.h"
#include "agent/pod/worker/shutdown.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/watches.h"
#include "base/grpc/client.h"
#include "base/log.h"
#include "base/process/process.h"

#include <string.h>

static void add_sources(const struct node *n, json_t *steps)
{
    explain_step(steps, "manifests", n->sources_ready ? "done" : "waiting", 0,
                 n->sources_ready ? "read" : "the folder has not been read yet", 0);
    if (n->cluster != NULL) {
        json_auto_t *c = n->cluster->explain(n->cluster->arg);

        json_auto_t *kept = n->cluster->kept(n->cluster->arg);

        explain_step(steps, "cluster", json_str(c, "state"), 0, json_str(c, "detail"), 0);
        explain_step(steps, "kept objects", json_str(kept, "state"), 0, json_str(kept, "detail"), 0);
    }
}

static void explain_node_add_network(const struct node *n, json_t *steps)
{
    const char *why = NULL;
    const char *name = cni_default_network(n->o.cni, &why);

    const char *sample = n->o.sample_network;
    str_auto text = NULL;

    if (name == NULL && sample != NULL && sample[0] != '\0' && cni_has_no_list(n->o.cni))
        text = str_printf("%s A list to begin with: %s", why, sample);
    explain_step(steps, "network", name != NULL ? "done" : "failed", 0,
                 name != NULL   ? name
                 : text != NULL ? text
                                : why,
                 0);
}

static void add_watches(const struct node *n, json_t *steps)
{
    char why[200];
    size_t polled = watches_polled(n->o.loop, why, sizeof(why));
    str_auto text =
        polled > 0 ? str_printf("%zu paths are polled every second, inotify is at a limit: %s", polled, why)
                   : NULL;

    if (polled > 0)
        explain_step(steps, "file events", "failed", 0, text != NULL ? text : why, 0);
}

/* Ignored network lists, with the reason. */
static void add_lists(const struct node *n, json_t *steps)
{
    const char *problem;

    for (size_t i = 0; (problem = cni_problem(n->o.cni, i)) != NULL; i++)
        explain_step(steps, "network list", "failed", 0, problem, 0);
}

/* Records that cannot be written: most likely a full or read-only state folder. */
static void add_records(const struct node *n, json_t *steps)
{
    const struct pod *first = NULL;
    unsigned failing = 0;

    pods_each (n, p)
        if (record_error(p) != NULL) {
            first = p;
            failing++;
        }
    str_auto text =
        first != NULL ? str_printf("%u of %zu pods: %s", failing, n->n_pods, record_error(first)) : NULL;
    explain_step(steps, "pod records", first != NULL ? "failed" : "done", 0,
                 first != NULL ? (text != NULL ? text : record_error(first)) : "written", 0);
}

static void add_missing(const char *controller, const char *disables, void *arg)
{
    str_auto name = str_printf("controller %s", controller);

    if (name != NULL)
        explain_step(arg, name, "missing", 0, disables, 0);
}

static void add_held(const char *controller, void *arg)
{
    str_auto name = str_printf("hierarchy %s", controller);

    if (name != NULL)
        explain_step(arg, name, "done", 0,
                     "held as v1 and not used: OCI runtimes reject a controller on v2 beside v1", 0);
}

/* The hierarchies, and features disabled by missing controllers. */
static void add_cgroups(const struct node *n, json_t *steps)
{
    static const char *const layouts[] = {
        [CG_V2] = "v2", [CG_V1] = "v1", [CG_HYBRID] = "v1, and v2 beside it"
    };

    explain_step(steps, "cgroups", "done", 0, layouts[cg_layout(n->o.cgroups)], 0);
    cg_missing(n->o.cgroups, add_missing, steps);
    cg_held(n->o.cgroups, add_held, steps);
}

/* Settings that were given but have no effect. */
static void add_settings(const struct node *n, json_t *steps)
{
    json_auto_t *config = n->o.config != NULL ? n->o.config(n->o.config_arg) : NULL;
    json_t *w;
    size_t i;

    json_array_foreach (json_object_get(config, "warnings"), i, w) {
        mem_auto char *value = json_dumps(json_object_get(w, "value"), JSON_ENCODE_ANY | JSON_COMPACT);
        str_auto name = str_printf("setting %s", json_str(w, "setting"));
        str_auto text = str_printf("%.200s (%s): %s", value != NULL ? value : "", json_str(w, "from"),
                                   json_str(w, "why"));

        if (name != NULL && text != NULL)
            explain_step(steps, name, "ignored", 0, text, 0);
    }
}

static void add_left_out(const struct node *n, json_t *steps)
{
    if (pods_left_out(n) != NULL)
        explain_step(steps, "pods left out", "waiting", 0, pods_left_out(n), 0);
}

static void add_left_over(const char *what, const char *id, const char *error, void *arg)
{
    str_auto name = str_printf("leftover %s", what);
    str_auto detail = error[0] == '\0' ? strdup(id)
                      : id[0] == '\0'  ? strdup(error) /* of a lookup of them */
                                       : str_printf("%.300s: %s", id, error);

    if (name != NULL && detail != NULL)
        explain_step(arg, name, error[0] != '\0' ? "failed" : "running", 0, detail, 0);
}

static void add_confinement(json_t *steps)
{
    if (proc_landlock_version() < PROC_LANDLOCK_MIN)
        explain_step(steps, "confinement of pulls", "waiting", 0, PROC_LANDLOCK_MISSING, 0);
}

static void explain_node_add_stuck(json_t *steps)
{
    size_t n = proc_left_behind();
    str_auto text = n > 0 ? str_printf("%zu: killed, but stuck in the kernel (a path that hangs)", n) : NULL;

    if (text != NULL)
        explain_step(steps, "stuck children", "waiting", 0, text, 0);
}

static void explain_node_add_operation(const struct op *op, void *arg)
{
    if (strcmp(op->name, GRPC_STREAM) != 0) /* the plugins themselves are among the steps */
        json_array_append_new(arg, explain_operation(op));
}

static void explain_node_add_said(const struct log_recent *line, void *arg)
{
    json_t *o = json_object();
    char at[CLOCK_RFC3339_SIZE];

    clock_format_us(line->at_ns, at);
    json_put_str(o, "level", line->level == LOG_LVL_ERROR ? "error" : "warning");
    json_put_str(o, "last", at);
    json_object_set_new(o, "times", json_integer(line->times));
    json_put_str(o, "text", line->text);
    json_array_append_new(arg, o);
}

json_t *explain_node_json(struct node *n)
{
    json_t *o = json_object(), *steps = json_array(), *operations = json_array(), *said = json_array();

    json_put_str(o, "node", n->o.node_name);
    json_put_str(o, "state", n->closing ? "ending" : n->draining ? "ending all pods" : "running");
    add_sources(n, steps);
    add_watches(n, steps);
    explain_node_add_network(n, steps);
    add_lists(n, steps);
    net_heal_explain(n, steps);
    add_cgroups(n, steps);
    add_records(n, steps);
    quarantine_explain(n, steps);
    node_users_explain(n, steps);
    add_left_out(n, steps);
    devices_explain_node(n, steps);
    isolation_explain_node(n, steps);
    podresources_explain(n, steps);
    containers_cdi_explain(n, steps);
    add_settings(n, steps);
    add_confinement(steps);
    explain_node_add_stuck(steps);
    shutdown_explain(n, steps);
    project_explain(n, steps);
    oom_explain(n, steps);
    image_gc_explain(n, steps);
    eviction_explain(n, steps);
    sweep_each(n, add_left_over, steps);
    op_each(explain_node_add_operation, operations);
    log_recent_each(explain_node_add_said, said);
    json_object_set_new(o, "steps", steps);
    json_object_set_new(o, "operations", operations);
    json_object_set_new(o, "said", said);
    return o;
}
