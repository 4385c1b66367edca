/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/image/pull_secrets.h"

#include "agent/image/registry_auth.h"
#include "agent/source/store.h"

#include <string.h>

#define NAMES_MAX 2000

static void pull_secrets_add_name(struct buf *names, const char *name)
{
    buf_addf(names, "%s%s", names->n > 0 ? ", " : "", name);
}

/* Both contain a JSON object, checked when the Secret was read; the older format is the "auths" member of the
 * newer one. */
static bool pull_secrets_add_secret(struct buf *json, const struct api_config *c)
{
    const bool older = str_eq(c->type, "kubernetes.io/dockercfg");
    const struct api_datum *d =
        older ? api_config_get(c, ".dockercfg") : api_config_get(c, ".dockerconfigjson");

    if (d == NULL || (!older && !str_eq(c->type, "kubernetes.io/dockerconfigjson")))
        return false;
    buf_addc(json, json->n == 0 ? '[' : ',');
    /* Names and uids consist of letters, digits, "-" and ".": no quoting needed. */
    buf_addf(json, "{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\",\"config\":", c->meta.namespace,
             c->meta.name, c->meta.uid != NULL ? c->meta.uid : "");
    if (older)
        buf_adds(json, "{\"auths\":");
    buf_add(json, d->data, d->size);
    buf_adds(json, older ? "}}" : "}");
    return true;
}

enum err_code pull_secrets_collect(const struct pod *p, struct pull_secrets *ret, struct err *e)
{
    const struct api_pod_spec *spec = &p->api->spec;

    ret->unknown = false;
    buf_init(&ret->json, REG_AUTH_MAX);
    buf_init(&ret->missing, NAMES_MAX);
    buf_init(&ret->unusable, NAMES_MAX);
    if (spec->n_image_pull_secrets > 0)
        buf_room(&ret->json, REG_AUTH_MAX / 64); /* growing leaves copies behind: most Secrets fit */
    for (size_t i = 0; i < spec->n_image_pull_secrets; i++) {
        const char *name = spec->image_pull_secrets[i].name;
        const struct api_config *c = name == NULL
                                         ? NULL
                                         : src_store_config(p->node->o.store, p->api->origin, API_SECRET,
                                                            p->api->meta.namespace, name);

        struct err unknown = { 0 };

        if (name != NULL && c == NULL &&
            presence_is_unknown(src_store_look_config(p->node->o.store, p->api->origin, API_SECRET,
                                                      p->api->meta.namespace, name, &unknown)))
            ret->unknown = true;
        if (name != NULL && c == NULL)
            pull_secrets_add_name(&ret->missing, name);
        else if (c != NULL && !pull_secrets_add_secret(&ret->json, c))
            pull_secrets_add_name(&ret->unusable, name);
    }
    if (ret->json.n > 0)
        buf_addc(&ret->json, ']');
    if (ret->json.failed)
        return err_set(e, ERR_EXHAUSTED,
                       "they are larger than %u MiB together, or there is no memory for them",
                       REG_AUTH_MAX >> 20);
    return ERR_OK;
}

void pull_secrets_done(struct pull_secrets *s)
{
    buf_wipe(&s->json);
    buf_done(&s->missing);
    buf_done(&s->unusable);
}

bool pull_secrets_uses(const struct pod *p, const char *name)
{
    for (size_t i = 0; i < p->api->spec.n_image_pull_secrets; i++)
        if (str_eq(p->api->spec.image_pull_secrets[i].name, name))
            return true;
    return false;
}
