/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - the text of iptables-save, line by line and word by word.  Pure.
 */
#ifndef CNI_RULES_H
#define CNI_RULES_H
#include <stdbool.h>
#include <stddef.h>

/* A node with kube-proxy and thousands of services has some megabytes of rules. */
#define CNI_IPTABLES_MAX (32 * 1024 * 1024)
#define CNI_RULES_WORD 64 /* chain names have at most 28 bytes, link names 15 */

/* One word of a rule without its quotes and their backslashes, cut when longer; false: end of line. */
bool cni_rules_word(const char **at, char *ret, size_t max);

/* Calls fn for each line with the table it stands in; fn returns false to stop. */
void cni_rules_each(const char *save, bool (*fn)(const char *table, const char *line, void *arg), void *arg);
#endif
