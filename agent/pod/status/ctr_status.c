/* SPDX-License-Identifier: Apache-2.0 */
/* ctr_status - the status of a pod's containers in the API: states, resources, volumes. */
#include "agent/pod/container/container.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/image/images.h"
#include "agent/pod/status/pod_status.h"

#include "agent/pod/admit/admit.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/codec/json.h"

#include <string.h>

/* ---- states ---- */

static json_t *terminated(const struct instance *i)
{
    json_t *o = json_object(), *state = json_object();
    str_auto id = str_printf(POD_RUNTIME_SCHEME "%s", i->id);

    json_object_set_new(o, "exitCode", json_integer(i->exit_code));
    json_put_str(o, "reason", i->reason);
    json_put_str(o, "message", i->message);
    status_put_time(o, "startedAt", i->started_ns != 0 ? i->started_ns : i->created_ns);
    status_put_time(o, "finishedAt", i->finished_ns);
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

    status_put_time(o, "startedAt", i->started_ns);
    json_object_set_new(state, "running", o);
    return state;
}

/* It existed, but how it ended is unknown. */
static json_t *ctr_status_lost(void)
{
    json_t *o = json_object(), *state = json_object();

    json_object_set_new(o, "exitCode", json_integer(137));
    json_put_str(o, "reason", "ContainerStatusUnknown");
    json_put_str(o, "message", "The container could not be located when the pod was terminated");
    json_object_set_new(o, "startedAt", json_null());
    json_object_set_new(o, "finishedAt", json_null());
    json_object_set_new(state, "terminated", o);
    return state;
}

/* Of the instance shown. *ret_last: an ended one due to restart is moved to lastState; NULL: not moved. */
static json_t *state_json(const struct ctr *c, const struct instance *cur, json_t **ret_last)
{
    const struct pod *p = c->pod;
    bool over = p->state == POD_TERMINATED || p->state == POD_TERMINATING;

    *ret_last = NULL;
    if (ctr_shown_running(c))
        return running(cur);
    if (cur->ended && (over || c->waiting_reason[0] == '\0'))
        return terminated(cur);
    if (cur->ended) {
        *ret_last = terminated(cur);
        return waiting(c->waiting_reason, c->waiting_message);
    }
    if (p->state == POD_TERMINATED && c->kind == CTR_REGULAR &&
        (p->initialized || p->api->spec.n_init_containers == 0))
        return ctr_status_lost();
    if (c->waiting_reason[0] != '\0')
        return waiting(c->waiting_reason, c->waiting_message);
    return waiting(p->api->spec.n_init_containers > 0 ? "PodInitializing" : "ContainerCreating", NULL);
}

/* ---- resources and volumes ---- */

static json_t *resource_list(const struct api_resource_list *l)
{
    json_t *o = json_object();

    for (size_t i = 0; i < l->n; i++) {
        char text[QUANTITY_TEXT_SIZE];
        quantity_format_stored(&l->v[i].amount, text);
        json_put_str(o, l->v[i].name, text);
    }
    return o;
}

/* The actual ones: kubelet reads a running container's memory limit back from the cgroup, in bytes with
 * binary units. */
static json_t *resources_json(const struct api_resources *r, bool is_running)
{
    json_t *o = json_object();
    const struct quantity *memory = api_resource_get(&r->limits, "memory");

    if (r->limits.n > 0)
        json_object_set_new(o, "limits", resource_list(&r->limits));
    if (is_running && memory != NULL && !quantity_is_zero(memory)) {
        struct quantity bytes = quantity_from_int(quantity_value(memory), QUANTITY_BINARY_SI);
        char text[QUANTITY_TEXT_SIZE];
        quantity_format_stored(&bytes, text);
        json_put_str(json_object_get(o, "limits"), "memory", text);
    }
    if (r->requests.n > 0)
        json_object_set_new(o, "requests", resource_list(&r->requests));
    return o;
}

/* The image of an image volume: volumeStatus.image.imageRef. */
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

