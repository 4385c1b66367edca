/* SPDX-License-Identifier: Apache-2.0 */
/* expand - expandfs. As with kubelet, the path is the pod's and the options have nothing of the pod. */
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/flex/internal.h"
#include "volumes/storage/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct search {
    const char *point;
    char source[FLEX_DEVICE_SIZE];
};

static bool note_source(const struct fs_mount *m, void *arg)
{
    struct search *s = arg;

    if (strcmp(m->point, s->point) == 0)
        snprintf(s->source, sizeof(s->source), "%.255s", m->source);
    return true;
}

/* The device that is mounted there: what waitforattach named is not remembered. */
static enum err_code find_device(const struct flex_volume *v, char ret[FLEX_DEVICE_SIZE], struct err *e)
{
    char place[FLEX_PATH_SIZE];
    struct search s = { .point = place };

    ret[0] = '\0';
    if (!v->caps.attach)
        return ERR_OK;
    flex_device_place(v, place);
    if (fs_each_mount(place, note_source, &s, e) != ERR_OK)
        return e->code;
    if (s.source[0] == '/')
        snprintf(ret, FLEX_DEVICE_SIZE, "%s", s.source);
    else if (v->device != NULL)
        snprintf(ret, FLEX_DEVICE_SIZE, "%.255s", v->device);
    return ERR_OK;
}

enum err_code flex_expand(const struct flex_volume *v, struct flex_sizes sizes, struct err *e)
{
    char device[FLEX_DEVICE_SIZE], now[24], before[24];
    str_auto options = flex_options(v, false);
    struct flex_answer answer;
    bool supported = true;

    if (options == NULL)
        return err_nomem(e);
    snprintf(now, sizeof(now), "%" PRIu64, sizes.now);
    snprintf(before, sizeof(before), "%" PRIu64, sizes.before);
    if (find_device(v, device, e) != ERR_OK ||
        FLEX_ASK(v->program, &supported, &answer, e, "expandfs", options, device, v->target, now, before) !=
            ERR_OK ||
        supported)
        return e->code;
    return device[0] != '\0'
               ? storage_resize(device, v->target, e)
               : err_set(e, ERR_PRECONDITION, "the driver does not support expandfs and returns no device");
}
