/* The pod as the API shows it: phase, conditions, container statuses (pkg/kubelet/kubelet_pods.go,
 * status/generate.go). */
#include "agent/api/oom_kill.h"
#include "agent/pod/ctr_limits.h"
#include "agent/pod/env_age.h"
#include "agent/pod/preempt.h"
#include "agent/pod/probes.h"
#include "agent/pod/resize.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>

/* Conditions in the order in which kubelet emits them. */
enum { C_READY_TO_START, C_INITIALIZED, C_READY, C_CONTAINERS_READY, C_SCHEDULED, C_ALL_RESTARTING };

static void put_time(json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(ns, text);
    json_object_set_new(o, key, json_string(text));
}

static bool is_up(const struct ctr *c)
{
    return c->state == CTR_RUNNING || c->state == CTR_PRESTOP || c->state == CTR_STOPPING ||
           c->state == CTR_KILLING;
}

/* A postStart hook is part of the start: until it is over, what was before is shown, as by kubelet. */
static bool is_hidden(const struct ctr *c)
{
    return is_up(c) && c->post != POST_NONE;
}

static bool is_running(const struct ctr *c)
{
    return is_up(c) && !is_hidden(c);
}

bool ctr_started(const struct ctr *c)
{
    return is_running(c) && (c->spec->startup == NULL || probes_result(c, PROBE_STARTUP) == RESULT_SUCCESS);
}

bool ctr_ready(const struct ctr *c)
{
    if (c->kind == CTR_INIT)
        return c->cur.ended && c->cur.exit_code == 0;
    return ctr_started(c) &&
           (c->spec->readiness == NULL || probes_result(c, PROBE_READINESS) == RESULT_SUCCESS);
}

const char *pod_phase(const struct pod *p)
{
    bool any_running = false, any_waiting = false;

    if (p->phase[0] != '\0' && (p->state == POD_TERMINATED || p->rejected))
        return p->phase;
    if (p->state == POD_PENDING)
        return "Pending";
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = &p->ctrs[i];
        if (c->kind == CTR_INIT && !p->initialized && !(c->cur.ended && c->cur.exit_code == 0))
            return "Pending";
        if (c->kind != CTR_REGULAR)
            continue;
        if (is_running(c) || c->cur.ended || c->last.ended) /* between two runs a pod stays Running */
            any_running = true;
        else
            any_waiting = true;
    }
    return any_waiting || !any_running ? "Pending" : "Running";
}

/* ---- containers ------------------------------------------------------------------------------------------
 */

static json_t *terminated(const struct instance *i)
{
    json_t *o = json_object(), *state = json_object();
    str_auto id = str_printf("coracle://%s", i->id);

    json_object_set_new(o, "exitCode", json_integer(i->exit_code));
    json_put_str(o, "reason", i->reason);
    json_put_str(o, "message", i->message);
    put_time(o, "startedAt", i->started_ns != 0 ? i->started_ns : i->created_ns);
    put_time(o, "finishedAt", i->finished_ns);
    json_put_str(o, "containerID", id);
    json_object_set_new(state, "terminated", o);
    return state;
}

static json_t *waiting(const char *reason, const char *message)
{
    json_t *o = json_object(), *state = json_object();

    json_put_str(o, "reason", reason);
    json_put_str(o, "message", message);
    json_object_set_new(state, "waiting", o);
    return state;
}

static json_t *running(const struct instance *i)
{
    json_t *o = json_object(), *state = json_object();

    put_time(o, "startedAt", i->started_ns);
    json_object_set_new(state, "running", o);
    return state;
}

static json_t *resource_list(const struct api_resource_list *l)
{
    json_t *o = json_object();

    for (size_t i = 0; i < l->n; i++) {
        char text[QUANTITY_TEXT_SIZE];
        quantity_format(&l->v[i].amount, text);
        json_put_str(o, l->v[i].name, text);
    }
    return o;
}

/* In force: kubelet reads a running container's memory limit back from the cgroup, in bytes with binary
 * units. */
