/* SPDX-License-Identifier: Apache-2.0 */
/* scene - a resource and the holdings of a node, for the tests of choices and hints. Devices are written as
 * in helper.h; '!' behind an id: not healthy. */
#ifndef TESTS_UNIT_DEVICEPLUGIN_SCENE_H
#define TESTS_UNIT_DEVICEPLUGIN_SCENE_H
#include "tests/unit/deviceplugin/helper.h"

#include "deviceplugin/choose.h"

struct scene {
    struct dp_resource r;
    struct dp_holdings *h;
    struct help_devices devices;
    struct dp_device list[64];
};

/* The provider's new list, sorted as the inventory keeps it. */
static inline void scene_list(struct scene *s, const char *devices)
{
    s->r.devices = s->list;
    s->r.n_devices = s->r.n_healthy = 0;
    help_parse(&s->devices, devices);
    for (size_t i = 0; i < s->devices.n; i++) {
        char *id = s->devices.text + (s->devices.v[i].id - s->devices.text);
        bool healthy = strchr(id, '!') == NULL;

        id[strcspn(id, "!")] = '\0';
        s->list[i] = (struct dp_device){ id, healthy, s->devices.v[i].numa, s->devices.v[i].n_numa };
        assert_true(i == 0 || dp_id_compare(s->list[i - 1].id, id) < 0);
        s->r.n_devices++;
        s->r.n_healthy += healthy;
    }
}

static inline void scene_open(struct scene *s, const char *devices, bool preferred)
{
    *s = (struct scene){ .r = { .name = DEV, .options.preferred = preferred, .count = -1 }, .h = help_new() };
    scene_list(s, devices);
}

static inline void scene_close(struct scene *s)
{
    dp_holdings_free(s->h);
}

static inline const char *scene_ids(char *text, size_t size, const char *const *ids, size_t n)
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? " " : "", ids[i]);
    return text;
}
#endif
