/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_field - reads fields of a pod's record: numbers, times, ids, and moments relative to a boot, perhaps
 * an earlier one. A record may contain anything: an impossible value is treated as absent.
 */
#ifndef AGENT_POD_CORE_RECORD_FIELD_H
#define AGENT_POD_CORE_RECORD_FIELD_H
#include "base/clock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void record_copy(char *to, size_t size, const char *from); /* NULL: "" */
/* A whole number of at most `max`, otherwise 0: derived values must fit their type. */
int64_t record_number(const json_t *o, const char *key, int64_t max);
/* Wall clock, ns; 0: absent. Adding a grace period to it cannot overflow. */
int64_t record_time(const json_t *o, const char *key);
/* How far the wall clock had been set, as an earlier version recorded it; ns. */
int64_t record_shift(const json_t *o, const char *key);
bool record_id_is_sane(const char *id); /* it becomes part of paths; NULL is sane */

/* Both clocks when a record was written. */
struct record_clock {
    bool rebooted;            /* since then */
    int64_t boot_ns, wall_ns; /* 0: written by an earlier version */
    bool synchronised;        /* the wall clock */
    int64_t older_offset_ns;  /* from boot to wall clock, from an earlier version; 0: unknown */
};
struct record_clock record_clock_of(const json_t *record, bool rebooted);
/* A moment by the clock of this boot; none: absent. `older_ns`: the same by the wall clock, in a record of an
 * earlier version. `by_wall`: after a reboot the age is computed from the wall clock. */
struct boot_time record_moment(const struct record_clock *k, const json_t *o, const char *key,
                               int64_t older_ns, bool by_wall);
#endif
