/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage_vol - one volume of a pod that the node itself or a FlexVolume driver mounts. Private to the files
 * storage_*.c. Loop thread only.
 *
 *   storage_spec.c the mount, from the objects
 *   storage_volumes.c    set-up, with a back-off for each volume
 *   storage_grow.c       expansion, before the containers or while they run
 *   storage_removal.c    the pod's end: one child for all of them
 *   storage_usage.c      how full it is
 *   storage_show.c for people, and the volumes that controllers have to attach
 */
#ifndef AGENT_POD_VOLUME_STORAGE_VOL_H
#define AGENT_POD_VOLUME_STORAGE_VOL_H
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/storage_spec.h"
#include "agent/pod/volume/volumes.h"

#define STORAGE_RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations */
#define STORAGE_RETRY_MAX_MS 122000

struct storage_vol {
    struct pod *pod;
    char *name; /* of the pod's volume */
    enum storage_state {
        STORAGE_NONE,
        STORAGE_MOUNTING,
        STORAGE_MOUNTED, /* it has to grow before containers get it */
        STORAGE_READY,
    } state;
    bool block; /* once it was tried */
    int64_t since_ns;
    struct proc_call call;
    uint64_t backoff_ms;
    struct boot_time retry_at;
    struct boot_time said_at; /* when waiting for the attachment is an event; none: it does not wait */
    char shown[256];          /* the name in events */
    char attach_name[600];    /* by which a controller attaches it; "": none does */
    char error[800];
    struct storage_growth {
        struct proc_call call;
        uint64_t bytes; /* to so many, while the call runs */
        uint64_t backoff_ms;
        struct boot_time retry_at;
        char error[512];
    } growth;
    bool measured; /* it has a file system; for a FlexVolume, its driver also has supportsMetrics */
    struct storage_space {
        struct proc_call call;
        bool known;
        struct volume_space last;
        uint64_t backoff_ms;
        struct boot_time next_at;
    } space;
};

static inline struct pod_storage *storage_of(const struct pod *p)
{
    return &volumes_of(p)->storage;
}

void storage_vol_state(struct storage_vol *v, enum storage_state state);
/* A try failed, or waits: *e is shown and becomes an event, and the volume is tried again. `text`: of the
 * event. */
void storage_vol_failed(struct storage_vol *v, const struct err *e, const char *text);
/* A child's error instead of *result, without the name of the call. */
struct err storage_call_error(const struct proc_call *call, const struct err *result);

/* ---- storage_usage.c ---- */
void storage_usage_step(struct storage_vol *v, const struct storage_source *source);

/* ---- storage_grow.c ---- */
/* Of a mounted volume. It becomes ready, or is expanded first. */
void storage_grow_first(struct storage_vol *v, const struct api_volume *api);
void storage_grow_step(struct storage_vol *v, const struct api_volume *api);
#endif
