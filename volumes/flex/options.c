/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/scope.h"
#include "volumes/flex/flex.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "kubernetes.io/"
#define TEXT_MAX (4u * 1024 * 1024)

static bool put(json_t *o, const char *key, const char *value)
{
    return json_object_set_new(o, key, json_string(value != NULL ? value : "")) == 0;
}

static bool put_secret(json_t *o, const struct flex_secret *s)
{
    struct buf text = BUF_SECRET(TEXT_MAX);
    str_auto key = str_printf(KEY "secret/%s", s->key);
    bool good;

    base64_add(&text, s->data, s->size);
    good = key != NULL && buf_check(&text, ERR_IGNORED) == ERR_OK && put(o, key, text.p);
    buf_wipe(&text);
    return good;
}

static bool put_pod(json_t *o, const struct flex_volume *v)
{
    char group[24];

    if (v->fs_group >= 0) {
        snprintf(group, sizeof(group), "%" PRId64, v->fs_group);
        if (!put(o, KEY "mounterArgs.FsGroup", group))
            return false;
    }
    for (size_t i = 0; i < v->n_secrets; i++)
        if (!put_secret(o, &v->secrets[i]))
            return false;
    return put(o, KEY "pod.name", v->pod_name) && put(o, KEY "pod.namespace", v->pod_namespace) &&
           put(o, KEY "pod.uid", v->pod_uid) && put(o, KEY "serviceAccount.name", v->service_account);
}

/* Go escapes these three in strings; elsewhere they do not occur. */
static char *escaped(const char *text)
{
    struct buf b = BUF_SECRET(TEXT_MAX);
    const char *escapes = "<>&";

    for (const char *c = text; *c != '\0'; c++)
        if (strchr(escapes, *c) != NULL)
            buf_addf(&b, "\\u%04x", (unsigned)*c);
        else
            buf_add(&b, c, 1);
    if (buf_check(&b, ERR_IGNORED) == ERR_OK)
        return buf_detach(&b);
    buf_done(&b);
    return NULL;
}

char *flex_options(const struct flex_volume *v, bool of_pod)
{
    json_auto_t *o = json_object();
    bool good = o != NULL;
    char *text, *ret;

    for (size_t i = 0; good && i < v->n_opts; i++)
        good = put(o, v->opts[i].key, v->opts[i].value);
    good = good && put(o, KEY "fsType", v->fs_type) && put(o, KEY "readwrite", v->read_only ? "ro" : "rw") &&
           put(o, KEY "pvOrVolumeName", v->name) && (!of_pod || put_pod(o, v));
    text = good ? json_dumps(o, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    ret = text != NULL ? escaped(text) : NULL;
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
    return ret;
}
