/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins - device plugins: their registration, their lists of devices, and calls to them. Loop thread only.
 *
 *   registration.c  the socket <dir>/kubelet.sock; register.c: the calls of v1beta1.Registration
 *   watcher.c       <registry dir>: sockets of pluginregistration v1, of any type; entry.c: one of them
 *   plugin.c        one registered plugin: its connection, its options, ListAndWatch
 *   calls.c         calls to it as the provider of its resource
 *   problems.c      current problems, for users
 *
 * A plugin that registers a resource again replaces the earlier plugin. When the earlier plugin ends later,
 * nothing changes (in kubelet its end closes the newer one, too). A plugin whose stream ends is withdrawn
 * from the inventory; it has to register again. Each call to a plugin has a deadline (in kubelet, Allocate
 * and GetPreferredAllocation have none, and all pods wait). If lists arrive faster than they can be
 * processed, only the newest is used.
 */
#ifndef DEVICEPLUGIN_PLUGIN_PLUGINS_H
#define DEVICEPLUGIN_PLUGIN_PLUGINS_H
#include "deviceplugin/inventory.h"
#include "deviceplugin/message/messages.h"

#define DP_CALL_MS 30000 /* deadline of a call: kubelet's limit for PreStartContainer */

struct dp_plugins;
struct dp_counts;

/* A socket of the registry folder that offers another type of plugin ("CSIPlugin"). */
struct entry;

/* The handler of such a type accepts or refuses each offer. */
struct dp_plugin_handler {
    const char *type;
    /* The handler answers with dp_offer_answer(), within this call or later. The info is borrowed for the
     * call; its endpoint is never empty. */
    void (*offered)(struct entry *offer, const struct dp_plugin_info *info, void *arg);
    /* The socket was removed or replaced: the offer ends, whether it was answered with OK or not yet. No
     * answer may follow. Not called for an offer that was refused. */
    void (*gone)(struct entry *offer, void *arg);
    void *arg;
};
/* The answer to an offer, once. The text of an error is sent to the plugin unchanged, and the offer is
 * repeated later. */
void dp_offer_answer(struct entry *offer, const struct err *result);
/* How kubelet's texts of refused offers begin (pkg/kubelet/pluginmanager/operationexecutor). */
#define DP_NOT_VALID "RegisterPlugin error -- plugin validation failed with err"
#define DP_NOT_REGISTERED "RegisterPlugin error -- plugin registration failed with err"

struct dp_plugins_options { /* borrowed while it exists */
    uv_loop_t *loop;
    const char *dir;          /* <root>/device-plugins */
    const char *registry_dir; /* <root>/plugins_registry */
    struct dp_inventory *inventory;
    const struct dp_plugin_handler *handlers;
    size_t n_handlers;
    /* For the log, events and explain; `resource` may be NULL. */
    void (*problem)(const char *resource, const struct err *e, void *arg);
    void *arg;
};

/* Creates the folders (0750), removes sockets of an earlier run from `dir` (other files stay), listens. */
enum err_code dp_plugins_open(struct dp_plugins **ret, const struct dp_plugins_options *o,
                              struct err *e) MUST_CHECK;
bool dp_plugins_busy(const struct dp_plugins *all);
void dp_plugins_cancel(struct dp_plugins *all); /* ends all calls; no new call begins */
void dp_plugins_close(struct dp_plugins *all);  /* must not be busy; handles close on later turns */

const struct dp_counts *dp_plugins_counts(const struct dp_plugins *all); /* counts.h, for metrics */
/* Problems that last (a bad name, a version, a socket that does not answer), for explain; `what` is a
 * resource or a socket. */
void dp_plugins_problems(const struct dp_plugins *all,
                         void (*fn)(const char *what, const char *text, void *arg), void *arg);
#endif
