/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/topology.h"

#include "base/files/fs.h"
#include "base/parse.h"

#include <fcntl.h>
#include <string.h>

struct nodes {
    uint64_t found;
    struct err e; /* the first one that cannot be used */
};

static bool add_node(const char *name, void *arg)
{
    struct nodes *v = arg;
    uint64_t node = 0;

    if (!str_starts(name, "node") || parse_u64(name + 4, 0, UINT64_MAX, &node, name, ERR_IGNORED) != ERR_OK)
        return true; /* another file of the folder */
    if (node > DP_NUMA_ID_MAX)
        err_set(&v->e, ERR_RANGE, "NUMA node %llu: at most %d is supported", (unsigned long long)node,
                DP_NUMA_ID_MAX);
    else
        v->found |= 1ull << node;
    return true;
}

enum err_code dp_machine_read(struct dp_machine *ret, const char *dir, struct err *e)
{
    struct nodes v = { 0 };

    if (presence_is_unknown(fs_list(AT_FDCWD, dir, add_node, &v, e)))
        return err_wrap(e, "NUMA nodes of this machine");
    if (v.e.code != ERR_OK) {
        *e = v.e;
        return e->code;
    }
    if (__builtin_popcountll(v.found) > DP_NUMA_MAX)
        return err_set(e, ERR_RANGE, "%d NUMA nodes: at most %d are supported", __builtin_popcountll(v.found),
                       DP_NUMA_MAX);
    ret->nodes = v.found != 0 ? v.found : 1;
    return ERR_OK;
}
