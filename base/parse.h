/* SPDX-License-Identifier: Apache-2.0 */
/* parse - numbers from outside: the whole string, no blanks, no sign unless signed, range checked. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H
#include "base/error.h"

#include <stdint.h>

/* `what` names the value in the error: "what: \"12x\" is not a whole number between 0 and 65535". */
enum err_code parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, const char *what,
                        struct err *e) MUST_CHECK;
enum err_code parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret, const char *what,
                        struct err *e) MUST_CHECK;
#endif
