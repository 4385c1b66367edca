/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/status/internal.h"
#include "agent/pod/status/status.h"
#include "base/codec/json.h"

#include <stdio.h>

static void status_save(const struct pod *p, json_t *record)
{
    const struct pod_shown *shown = shown_of(p);
    json_t *list = json_array();

    for (size_t i = 0; i < ARRAY_LEN(shown->conditions); i++) {
        json_t *c = json_object();

        json_put_str(c, "status", shown->conditions[i].status);
        json_object_set_new(c, "since", json_integer(shown->conditions[i].since_ns));
        json_array_append_new(list, c);
    }
    json_object_set_new(record, "conditions", list);
}

static void status_load(struct pod *p, const json_t *record)
{
    const json_t *list = json_object_get(record, "conditions");
    struct pod_shown *shown = shown_of(p);

    for (size_t i = 0; i < ARRAY_LEN(shown->conditions); i++) {
        const json_t *c = json_array_get(list, i);
        const char *status = json_str(c, "status");
        json_int_t since_ns = json_int(c, "since", 0);

        snprintf(shown->conditions[i].status, sizeof(shown->conditions[i].status), "%s",
                 status != NULL ? status : "");
        shown->conditions[i].since_ns = since_ns > 0 && since_ns <= INT64_MAX / 2 ? since_ns : 0;
    }
}

const struct room status_room = {
    .id = ROOM_STATUS,
    .name = "status",
    .pod = { .size = sizeof(struct pod_shown), .save = status_save, .load = status_load },
};
