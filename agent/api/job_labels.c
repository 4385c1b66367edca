/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/job_labels.h"

#include "base/codec/json.h"

static json_t *member(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    if (v == NULL)
        json_object_set_new(o, key, v = json_object());
    return v;
}

static void label(json_t *labels, const char *name, const char *uid)
{
    json_put_str(labels, API_JOB_UID_LABEL, uid);
    json_put_str(labels, "batch.kubernetes.io/job-name", name);
    json_put_str(labels, "controller-uid", uid);
    json_put_str(labels, "job-name", name);
}

void api_job_label(json_t *job, const char *name, const char *uid)
{
    json_t *meta = json_object_get(job, "metadata"), *spec = json_object_get(job, "spec"),
           *labels = member(member(member(spec, "template"), "metadata"), "labels");

    if (!json_flag(spec, "manualSelector")) {
        label(labels, name, uid);
        if (json_object_get(spec, "selector") == NULL)
            json_object_set_new(spec, "selector",
                                json_pack("{s:{s:s}}", "matchLabels", API_JOB_UID_LABEL, uid));
    }
    if (json_object_get(meta, "labels") == NULL && json_object_size(labels) > 0) /* the apiserver's default */
        json_object_set_new(meta, "labels", json_copy(labels));
}
