/* SPDX-License-Identifier: Apache-2.0 */
/* version - the versions of CSI that a driver offers. Rules and words are kubelet's (highestSupportedVersion
 * in pkg/volume/csi/csi_plugin.go). Pure; any thread. */
#ifndef VOLUMES_CSI_VERSION_H
#define VOLUMES_CSI_VERSION_H
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct csi_version {
    uint32_t part[3]; /* further parts are ignored */
};

/* The highest of them that is 1.x: "1.0.0", "v1.2". ERR_INVALID: there is none. */
enum err_code csi_version_highest(const char *const *versions, size_t n, struct csi_version *ret,
                                  struct err *e) MUST_CHECK;
/* Below 0, 0, above 0. */
int csi_version_compare(const struct csi_version *a, const struct csi_version *b);
#define CSI_VERSION_SIZE 36
void csi_version_print(const struct csi_version *v, char ret[CSI_VERSION_SIZE]);
#endif
