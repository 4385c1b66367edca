/* SPDX-License-Identifier: Apache-2.0 */
/* static - kubelet's additions to a pod of its manifest folder (applyDefaults in
 * pkg/kubelet/config/common.go).
 */
#include "agent/api/manifest/internal.h"

#include <ctype.h>
#include <string.h>

static void static_rename(struct api_check *c, json_t *meta)
{
    const char *name = json_string_value(json_object_get(meta, "name"));
    json_t *longer;

    if (name == NULL || name[0] == '\0') /* reported by the walk */
        return;
    longer = json_sprintf("%s-%s", name, c->static_node);
    for (char *p = longer != NULL ? (char *)json_string_value(longer) + strlen(name) : NULL;
         p != NULL && *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    if (longer == NULL || json_object_set_new(meta, "name", longer) != 0)
        c->no_memory = true;
}

static void static_tolerate(struct api_check *c, json_t *spec)
{
    json_t *list = json_object_get(spec, "tolerations");

    if (list != NULL && !json_is_array(list) && !json_is_null(list)) /* reported by the walk */
        return;
    if (!json_is_array(list)) {
        list = json_array();
        if (json_object_set_new(spec, "tolerations", list) != 0) {
            c->no_memory = true;
            return;
        }
    }
    if (json_array_append_new(list, json_pack("{s:s, s:s}", "operator", "Exists", "effect", "NoExecute")) !=
        0)
        c->no_memory = true;
}

void api_make_static(struct api_check *c, json_t *pod)
{
    json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");

    if (!json_is_object(meta) || !json_is_object(spec)) /* reported by the walk */
        return;
    static_rename(c, meta);
    static_tolerate(c, spec);
    if (json_object_set_new(spec, "nodeName", json_string(c->static_node)) != 0)
        c->no_memory = true;
}
