/* SPDX-License-Identifier: Apache-2.0 */
/* volume_cover - if a volume is mounted below a ConfigMap, Secret, downwardAPI or projected volume of the
 * same container, that one needs a folder as mount point: for the container and the OCI runtime it is
 * read-only. Like kubelet's nested_volumes.go. */
#ifndef AGENT_POD_VOLUME_VOLUME_COVER_H
#define AGENT_POD_VOLUME_VOLUME_COVER_H
#include "agent/pod/core/pod.h"

/* Makes them in the payload volume `v` after it was published. ERR_INVALID: one would be among the volume's
 * own hidden folders ("..data"), or a file is in the way. */
enum err_code volume_cover_make(const struct pod *p, const struct api_volume *v, struct err *e) MUST_CHECK;

/* The part of `inner` below `outer` ("/a", "/a//b/c/" -> "b/c"), both in the format of mountPath; false: it
 * is not below, or a path has "..". */
bool volume_cover_rest(const char *outer, const char *inner, char *ret, size_t size);
#endif
