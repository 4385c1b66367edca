/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices - where pods meet devices: which container holds which, what the provider answered, and what the
 * container gets of it. Loop thread only.
 *
 * A pod's devices are chosen and allocated between admission and its start, resource by resource, beside
 * those of other pods; a pod whose provider is away waits (node option device_plugin_wait_ms). What a pod
 * holds is in the node's holdings, in the pod's record and in kubelet's checkpoint file, before a container
 * of it starts. It is held until the pod is gone or has ended.
 *
 * A resource that has a number only (from the configuration), and one that nobody offers, has no devices:
 * nothing is held of it.
 */
#ifndef AGENT_POD_DEVICE_DEVICES_H
#define AGENT_POD_DEVICE_DEVICES_H
#include "agent/pod/core/pod.h"
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/plugins.h"

extern const struct room device_room;

/* ---- of the node ---- */
/* Valid while the node exists; empty before devices_begin(). */
const struct dp_inventory *devices_inventory(const struct node *n);
const struct dp_holdings *devices_holdings(const struct node *n);
/* For providers that are no plugins (declarations), and for resources with a number. */
struct dp_inventory *devices_inventory_fill(struct node *n);
const struct dp_plugins *devices_plugins(const struct node *n); /* NULL: they cannot be served */

/* After the records were read: reads kubelet's checkpoint, and listens for plugins. Failures are logged and
 * shown; the node runs without plugins then. */
void devices_begin(struct node *n);
/* All manifests were read: what pods hold that do not exist (kubelet's, from its checkpoint) is released. */
void devices_sources_ready(struct node *n);

/* ---- admission: after admit_pod() ---- */
/*
 * ERR_OK: the pod has its devices, or asks for none. ERR_UNAVAILABLE: it waits, the text says for what; it is
 * woken. Otherwise it is rejected, with reason and message as kubelet's, and holds nothing.
 */
enum err_code devices_admit(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* Rejected: whether it could have its devices now. Asks no plugin. */
bool devices_can_admit(const struct pod *p);
/* It has ended or was rejected: others may have what it held. */
void devices_release(struct pod *p);

/* ---- containers ---- */
/* What the container holds is on the disk: it may start. Otherwise the pod is woken. */
bool devices_durable(const struct pod *p);
/*
 * Before each start of a container, its providers are asked to prepare the devices, where they want to be.
 * ERR_OK: done, create it now. ERR_UNAVAILABLE: under way, the pod is woken. Otherwise it failed, with
 * kubelet's text; the next call asks again.
 */
enum err_code devices_pre_start(struct ctr *c, struct err *e) MUST_CHECK;
/* What the container gets, merged over its resources in the order of their names: the first one wins. One
 * block of memory: free() it. *ret NULL: it gets nothing. */
enum err_code devices_of_ctr(const struct ctr *c, struct dp_answer **ret, struct err *e) MUST_CHECK;

/* ---- for people and the API ---- */
/* Of allocatedResourcesStatus; NULL: the container holds none. */
json_t *devices_status(const struct ctr *c);
void devices_explain(const struct pod *p, json_t *steps);
#endif
