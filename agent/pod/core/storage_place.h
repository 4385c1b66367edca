/* SPDX-License-Identifier: Apache-2.0 */
/* storage_place - kubelet's paths of volumes that are mounted below the pod's folder. Loop thread only. */
#ifndef AGENT_POD_CORE_STORAGE_PLACE_H
#define AGENT_POD_CORE_STORAGE_PLACE_H
#include "agent/api/storage.h"
#include "base/error.h"

struct pod;

/* "kubernetes.io~nfs", "VENDOR~DRIVER". ERR_INVALID: the name of a FlexVolume driver is no path element. */
enum err_code storage_plugin_name(const struct api_storage *s, char *ret, size_t size,
                                  struct err *e) MUST_CHECK;
/* "<root>/pods/<uid>/volumes/<plugin>/<volume>", of csi what its driver mounts in there. `volume`: the name
 * of the PersistentVolume, or of the pod's volume. */
enum err_code storage_place(const struct pod *p, const struct api_storage *s, const char *volume, char *ret,
                            size_t size, struct err *e) MUST_CHECK;
/* "<root>/pods/<uid>/volumeDevices/<plugin>/<volume>": the link to a block device of iscsi or fc. */
enum err_code storage_device_place(const struct pod *p, const struct api_storage *s, const char *volume,
                                   char *ret, size_t size, struct err *e) MUST_CHECK;
#endif
