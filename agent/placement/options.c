/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define NUMA_NODES_MIN 8 /* kubelet's default of max-allowable-numa-nodes, and its least value */

/* As Go's strconv.ParseBool. */
static bool read_bool(const char *text, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
    static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };

    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *ret = strcmp(text, yes[i]) == 0;
            return true;
        }
    return false;
}

static enum err_code bad_bool(const struct pl_option *o, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "bad value for option \"%.100s\": strconv.ParseBool: parsing \"%.100s\": invalid syntax",
                   o->name, o->value);
}

/* ---- processors ---- */

static const struct cpu_option {
    const char *name;
    size_t at;
    bool alpha;
} cpu_options[] = {
    { "full-pcpus-only", offsetof(struct pl_cpu_options, full_cores), false },
    { "distribute-cpus-across-numa", offsetof(struct pl_cpu_options, distribute), false },
    { "align-by-socket", offsetof(struct pl_cpu_options, align_by_socket), true },
    { "distribute-cpus-across-cores", offsetof(struct pl_cpu_options, spread), true },
    { "strict-cpu-reservation", offsetof(struct pl_cpu_options, strict), false },
    { "prefer-align-cpus-by-uncorecache", offsetof(struct pl_cpu_options, uncore_first), false },
};

static enum err_code read_cpu_option(const struct pl_option *o, bool alpha, struct pl_cpu_options *ret,
                                     struct err *e)
{
    for (size_t i = 0; i < sizeof(cpu_options) / sizeof(*cpu_options); i++) {
        if (strcmp(cpu_options[i].name, o->name) != 0)
            continue;
        if (cpu_options[i].alpha && !alpha)
            return err_set(e, ERR_INVALID,
                           "CPU Manager Policy Alpha-level Options not enabled, but option \"%s\" provided",
                           o->name);
        if (!read_bool(o->value, (bool *)((char *)ret + cpu_options[i].at)))
            return bad_bool(o, e);
        return ERR_OK;
    }
    return err_set(e, ERR_INVALID, "unknown CPU Manager Policy option: \"%.100s\"", o->name);
}

static enum err_code exclude(bool a, bool b, const char *first, const char *second, struct err *e)
{
    if (!a || !b)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "static policy options %s and %s can not be used at the same time", first,
                   second);
}

enum err_code pl_cpu_options_read(const struct pl_option *v, size_t n, bool alpha, struct pl_cpu_options *ret,
                                  struct err *e)
{
    struct pl_cpu_options o = { 0 };

    for (size_t i = 0; i < n; i++)
        if (read_cpu_option(&v[i], alpha, &o, e) != ERR_OK)
            return e->code;
    if (exclude(o.full_cores, o.spread, "full-pcpus-only", "distribute-cpus-across-cores", e) != ERR_OK ||
        exclude(o.distribute, o.spread, "distribute-cpus-across-numa", "distribute-cpus-across-cores", e) !=
            ERR_OK ||
        exclude(o.uncore_first, o.spread, "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores",
                e) != ERR_OK ||
        exclude(o.uncore_first, o.distribute, "prefer-align-cpus-by-uncorecache",
                "distribute-cpus-across-numa", e) != ERR_OK)
        return e->code;
    *ret = o;
    return ERR_OK;
}

enum err_code pl_cpu_options_check(const struct pl_cpu_options *o, const struct pl_machine *m,
                                   enum pl_policy topology, struct err *e)
{
    if (!o->align_by_socket)
        return ERR_OK;
    if (topology == PL_POLICY_SINGLE_NODE) /* the spelling is kubelet's */
        return err_set(e, ERR_INVALID,
                       "Topolgy manager single-numa-node policy is incompatible with CPUManager "
                       "align-by-socket policy option");
    if (m->n[PL_SOCKET] > m->n[PL_NODE])
        return err_set(e, ERR_INVALID,
                       "Align by socket is not compatible with hardware where number of sockets are more "
                       "than number of NUMA");
    return ERR_OK;
}

/* ---- topology ---- */

static const char *const policies[] = {
    [PL_POLICY_NONE] = "none",
    [PL_POLICY_BEST_EFFORT] = "best-effort",
    [PL_POLICY_RESTRICTED] = "restricted",
    [PL_POLICY_SINGLE_NODE] = "single-numa-node",
};

bool pl_policy_from_name(const char *name, enum pl_policy *ret)
{
    for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++)
        if (strcmp(policies[i], name) == 0) {
            *ret = (enum pl_policy)i;
            return true;
        }
    return false;
}

const char *pl_policy_name(enum pl_policy p)
{
    return policies[p];
}

static enum err_code read_nodes(const struct pl_option *o, long *ret, struct err *e)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(o->value, &end, 10);
    if (errno != 0 || end == o->value || *end != '\0' || isspace((unsigned char)o->value[0]))
        return err_set(
            e, ERR_INVALID,
            "unable to convert policy option to integer \"%s\": strconv.Atoi: parsing \"%.100s\": %s",
            o->name, o->value, errno == ERANGE && *end == '\0' ? "value out of range" : "invalid syntax");
    if (n < NUMA_NODES_MIN)
        return err_set(e, ERR_INVALID, "the minimum value of \"%s\" should not be less than %d", o->name,
                       NUMA_NODES_MIN);
    *ret = n;
    return ERR_OK;
}

static enum err_code read_topology_options(const struct pl_option *v, size_t n, struct pl_topology *ret,
                                           long *most, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(v[i].name, "prefer-closest-numa-nodes") == 0) {
            if (!read_bool(v[i].value, &ret->prefer_closest))
                return bad_bool(&v[i], e);
        } else if (strcmp(v[i].name, "max-allowable-numa-nodes") == 0) {
            if (read_nodes(&v[i], most, e) != ERR_OK)
                return e->code;
        } else {
            return err_set(e, ERR_INVALID, "unknown Topology Manager Policy option: \"%.100s\"", v[i].name);
        }
    }
    return ERR_OK;
}

enum err_code pl_topology_read(const char *policy, const char *scope, const struct pl_option *v, size_t n,
                               size_t n_nodes, bool distances_known, struct pl_topology *ret, struct err *e)
{
    struct pl_topology t = { 0 };
    long most = NUMA_NODES_MIN;

    if (strcmp(policy, "none") == 0) {
        *ret = t;
        return ERR_OK;
    }
    if (read_topology_options(v, n, &t, &most, e) != ERR_OK)
        return e->code;
    if (t.prefer_closest && !distances_known)
        return err_set(e, ERR_INVALID,
                       "cannot discover NUMA topology: error getting NUMA distances from cadvisor");
    if ((long)n_nodes > most)
        return err_set(e, ERR_RANGE, "unsupported on machines with more than %ld NUMA Nodes", most);
    if (!pl_policy_from_name(policy, &t.policy))
        return err_set(e, ERR_INVALID, "unknown policy: \"%.100s\"", policy);
    if (strcmp(scope, "container") != 0 && strcmp(scope, "pod") != 0)
        return err_set(e, ERR_INVALID, "unknown scope: \"%.100s\"", scope);
    t.pod_scope = strcmp(scope, "pod") == 0;
    *ret = t;
    return ERR_OK;
}
