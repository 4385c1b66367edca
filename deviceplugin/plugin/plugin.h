/* SPDX-License-Identifier: Apache-2.0 */
/* plugin - private declarations of the files that plugins.h lists. Loop thread only. */
#ifndef DEVICEPLUGIN_PLUGIN_PLUGIN_H
#define DEVICEPLUGIN_PLUGIN_PLUGIN_H
#include "base/grpc/client.h"
#include "base/list.h"
#include "deviceplugin/plugin/counts.h"
#include "deviceplugin/plugin/plugins.h"

#define DP_API_VERSION "v1beta1"
#define DP_DIAL_MS 10000   /* kubelet's limit for the dial; here it includes GetDevicePluginOptions */
#define DP_PLUGINS_MAX 256 /* connected and connecting; equal to the limit of resources */

struct registration;
struct watcher;
struct plugin;

/* ---- problems.c ---- */
#define DP_PROBLEMS_MAX 64 /* the oldest is dropped for a new one */
struct dp_problem {
    TAILQ_ENTRY(dp_problem) link;
    char what[DP_RESOURCE_NAME_MAX + 1]; /* a resource or a socket, made printable */
    struct err e;
};
struct dp_problems {
    TAILQ_HEAD(, dp_problem) all; /* oldest first */
    size_t n;
    uint64_t reported_ms; /* the last report, for its rate */
    unsigned reported;
};
/* Records a problem, and reports it (options.problem) if it is new, at a limited rate. */
void dp_problem_set(struct dp_plugins *all, const char *what, const char *resource, const struct err *e);
bool dp_may_report(struct dp_plugins *all); /* the same limit, for other log lines that plugins cause */
void dp_problem_clear(struct dp_plugins *all, const char *what);
void dp_problems_done(struct dp_plugins *all);

/* ---- plugins.c ---- */
struct dp_plugins {
    struct dp_plugins_options o; /* texts are owned */
    TAILQ_HEAD(plugin_list, plugin) plugins;
    size_t n_plugins;
    uint64_t last_order;
    struct dp_counts counts;
    struct dp_problems problems;
    struct registration *registration;
    struct watcher *watcher;
    bool cancelled;
};
/* "\"text\"", as Go's %q prints it; cut when too long for ret. */
void dp_quote(char *ret, size_t size, const char *text);

/* ---- plugin.c: one plugin, from the dial to the end of its stream ---- */
struct plugin_call { /* one call for a dp_ask */
    LIST_ENTRY(plugin_call) link;
    struct grpc_call call;
    struct plugin *plugin;
    struct dp_ask *ask;
    enum plugin_method { PLUGIN_ALLOCATE, PLUGIN_PREFERRED, PLUGIN_PRE_START } method;
};
struct plugin {
    struct dp_provider provider; /* first: a dp_provider is its plugin */
    TAILQ_ENTRY(plugin) link;
    struct dp_plugins *all;
    enum plugin_state { PLUGIN_CONNECTS, PLUGIN_SERVES, PLUGIN_ENDED } state;
    uint64_t order; /* of registrations */
    char resource[DP_RESOURCE_NAME_MAX + 1];
    char *path; /* of its socket */
    pid_t pid;  /* 0: unknown */
    uint64_t since_ms;
    struct grpc_channel *channel;
    struct grpc_call options, stream;
    LIST_HEAD(, plugin_call) calls;
    /* The newest list that was not processed yet. */
    uint8_t *list;
    size_t n_list;
    bool listed;
    uint64_t rests_until_ms;
    uv_timer_t turn; /* when the list is processed */
    bool turn_closed;
    const struct plugin_owner *owner;
    void *owner_arg;
};
struct plugin_owner { /* both are called from the loop, at most once each */
    /* The plugin serves, or could not be reached; in the second case it is freed after this call. */
    void (*ready)(struct plugin *p, const struct err *result, void *arg);
    /* After ready: the plugin's stream ended, or it was replaced by a later registration of its resource. */
    void (*ended)(struct plugin *p, bool replaced, void *arg);
};
enum err_code plugin_start(struct plugin **ret, struct dp_plugins *all, const char *resource,
                           const char *path, const struct plugin_owner *owner, void *arg,
                           struct err *e) MUST_CHECK;
/* Ends the plugin; its owner is not called. Calls in progress may finish. `why` NULL: no problem. */
void plugin_end(struct plugin *p, const struct err *why);
void plugin_cancel(struct plugin *p); /* ends the plugin and its calls */
void plugin_settle(struct plugin *p); /* after the end of a call: frees it if it has ended */

/* ---- calls.c: the questions to a provider ---- */
extern const struct dp_provider plugin_provider;

/* ---- registration.c ---- */
enum err_code registration_open(struct registration **ret, struct dp_plugins *all, struct err *e) MUST_CHECK;
bool registration_busy(const struct registration *r);
void registration_cancel(struct registration *r);
void registration_close(struct registration *r);
/* "the ResourceName \"x\" is invalid": kubelet's. */
enum err_code registration_check_name(const char *name, struct err *e) MUST_CHECK;

/* ---- watcher.c ---- */
enum err_code watcher_open(struct watcher **ret, struct dp_plugins *all, struct err *e) MUST_CHECK;
bool watcher_busy(const struct watcher *w);
void watcher_cancel(struct watcher *w);
void watcher_close(struct watcher *w);
#endif
