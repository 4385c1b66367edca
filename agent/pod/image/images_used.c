/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/facts.h"
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"

enum { NAMED_MAX = 5 };

static bool has_it(const struct pod *p, const char *id)
{
    const struct pod_images *part = images_of(p);

    for (size_t i = 0; i < p->n_ctrs; i++)
        if (p->ctrs[i]->cur.id[0] != '\0' && !p->ctrs[i]->cur.ended && str_eq(p->ctrs[i]->cur.image_id, id))
            return true;
    for (size_t i = 0; i < part->n_images; i++)
        if (part->images[i]->image != NULL && str_eq(part->images[i]->image->id, id) &&
            p->state != POD_TERMINATED)
            return true;
    return false;
}

json_t *image_users(const struct node *n, const char *id)
{
    json_t *users = json_array();

    for (const struct pod *p = n->pods; p != NULL; p = p->hh.next)
        if (has_it(p, id))
            json_array_append_new(users, json_pack("{s:s, s:s, s:s}", "kind", "Pod", "namespace",
                                                   p->api->meta.namespace, "name", p->api->meta.name));
    return users;
}

bool image_is_used(const struct node *n, const char *id, struct buf *pods)
{
    const struct pod *p;
    size_t found = 0;

    for (p = n->pods; p != NULL; p = p->hh.next) {
        if (!has_it(p, id))
            continue;
        found++;
        if (pods == NULL)
            return true;
        if (found <= NAMED_MAX)
            buf_addf(pods, "%spod %s", found > 1 ? ", " : "", p->key);
    }
    if (found > NAMED_MAX)
        buf_addf(pods, " and %zu more", found - NAMED_MAX);
    return found > 0;
}

/* Its containers have ended, but their images are recorded. */
static bool had_it(const struct pod *p, const char *id)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (str_eq(p->ctrs[i]->cur.image_id, id))
            return true;
    return false;
}

bool image_is_awaited(const struct node *n, const char *id)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->hh.next)
        if (p->state == POD_TERMINATED && p->wanted && pod_may_return(p) && had_it(p, id))
            return true;
    return false;
}
