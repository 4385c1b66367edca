/* SPDX-License-Identifier: Apache-2.0 */
/* pem - whether a text has the form of PEM (RFC 7468); coracle-kube reads the content. Pure. */
#ifndef AGENT_KUBE_CONFIG_PEM_H
#define AGENT_KUBE_CONFIG_PEM_H
#include <stdbool.h>

bool pem_has_certificate(const char *text); /* at least one block, complete */
bool pem_has_key(const char *text);         /* "... PRIVATE KEY" */
#endif
