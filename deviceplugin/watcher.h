/* SPDX-License-Identifier: Apache-2.0 */
/* watcher - one socket of the folder plugins_registry: an entry of watcher.c. */
#ifndef DEVICEPLUGIN_WATCHER_H
#define DEVICEPLUGIN_WATCHER_H
#include "deviceplugin/plugin.h"

#include <sys/types.h>
#include <time.h>

struct entry_id { /* a socket that was made anew may have the inode of the old one */
    dev_t dev;
    ino_t ino;
    struct timespec made; /* its mtime: nothing writes to a socket's inode */
};

LIST_HEAD(entries, entry);
struct entry {
    LIST_ENTRY(entry) link;
    struct dp_plugins *all;
    size_t *n_entries; /* of the list */
    char *path;
    struct entry_id id;
    bool seen; /* by the look in progress */
    enum entry_state {
        ENTRY_ASKS,     /* GetInfo */
        ENTRY_CONNECTS, /* to the device plugin that it named */
        ENTRY_TELLS,    /* NotifyRegistrationStatus */
        ENTRY_FAILED,   /* until the next try */
        ENTRY_REGISTERED,
        ENTRY_STOPS, /* ends what it does, then begins again, or is freed */
    } state;
    bool gone;
    struct grpc_channel *channel;
    struct grpc_call call;
    struct dp_info info;
    struct err outcome; /* of the registration, to be told */
    struct plugin *plugin;
    bool replaced; /* by a later registration of its resource: it rests until its socket is another one */
    const struct dp_plugin_handler *handler; /* that knows it; NULL: none */
    uint64_t pause_ms;
    uv_timer_t again;
};

/* Begins to register. NULL: out of memory. */
struct entry *entry_new(struct dp_plugins *all, struct entries *list, size_t *n_entries, const char *path,
                        const struct entry_id *id);
void entry_is_now(struct entry *x, const struct entry_id *id); /* another one: registers anew */
void entry_gone(struct entry *x);                              /* deregisters; it is freed on a later turn */
bool entry_is_gone(const struct entry *x);
#endif
