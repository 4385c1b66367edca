/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_cover - makes mount points inside ConfigMap, Secret, downwardAPI and projected volumes, for volumes
 * that the same container mounts below them.  The OCI runtime cannot make these folders, because it sees the
 * outer volume read-only.  Like kubelet's nested_volumes.go.
 */
#ifndef AGENT_POD_VOLUME_VOLUME_COVER_H
#define AGENT_POD_VOLUME_VOLUME_COVER_H
#include "agent/pod/core/pod.h"

/*
 * Makes the mount points in the payload volume `v`; call it after each publish.  ERR_INVALID: a mount point
 * would be inside the volume's own hidden folders ("..data"), or a file has its name.
 */
enum err_code volume_cover_make(const struct pod *p, const struct api_volume *v, struct err *e) MUST_CHECK;

/* The part of `inner` below `outer` ("/a", "/a//b/c/" -> "b/c"), both in the format of mountPath; false: it
 * is not below, or a path has "..". */
bool volume_cover_rest(const char *outer, const char *inner, char *ret, size_t size);
#endif
