/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/veth.h"

#include "base/codec/json.h"
#include "base/log.h"
#include "base/netlink.h"
#include "cni/links.h"
#include "cni/plugin/names.h"

#include <string.h>
#include <strings.h>

/* The host end described by interfaces[i] of a result; NULL if it is not a host end, or no longer exists. */
static const char *host_end(const json_t *interface)
{
    const char *name = json_str(interface, "name"), *sandbox = json_str(interface, "sandbox");

    return cni_ifname_ok(name) && (sandbox == NULL || sandbox[0] == '\0') && nl_link_is(name, "veth") ? name
                                                                                                      : NULL;
}

/* ---- lookup ---- */

static bool has_mac(const struct cni_links *inside, const char *mac)
{
    for (size_t i = 0; i < inside->n && mac != NULL; i++)
        if (strcasecmp(inside->v[i].mac, mac) == 0)
            return true;
    return false;
}

struct presence cni_look_interface(struct cni *c, const char *container_id, const char *ifname,
                                   const struct cni_links *inside, struct err *e)
{
    struct cni_entry entry;
    bool lives = false;
    const json_t *v;
    size_t i;

    if (cni_find(c, container_id, ifname, &entry, e) != ERR_OK) {
        if (e->code != ERR_NOT_FOUND || e->sys != 0)
            return presence_unknown(e);
        *e = (struct err){ 0 };
        return presence_absent();
    }
    json_array_foreach (json_object_get(entry.result, "interfaces"), i, v) {
        const char *name = json_str(v, "name"), *sandbox = json_str(v, "sandbox");
        bool pods = sandbox != NULL && sandbox[0] != '\0' && name != NULL && strcmp(name, ifname) == 0;

        lives = lives || host_end(v) != NULL || (pods && has_mac(inside, json_str(v, "mac")));
    }
    cni_entry_done(&entry);
    return lives ? presence_present() : presence_absent();
}

/* ---- removal ---- */

struct others {
    const struct cni_entry *mine;
    const char *name;
    bool named;
};

static bool name_it(const struct cni_entry *entry, void *arg)
{
    struct others *o = arg;
    const json_t *v;
    size_t i;

    if (strcmp(entry->container_id, o->mine->container_id) == 0 &&
        strcmp(entry->ifname, o->mine->ifname) == 0)
        return true;
    json_array_foreach (json_object_get(entry->result, "interfaces"), i, v) {
        const char *name = json_str(v, "name");

        o->named = o->named || (name != NULL && strcmp(name, o->name) == 0);
    }
    return !o->named;
}

void cni_veth_remove(struct cni *c, const struct cni_entry *entry)
{
    const json_t *v;
    size_t i;

    json_array_foreach (json_object_get(entry->result, "interfaces"), i, v) {
        struct others o = { .mine = entry, .name = host_end(v) };
        struct err e = { 0 };

        if (o.name == NULL || cni_cache_each(c->cache_fd, name_it, &o, &e) != ERR_OK || o.named ||
            cni_cache_lacks_some(c->cache_fd))
            continue;
        if (nl_link_delete(o.name, &e) == ERR_OK)
            log_info("leftover removed", F_STR("what", "end of a pod's interface"), F_STR("id", o.name));
        else
            log_warn("cannot remove the end of a pod's interface", F_STR("link", o.name), F_ERR(&e));
    }
}
