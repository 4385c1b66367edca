/* SPDX-License-Identifier: Apache-2.0 */
/* rules - splits the output of iptables-save into lines and words. Pure. */
#ifndef CNI_HOST_RULES_H
#define CNI_HOST_RULES_H
#include <stdbool.h>
#include <stddef.h>

/* A node with kube-proxy and thousands of services has several megabytes of rules. */
#define CNI_IPTABLES_MAX (32 * 1024 * 1024)
#define CNI_RULES_WORD 64 /* chain names have at most 28 bytes, link names 15 */

bool cni_rules_is_built_in(const char *chain); /* INPUT, POSTROUTING, ... */

/* One word of a rule without its quotes and backslashes, truncated if longer; false at the end of the
 * line. */
bool cni_rules_word(const char **at, char *ret, size_t max);

/* Calls fn for each line, with its table; fn returns false to stop. */
void cni_rules_each(const char *save, bool (*fn)(const char *table, const char *line, void *arg), void *arg);
#endif
