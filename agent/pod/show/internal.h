/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node. */
#ifndef AGENT_POD_SHOW_INTERNAL_H
#define AGENT_POD_SHOW_INTERNAL_H
#include "agent/pod/core/pod.h"

enum { PODRES_LIST, PODRES_ALLOCATABLE, PODRES_GET, PODRES_LIST_ALPHA, PODRES_CALLS };

struct podresources {
    struct grpc_server *server; /* NULL: not served, see error */
    struct err error;
    uv_timer_t again; /* runs after a failure */
    uint64_t pause_ms;
    uint64_t requests[PODRES_CALLS], errors[PODRES_CALLS];
};

struct show_node {
    struct status_provider provider;
    struct podresources podresources;
    TAILQ_HEAD(, import) imports;         /* images being brought for the status socket */
    TAILQ_HEAD(, image_task) image_tasks; /* verified or pinned, likewise */
    TAILQ_HEAD(, provider_write) writes;  /* of the local API */
    TAILQ_HEAD(, status_exec) execs;      /* processes in containers for it */
    bool told_ready;                      /* by the last event of that kind */
};

static inline struct show_node *show_node(const struct node *n)
{
    return n->parts[ROOM_SHOW];
}

/* ---- object_json.c: new references; NULL or incomplete when out of memory ---- */
/* With the sizes of its values; `whole`: a ConfigMap with its data. A Secret never has its values. */
json_t *object_config(const struct api_config *c, bool whole);
json_t *object_config_whole(const struct api_config *c); /* with all values, also of a Secret: wipe it */
json_t *object_priority_class(const struct api_priority_class *c);
json_t *object_runtime_class(const struct api_runtime_class *c);
json_t *object_whole(const struct api_object *o); /* of any kind but Pod; of a Secret: wipe it */
#endif
