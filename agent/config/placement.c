/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the settings of processors, memory and topology for agent/placement; each was checked when it was
 * read. */
#include "agent/config/internal.h"
#include "base/codec/json.h"

static const json_t *setting(const struct agent_config *c, const char *key)
{
    return config_effective(c->state, config_find_key(DOC_KUBELET, key));
}

static size_t options_of(const json_t *map, struct pl_option *ret)
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach ((json_t *)map, name, value)
        if (json_is_string(value) && n < PL_OPTIONS_MAX)
            ret[n++] = (struct pl_option){ name, json_string_value(value) };
    return n;
}

static enum err_code add_reserved(struct pl_settings *s, unsigned node, const json_t *limits, struct err *e)
{
    const char *type;
    json_t *amount;

    json_object_foreach ((json_t *)limits, type, amount) {
        struct pl_reservation *r = &s->reserved[s->n_reserved];

        if (s->n_reserved == PL_RESERVED_MAX)
            return err_set(e, ERR_INVALID, "reservedMemory has more than %d amounts", PL_RESERVED_MAX);
        *r = (struct pl_reservation){ .node = node, .type = type };
        if (json_is_integer(amount))
            r->amount = quantity_from_int(json_integer_value(amount), QUANTITY_DECIMAL_SI);
        else if (quantity_parse(json_string_value(amount), &r->amount, e) != ERR_OK)
            return err_wrap(e, "reservedMemory");
        s->n_reserved++;
    }
    return ERR_OK;
}

enum err_code config_placement(const struct agent_config *c, struct pl_settings *ret, struct err *e)
{
    const json_t *reserved = setting(c, "reservedMemory"), *gates = setting(c, "featureGates");
    json_t *entry;
    size_t i;

    *ret = (struct pl_settings){
        .cpu_static = str_eq(json_string_value(setting(c, "cpuManagerPolicy")), "static"),
        .isolates = json_is_true(config_value(c, "isolateExclusiveCPUs")),
        .memory_static = str_eq(json_string_value(setting(c, "memoryManagerPolicy")), "Static"),
        .alpha = json_is_true(json_object_get(gates, "CPUManagerPolicyAlphaOptions")),
        .reserved_cpus = json_string_value(setting(c, "reservedSystemCPUs")),
        .topology_policy = c->topology_policy,
        .topology_scope = c->topology_scope,
    };
    ret->n_cpu_options = options_of(setting(c, "cpuManagerPolicyOptions"), ret->cpu_options);
    ret->n_topology_options = options_of(setting(c, "topologyManagerPolicyOptions"), ret->topology_options);
    json_array_foreach (reserved, i, entry)
        if (add_reserved(ret, (unsigned)json_int(entry, "numaNode", 0), json_object_get(entry, "limits"),
                         e) != ERR_OK)
            return e->code;
    return ERR_OK;
}
