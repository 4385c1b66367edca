/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - valid names and versions according to the CNI specification. Pure functions, any thread.
 *
 * Network names and container ids become parts of file names (result cache, host-local leases) and iptables
 * comments, so they are checked first.
 */
#ifndef CNI_PLUGIN_NAMES_H
#define CNI_PLUGIN_NAMES_H
#include "base/error.h"

#include <stdbool.h>

/* Network and container id must fit in one file name: <network>-<id>-<ifname 15>.json in 255 bytes. */
#define CNI_NAME_MAX 100

/* Versions as comparable numbers: CNI_V(0, 4, 0) < CNI_V(1, 0, 0). */
#define CNI_V(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define CNI_VERSION_HIGHEST "1.1.0"

bool cni_name_ok(
    const char *name); /* network or container id: ^[a-zA-Z0-9][a-zA-Z0-9_.-]*$, at most CNI_NAME_MAX */
bool cni_ifname_ok(const char *name); /* 1 to 15 bytes, not "." or "..", no "/", ":" or blank */
bool cni_type_ok(const char *type);   /* plugin type: a plain file name, at most 100 bytes */
/* CNI_ARGS is K=V;K=V without quoting: no ";", "=", blank or control character inside a value. */
bool cni_arg_ok(const char *value);

/* Number of a version (0.1.0 0.2.0 0.3.0 0.3.1 0.4.0 1.0.0 1.1.0; NULL and "" are 0.1.0); -1: unsupported. */
int cni_version_number(const char *version);
/* The constant text for a number from cni_version_number(). */
const char *cni_version_text(int number);
#endif
