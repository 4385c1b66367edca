/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_cover - a volume that is mounted below a ConfigMap, Secret, downwardAPI or projected volume of the
 * same container needs a folder in that one to be mounted on: the container sees it read-only, and so does
 * the OCI runtime.  As kubelet's nested_volumes.go.
 */
#ifndef AGENT_POD_VOLUME_VOLUME_COVER_H
#define AGENT_POD_VOLUME_VOLUME_COVER_H
#include "agent/pod/core/pod.h"

/*
 * Makes them in the payload volume `v`, once it is published.  ERR_INVALID: one would lie among the volume's
 * own hidden folders ("..data"), or a file is in its place.
 */
enum err_code volume_cover_make(const struct pod *p, const struct api_volume *v, struct err *e) MUST_CHECK;

/*
 * The part of `inner` below `outer` ("/a", "/a//b/c/" -> "b/c"), both as mountPaths are written; false: it is
 * not below, or a path has "..".
 */
bool volume_cover_rest(const char *outer, const char *inner, char *ret, size_t size);
#endif
