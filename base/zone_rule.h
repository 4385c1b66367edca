/* SPDX-License-Identifier: Apache-2.0 */
/* zone_rule - a rule of POSIX' TZ variable with RFC 9636's wider range of hours: "<+1030>-10:30<+11>-11,
 * M10.1.0,M4.1.0". Pure. */
#ifndef BASE_ZONE_RULE_H
#define BASE_ZONE_RULE_H
#include <stdbool.h>
#include <stdint.h>

#define ZONE_RULE_TEXT_MAX 256

struct zone_day { /* when an offset begins */
    enum { ZONE_DAY_JULIAN, ZONE_DAY_NUMBER, ZONE_DAY_WEEK } kind;
    int day;         /* 1 to 365 without 29 February; 0 to 365; or 0 (Sunday) to 6 */
    int month, week; /* of ZONE_DAY_WEEK; week 5: the last */
    int32_t seconds; /* of the wall clock, from midnight; may be below 0 */
};

struct zone_rule {
    int32_t standard, summer; /* seconds east of UTC */
    bool has_summer;
    struct zone_day begins, ends; /* summer */
};

bool zone_rule_parse(const char *text, struct zone_rule *ret);
int32_t zone_rule_offset(const struct zone_rule *r, int64_t at);
#endif
