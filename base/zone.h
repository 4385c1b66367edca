/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zone - a time zone: its offset from UTC at a moment. From the bytes of a TZif file (RFC 9636) or from a
 * rule of POSIX' TZ variable ("CET-1CEST,M3.5.0,M10.5.0/3"). libc only knows the zone of the process, and
 * rereads it only after tzset().
 *
 * Pure; immutable after the parsing: any thread.
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H
#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZONE_FILE_MAX (256 * 1024) /* bytes; the longest of the tz database has 4 KiB */

struct zone;

/* ERR_INVALID: not a TZif file, or a damaged one. The caller owns *ret: zone_free(). */
enum err_code zone_parse(struct zone **ret, const void *data, size_t n, struct err *e) MUST_CHECK;
/* ERR_INVALID: not a rule. */
enum err_code zone_parse_rule(struct zone **ret, const char *text, struct err *e) MUST_CHECK;
/* Seconds east of UTC at this moment (seconds since 1970). NULL: UTC. */
int32_t zone_offset(const struct zone *z, int64_t at);
void zone_free(struct zone *z); /* NULL is fine */
SCOPE_DEFINE(struct zone, zone_free)

/* Whether the text has the form of a name of the tz database, "Europe/Berlin", and cannot lead out of its
 * folder. */
bool zone_name_is_valid(const char *name);

#define ZONE_FOLDER "/usr/share/zoneinfo" /* the tz database of a Linux system */
/* Whether this node has rules for the zone: UTC, or a file of the folder. Without the folder nothing is
 * known, and each valid name is accepted. Reads a few bytes. */
bool zone_is_known(const char *name);
#endif
