/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral containers that were added to a pod of the manifest folder. */
#include "agent/api/manifest/internal.h"

/* Appends to the pod's list; false: out of memory. */
static bool append(json_t *pod, json_t *containers)
{
    json_t *spec = json_object_get(pod, "spec"), *list = json_object_get(spec, "ephemeralContainers");

    if (list == NULL && json_object_set_new(spec, "ephemeralContainers", json_array()) != 0)
        return false;
    return json_array_extend(json_object_get(spec, "ephemeralContainers"), containers) == 0;
}

enum err_code api_pod_add_ephemeral(const struct api_pod *pod, json_t *container, struct api_pod **ret,
                                    struct err *e)
{
    json_auto_t *object = json_loads(pod->json, 0, NULL);
    json_auto_t *one = json_pack("[O]", container);

    *ret = NULL;
    if (object == NULL || one == NULL || !append(object, one))
        return err_nomem(e);
    return api_pod_remake(pod, object, ret, e);
}

enum err_code api_pod_keep_ephemeral(struct api_pod *pod, const struct api_pod *other, struct api_pod **ret,
                                     struct err *e)
{
    json_auto_t *object = NULL, *had = NULL;

    *ret = NULL;
    if (other->spec.n_ephemeral_containers == 0) {
        *ret = api_pod_ref(pod);
        return ERR_OK;
    }
    object = json_loads(pod->json, 0, NULL);
    had = json_loads(other->json, 0, NULL);
    if (object == NULL || had == NULL ||
        !append(object, json_object_get(json_object_get(had, "spec"), "ephemeralContainers")))
        return err_nomem(e);
    return api_pod_remake(pod, object, ret, e);
}
