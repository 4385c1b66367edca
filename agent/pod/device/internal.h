/* SPDX-License-Identifier: Apache-2.0 */
/* What device keeps of the node, of a pod and of each container for itself, and what its files share. */
#ifndef AGENT_POD_DEVICE_INTERNAL_H
#define AGENT_POD_DEVICE_INTERNAL_H
#include "agent/pod/device/devices.h"
#include "base/arena.h"
#include "base/boot_timer.h"
#include "base/strs.h"
#include "base/work.h"
#include "deviceplugin/messages.h"
#include "deviceplugin/topology.h"

struct checkpoint_file { /* checkpoint_file.c */
    struct work work;
    bool usable;      /* devices_begin() was called */
    bool due;         /* the holdings changed since its text was made */
    bool due_later;   /* the lists did */
    bool failing;     /* the last write failed; nothing waits for it */
    uint64_t written; /* the holdings' generation that the file has */
    uint64_t writing; /* and that of the write under way */
    uint64_t hash;    /* of what was written last; 0: nothing yet */
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
    char plugins_error[504]; /* why not; "" */
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
    DEVICES_ASKING,  /* reserved one after the other; a provider is asked */
    DEVICES_HELD,    /* all that the pod wants and that can be had */
    DEVICES_REFUSED,
    DEVICES_RELEASED,
};

enum device_question { ASK_PREFERRED, ASK_ALLOCATE };

struct device_ctr { /* of one container */
    struct dp_ask pre_start;
    struct pod *pod;
    size_t at;     /* of its resources: the next one to prepare */
    bool answered; /* outcome is of the call that was under way */
    bool conflicts_told;
    struct err outcome;
    json_t *last; /* of allocatedResourcesStatus, when the pod has ended; NULL: none */
};

struct device_pod {
    enum device_state state;
    uint64_t began_ns; /* uv_hrtime(), of the allocation */
    /* the allocation under way */
    size_t at;         /* of the pod's wants: the next one */
    struct dp_ask ask; /* its answer is ours until device_drop_answer() */
    enum device_question question;
    bool answered; /* outcome is of that question */
    struct err outcome;
    struct boot_time asked_at;
    unsigned n_preferred; /* how often its preference was asked for the same want */
    size_t hint_of;       /* the container that the hint is for, counted from 1; 0: none yet */
    bool has_hint;
    uint64_t numa;
    /* the wait for a provider */
    struct boot_time wait_began; /* none: it does not wait */
    bool wait_told;              /* by an event */
    bool stalled;                /* a provider that is there was unavailable: not before a change */
    size_t stalled_by;           /* the want */
    uint64_t changes;            /* of the inventory, when the provider was asked */
    uint64_t refused_at;         /* changes and freed of the node, when it was refused */
    bool refused_for_good;       /* by the provider */
    uint64_t generation;         /* of the holdings, with what it holds */
    struct device_ctr ctrs[];
};

static inline struct device_pod *device_of(const struct pod *p)
{
    return p->parts[ROOM_DEVICE];
}

static inline struct device_ctr *device_ctr_of(const struct ctr *c)
{
    return &device_of(c->pod)->ctrs[c - c->pod->ctrs];
}

void device_set_state(struct pod *p, enum device_state s);

/* ---- hold.c ---- */
/* Ready to be judged: it waits for admission, was rejected, or had to make room. */
bool device_is_judged(const struct pod *p);
/* It holds nothing any more. */
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
/* What the pod holds of that resource at its greatest, by the rule for init containers and sidecars. */
int64_t device_wants_sum(const struct pod *p, const struct device_want *v, size_t n, const char *resource);

enum device_offer {
    OFFER_UNKNOWN, /* nobody ever offered it */
    OFFER_NUMBER,  /* a number of the configuration */
    OFFER_AWAY,    /* its provider is gone, or has not listed its devices yet */
    OFFER_HERE,
};
enum device_offer device_offer(const struct dp_resource *r); /* NULL is fine */

/* ---- allocate.c ---- */
/* Continues the pod's allocation. OK with *ret_asking: a provider is asked, the pod is woken. *ret_at: the
 * want that failed. *ret_reason: kubelet's. */
struct device_failure {
    const char *reason;
    bool by_provider; /* its own words */
};
enum err_code device_allocate(struct pod *p, const struct device_want *v, size_t n, bool *ret_asking,
                              struct device_failure *ret, struct err *e) MUST_CHECK;
#define DEVICE_ANSWER_MAX (1024 * 1024) /* bytes of one answer, packed */
void device_drop_answer(struct dp_ask *a);
/* An earlier agent, or kubelet, allocated it already. */
bool device_has_answer(const struct pod *p, const struct device_want *w);

/* ---- gifts.c: the answers of several providers become one; pure ---- */
struct device_gift {
    const char *resource;
    const struct dp_answer *answer;
};
/* The first one wins. `conflicts`: a line for each that lost; may be NULL. In the arena. */
enum err_code device_merge(const struct device_gift *v, size_t n, struct arena *arena, struct dp_answer *ret,
                           struct strs *conflicts, struct err *e) MUST_CHECK;
/* The same of a container. */
enum err_code device_gifts_of(const struct ctr *c, struct arena *arena, struct dp_answer *ret,
                              struct strs *conflicts, struct err *e) MUST_CHECK;

/* ---- device_record.c ---- */
void device_save(const struct pod *p, json_t *record);
void device_load(struct pod *p, const json_t *record);

/* ---- checkpoint_file.c ---- */
void checkpoint_open(struct node *n);
void checkpoint_begin(struct node *n);   /* reads it */
void checkpoint_changed(struct node *n); /* the holdings did: written at once */
void checkpoint_later(struct node *n);   /* the lists of devices did: written within a second */
bool checkpoint_busy(const struct node *n);
void checkpoint_cancel(struct node *n);
void checkpoint_close(struct node *n);

/* ---- sources.c: resources without a plugin ---- */
void sources_begin(struct node *n);
bool sources_known(const struct node *n); /* declared devices were looked at */
bool sources_busy(const struct node *n);
void sources_cancel(struct node *n);
void sources_close(struct node *n); /* declared resources are withdrawn */

/* ---- changes.c ---- */
void device_on_change(const struct dp_resource *r, enum dp_change what, void *node);
/* Others may have what came free. */
void device_came_free(struct node *n);

/* ---- device_show.c ---- */
json_t *device_health_json(const struct ctr *c); /* as it is now; NULL: nothing is held */
#endif
