/* SPDX-License-Identifier: Apache-2.0 */
/* registration - shared by registration.c (the socket) and register.c (the calls). */
#ifndef DEVICEPLUGIN_PLUGIN_REGISTRATION_H
#define DEVICEPLUGIN_PLUGIN_REGISTRATION_H
#include "base/grpc/server.h"
#include "deviceplugin/plugin/plugin.h"

#include <sys/types.h>

#define REGISTRATION_SOCKET "kubelet.sock"
#define REGISTRATION_PEERS                                                                                   \
    64 /* processes with a recorded rate; the one without a call for the longest time is dropped for a new   \
          one */

struct registering { /* a call of Register, until its plugin is reached or cannot be reached */
    LIST_ENTRY(registering) link;
    struct grpc_request *request; /* NULL: the client no longer waits for the answer */
    struct plugin *plugin;
    pid_t pid;
};

struct peer { /* a process that registers */
    pid_t pid;
    uint64_t at_ms;
    uint64_t tokens; /* thousandths of a call */
};

struct registration {
    struct dp_plugins *all;
    char *path;
    struct grpc_server *server;
    dev_t dev; /* of our socket */
    ino_t ino;
    struct watch_set *watches;
    int wd;
    bool cleaned; /* sockets of an earlier run were removed */
    uint64_t made_ms, pause_ms;
    uv_timer_t again;
    LIST_HEAD(, registering) calls;
    struct peer peers[REGISTRATION_PEERS];
};

/* The method Register; arg is the registration. */
void register_begin(struct grpc_request *request, struct grpc_bytes message, void *arg);
/* After the server's end: ends calls whose client no longer waits, and their plugins. */
void register_cancel(struct registration *r);
#endif
