/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "volumes/flex/flex.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool flag(const json_t *o, const char *key, bool otherwise)
{
    const json_t *v = json_object_get(o, key);

    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

/* A driver that does not report it counts as one that attaches (30g). */
static struct flex_caps read_caps(const json_t *o)
{
    return (struct flex_caps){ .attach = flag(o, "attach", true),
                               .fs_group = flag(o, "fsGroup", true),
                               .requires_resize = flag(o, "requiresFSResize", true),
                               .metrics = flag(o, "supportsMetrics", false) };
}

static enum err_code no_answer(const char *command, const char *text, size_t n, struct err *e)
{
    char start[120];

    snprintf(start, sizeof(start), "%.*s", (int)(n < 100 ? n : 100), text);
    text_printable(start);
    return err_set(e, ERR_INVALID, "%s command did not return a JSON object: \"%s\"", command, start);
}

enum err_code flex_answer_parse(const char *command, const char *text, size_t n, struct flex_answer *ret,
                                struct err *e)
{
    json_auto_t *o = NULL;
    const char *status, *message, *device;

    if (json_parse(text, n, FLEX_ANSWER_MAX, &o, "answer", ERR_IGNORED) != ERR_OK || !json_is_object(o))
        return no_answer(command, text, n, e);
    status = json_str(o, "status");
    message = json_str(o, "message");
    device = json_str(o, "device");
    if (device != NULL && strlen(device) >= sizeof(ret->device))
        return err_set(e, ERR_INVALID, "%s command returned a device path of %zu characters", command,
                       strlen(device));
    *ret = (struct flex_answer){ .status = str_eq(status, "Success")         ? FLEX_SUCCESS
                                           : str_eq(status, "Not supported") ? FLEX_NOT_SUPPORTED
                                                                             : FLEX_FAILED,
                                 .caps = read_caps(json_object_get(o, "capabilities")) };
    snprintf(ret->device, sizeof(ret->device), "%s", device != NULL ? device : "");
    snprintf(ret->message, sizeof(ret->message), "%s command failed, status: %.60s, reason: %.250s", command,
             status != NULL ? status : "", message != NULL ? message : "");
    text_printable(ret->message);
    return ERR_OK;
}
