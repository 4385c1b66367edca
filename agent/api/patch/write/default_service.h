/* SPDX-License-Identifier: Apache-2.0 */
/* default_service - defaults of a Service's spec that depend on other fields, and the fields that
 * kube-apiserver allocates. Private to the room. */
#ifndef AGENT_API_PATCH_WRITE_DEFAULT_SERVICE_H
#define AGENT_API_PATCH_WRITE_DEFAULT_SERVICE_H
#include <jansson.h>
#include <stdbool.h>

/* After the defaults of the table. False: out of memory. */
bool default_service(json_t *spec);
/* Sets clusterIPs, ipFamilies and ipFamilyPolicy, after the other defaults. No field manager owns them unless
 * it set them itself. False: out of memory. */
bool default_service_allocated(json_t *spec);
#endif