/* The actual setting: IfPossible is never shown. */
static const char *recursive_read_only(const struct pod *p, const struct api_volume_mount *m)
{
    const struct rt_features *runtime = sandbox_runtime_features(p);

    if (str_eq(m->recursive_read_only, "IfPossible"))
        return runtime != NULL && runtime->recursive_read_only ? "Enabled" : "Disabled";
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

/* As in kubelet, of app containers only. */
static void put_devices(const struct ctr *c, json_t *o)
{
    json_t *list = devices_status(c);

    if (list != NULL)
        json_object_set_new(o, "allocatedResourcesStatus", list);
}

/* ---- one, and all ---- */

/* As shown by kubelet with containerd: by its name in a registry, if it was pulled from one. */
static const char *image_of(const struct instance *i)
{
    if (i == NULL || i->image_id == NULL)
        return "";
    return i->image_ref != NULL ? i->image_ref : i->image_id;
}

static json_t *container_json(const struct ctr *c)
{
    const struct pod *p = c->pod;
    json_t *o = json_object(), *state, *last;
    const struct instance none = { 0 }, *cur = ctr_is_hidden(c) ? &c->last : &c->cur,
                          *before = ctr_is_hidden(c) ? &none : &c->last;
    const struct instance *shown = cur->id[0] != '\0' ? cur : NULL;
    str_auto id = shown != NULL ? str_printf(POD_RUNTIME_SCHEME "%s", shown->id) : NULL;

    state = state_json(c, cur, &last);
    if (last == NULL)
        last = before->id[0] != '\0' && before->ended ? terminated(before) : json_object();

    json_put_str(o, "name", c->spec->name);
    json_object_set_new(o, "state", state);
    json_object_set_new(o, "lastState", last);
    json_object_set_new(o, "ready", json_boolean(ctr_ready(c)));
    json_object_set_new(o, "restartCount", json_integer(ctr_is_hidden(c) ? cur->attempt : c->restarts));
    json_put_str(o, "image", c->spec->image);
    json_object_set_new(o, "imageID", json_string(image_of(shown)));
    json_put_str(o, "containerID", id);
    if (c->kind != CTR_EPHEMERAL)
        json_object_set_new(o, "started", json_boolean(ctr_started(c)));
    if (shown != NULL) {
        json_t *resources = resources_json(&c->spec->resources, ctr_shown_running(c));
        if (ctr_shown_running(c))
            resize_actual(c, resources);
        json_object_set_new(o, "resources", resources);
    }
    if (shown != NULL && c->spec->resources.requests.n > 0)
        json_object_set_new(o, "allocatedResources", resource_list(&c->spec->resources.requests));
    if (c->spec->n_mounts > 0)
        json_object_set_new(o, "volumeMounts", mounts_json(p, c->spec));
    if (c->kind == CTR_REGULAR)
        put_devices(c, o);
    return o;
}

static int ctr_status_by_name(const void *a, const void *b)
{
    return strcmp((*(const struct ctr *const *)a)->spec->name, (*(const struct ctr *const *)b)->spec->name);
}

void ctr_statuses_put(struct pod *p, json_t *status)
{
    json_t *init = json_array(), *regular = json_array(), *ephemeral = json_array();
    const struct ctr **sorted = calloc(p->n_ctrs + 1, sizeof(*sorted));
    size_t n = 0;

    for (size_t i = 0; i < p->n_ctrs; i++) {
        if (ctr_kind_of_init(p->ctrs[i]->kind))
            json_array_append_new(init, container_json(p->ctrs[i])); /* in spec order */
        else if (p->ctrs[i]->kind == CTR_EPHEMERAL)
            json_array_append_new(ephemeral, container_json(p->ctrs[i]));
        else if (sorted != NULL)
            sorted[n++] = p->ctrs[i];
    }
    if (sorted != NULL)
        qsort(sorted, n, sizeof(*sorted), ctr_status_by_name);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(regular, container_json(sorted[i]));
    free(sorted);
    if (json_array_size(init) > 0)
        json_object_set(status, "initContainerStatuses", init);
    json_decref(init);
    json_object_set_new(status, "containerStatuses", regular);
    if (json_array_size(ephemeral) > 0)
        json_object_set(status, "ephemeralContainerStatuses", ephemeral);
    json_decref(ephemeral);
}
