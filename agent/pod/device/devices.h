/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices - the devices of pods: which container holds which devices, the answers of their providers, and the
 * settings that containers get from these answers. Loop thread only.
 *
 * A pod's devices are chosen and allocated between admission and start, one resource after the other, for
 * several pods at once. A pod whose provider is away waits (node option device_plugin_wait_ms). Before a
 * container of the pod starts, its devices are in the node's holdings, in the pod's record and in kubelet's
 * checkpoint file. The pod holds them until it has ended or is gone.
 *
 * A resource that is only a number of the configuration has no devices, and neither has a resource without a
 * provider: pods hold nothing of them.
 */
#ifndef AGENT_POD_DEVICE_DEVICES_H
#define AGENT_POD_DEVICE_DEVICES_H
#include "agent/pod/core/pod.h"
#include "agent/pod/device/admissions.h"
#include "base/arena.h"
#include "deviceplugin/holdings.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/plugin/plugins.h"

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
/* After the records were read: reads kubelet's checkpoint, and listens for plugins. A failure is logged and
 * shown, and the node runs without plugins. ERR_RANGE: this machine has more NUMA nodes than a topology
 * policy other than "none" can handle. */
enum err_code devices_begin(struct node *n, struct err *e) MUST_CHECK;
const struct declared *devices_declared(const struct node *n); /* NULL: nothing is followed */
const char *devices_plugins_error(const struct node *n); /* why plugins cannot be served; NULL: they are */
/* All manifests were read: devices of pods that do not exist are released (of kubelet's pods, from its
 * checkpoint). */
void devices_sources_ready(struct node *n);

/* Settings changed: resources of the configuration are counted anew. */
void devices_options(struct node *n);

/* ---- admission: after admit_pod() ---- */
/*
 * ERR_OK: the pod has its devices, or requests none. ERR_UNAVAILABLE: the pod waits for what the text names,
 * and is woken. Any other error: the pod is rejected with kubelet's reason and message, and holds nothing.
 */
enum err_code devices_admit(struct pod *p, char reason[64], struct err *e) MUST_CHECK;
/* Whether a rejected pod could have its devices now. Asks no plugin. If pods do not wait for providers
 * (device_plugin_wait_ms is 0), a refusal is final, as in kubelet. */
bool devices_can_admit(const struct pod *p);
/* The pod's devices are being allocated, or it has them: its requests count as used, although it is not
 * admitted yet. */
bool devices_under_way(const struct pod *p);
/* The pod has ended or was rejected, and its devices become free. A pod that was ended by a shutdown of the
 * machine and will start again keeps them. */
void devices_release(struct pod *p);
/* The pod will not start again: its manifest is gone. */
void devices_gone(struct pod *p);

/* ---- containers ---- */
/* What the pod holds is on the disk, so its containers may start. If false, the pod is woken when it is. */
bool devices_durable(const struct pod *p);
/*
 * Before each start of a container: calls the providers that prepare its devices. *ret_wait: a call is in
 * progress, and its answer wakes the pod. Otherwise ERR_OK: the container can be created now. An error has
 * kubelet's text, and the next call retries.
 */
enum err_code devices_pre_start(struct ctr *c, bool *ret_wait, struct err *e) MUST_CHECK;
bool devices_preparing(const struct ctr *c); /* a provider is being called */
/* What the container gets: the answers for its resources, merged in the order of the resources' names. The
 * first value wins; a conflict is logged and reported by an event. *ret is in the arena, and empty if there
 * is nothing. */
enum err_code devices_of_ctr(struct ctr *c, struct arena *arena, struct dp_answer *ret,
                             struct err *e) MUST_CHECK;

/* ---- for people and the API ---- */
/* allocatedResourcesStatus, new; NULL: the container holds no devices. */
json_t *devices_status(const struct ctr *c);
void devices_explain(const struct pod *p, json_t *steps);
#endif
