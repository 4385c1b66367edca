/*
 * clock - monotonic milliseconds for deadlines, wall time for what people and files see, and the
 * RFC 3339 texts that Kubernetes uses.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_RFC3339_SIZE 40

uint64_t clock_mono_ms(void);
/*
 * Second, minute, hour, day, month and year; weekday and day of the year stay 0.  By arithmetic alone: libc's
 * gmtime_r() takes a lock, which a forked child may find taken for ever.
 */
void clock_utc(int64_t seconds, struct tm *ret);
int64_t clock_wall_ns(void);                                           /* since 1970 */
void clock_format_s(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]);    /* 2026-01-02T03:04:05Z */
void clock_format_us(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]);   /* ...05.123456Z */
void clock_format_nano(int64_t wall_ns, char ret[CLOCK_RFC3339_SIZE]); /* RFC3339Nano, zeros cut */
enum err_code clock_parse(const char *rfc3339, int64_t *ret_wall_ns, struct err *e) MUST_CHECK;
#endif
