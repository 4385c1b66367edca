/* SPDX-License-Identifier: Apache-2.0 */
/* zones - the time zones of this machine, by their names. Reads small files: short calls that block. */
#ifndef AGENT_WORKLOAD_ZONES_H
#define AGENT_WORKLOAD_ZONES_H
#include "base/zone.h"

/* NULL: the zone of the node, read anew each time, as an administrator may change it. *ret NULL: UTC; the
 * caller owns it. ERR_NOT_FOUND: the zone is not installed. */
enum err_code zones_get(struct zone **ret, const char *name, struct err *e) MUST_CHECK;
#endif
