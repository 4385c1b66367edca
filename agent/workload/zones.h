/* SPDX-License-Identifier: Apache-2.0 */
/* zones - the time zones of this machine, by name. Blocks for short reads of small files. */
#ifndef AGENT_WORKLOAD_ZONES_H
#define AGENT_WORKLOAD_ZONES_H
#include "base/zone.h"

/* name NULL: the zone of the node, which is read each time, because an administrator may change it. *ret
 * NULL: UTC; the caller owns it. ERR_NOT_FOUND: the zone is not installed. */
enum err_code zones_get(struct zone **ret, const char *name, struct err *e) MUST_CHECK;
#endif
