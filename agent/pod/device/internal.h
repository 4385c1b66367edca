/* SPDX-License-Identifier: Apache-2.0 */
/* What this room keeps of the node, of a pod and of each container, and what its files share. */
#ifndef AGENT_POD_DEVICE_INTERNAL_H
#define AGENT_POD_DEVICE_INTERNAL_H
#include "agent/pod/device/devices.h"
#include "base/arena.h"
#include "base/boot_timer.h"
#include "base/strs.h"
#include "base/work.h"
#include "deviceplugin/message/messages.h"
#include "deviceplugin/topology.h"

struct checkpoint_file { /* checkpoint_file.c */
    struct work work;
    bool usable;      /* devices_begin() was called */
    bool due;         /* the holdings changed since its text was made */
    bool due_later;   /* the lists of devices changed since then */
    bool failing;     /* the last write failed: containers start without waiting for the next one */
    uint64_t written; /* generation of the holdings in the file */
    uint64_t writing; /* likewise, of the write under way */
    uint64_t hash;    /* of the last write; 0: nothing yet */
    char *path, *text;
    size_t n_text;
    char error[256];
    uv_timer_t timer; /* runs while lists changed, or while a failed write waits to be tried again */
};

struct device_node {
    struct dp_inventory *inventory;
    struct dp_holdings *holdings;
    struct dp_plugins *plugins; /* NULL: they cannot be served */
    struct declared *declared;  /* NULL: no folder of declarations */
    char *plugins_dir, *registry_dir;
    char plugins_error[504]; /* why `plugins` is NULL, or "" */
    struct dp_machine machine;
    uint64_t changes; /* of the inventory */
    uint64_t freed;   /* how often devices came free */
    struct admissions admissions;
    struct checkpoint_file checkpoint;
};

static inline struct device_node *device_node(const struct node *n)
{
    return n->parts[ROOM_DEVICE];
}

enum device_state {
    DEVICES_UNASKED,
    DEVICES_WAITING, /* for a provider; nothing is held */
    DEVICES_ASKING,  /* devices are reserved one resource after the other; a provider is being asked */
    DEVICES_HELD,    /* everything that the pod requests and a provider offers */
    DEVICES_REFUSED,
    DEVICES_RELEASED,
};

enum device_question { ASK_PREFERRED, ASK_ALLOCATE };

struct device_ctr { /* of one container */
    struct dp_ask pre_start;
    struct pod *pod;
    size_t at;     /* index of the next resource to prepare */
    bool answered; /* `outcome` is the result of the last call */
    bool conflicts_reported;
    struct err outcome;
    json_t *last; /* allocatedResourcesStatus of a pod that has ended; or NULL */
};

struct device_pod {
    enum device_state state;
    uint64_t began_ns; /* uv_hrtime(), of the allocation */
    /* the allocation under way */
    size_t at;         /* index of the next want */
    size_t placed;     /* containers that have their processors and memory */
    struct dp_ask ask; /* its answer is owned here until device_drop_answer() */
    enum device_question question;
    bool answered; /* `outcome` is the result of that question */
    struct err outcome;
    struct boot_time asked_at;
    unsigned n_preferred; /* the number of preference calls for the same want */
    size_t hint_of;       /* the container that the hint is for, counted from 1; 0: none yet */
    bool has_hint, hint_preferred;
    uint64_t numa;
    /* the wait for a provider */
    struct boot_time wait_began; /* CLOCK_BOOT_NONE: it does not wait */
    bool wait_reported;          /* the event was sent */
    bool stalled;          /* a present provider failed to answer: it is called again only after a change */
    size_t stalled_by;     /* the want of that provider */
    uint64_t changes;      /* of the inventory, when the provider was called */
    uint64_t refused_at;   /* changes + freed of the node at the refusal */
    bool refused_for_good; /* the provider refused */
    uint64_t generation;   /* of the holdings that have what this pod holds */
};

static inline struct device_pod *device_of(const struct pod *p)
{
    return p->parts[ROOM_DEVICE];
}

static inline struct device_ctr *device_ctr_of(const struct ctr *c)
{
    return c->parts[ROOM_DEVICE];
}

