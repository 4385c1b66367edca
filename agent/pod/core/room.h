/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room - the data that each room of agent/pod keeps for the node and for a pod, and the functions that rooms
 * have in common.
 *
 * A room's state is a private struct (<room>/internal.h). The node has one part for each room, and so has
 * each pod; both are found by the room's number. Code that applies to all rooms (open and close the node,
 * create, end, reset and free a pod, save its record) loops over the table that the node got when it was
 * opened (agent/pod/node/rooms.c), in the order of that table, and names no room.
 *
 * A function that a room does not need is NULL.  Loop thread only.
 */
#ifndef AGENT_POD_CORE_ROOM_H
#define AGENT_POD_CORE_ROOM_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct node;
struct pod;
struct ctr;

enum room_id {
    ROOM_CORE,
    ROOM_PLACEMENT,
    ROOM_DEVICE,
    ROOM_PROJECT,
    ROOM_LIMITS,
    ROOM_LEFTOVERS,
    ROOM_USAGE,
    ROOM_SANDBOX,
    ROOM_VOLUME,
    ROOM_IMAGE,
    ROOM_CONTAINER,
    ROOM_RECORD,
    ROOM_EVICTION,
    ROOM_ADMIT,
    ROOM_STATUS,
    ROOM_WORKER,
    ROOM_SHOW,
    ROOMS
};

struct room_of_node {
    size_t size;                        /* of its part, which begins as zeros; 0: it keeps nothing */
    void (*open)(struct node *n);       /* before the first pod is made */
    bool (*busy)(const struct node *n); /* an operation of the node is in progress; those of pods are in
                                         * the pods' table */
    void (*cancel)(struct node *n);     /* the agent ends: operations are cancelled, none begins */
    void (*free)(struct node *n);       /* no operation is under way, no pod is there */
    /* Mounts of this machine changed: what waits for that tries again.  False: nothing waits. */
    bool (*mounts_changed)(struct node *n);
};

struct room_of_pod {
    size_t size, ctr_size;             /* of its part, and of its data of each container */
    void (*init)(struct pod *p);       /* the part is zeros; the manifest is known */
    void (*step)(struct pod *p);       /* towards running, while the pod starts or runs */
    bool (*busy)(const struct pod *p); /* an operation is under way */
    /* It runs what has this id, or removes it: no leftover. */
    bool (*knows)(const struct pod *p, const char *id);
    void (*cancel)(struct pod *p); /* the agent ends: operations are cancelled */
    void (*end)(struct pod *p);    /* its end begins: what failed on the way up does not delay it */
    void (*reset)(struct pod *p);  /* all of it was taken down, and it starts again in place */
    void (*free)(struct pod *p);
    void (*save)(const struct pod *p, json_t *record); /* what of it must outlive the agent */
    void (*load)(struct pod *p, const json_t *record); /* after init; anything may stand in the record */
};

struct room {
    enum room_id id;
    const char *name;
    struct room_of_node node;
    struct room_of_pod pod;
};

/* for (each room of the node that has this function) */
#define ROOMS_EACH(r, n) for (const struct room *const *r = (n)->rooms; *r != NULL; r++)

/* Gives the node the table of rooms, which ends with NULL, and its parts. */
enum err_code rooms_make_node(struct node *n, const struct room *const *rooms, struct err *e) MUST_CHECK;
void rooms_open_node(struct node *n);
bool rooms_node_busy(const struct node *n);
void rooms_cancel_node(struct node *n);
/* Each room closes its handles with rooms_close_handle(); once all are closed the parts are freed, and
 * `closed` is called. */
void rooms_free_node(struct node *n, void (*closed)(struct node *n));
void rooms_close_handle(struct node *n, uv_handle_t *handle);

/* Memory for a pod with its parts and a place for at most max_ctrs containers. NULL: there is none. */
struct pod *rooms_make_pod(struct node *n, size_t max_ctrs);
/* Appends a container, with its parts, to p->ctrs: it keeps its address as long as the pod lives, because
 * operations under way hold pointers to it. NULL: there is no memory, or no place. */
struct ctr *rooms_add_ctr(struct pod *p);
void rooms_free_memory(struct pod *p); /* of the pod and its containers, at the very end */
void rooms_init_pod(struct pod *p);
void rooms_step_pod(struct pod *p);
bool rooms_pod_busy(const struct pod *p);
bool rooms_know(const struct node *n, const char *id); /* some room, of some pod */
void rooms_cancel_pod(struct pod *p);
void rooms_end_pod(struct pod *p);
void rooms_reset_pod(struct pod *p);
void rooms_free_pod(struct pod *p);
void rooms_save_pod(const struct pod *p, json_t *record);
void rooms_load_pod(struct pod *p, const json_t *record);

extern const struct room core_room;
#endif