static json_t *resources_json(const struct api_resources *r, bool is_running)
{
    json_t *o = json_object();
    const struct quantity *memory = api_resource_get(&r->limits, "memory");

    if (r->limits.n > 0)
        json_object_set_new(o, "limits", resource_list(&r->limits));
    if (is_running && memory != NULL && !quantity_is_zero(memory)) {
        struct quantity bytes = quantity_from_int(quantity_value(memory), QUANTITY_BINARY_SI);
        char text[QUANTITY_TEXT_SIZE];
        quantity_format(&bytes, text);
        json_put_str(json_object_get(o, "limits"), "memory", text);
    }
    if (r->requests.n > 0)
        json_object_set_new(o, "requests", resource_list(&r->requests));
    return o;
}

/* The pod's sums, of each resource that a container or the pod itself names. */
static json_t *pod_resource_list(const struct pod *p, bool limits)
{
    const struct api_pod_spec *s = &p->api->spec;
    json_t *o = json_object();

    for (size_t i = 0; i <= p->n_ctrs; i++) {
        const struct api_resources *r = i < p->n_ctrs ? &p->ctrs[i].spec->resources : &s->resources;
        const struct api_resource_list *l = limits ? &r->limits : &r->requests;
        for (size_t k = 0; k < l->n; k++) {
            struct quantity q = limits ? resources_pod_limit(p->api, l->v[k].name, NULL)
                                       : resources_pod_request(p->api, l->v[k].name);
            char text[QUANTITY_TEXT_SIZE];
            quantity_format(&q, text);
            json_put_str(o, l->v[k].name, text);
        }
    }
    return o;
}

static void put_unless_empty(json_t *o, const char *key, json_t *value)
{
    if (json_object_size(value) > 0)
        json_object_set(o, key, value);
    json_decref(value);
}

static void put_pod_resources(const struct pod *p, json_t *status)
{
    json_t *resources;

    put_unless_empty(status, "allocatedResources", pod_resource_list(p, false));
    if (p->state == POD_TERMINATED)
        return;
    resources = json_object();
    put_unless_empty(resources, "limits", pod_resource_list(p, true));
    put_unless_empty(resources, "requests", pod_resource_list(p, false));
    json_object_set_new(status, "resources", resources);
}

/* Which image an image volume shows: volumeStatus.image.imageRef. */
static void add_volume_status(const struct pod *p, const char *volume, json_t *o)
{
    const struct pod_image *image;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        if (v->kind != API_VOL_IMAGE || strcmp(v->name, volume) != 0)
            continue;
        image = images_find(p, v->image_reference);
        if (image != NULL && image->image != NULL)
            json_object_set_new(o, "volumeStatus",
                                json_pack("{s:{s:s}}", "image", "imageRef", image->image->digest));
    }
}

/* What came of it: IfPossible is never shown. */
static const char *recursive_read_only(const struct pod *p, const struct api_volume_mount *m)
{
    if (str_eq(m->recursive_read_only, "IfPossible"))
        return p->node->rt != NULL && rt_features(p->node->rt)->recursive_read_only ? "Enabled" : "Disabled";
    return m->recursive_read_only != NULL ? m->recursive_read_only : "Disabled";
}

