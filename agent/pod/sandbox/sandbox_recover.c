/* SPDX-License-Identifier: Apache-2.0 */
/* The recovery of a pod's sandbox after a restart of the agent. */
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/log.h"
#include "cni/host/netns.h"

#include <string.h>

/* Everything it should have; a pod that only uses the host's needs no pin. */
static struct presence look_pinned(const struct pod *p, struct err *e)
{
    const struct sandbox *box = sandbox_of(p);
    const struct {
        const char *which;
        bool wanted;
    } pins[] = {
        { "net", sandbox_has_netns(p) },
        { "uts", sandbox_has_netns(p) },
        { "ipc", !p->api->spec.host_ipc },
        { "user", userns_wanted(p) },
    };

    if (userns_wanted(p) && box->first_id == 0)
        return presence_absent();
    for (size_t i = 0; i < ARRAY_LEN(pins); i++) {
        struct presence found =
            pins[i].wanted ? netns_look_pinned(box->netns_dir, pins[i].which, e) : presence_present();
        if (presence_is_unknown(found) || presence_is_absent(found))
            return found;
    }
    return presence_present();
}

static struct presence look_attached(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);

    if (!sandbox_has_netns(p))
        return presence_present();
    if (box->net_undo)
        return presence_absent();
    return cni_cached_result(p->node->o.cni, p->sandbox_id, POD_IFNAME, &box->net_result, e);
}

enum err_code sandbox_recover(struct pod *p, struct err *ret)
{
    struct sandbox *box = sandbox_of(p);
    struct presence pinned, attached;
    struct err e = { 0 };

    if (p->sandbox_id[0] == '\0')
        return ERR_OK;
    pinned = p->rebooted ? presence_absent() : look_pinned(p, ret);
    if (presence_is_unknown(pinned))
        return ret->code;
    if (presence_is_absent(pinned)) {
        box->net_lost = true;
        return ERR_OK;
    }
    attached = look_attached(p, ret);
    if (presence_is_unknown(attached))
        return ret->code;
    box->net_sysctls_set = p->initialized; /* otherwise the agent may have been killed before setting them */
    sandbox_set_net(p, NET_PINNED);
    if (files_name_host(p, &e) != ERR_OK)
        log_warn("cannot determine the hostname of a pod any more", F_STR("pod", p->key), F_ERR(&e));
    e = (struct err){ 0 };
    if (!sandbox_has_netns(p)) {
        box->files_written = true;
        sandbox_set_net(p, NET_READY);
    } else if (!presence_is_absent(attached) && box->net_result.n_ips > 0) {
        /* Written again: the agent may have been killed between the plugin's answer and the write. */
        box->files_written = sandbox_write_files(p, &e) == ERR_OK;
        if (!box->files_written)
            log_warn("cannot write a pod's hosts file; will retry", F_STR("pod", p->key), F_ERR(&e));
        sandbox_set_net(p, NET_READY);
    } else {
        box->net_undo = true; /* killed during ADD, or before its DEL was complete */
    }
    return ERR_OK;
}
