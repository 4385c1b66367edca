/* SPDX-License-Identifier: Apache-2.0 */
/* explain_step - one line of `coracle explain`. */
#ifndef AGENT_POD_CORE_EXPLAIN_STEP_H
#define AGENT_POD_CORE_EXPLAIN_STEP_H
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Appends {"name","state","since","detail","nextTry"}; state: done, running, waiting, failed. Times are wall
 * clock (ns); 0 leaves one out, as does a next try that is due. Everything is copied; detail may be NULL. */
void explain_step(json_t *steps, const char *name, const char *state, int64_t since_ns, const char *detail,
                  int64_t next_ns);
/* Appends a line, cut at 8 KiB, without the white space at its end: why a pod does not run, or how it ended.
 */
void explain_why(json_t *why, const char *fmt, ...) PRINTF_LIKE(2, 3);
void explain_put_ns(json_t *o, const char *key, int64_t ns); /* RFC 3339; nothing for 0 */
/* Whether the subject of an operation is that name, alone or followed by more; not another name with that
 * prefix. "" names nothing. */
bool explain_names(const char *subject, const char *name);
#endif