static json_t *mounts_json(const struct pod *p, const struct api_container *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_mounts; i++) {
        const struct api_volume_mount *m = &s->mounts[i];
        json_t *o = json_object();
        json_put_str(o, "name", m->name);
        json_put_str(o, "mountPath", m->mount_path);
        if (m->read_only) {
            json_object_set_new(o, "readOnly", json_true());
            json_put_str(o, "recursiveReadOnly", recursive_read_only(p, m));
        }
        add_volume_status(p, m->name, o);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *container_json(const struct ctr *c)
{
    const struct pod *p = c->pod;
    json_t *o = json_object(), *state, *last = NULL;
    const struct instance none = { 0 }, *cur = is_hidden(c) ? &c->last : &c->cur,
                          *before = is_hidden(c) ? &none : &c->last;
    const struct instance *shown = cur->id[0] != '\0' ? cur : NULL;
    str_auto id = shown != NULL ? str_printf("coracle://%s", shown->id) : NULL;
    bool over = p->state == POD_TERMINATED || p->state == POD_TERMINATING;

    if (is_running(c)) {
        state = running(cur);
    } else if (cur->ended && (over || c->waiting_reason[0] == '\0')) {
        state = terminated(cur);
    } else if (cur->ended) { /* due to restart: what ended moves to lastState */
        state = waiting(c->waiting_reason, c->waiting_message);
        last = terminated(cur);
    } else if (p->state == POD_TERMINATED && c->kind == CTR_REGULAR &&
               (p->initialized || p->api->spec.n_init_containers == 0)) {
        json_t *t = json_object();
        state = json_object();
        json_object_set_new(t, "exitCode", json_integer(137));
        json_put_str(t, "reason", "ContainerStatusUnknown");
        json_put_str(t, "message", "The container could not be located when the pod was terminated");
        json_object_set_new(t, "startedAt", json_null());
        json_object_set_new(t, "finishedAt", json_null());
        json_object_set_new(state, "terminated", t);
    } else if (c->waiting_reason[0] != '\0') {
        state = waiting(c->waiting_reason, c->waiting_message);
    } else {
        state = waiting(p->api->spec.n_init_containers > 0 ? "PodInitializing" : "ContainerCreating", NULL);
    }
    if (last == NULL)
        last = before->id[0] != '\0' && before->ended ? terminated(before) : json_object();

    json_put_str(o, "name", c->spec->name);
    json_object_set_new(o, "state", state);
    json_object_set_new(o, "lastState", last);
    json_object_set_new(o, "ready", json_boolean(ctr_ready(c)));
    json_object_set_new(o, "restartCount", json_integer(is_hidden(c) ? cur->attempt : c->restarts));
    json_put_str(o, "image", c->spec->image);
    json_object_set_new(o, "imageID",
                        json_string(shown != NULL && shown->image_id != NULL ? shown->image_id : ""));
    json_put_str(o, "containerID", id);
    json_object_set_new(o, "started", json_boolean(ctr_started(c)));
    if (shown != NULL) {
        json_t *resources = resources_json(&c->spec->resources, is_running(c));
        if (is_running(c))
            resize_actual(c, resources);
        json_object_set_new(o, "resources", resources);
    }
    if (shown != NULL && c->spec->resources.requests.n > 0)
        json_object_set_new(o, "allocatedResources", resource_list(&c->spec->resources.requests));
    if (c->spec->n_mounts > 0)
        json_object_set_new(o, "volumeMounts", mounts_json(p, c->spec));
    return o;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct ctr *const *)a)->spec->name, (*(const struct ctr *const *)b)->spec->name);
}

static void put_containers(struct pod *p, json_t *status)
{
    json_t *init = json_array(), *regular = json_array();
    const struct ctr **sorted = calloc(p->n_ctrs + 1, sizeof(*sorted));
    size_t n = 0;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (p->ctrs[i].kind != CTR_REGULAR)
            json_array_append_new(init, container_json(&p->ctrs[i])); /* in spec order */
        else if (sorted != NULL)
            sorted[n++] = &p->ctrs[i];
    }
    if (sorted != NULL)
        qsort(sorted, n, sizeof(*sorted), by_name);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(regular, container_json(sorted[i]));
    free(sorted);
    if (json_array_size(init) > 0)
        json_object_set(status, "initContainerStatuses", init);
    json_decref(init);
    json_object_set_new(status, "containerStatuses", regular);
}

/* ---- conditions -------------------------------------------------------------------------------------------
 */

static void note(struct pod *p, int index, bool is_true)
{
    const char *status = is_true ? "True" : "False";

    if (strcmp(p->conditions[index].status, status) == 0)
        return; /* the time changes only with the status */
    snprintf(p->conditions[index].status, sizeof(p->conditions[index].status), "%s", status);
    p->conditions[index].since_ns = clock_wall_ns();
    p->record_dirty = true;
}

