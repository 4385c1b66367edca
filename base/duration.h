/* SPDX-License-Identifier: Apache-2.0 */
/* duration - durations in Go's format (time.ParseDuration, Duration.String): "1h2m3.5s", "100ms", "0s". Pure.
 */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H
#include <stdbool.h>
#include <stdint.h>

struct duration_text {
    char s[40];
};

bool duration_parse(const char *text, int64_t *ret_ns); /* false: not a duration, or beyond 292 years */
/* To be used as duration_format(ns).s: it lives until the end of the full expression. */
struct duration_text duration_format(int64_t ns);
struct duration_text duration_format_ms(uint64_t ms);
/* "5m10s", "3d4h": two units while the number is small, as kubectl shows ages (apimachinery's HumanDuration).
 */
struct duration_text duration_human(int64_t ns);
#endif
