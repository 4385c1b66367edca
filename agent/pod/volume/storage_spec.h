/* SPDX-License-Identifier: Apache-2.0 */
/* storage_spec - the mount of a volume, from its source in the pod or in a PersistentVolume. Loop thread
 * only; its members are borrowed from objects, for a child that is forked immediately. */
#ifndef AGENT_POD_VOLUME_STORAGE_SPEC_H
#define AGENT_POD_VOLUME_STORAGE_SPEC_H
#include "agent/pod/core/pod.h"
#include "base/arena.h"
#include "volumes/flex/flex.h"
#include "volumes/storage/storage.h"

struct storage_source {
    const struct api_storage *storage;
    const struct api_pv *pv; /* NULL: given in the pod */
    const char *name;        /* of the PersistentVolume, or of the pod's volume */
    bool read_only;          /* set in the claim's volume */
    bool block;              /* containers get the device */
};

/* False: the volume is none of these kinds, or its claim is not bound. */
bool storage_source_of(const struct pod *p, const struct api_volume *v, struct storage_source *ret);

struct storage_job {
    bool is_flex;
    struct flex_volume flex;
    struct flex_sizes sizes; /* of an expansion */
    struct storage_spec spec;
    char target[1024];
    char attach_name[600];         /* by which a controller attaches it; "": none does */
    char device[FLEX_DEVICE_SIZE]; /* where it was attached */
};

/* `memory` holds the texts that are not borrowed. ERR_PRECONDITION: a Secret is missing; ERR_UNAVAILABLE: the
 * driver's capabilities are being requested, or with attach_name, a controller has not attached the volume
 * yet; ERR_NOT_FOUND: there is no driver. */
enum err_code storage_job_make(const struct pod *p, const struct storage_source *s,
                               struct flex_drivers *drivers, struct arena *memory, struct storage_job *ret,
                               struct err *e) MUST_CHECK;
#endif
