/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/vol_data.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "volumes/csi/volume.h"

#include <string.h>

#define LIFECYCLE "volumeLifecycleMode"

char *csi_vol_data_text(const struct csi_vol_data *d)
{
    buf_auto text = BUF_INIT(CSI_VOL_DATA_MAX);
    json_t *o = json_object();
    bool ok = o != NULL && json_put_str(o, "attachmentID", d->attachment) &&
              json_put_str(o, "driverName", d->driver) && json_put_str(o, "nodeName", d->node) &&
              json_put_str(o, "specVolID", d->spec_name) && json_put_str(o, "volumeHandle", d->handle) &&
              json_put_str(o, LIFECYCLE,
                           d->shared      ? NULL
                           : d->ephemeral ? "Ephemeral"
                                          : "Persistent");

    if (ok) {
        json_add_text(&text, o, false, 0);
        buf_addc(&text, '\n');
    }
    json_decref(o);
    return ok && !text.failed ? buf_detach(&text) : NULL;
}

static enum err_code take(const json_t *o, const char *key, const char **ret, struct arena *memory,
                          struct err *e)
{
    const json_t *v = json_object_get(o, key);

    if (v == NULL)
        return ERR_OK;
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, CSI_VOL_DATA ": %s: not a text", key);
    *ret = arena_strdup(memory, json_string_value(v));
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code read_object(struct csi_vol_data *ret, const json_t *o, struct err *e)
{
    const char *mode = NULL;

    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, CSI_VOL_DATA ": not an object");
    if (take(o, "attachmentID", &ret->attachment, &ret->memory, e) != ERR_OK ||
        take(o, "driverName", &ret->driver, &ret->memory, e) != ERR_OK ||
        take(o, "nodeName", &ret->node, &ret->memory, e) != ERR_OK ||
        take(o, "specVolID", &ret->spec_name, &ret->memory, e) != ERR_OK ||
        take(o, "volumeHandle", &ret->handle, &ret->memory, e) != ERR_OK ||
        take(o, LIFECYCLE, &mode, &ret->memory, e) != ERR_OK)
        return e->code;
    if (ret->driver == NULL || !csi_driver_name_ok(ret->driver))
        return err_set(e, ERR_INVALID, CSI_VOL_DATA ": driverName: %s",
                       ret->driver == NULL ? "missing" : "no name of a driver");
    if (ret->handle == NULL || ret->handle[0] == '\0')
        return err_set(e, ERR_INVALID, CSI_VOL_DATA ": volumeHandle: missing");
    ret->ephemeral = str_eq(mode, "Ephemeral");
    ret->shared = mode == NULL;
    return ERR_OK;
}

enum err_code csi_vol_data_read(struct csi_vol_data *ret, const char *text, size_t n, struct err *e)
{
    json_t *o = NULL;

    if (n == 0)
        return err_set(e, ERR_INVALID, CSI_VOL_DATA ": empty");
    if (json_parse(text, n, CSI_VOL_DATA_MAX, &o, CSI_VOL_DATA, e) == ERR_OK)
        ERR_IGNORE(read_object(ret, o, e));
    json_decref(o);
    return e->code;
}

void csi_vol_data_done(struct csi_vol_data *d)
{
    arena_done(&d->memory);
    *d = (struct csi_vol_data){ 0 };
}