static void put_condition(const struct pod *p, json_t *list, int index, const char *type, bool is_true,
                          const char *reason, const char *message)
{
    json_t *o = json_object();
    const char *status = is_true ? "True" : "False";

    json_put_str(o, "type", type);
    json_object_set_new(o, "observedGeneration", json_integer(p->api->meta.generation));
    json_put_str(o, "status", status);
    json_object_set_new(o, "lastProbeTime", json_null());
    put_time(o, "lastTransitionTime", p->conditions[index].since_ns);
    json_put_str(o, "reason", reason);
    json_put_str(o, "message", message);
    json_array_append_new(list, o);
}

static bool is_unfinished(const struct ctr *c, bool ready)
{
    if (ready)
        return c->kind != CTR_INIT && !ctr_ready(c);
    return (c->kind == CTR_INIT && !ctr_ready(c)) || (c->kind == CTR_SIDECAR && !ctr_started(c));
}

/* The status that a readiness gate asks about; NULL: there is no such condition.  Nobody but the agent sets
 * any. */
static const char *gate_status(const struct pod *p, const char *type)
{
    static const char *const types[] = {
        "PodReadyToStartContainers", "Initialized",  "Ready",
        "ContainersReady",           "PodScheduled", "AllContainersRestarting"
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i], type) == 0)
            return p->conditions[i].status;
    return NULL;
}

/* What readiness gates miss, in kubelet's words; NULL: nothing. */
static char *closed_gates(const struct pod *p)
{
    buf_auto b = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < p->api->spec.n_readiness_gates; i++) {
        const char *type = p->api->spec.readiness_gates[i].condition_type, *status = gate_status(p, type);
        if (status == NULL)
            buf_addf(&b, "%scorresponding condition of pod readiness gate \"%s\" does not exist.",
                     b.n > 0 ? ", " : "", type);
        else if (strcmp(status, "True") != 0)
            buf_addf(&b, "%sthe status of pod readiness gate \"%s\" is not \"True\", but %s",
                     b.n > 0 ? ", " : "", type, status);
    }
    return b.n > 0 ? buf_detach(&b) : NULL;
}

/* "containers with unready status: [a b]"; NULL when all are fine. */
static char *unfinished(const struct pod *p, bool ready)
{
    buf_auto b = BUF_INIT(64 * 1024);
    size_t n = 0;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = &p->ctrs[i];
        if (is_unfinished(c, ready))
            buf_addf(&b, "%s%s", n++ > 0 ? " " : "", c->spec->name);
    }
    return n == 0 ? NULL
                  : str_printf("containers with %s status: [%s]", ready ? "unready" : "incomplete", b.p);
}

/*
 * Volumes and network are set up side by side here, volumes first in kubelet: a network that waits for the
 * volumes is not told, so that "ready to start containers" means what it says.
 */
static bool network_shown(const struct pod *p)
{
    return p->vols == VOLS_READY || p->initialized || p->state == POD_TERMINATING ||
           p->state == POD_TERMINATED;
}

static bool ready_to_start(const struct pod *p)
{
    return p->net == NET_READY && network_shown(p);
}

void pod_note_conditions(struct pod *p)
{
    bool over = strcmp(pod_phase(p), "Succeeded") == 0 || strcmp(pod_phase(p), "Failed") == 0;
    bool initialized = true, ready = !over;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        ready = ready && !is_unfinished(&p->ctrs[i], true);
        initialized = initialized && (p->initialized || !is_unfinished(&p->ctrs[i], false));
    }
    note(p, C_READY_TO_START, ready_to_start(p));
    note(p, C_INITIALIZED, initialized);
    note(p, C_CONTAINERS_READY, ready);
    note(p, C_SCHEDULED, true);
    note(p, C_ALL_RESTARTING, !over && restart_all_wanted(p));
    str_auto gates = closed_gates(p);
    note(p, C_READY, ready && gates == NULL);
}

