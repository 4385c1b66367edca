/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_usage - the usage of a file system and of a pod's volume: the last value from its driver or its file
 * system, or the usage of the agent's own folder of a claim. Loop thread only; no path that could hang is
 * accessed.
 */
#ifndef AGENT_POD_USAGE_CLAIM_USAGE_H
#define AGENT_POD_USAGE_CLAIM_USAGE_H
#include "agent/pod/core/pod.h"

struct fs_usage {
    int64_t at_ns; /* wall clock */
    bool sized;    /* the numbers are known */
    uint64_t capacity_bytes, available_bytes, used_bytes;
    uint64_t inodes, inodes_free, inodes_used;
    bool has_health, abnormal; /* the driver reported the volume's condition, with CSIVolumeHealth */
};

/* Of a folder of our own. False: it cannot be read. */
bool fs_usage_read(const char *path, int64_t at_ns, struct fs_usage *ret);
/* Of a volume that a driver serves, also an inline one. False: it serves none, or has reported nothing. */
bool driver_usage(const struct pod *p, const char *volume, struct fs_usage *ret);
/* Of a volume that the node or a FlexVolume driver mounted. False: it is not such a volume, or has reported
 * nothing yet. */
bool mounted_usage(const struct pod *p, const char *volume, struct fs_usage *ret);
/* Of a volume that is a claim. False: it is none, or there is nothing to say. Not sized: a PersistentVolume
 * that is not looked at, since it may hang. */
bool claim_usage(const struct pod *p, const struct api_volume *v, struct fs_usage *ret);
#endif
