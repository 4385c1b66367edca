/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/write_held.h"

#include "agent/api/kept_meta.h"
#include "agent/api/serve/stored.h"
#include "base/clock.h"
#include "base/codec/json.h"

bool write_held(const json_t *object)
{
    return api_meta_is_held(json_object_get(object, "metadata"));
}

bool write_held_released(const json_t *now, const json_t *object)
{
    return write_held(now) && !write_held(object) &&
           json_object_get(json_object_get(now, "metadata"), "deletionTimestamp") != NULL;
}

json_t *write_held_marked(const struct api_kind_row *kind, const json_t *now)
{
    json_t *made = json_deep_copy(now), *meta = json_object_get(made, "metadata");
    char time[CLOCK_RFC3339_SIZE];

    clock_format_s(clock_wall_ns(), time);
    if (json_object_get(meta, "deletionTimestamp") == NULL)
        json_put_str(meta, "deletionTimestamp", time);
    if (made == NULL || json_object_set_new(meta, "deletionGracePeriodSeconds", json_integer(0)) != 0) {
        json_decref(made);
        return NULL;
    }
    api_stored_strip(kind, made, false);
    return made;
}
