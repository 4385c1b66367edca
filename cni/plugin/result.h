/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result - plugins' answers to ADD, in all formats of CNI's history.
 *
 *     0.1.0 0.2.0           {"ip4": {"ip", "gateway", "routes"}, "ip6": {...}, "dns"}
 *     0.3.0 0.3.1 0.4.0     {"interfaces", "routes", "dns",
 *                            "ips": [{"version": "4", "address", "gateway", "interface"}]}
 *     1.0.0                 the same without ips[].version
 *     1.1.0                 and with interfaces[].{mtu,socketPath,pciID},
 *                           routes[].{mtu,advmss,priority,table,scope}
 *
 * A plugin may answer in another version than its configuration's, but the next plugin must get prevResult in
 * the configuration's version, hence the conversion. Plugins are third-party programs: everything is checked
 * and bounded.
 */
#ifndef CNI_PLUGIN_RESULT_H
#define CNI_PLUGIN_RESULT_H
#include "base/error.h"

#include <jansson.h>

#define CNI_RESULT_MAX (1024 * 1024) /* bytes of standard output; a real result has about a kilobyte */
#define CNI_RESULT_ITEMS_MAX 256     /* interfaces, ips, routes: each */
#define CNI_RESULT_NAME_MAX 255      /* bytes of an interface's name; Linux has 15 */
/* real ones have 3; documents containing a result must be within jansson's 2048 */
#define CNI_RESULT_DEPTH_MAX 64

#define CNI_IPS_MAX 4

struct cni_result {
    /* The sandbox interface's addresses, in the plugin's order, without prefix length. */
    char ips[CNI_IPS_MAX][46];
    size_t n_ips;
};

/* Decodes and checks an answer; without cniVersion it has `config_version`. *ret is unmodified. */
enum err_code cni_result_parse(json_t **ret, const char *text, size_t n, int config_version,
                               struct err *e) MUST_CHECK;

/* Converts a result to another version; the same object with a new reference if it has that version. */
enum err_code cni_result_convert(json_t **ret, json_t *result, int config_version, int to,
                                 struct err *e) MUST_CHECK;

/* The pod's addresses without duplicates: those of `ifname` inside the sandbox or without an interface; if
 * there are none, all. At most CNI_IPS_MAX (a pod has at most two); more are left out. */
enum err_code cni_result_addresses(struct cni_result *ret, json_t *result, int config_version,
                                   const char *ifname, struct err *e) MUST_CHECK;
#endif
