/* SPDX-License-Identifier: Apache-2.0 */
/* write_audit - the line in the log of each write that came over the socket, with the same fields as the
 * local API (agent/kube/apiserver/write.c), which logs its own writes ("audited" in the request). */
#ifndef AGENT_POD_SHOW_WRITE_AUDIT_H
#define AGENT_POD_SHOW_WRITE_AUDIT_H
#include <jansson.h>
#include <stdbool.h>

struct write_said {
    const json_t *request; /* of write.h */
    bool remove, create;
    const char *file; /* NULL: none */
    int code;         /* of the answer */
};
void write_audit(const struct write_said *s);
#endif
