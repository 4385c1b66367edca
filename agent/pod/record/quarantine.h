/* SPDX-License-Identifier: Apache-2.0 */
/* quarantine - damaged state files that were set aside. Loop thread only. */
#ifndef AGENT_POD_RECORD_QUARANTINE_H
#define AGENT_POD_RECORD_QUARANTINE_H
#include "agent/pod/core/pod.h"

/* A node event for each file set aside since then. */
void quarantine_report(struct node *n, int64_t since_ns);
/* A step of `coracle explain node` while there are any: people examine and then remove them. */
void quarantine_explain(struct node *n, json_t *steps);
#endif
