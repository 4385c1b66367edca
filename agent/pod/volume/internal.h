/* SPDX-License-Identifier: Apache-2.0 */
/* The volume room's private state of a pod. */
#ifndef AGENT_POD_VOLUME_INTERNAL_H
#define AGENT_POD_VOLUME_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/volume/pod_payloads.h"
#include "base/process/process.h"
#include "base/work.h"
#include "volumes/csi/csi.h"

/* subPath mounts that could not follow their volume (live_sub_path.h) */
struct live_retry {
    uint64_t wait_ms; /* until the next try; 0: none has failed */
    int64_t since_ns; /* wall clock, of the first failure */
    struct boot_time retry_at;
    char error[504];
};

struct live_ctr {   /* of a container */
    bool live_due;  /* its subPath mounts may show an older version of their volume (live_sub_path.h) */
    pid_t live_pid; /* its first process, for the child that compares mounts */
    struct live_retry live_retry;
};

struct flex_drivers;

struct volume_node {
    unsigned writes;           /* number of large payload sets on the pool */
    struct flex_drivers *flex; /* NULL: none are served */
};

static inline struct volume_node *volume_node(const struct node *n)
{
    return n->parts[ROOM_VOLUME];
}

struct csi_vol;
struct pod_csi { /* csi_volumes.h */
    struct csi_vol *v;
    struct csi_known *known; /* the same volumes, for the removal */
    size_t n;
    struct csi_remove *remove; /* NULL: it was never begun */
    bool removed;
    uint64_t backoff_ms; /* of the removal */
    struct boot_time retry_at;
    char *error; /* of the removal; NULL: none */
};

struct storage_vol;
struct pod_storage { /* storage_volumes.h */
    struct storage_vol *v;
    size_t n;
    struct proc_call removal;
    bool removed;
    uint64_t backoff_ms; /* of the removal */
    struct boot_time retry_at;
    char *error; /* of the removal; NULL: none */
};

struct pod_volumes {
    enum vols_state { VOLS_NONE, VOLS_SETTING_UP, VOLS_READY, VOLS_REMOVING, VOLS_REMOVED } vols;
    int64_t vols_since_ns;
    char *vols_error; /* NULL: none */
    char *vols_event; /* last FailedMount text, so that the event is not repeated at each try */
    struct boot_time vols_retry_at;
    bool vols_held;            /* not removed because of a foreign mount; retried when mounts change */
    bool vols_more;            /* more volumes are mounted than are being set up */
    unsigned vols_mount_round; /* mount_watch_rounds() when the last removal began */
    uint64_t vols_backoff_ms;
    uint64_t payload_backoff_ms;   /* after a failed refresh; 0: the last one succeeded */
    struct boot_time vols_tidy_at; /* when superseded payload versions are removed; none: there are none */
    struct proc_call vols_call;
    struct proc_call live_call;
    struct ctr *live_ctr;   /* the container whose mounts the child compares */
    unsigned *vols_at;      /* shared with the child: 1 + index of the volume it checks; or NULL */
    char *shm_path;         /* NULL until it is mounted */
    bool payload_stale;     /* a ConfigMap or Secret used by the pod changed */
    struct work write;      /* writes a large set of payloads */
    size_t payload_entries; /* see payload_set_is_large() */
    struct payload_set *writing;
    payloads_written_fn written;
    bool write_waits;                 /* waits for a place on the pool */
    struct boot_time tokens_renew_at; /* when its service account tokens are renewed; none: it has none */
    struct pod_csi csi;
    struct pod_storage storage;
    char *overlaps; /* volume files hidden by a later source, for the status; NULL: none */
    int64_t overlaps_since_ns;
};

static inline struct pod_volumes *volumes_of(const struct pod *p)
{
    return p->parts[ROOM_VOLUME];
}

static inline struct live_ctr *live_of(const struct ctr *c)
{
    return c->parts[ROOM_VOLUME];
}

/* ---- pod_volumes.c ---- */
void volumes_set_state(struct pod *p, enum vols_state s); /* changes vols; nothing else does */
void volumes_failed(struct pod *p, const char *volume, const struct err *e); /* event, back-off */

/* ---- pod_claims.c ---- */
/* False: a claim is missing or not usable; the pod is woken for the next try. */
bool volumes_take_claims(struct pod *p);

/* ---- host_paths.c ---- */
/* Whether no host path needs a child: each was found good before. */
bool host_paths_known(const struct pod *p);
void host_paths_check_start(struct pod *p, op_done_fn done); /* by vols_call; then host_paths_check_done() */
/* Of a failed check: the problem, and the name of its volume, borrowed until host_paths_check_done(). */
const char *host_paths_problem(const struct pod *p, const struct err *result, struct err *e);
void host_paths_check_done(struct pod *p);
/* "host path /mnt/x of volume \"v\"", which the child is checking; "" if none. */
void host_paths_checking(const struct pod *p, char *ret, size_t size);
#endif
