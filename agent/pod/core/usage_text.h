/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage_text - Prometheus' text format, piece by piece.  Pure.
 */
#ifndef AGENT_POD_CORE_USAGE_TEXT_H
#define AGENT_POD_CORE_USAGE_TEXT_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* key="value", preceded by a comma unless it is the first; escapes backslash, quote and line break. */
void usage_label(struct buf *out, const char *key, const char *value, bool first);

enum usage_unit {
    UNIT_ONE,
    UNIT_NS,    /* written in seconds */
    UNIT_US,    /* likewise */
    UNIT_LIMIT, /* UINT64_MAX is written as 0, like cAdvisor's unlimited values */
};
void usage_value(struct buf *out, uint64_t value, enum usage_unit unit);
#endif
