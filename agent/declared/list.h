/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list - the devices of one declared resource, from the result of a scan. Pure.
 *
 * A device is one match of each member of a group. Its id consists of the required matches, so it is the same
 * after a reboot, and does not change when an optional match appears or disappears: "/dev/ttyUSB0",
 * "/dev/video0,/dev/snd/pcmC1D0c", "usb:0403:6001:A50285BI". With `count` the device is listed several times:
 * "#2", "#3". The matches of a device stay together as long as all of them exist: other matches that appear
 * and disappear do not move them to another device. A node that is exclusive in one device (limit 1) is part
 * of no other device of its resource.
 */
#ifndef AGENT_DECLARED_LIST_H
#define AGENT_DECLARED_LIST_H
#include "agent/declared/look.h"
#include "base/strs.h"
#include "deviceplugin/inventory.h"

#define LIST_DEVICES_MAX 16384 /* of one resource */

struct decl_device {
    const char *id;
    bool ambiguous; /* another device has the same id: neither is offered */
    struct dp_node *nodes;
    struct dp_mount *mounts;
    struct dp_kv *envs;
    size_t n_nodes, n_mounts, n_envs;
    int64_t numa[DECL_MEMBERS_MAX];
    size_t n_numa;
};

struct decl_list {
    struct arena arena;
    struct decl_device *v; /* in the order of dp_id_compare() */
    size_t n;
    struct strs problems; /* for display */
};

/* `found`: the matches of all members of all groups, in order; none may be unknown. `before` may be empty. */
enum err_code decl_list_make(struct decl_list *ret, const struct decl_resource *r,
                             const struct look_member *found, const struct decl_list *before,
                             struct err *e) MUST_CHECK;
const struct decl_device *decl_list_find(const struct decl_list *l, const char *id);
void decl_list_done(struct decl_list *l);

/*
 * The settings of a container with these devices; *ret is one block of memory. ERR_NOT_FOUND: a device no
 * longer exists; ERR_INVALID: two of them have the same path in the container; the text names them.
 */
enum err_code decl_list_answer(const struct decl_list *l, const char *const *ids, size_t n,
                               struct dp_answer **ret, struct err *e) MUST_CHECK;
#endif
