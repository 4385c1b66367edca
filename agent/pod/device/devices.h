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
#include "agent/pod/device/admissions.h"
#include "base/arena.h"
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/plugins.h"

struct declared; /* agent/declared/declared.h */
extern const struct room device_room;

/* ---- of the node ---- */
/* Valid while the node exists; empty before devices_begin(). */
const struct dp_inventory *devices_inventory(const struct node *n);
const struct dp_holdings *devices_holdings(const struct node *n);
/* For providers that are no plugins (declarations), and for resources with a number. */
struct dp_inventory *devices_inventory_fill(struct node *n);
const struct admissions *devices_admissions(const struct node *n); /* for metrics */
const struct dp_plugins *devices_plugins(const struct node *n);    /* NULL: they cannot be served */

enum err_code devices_opened(const struct node *n, struct err *e) MUST_CHECK; /* fails for lack of memory */
/* After the records were read: reads kubelet's checkpoint, and listens for plugins. Where that fails, it is
 * logged and shown, and the node runs without plugins. ERR_RANGE: this machine has more NUMA nodes than a
 * topology policy other than "none" can handle. */
enum err_code devices_begin(struct node *n, struct err *e) MUST_CHECK;
const struct declared *devices_declared(const struct node *n); /* NULL: nothing is followed */
const char *devices_plugins_error(const struct node *n); /* why plugins cannot be served; NULL: they are */
/* All manifests were read: what pods hold that do not exist (kubelet's, from its checkpoint) is released. */
void devices_sources_ready(struct node *n);

/* Settings changed: resources of the configuration are counted anew. */
void devices_options(struct node *n);

/* ---- admission: after admit_pod() ---- */
/*
 * ERR_OK: the pod has its devices, or asks for none. ERR_UNAVAILABLE: it waits, the text says for what; it is
 * woken. Otherwise it is rejected, with reason and message as kubelet's, and holds nothing.
 */
enum err_code devices_admit(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* Rejected: whether it could have its devices now. Asks no plugin. Where pods do not wait for providers
 * (device_plugin_wait_ms 0), what was refused stays so, as in kubelet. */
bool devices_can_admit(const struct pod *p);
/* It is being given its devices, or has them: what it requests counts although it is not admitted yet. */
bool devices_under_way(const struct pod *p);
/* It has ended or was rejected: others may have what it held. One that a shutdown of the machine ended, and
 * that starts again, keeps it. */
void devices_release(struct pod *p);
/* It will not start again: its manifest is gone. */
void devices_gone(struct pod *p);

/* ---- containers ---- */
/* What the container holds is on the disk: it may start. Otherwise the pod is woken. */
bool devices_durable(const struct pod *p);
/*
 * Before each start of a container, its providers are asked to prepare the devices, where they want to be.
 * *ret_wait: under way, the pod is woken. Otherwise, ERR_OK: create it now; a failure has kubelet's text, and
 * the next call asks again.
 */
enum err_code devices_pre_start(struct ctr *c, bool *ret_wait, struct err *e) MUST_CHECK;
bool devices_preparing(const struct ctr *c); /* a provider is asked */
/* What the container gets, merged over its resources in the order of their names: the first one wins, and a
 * conflict is logged and reported by an event. All of it in the arena; empty: it gets nothing. */
enum err_code devices_of_ctr(struct ctr *c, struct arena *arena, struct dp_answer *ret,
                             struct err *e) MUST_CHECK;

/* ---- for people and the API ---- */
/* Of allocatedResourcesStatus; NULL: the container holds none. */
json_t *devices_status(const struct ctr *c);
void devices_explain(const struct pod *p, json_t *steps);
#endif