/* No silent subset: what of the manifest is not acted on stands in the status.  NULL: nothing. */
static json_t *ignored_condition(const struct pod *p)
{
    buf_auto b = BUF_INIT(64 * 1024);
    json_t *o;

    for (size_t i = 0; i < p->api->ignored.n; i++)
        buf_addf(&b, "%s%s", i > 0 ? "; " : "", p->api->ignored.v[i]);
    if (oom_kill_cannot(p))
        buf_addf(&b,
                 "%smetadata.annotations[" API_OOM_KILL "]: needs cgroup v2; on v1 a kill takes one process",
                 b.n > 0 ? "; " : "");
    if (b.n == 0)
        return NULL;
    o = json_object();
    json_put_str(o, "type", "coracle.dev/FieldsIgnored");
    json_put_str(o, "status", "True");
    put_time(o, "lastTransitionTime", p->start_time_ns != 0 ? p->start_time_ns : p->state_since_ns);
    json_put_str(o, "reason", "NotActedOn");
    json_put_str(o, "message", b.p);
    return o;
}

static json_t *conditions_json(struct pod *p)
{
    json_t *list = json_array();
    const char *phase = pod_phase(p);
    bool over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    str_auto unready = unfinished(p, true);
    str_auto incomplete = p->initialized ? NULL : unfinished(p, false);
    const char *why = over              ? (phase[0] == 'S' ? "PodCompleted" : "PodFailed")
                      : unready != NULL ? "ContainersNotReady"
                                        : NULL;
    const char *message = over ? NULL : unready;

    pod_note_conditions(p);
    resize_conditions(p, list);
    /* Only when its turn has come: before, what fails is the sandbox, of which kubelet's condition says
     * nothing. */
    bool no_network = !ready_to_start(p) && !over && p->net >= NET_PINNED && p->net_error[0] != '\0';
    put_condition(p, list, C_READY_TO_START, "PodReadyToStartContainers", ready_to_start(p),
                  no_network ? "NetworkNotReady" : NULL, no_network ? p->net_error : NULL);
    put_condition(p, list, C_INITIALIZED, "Initialized", incomplete == NULL,
                  incomplete != NULL ? "ContainersNotInitialized"
                  : phase[0] == 'S'  ? "PodCompleted"
                                     : NULL,
                  incomplete);
    str_auto gates = why == NULL ? closed_gates(p) : NULL;
    if (gates != NULL)
        put_condition(p, list, C_READY, "Ready", false, "ReadinessGatesNotReady", gates);
    else
        put_condition(p, list, C_READY, "Ready", why == NULL, why, message);
    put_condition(p, list, C_CONTAINERS_READY, "ContainersReady", why == NULL, why, message);
    put_condition(p, list, C_SCHEDULED, "PodScheduled", true, NULL, NULL);
    if (restart_all_possible(p)) {
        bool now = !over && restart_all_wanted(p);
        put_condition(p, list, C_ALL_RESTARTING, "AllContainersRestarting", now,
                      now    ? "RestartAllContainersStarted"
                      : over ? why
                             : NULL,
                      now ? "container exited with restart policy rule" : NULL);
    }
    if ((p->shutdown_ns != 0 || p->preempted_ns != 0) && p->state == POD_TERMINATED) {
        json_t *o = json_object();
        json_put_str(o, "type", "DisruptionTarget");
        json_object_set_new(o, "observedGeneration", json_integer(p->api->meta.generation));
        json_put_str(o, "status", "True");
        json_object_set_new(o, "lastProbeTime", json_null());
        put_time(o, "lastTransitionTime", p->shutdown_ns != 0 ? p->shutdown_ns : p->preempted_ns);
        json_put_str(o, "reason", "TerminationByKubelet");
        json_put_str(o, "message", p->shutdown_ns != 0 ? p->message : PREEMPT_CONDITION);
        json_array_append_new(list, o);
    }
    json_t *ignored = ignored_condition(p);
    if (ignored != NULL)
        json_array_append_new(list, ignored);
    if (p->overlaps != NULL)
        json_array_append_new(list, volumes_overlaps_json(p));
    json_t *outdated = env_age_condition(p);
    if (outdated != NULL)
        json_array_append_new(list, outdated);
    return list;
}

