/* SPDX-License-Identifier: Apache-2.0 */
/* Admission on the node: kubelet's general predicates (pkg/kubelet/lifecycle/predicate.go), in its order and
 * words. */
#include "agent/api/sysctls.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/node_labels.h"
#include "agent/pod/core/node_written.h"
#include "agent/pod/eviction/eviction.h"
#include "agent/pod/limits/admission_fit.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>

#include <string.h>

static enum err_code admission_refuse(char reason[64], const char *why, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
static enum err_code admission_refuse(char reason[64], const char *why, struct err *e, const char *fmt, ...)
{
    va_list ap;

    snprintf(reason, 64, "%s", why);
    e->code = ERR_PRECONDITION;
    e->sys = 0;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return e->code;
}

/* ---- AppArmor (pkg/security/apparmor) ---- */

static bool confines(const struct api_apparmor *a)
{
    return a->type != NULL && strcmp(a->type, "Unconfined") != 0;
}

static bool wants_apparmor(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (confines(&p->ctrs[i]->spec->security.apparmor))
            return true;
    return confines(&p->api->spec.security.apparmor);
}

static bool apparmor_is_on(void)
{
    struct err e = { 0 };
    str_auto text = NULL;

    return fs_read_at(AT_FDCWD, "/sys/module/apparmor/parameters/enabled", FS_SMALL_MAX, &text, NULL, &e) ==
               ERR_OK &&
           text[0] == 'Y';
}

/* ---- resources ---- */

static bool is_extended(const struct shortage *s)
{
    return strchr(s->resource, '/') != NULL;
}

/* The first shortage of resources that are extended or not; NULL: there is none. */
static const struct shortage *first_shortage(const struct pod *p, bool ending, bool extended,
                                             struct shortage lacks[ADMISSION_FIT_SHORTAGES_MAX])
{
    size_t n = admission_fit_shortages(p, p->api, ending, lacks);

    for (size_t i = 0; i < n; i++)
        if (is_extended(&lacks[i]) == extended)
            return &lacks[i];
    return NULL;
}

/* ERR_EXHAUSTED: something is missing that would not be available even after others end. ERR_UNAVAILABLE:
 * waiting for them is sufficient. */
static enum err_code check_resources(const struct pod *p, bool extended, char reason[64], struct err *e)
{
    struct shortage lacks[ADMISSION_FIT_SHORTAGES_MAX], left[ADMISSION_FIT_SHORTAGES_MAX];
    const struct shortage *lack = first_shortage(p, true, extended, lacks);
    char text[ADMISSION_FIT_TEXT_SIZE];

    if (lack == NULL)
        return ERR_OK;
    if (first_shortage(p, false, extended, left) == NULL)
        return err_set(e, ERR_UNAVAILABLE, "waits for %.100s: %zu pods are ending",
                       strcmp(lack->resource, "pods") == 0 ? "a place" : lack->resource,
                       admission_fit_ending(p));
    admission_fit_text(p->node, lack, text);
    admission_refuse(reason, "OutOf", e, "%s", text);
    snprintf(reason, 64, "OutOf%.57s", lack->resource);
    e->code = ERR_EXHAUSTED;
    return e->code;
}

/* ---- node selector, name, ports, taints ---- */

static bool fits_node(const struct node *n, const struct api_pod_spec *s)
{
    struct api_kvs labels = { 0 };

    if (n->served_labels != NULL)
        return api_pod_fits_node(s, n->o.node_name, n->served_labels);
    mem_auto struct api_kv *v = labels.v = node_labels(n, &labels.n);

    return v != NULL && api_pod_fits_node(s, n->o.node_name, &labels);
}

static bool same_address(const char *a, const char *b)
{
    bool any_a = a == NULL || a[0] == '\0' || strcmp(a, "0.0.0.0") == 0;
    bool any_b = b == NULL || b[0] == '\0' || strcmp(b, "0.0.0.0") == 0;

    return any_a || any_b || strcmp(a, b) == 0;
}

/* The i-th container, if it runs as long as the pod (a regular one, a sidecar); otherwise NULL. */
static const struct api_container *lasting(const struct api_pod_spec *s, size_t i)
{
    if (i >= s->n_init_containers)
        return &s->containers[i - s->n_init_containers];
    return s->init_containers[i].restart_policy == API_RESTART_ALWAYS ? &s->init_containers[i] : NULL;
}

static bool has_port(const struct api_pod_spec *s, const struct api_port *x)
{
    for (size_t i = 0; i < s->n_init_containers + s->n_containers; i++) {
        const struct api_container *c = lasting(s, i);
        for (size_t k = 0; c != NULL && k < c->n_ports; k++)
            if (x->host_port == c->ports[k].host_port && strcmp(x->protocol, c->ports[k].protocol) == 0 &&
                same_address(x->host_ip, c->ports[k].host_ip))
                return true;
    }
    return false;
}

/* A port of `a` that is also in `b`, or NULL. */
static const struct api_port *clashing_port(const struct api_pod *a, const struct api_pod *b)
{
    const struct api_pod_spec *s = &a->spec;

    for (size_t i = 0; i < s->n_init_containers + s->n_containers; i++) {
        const struct api_container *c = lasting(s, i);
        for (size_t k = 0; c != NULL && k < c->n_ports; k++)
            if (c->ports[k].host_port != 0 && has_port(&b->spec, &c->ports[k]))
                return &c->ports[k];
    }
    return NULL;
}

/* A pod of the cluster that is refused is over, one of the folder loses its emptyDirs. */
static bool served_may_come(const struct node *n)
{
    const struct node_cluster *c = n->cluster;

    return n->served_labels == NULL && c != NULL && c->served_may_come != NULL && c->served_may_come(c->arg);
}

static enum err_code check_labels(const struct node *n, const struct api_pod_spec *s, char reason[64],
                                  struct err *e)
{
    if (fits_node(n, s))
        return ERR_OK;
    if (served_may_come(n))
        return err_set(e, ERR_UNAVAILABLE, "waits for the node's labels from the apiserver");
    return admission_refuse(
        reason, "NodeAffinity", e,
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
}

/* Taints of the settings apply to every pod, taints written to the Node of a node without a cluster only to
 * pods of workloads: the others are like kubelet's static pods. */
static bool is_tolerable(const struct node *n, const struct api_pod *api)
{
    size_t n_taints = 0;
    const struct api_taint *taints = node_taints(n, &n_taints);

    if (n->served_labels != NULL)
        return api_pod_untolerated(&api->spec, n->served_taints, n->n_served_taints) == NULL;
    for (size_t i = 0; i < n_taints; i++)
        if ((api->owner_uid != NULL || node_taint_since_ns(n, i) == 0) &&
            api_pod_untolerated(&api->spec, &taints[i], 1) != NULL)
            return false;
    return true;
}

static enum err_code check_taints(const struct node *n, const struct api_pod *api, char reason[64],
                                  struct err *e)
{
    if (is_tolerable(n, api))
        return ERR_OK;
    if (served_may_come(n))
        return err_set(e, ERR_UNAVAILABLE, "waits for the node's taints from the apiserver");
    return admission_refuse(
        reason, "TaintToleration", e,
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate");
}

/* The part of a scheduler where there is none: a pod of a workload waits for the node, one of the folder runs
 * on any, like kubelet's static pods. One that was admitted is bound. The words are kube-scheduler's. */
enum err_code admit_schedule(const struct pod *p, struct err *e)
{
    const struct node *n = p->node;
    const struct api_taint *taint;
    size_t n_taints = 0;

    if (n->written == NULL || p->api->owner_uid == NULL || p->admitted)
        return ERR_OK;
    taint = node_taints(n, &n_taints);
    taint = api_pod_unschedulable(&p->api->spec, taint, n_taints);
    if (taint == NULL)
        return ERR_OK;
    if (strcmp(taint->key, NODE_UNSCHEDULABLE) == 0)
        return err_set(e, ERR_UNAVAILABLE, "0/1 nodes are available: 1 node(s) were unschedulable.");
    return err_set(e, ERR_UNAVAILABLE,
                   "0/1 nodes are available: 1 node(s) had untolerated taint {%.200s: %.63s}.", taint->key,
                   taint->value);
}

/* Checks that do not depend on amounts. */
static enum err_code check_node(const struct pod *p, char reason[64], struct err *e)
{
    struct node *n = p->node;
    const struct api_pod_spec *s = &p->api->spec;
    struct pod *o, *tmp;

    if (check_labels(n, s, reason, e) != ERR_OK)
        return e->code;
    if (s->node_name != NULL && s->node_name[0] != '\0' && strcmp(s->node_name, n->o.node_name) != 0)
        return admission_refuse(reason, "NodeName", e,
                                "Predicate NodeName failed: node(s) didn't match the requested node name");
    HASH_ITER (hh, n->pods, o, tmp) {
        const struct api_port *port =
            o != p && admission_fit_counts(o) ? clashing_port(p->api, o->api) : NULL;
        if (port == NULL)
            continue;
        if (o->state == POD_TERMINATING)
            return err_set(e, ERR_UNAVAILABLE, "waits for a host port: pod %s is ending", o->key);
        return admission_refuse(
            reason, "NodePorts", e,
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: %d/%s "
            "is pod %s's",
            port->host_port, port->protocol, o->key);
    }
    if (check_taints(n, p->api, reason, e) != ERR_OK)
        return e->code;
    if (wants_apparmor(p) && !apparmor_is_on())
        return admission_refuse(reason, "AppArmor", e,
                                "Cannot enforce AppArmor: AppArmor is not enabled on the host");
    if (shutdown_now(n))
        return admission_refuse(reason, "NodeShutdown", e, "Pod was rejected as the node is shutting down.");
    return ERR_OK;
}

enum err_code admit_pod(struct pod *p, char reason[64], struct err *e)
{
    const struct api_pod_spec *s = &p->api->spec;
    char other_reason[64];
    struct err other = { 0 };
    const char *label;

    if (eviction_admit(p, reason, e) != ERR_OK)
        return e->code;
    if (sysctls_admit(s, p->node->o.allowed_unsafe_sysctls, e) != ERR_OK) {
        snprintf(reason, 64, "SysctlForbidden");
        return e->code;
    }
    label = api_kvs_get(&p->api->meta.labels, "kubernetes.io/os");
    if (label != NULL && strcmp(label, "linux") != 0)
        return admission_refuse(
            reason, "PodOSSelectorNodeLabelDoesNotMatch", e,
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label");
    if (s->os_name != NULL && strcmp(s->os_name, "linux") != 0)
        return admission_refuse(reason, "PodOSNotSupported", e,
                                "Failed to admit pod as the OS field doesn't match node OS");
    check_node(p, other_reason, &other);
    if (check_resources(p, false, reason, e) == ERR_EXHAUSTED &&
        (other.code == ERR_OK || !preempt_is_critical(p)))
        return e->code;
    /* A pod that would be rejected anyway neither waits nor ends others. */
    if (other.code != ERR_OK) {
        snprintf(reason, 64, "%s", other_reason);
        *e = other;
    }
    return e->code;
}

enum err_code admit_extended(struct pod *p, char reason[64], struct err *e)
{
    return check_resources(p, true, reason, e);
}
