/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/record_field.h"
#include "base/codec/json.h"

#include <stdio.h>
#include <string.h>

#define TIME_MAX_NS (INT64_MAX / 2) /* the year 2116: adding a grace period cannot overflow */

void record_copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from != NULL ? from : "");
}

int64_t record_number(const json_t *o, const char *key, int64_t max)
{
    json_int_t v = json_int(o, key, 0);

    return v > 0 && v <= max ? v : 0;
}

int64_t record_time(const json_t *o, const char *key)
{
    return record_number(o, key, TIME_MAX_NS);
}

int64_t record_shift(const json_t *o, const char *key)
{
    json_int_t v = json_int(o, key, 0);

    return v > -TIME_MAX_NS / 4 && v < TIME_MAX_NS / 4 ? v : 0;
}

bool record_id_is_sane(const char *id)
{
    return id == NULL || (strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64);
}

/* ---- moments ---- */

struct record_clock record_clock_of(const json_t *record, bool rebooted)
{
    return (struct record_clock){ .rebooted = rebooted,
                                  .boot_ns = record_time(record, "writtenBoot"),
                                  .wall_ns = record_time(record, "written"),
                                  .synchronised = json_flag(record, "synchronised"),
                                  .older_offset_ns = record_time(record, "clockOffset") };
}

/*
 * Before this boot: the age by the wall clock, if it is plausible, and at least the time that was counted
 * until the record was written plus the time since the boot.
 */
static struct boot_time record_moment_before_boot(int64_t wall_ns, int64_t counted_ns, bool by_wall)
{
    int64_t up_ns = clock_boot().ns, least_ns = up_ns + counted_ns;
    int64_t age_ns = by_wall ? clock_wall_ns() - wall_ns : 0;
    int64_t at_ns = up_ns - (age_ns > least_ns ? age_ns : least_ns);

    return (struct boot_time){ at_ns != 0 ? at_ns : -1 };
}

struct boot_time record_moment(const struct record_clock *k, const json_t *o, const char *key,
                               int64_t older_ns, bool by_wall)
{
    json_int_t boot_ns = json_int(o, key, 0);

    if (boot_ns < -TIME_MAX_NS / 2 || boot_ns > TIME_MAX_NS || (k->boot_ns != 0 && boot_ns > k->boot_ns))
        boot_ns = 0;
    if (boot_ns != 0 && !k->rebooted)
        return (struct boot_time){ boot_ns < clock_boot().ns ? boot_ns : clock_boot().ns };
    if (boot_ns != 0 && k->boot_ns != 0)
        return record_moment_before_boot(k->wall_ns - k->boot_ns + boot_ns, k->boot_ns - boot_ns, by_wall);
    if (older_ns == 0)
        return CLOCK_BOOT_NONE;
    if (k->rebooted)
        return record_moment_before_boot(older_ns, 0, by_wall);
    return clock_boot_of_wall(
        older_ns + (k->older_offset_ns == 0 ? 0 : clock_wall_ns() - clock_boot().ns - k->older_offset_ns));
}