void device_set_state(struct pod *p, enum device_state s);

/* ---- hold.c ---- */
/* Admission decides about it: it is pending, or was rejected or preempted and may return. */
bool device_is_judged(const struct pod *p);
/* It holds no devices any more. */
bool device_has_ended(const struct pod *p);

/* ---- wants.c: what a pod asks for; pure ---- */
struct device_want { /* one resource of one container */
    size_t ctr;      /* its index in the pod */
    const char *resource;
    int64_t count;
};
/* In the order of allocation: containers as the pod has them, resources by name. free() it; borrows from the
 * manifest. */
enum err_code device_wants(const struct pod *p, struct device_want **ret, size_t *ret_n,
                           struct err *e) MUST_CHECK;
/* The most that the pod holds of that resource at any time, by the rule for init containers and sidecars. */
int64_t device_wants_sum(const struct pod *p, const struct device_want *v, size_t n, const char *resource);

enum device_offer {
    OFFER_UNKNOWN, /* no provider has offered it since the agent started */
    OFFER_NUMBER,  /* a number of the configuration */
    OFFER_AWAY,    /* its provider is gone, or has not listed its devices yet */
    OFFER_HERE,
};
enum device_offer device_offer(const struct dp_resource *r); /* NULL is fine */

/* ---- allocate.c ---- */
/* Continues the pod's allocation. ERR_OK with *ret_asking: a provider is being called, and its answer wakes
 * the pod. After an error, device_of(p)->at is the want that failed, and *ret has the reason. */
struct device_failure {
    const char *reason;
    bool by_provider;  /* the error is the provider's answer */
    bool by_placement; /* no processors or memory for a container; no want failed */
};
enum err_code device_allocate(struct pod *p, const struct device_want *v, size_t n, bool *ret_asking,
                              struct device_failure *ret, struct err *e) MUST_CHECK;
#define DEVICE_ANSWER_MAX (1024 * 1024) /* bytes of one answer, packed */
void device_drop_answer(struct dp_ask *a);
/* Allocated already: by an earlier agent, by kubelet, or earlier in this allocation. */
bool device_has_answer(const struct pod *p, const struct device_want *w);

/* ---- gifts.c: the answers of several providers become one; pure ---- */
struct device_gift {
    const char *resource;
    const struct dp_answer *answer;
};
/* The first value wins. `conflicts` gets a line for each that lost; may be NULL. *ret is in the arena. */
enum err_code device_merge(const struct device_gift *v, size_t n, struct arena *arena, struct dp_answer *ret,
                           struct strs *conflicts, struct err *e) MUST_CHECK;
/* The same for the resources of a container. */
enum err_code device_gifts_of(const struct ctr *c, struct arena *arena, struct dp_answer *ret,
                              struct strs *conflicts, struct err *e) MUST_CHECK;

/* ---- device_record.c ---- */
void device_save(const struct pod *p, json_t *record);
void device_load(struct pod *p, const json_t *record);

/* ---- checkpoint_file.c ---- */
void checkpoint_open(struct node *n);
void checkpoint_begin(struct node *n);   /* reads it */
void checkpoint_changed(struct node *n); /* the holdings changed: written at once */
void checkpoint_later(struct node *n);   /* the lists of devices changed: written within a second */
bool checkpoint_busy(const struct node *n);
void checkpoint_cancel(struct node *n);
void checkpoint_close(struct node *n);

/* ---- sources.c: resources without a plugin ---- */
void sources_begin(struct node *n);
bool sources_known(const struct node *n); /* declarations were read and their devices looked for */
bool sources_busy(const struct node *n);
void sources_cancel(struct node *n);
void sources_close(struct node *n); /* declared resources are withdrawn */

/* ---- changes.c ---- */
void device_on_change(const struct dp_resource *r, enum dp_change what, void *node);
/* Devices came free: wakes pods that admission may decide about. */
void device_came_free(struct node *n);

/* ---- device_show.c ---- */
/* allocatedResourcesStatus as it is now, new; NULL: no devices are held. */
json_t *device_health_json(const struct ctr *c);
#endif