/* ---- the whole
 * --------------------------------------------------------------------------------------------- */

static void put_ips(json_t *status, const char *one, const char *many, const char (*ips)[46], size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *o = json_object();
        json_put_str(o, "ip", ips[i]);
        json_array_append_new(list, o);
    }
    if (n > 0) {
        json_put_str(status, one, ips[0]);
        json_object_set(status, many, list);
    }
    json_decref(list);
}

static json_t *status_json(struct pod *p)
{
    json_t *s = json_object();
    char host[1][46];

    json_object_set_new(s, "observedGeneration", json_integer(p->api->meta.generation));
    json_put_str(s, "phase", pod_phase(p));
    if (!p->rejected)
        json_object_set_new(s, "conditions", conditions_json(p));
    if (p->state != POD_TERMINATING) { /* a verdict is told with its phase, when nothing runs any more */
        json_put_str(s, "message", p->message);
        json_put_str(s, "reason", p->reason);
    }
    if (p->admitted && p->node->o.node_ip[0] != '\0') {
        snprintf(host[0], sizeof(host[0]), "%s", p->node->o.node_ip);
        put_ips(s, "hostIP", "hostIPs", (const char(*)[46])host, 1);
        if (p->api->spec.host_network && network_shown(p) && p->net == NET_READY)
            put_ips(s, "podIP", "podIPs", (const char(*)[46])host, 1);
    }
    if (!p->api->spec.host_network && network_shown(p))
        put_ips(s, "podIP", "podIPs", (const char(*)[46])p->net_result.ips, p->net_result.n_ips);
    if (p->start_time_ns != 0)
        put_time(s, "startTime", p->start_time_ns);
    if (!p->rejected && p->admitted)
        put_containers(p, s);
    json_put_str(s, "qosClass", api_qos_name(p->api->qos));
    if (!p->rejected && p->admitted)
        put_pod_resources(p, s);
    return s;
}

json_t *pod_status_json(struct pod *p)
{
    json_t *o = NULL, *meta, *spec;
    struct err e = { 0 };

    const char *manifest = resize_desired(p)->json;

    if (json_parse(manifest, strlen(manifest), SIZE_MAX, &o, "manifest", &e) != ERR_OK)
        return NULL;
    meta = json_object_get(o, "metadata");
    spec = json_object_get(o, "spec");
    json_put_str(meta, "uid", p->uid);
    put_time(meta, "creationTimestamp", p->created_ns);
    if (p->deletion_ns != 0) {
        put_time(meta, "deletionTimestamp", p->deletion_ns + p->grace_seconds * INT64_C(1000000000));
        /* kubelet's last word is a delete with grace 0 */
        json_object_set_new(meta, "deletionGracePeriodSeconds",
                            json_integer(p->state == POD_TERMINATED ? 0 : p->grace_seconds));
    }
    json_put_str(spec, "nodeName", p->node->o.node_name);
    if (p->priority != 0 || p->api->spec.priority_class_name != NULL)
        json_object_set_new(spec, "priority", json_integer(p->priority));
    json_object_set_new(o, "status", status_json(p));
    return o;
}

void pod_show(struct pod *p, const char *type)
{
    struct node *n = p->node;
    json_t *o;

    if (n->server == NULL || !status_server_has_watchers(n->server))
        return;
    o = pod_status_json(p);
    if (o == NULL)
        return;
    if (strcmp(type, "MODIFIED") == 0) { /* nothing new to see: nothing is sent */
        str_auto text = json_text(o);
        uint64_t h = 14695981039346656037ULL;
        char shown[sizeof(p->shown_hash)];
        for (const char *c = text; c != NULL && *c != '\0'; c++)
            h = (h ^ (unsigned char)*c) * 1099511628211ULL;
        snprintf(shown, sizeof(shown), "%016llx", (unsigned long long)h);
        if (strcmp(shown, p->shown_hash) == 0) {
            json_decref(o);
            return;
        }
        memcpy(p->shown_hash, shown, sizeof(shown));
    }
    status_server_pod_event(n->server, type, o);
    json_decref(o);
}
