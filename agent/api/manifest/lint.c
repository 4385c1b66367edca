/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests that an API server accepts, but no node can run. */
#include "agent/api/manifest/internal.h"

#include <limits.h>
#include <string.h>

#define UID_SIZE 36 /* of the uid that a pod without one gets */

/* Its folder of logs is "namespace_name_uid", as kubelet's. */
static void lint_log_folder(struct api_check *c, const struct api_meta *m)
{
    size_t n;

    if (m->name == NULL || m->namespace == NULL)
        return;
    n = strlen(m->namespace) + 1 + strlen(m->name) + 1 + (m->uid != NULL ? strlen(m->uid) : UID_SIZE);
    if (n > NAME_MAX)
        api_fault_at(
            c, "metadata.name",
            "the pod cannot run: its folder of logs, <namespace>_<name>_<uid>, would have a name of %zu "
            "characters, at most %d are possible",
            n, NAME_MAX);
}

static void lint_images(struct api_check *c, const char *field, const struct api_container *v, size_t n)
{
    size_t outer = api_enter(c, "spec"), mark;

    api_enter(c, field);
    for (size_t i = 0; i < n; i++) {
        struct err e = { 0 };

        mark = api_enter_index(c, i);
        if (v[i].image != NULL && c->lint->image(v[i].image, &e) != ERR_OK)
            api_fault_at(c, "image", "the container cannot run: %s", e.text);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

void api_lint_pod(struct api_check *c, const struct api_pod *pod)
{
    lint_log_folder(c, &pod->meta);
    lint_images(c, "initContainers", pod->spec.init_containers, pod->spec.n_init_containers);
    lint_images(c, "containers", pod->spec.containers, pod->spec.n_containers);
}
