/* SPDX-License-Identifier: Apache-2.0 */
/* watcher - an entry of watcher.c: one socket of the folder plugins_registry. */
#ifndef DEVICEPLUGIN_PLUGIN_WATCHER_H
#define DEVICEPLUGIN_PLUGIN_WATCHER_H
#include "deviceplugin/plugin/plugin.h"

#include <sys/types.h>
#include <time.h>

struct entry_id { /* identifies a socket; a new one may have the inode of the old one, so its time is
                     compared, too */
    dev_t dev;
    ino_t ino;
    struct timespec made; /* its mtime, which never changes after its creation */
};

LIST_HEAD(entries, entry);
struct entry {
    LIST_ENTRY(entry) link;
    struct dp_plugins *all;
    size_t *n_entries; /* of the list */
    char *path;
    struct entry_id id;
    bool seen; /* by the scan in progress */
    enum entry_state {
        ENTRY_ASKS,     /* GetInfo */
        ENTRY_CONNECTS, /* to the device plugin of its endpoint, or its handler has not answered yet */
        ENTRY_NOTIFIES, /* NotifyRegistrationStatus */
        ENTRY_FAILED,   /* retried later */
        ENTRY_REGISTERED,
        ENTRY_STOPS, /* calls in progress end; then registration restarts, or the entry is freed */
    } state;
    bool gone;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct dp_info info;
    struct err outcome; /* of the registration, sent to the plugin */
    struct plugin *plugin;
    bool replaced; /* by a later registration of its resource: not retried until there is a new socket */
    const struct dp_plugin_handler *handler; /* for its type; NULL: none */
    uint64_t pause_ms;
    uv_timer_t again;
};

/* Begins to register. NULL: out of memory. */
struct entry *entry_new(struct dp_plugins *all, struct entries *list, size_t *n_entries, const char *path,
                        const struct entry_id *id);
void entry_is_now(struct entry *x,
                  const struct entry_id *id); /* the path has a new socket: registers again */
void entry_gone(struct entry *x);             /* the socket was removed: deregisters; freed on a later turn */
bool entry_is_gone(const struct entry *x);
#endif
