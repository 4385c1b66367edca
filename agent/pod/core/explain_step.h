/* SPDX-License-Identifier: Apache-2.0 */
/* explain_step - one line of `coracle explain`. */
#ifndef AGENT_POD_CORE_EXPLAIN_STEP_H
#define AGENT_POD_CORE_EXPLAIN_STEP_H
#include <jansson.h>
#include <stdint.h>

void explain_step(json_t *steps, const char *name, const char *state, int64_t since_ns, const char *detail,
                  int64_t next_ns);
void explain_put_ns(json_t *o, const char *key, int64_t ns); /* RFC 3339; nothing for 0 */
#endif
