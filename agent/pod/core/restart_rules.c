/* SPDX-License-Identifier: Apache-2.0 */
/* restart_rules - whether an ended container runs again: its own restartPolicy and rules, otherwise the pod's
 * policy (pkg/api/v1/pod/util.go, pkg/kubelet/container/helpers.go). */
#include "agent/pod/core/facts.h"

enum api_restart_policy ctr_policy(const struct ctr *c)
{
    enum api_restart_policy own = c->spec->restart_policy;

    if (c->kind == CTR_EPHEMERAL)
        return API_RESTART_NEVER;
    return own != API_RESTART_UNSET ? own : c->pod->api->spec.restart_policy;
}

/* The first rule matching its last exit, or NULL. As in kubelet, rules do not apply to an init container's
 * success. */
const struct api_restart_rule *restart_matching_rule(const struct ctr *c)
{
    if (!c->cur.ended || (c->kind == CTR_INIT && c->cur.exit_code == 0))
        return NULL;
    for (size_t i = 0; i < c->spec->n_restart_rules; i++) {
        const struct api_restart_rule *rule = &c->spec->restart_rules[i];
        bool listed = false;

        for (size_t k = 0; k < rule->n_exit_codes; k++)
            listed = listed || rule->exit_codes[k] == c->cur.exit_code;
        if (listed != rule->not_in)
            return rule;
    }
    return NULL;
}

bool ctr_restart_wanted(const struct ctr *c)
{
    bool failed = c->cur.exit_code != 0 || str_eq(c->cur.reason, "OOMKilled");

    if (c->cur.id[0] == '\0' || !c->cur.ended)
        return true;
    if (c->kind == CTR_EPHEMERAL) /* whatever happened to the pod */
        return false;
    if (c->replace || c->again)
        return true;
    if (restart_matching_rule(c) != NULL)
        return true;
    switch (ctr_policy(c)) {
    case API_RESTART_NEVER:
        return false;
    case API_RESTART_ON_FAILURE:
        return failed;
    case API_RESTART_ALWAYS:
    case API_RESTART_UNSET:
        break;
    }
    return failed || c->kind != CTR_INIT;
}

bool restart_all_possible(const struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        for (size_t k = 0; k < p->ctrs[i]->spec->n_restart_rules; k++)
            if (p->ctrs[i]->spec->restart_rules[k].all)
                return true;
    return false;
}
