/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_vol - one volume of a pod that a CSI driver serves: inline, or the claim of a PersistentVolume. Private
 * to the files csi_*.c. Loop thread only.
 *
 *   csi_resolve.c    which of the pod's volumes these are
 *   csi_describe.c the requests to the driver, from the objects
 *   csi_volumes.c    set-up, with a back-off for each volume
 *   csi_grow.c       expansion while the pod runs
 *   csi_removal.c    the pod's end: one operation for all of them
 *   csi_links.c the drivers' requests to the node
 *   csi_show.c       for people and for /stats/summary
 */
#ifndef AGENT_POD_VOLUME_CSI_VOL_H
#define AGENT_POD_VOLUME_CSI_VOL_H
#include "agent/api/generic.h"
#include "agent/pod/volume/csi_usage.h"
#include "agent/pod/volume/internal.h"
#include "volumes/csi/csi.h"

#define CSI_RETRY_FIRST_MS 500 /* kubelet's back-off of volume operations */
#define CSI_RETRY_MAX_MS 122000

enum csi_secret { CSI_SECRET_STAGE, CSI_SECRET_PUBLISH, CSI_SECRET_EXPAND, CSI_SECRETS };

/* The request of a set-up or an expansion; its texts are copies, as an edit may replace the objects
 * meanwhile. */
struct csi_described {
    struct csi_volume volume;
    struct arena memory;
    struct api_config *secrets[CSI_SECRETS]; /* references: their values stay there */
    json_t *context;                         /* of the attachment; a reference */
    char *tokens;                            /* wiped when it is freed */
};

struct csi_vol {
    struct pod *pod;
    char *name; /* of the pod's volume */
    char *
        spec_name; /* of the PersistentVolume; of an inline one, its name. NULL: it is not known, or no CSI */
    char *driver, *handle; /* set with spec_name */
    char *staging;         /* set with spec_name, unless inline */
    bool ephemeral, block;
    enum csi_vol_state { CSI_VOL_NONE, CSI_VOL_MOUNTING, CSI_VOL_READY } state;
    int64_t since_ns;
    struct csi_described described; /* while a set-up runs */
    struct csi_mount mount;
    csi_caps caps; /* once it was ready */
    struct csi_vol_usage usage;
    uint64_t backoff_ms;
    struct boot_time retry_at; /* of a set-up, or of the next one of a volume that is published again */
    bool republishes;          /* requiresRepublish: calls the driver repeatedly while the volume is ready */
    bool republished;          /* this was done at least once */
    bool attaches;             /* the driver wants it attached */
    bool in_use;               /* another pod uses it, and it permits only one pod */
    struct boot_time give_up_at; /* of the pod's end: when the driver's answer is no longer waited for */
    struct boot_time said_at;    /* when waiting for the attachment is an event; none: it does not wait */
    char error[512];
    /* expansion */
    struct csi_described grown; /* while one runs */
    struct csi_expand expand;
    uint64_t growing; /* to so many bytes */
    uint64_t grow_backoff_ms;
    struct boot_time grow_at;
    char grow_error[512];
};

static inline struct csi_vol *csi_vol_at(const struct pod *p, size_t i)
{
    return &volumes_of(p)->csi.v[i];
}

/* ---- csi_resolve.c ---- */
/* An entry for each volume that may be one of a driver. False: no memory. */
bool csi_vols_make(struct pod *p);
void csi_vols_free(struct pod *p);
struct csi_vol *csi_vol_find(const struct pod *p, const char *name); /* NULL: it is none */
/* The PersistentVolume of a volume's claim if a CSI driver serves it; NULL: it does not, or is not known. */
const struct api_generic *csi_pv_of(const struct pod *p, const struct api_volume *v);
/* Fills in the members that come from the objects. ERR_NOT_FOUND: no driver serves it, or it is not known
 * yet. */
enum err_code csi_vol_resolve(struct csi_vol *v, const struct api_volume *api, struct err *e) MUST_CHECK;

/* ---- csi_describe.c ---- */
/* ERR_UNAVAILABLE: it waits, for what *e says. ERR_PRECONDITION of a new pod: likewise. Fails with an event's
 * text, without its beginning; *ret_what is that, "MountVolume.SetUp failed". csi_described_done(), also
 * after an error. */
enum err_code csi_describe(struct csi_vol *v, const struct api_volume *api, struct csi_described *ret,
                           const char **ret_what, struct err *e) MUST_CHECK;
void csi_described_done(struct csi_described *d);
/* The size that the volume has to grow to; 0: none. */
uint64_t csi_wanted_bytes(const struct pod *p, const struct api_volume *api);

/* ---- csi_grow.c ---- */
void csi_grow_step(struct csi_vol *v, const struct api_volume *api);
/* It grew with its set-up, or later. */
void csi_grown(struct csi_vol *v, const struct api_volume *api, uint64_t bytes);

/* ---- csi_links.c ---- */
/* Another pod has the volume, on the disk or by a set-up under way. */
bool csi_vol_is_elsewhere(const struct csi_vol *v);
#endif
