/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for projected sources clusterTrustBundle: those of the apiserver (pkg/apis/core/validation). */
#include "agent/api/manifest/internal.h"

#include <string.h>

#define SIGNER_DOMAIN_MAX 253
#define SIGNER_MAX (SIGNER_DOMAIN_MAX + 1 + 253 + 63 + 1) /* MaxSignerNameLength */

/* Every part of `text` between dots follows the rule. */
static const char *parts_rule(const char *text, size_t n, enum api_format format)
{
    char part[SIGNER_MAX + 1];
    const char *rule = NULL;

    for (size_t at = 0; at <= n && rule == NULL;) {
        size_t k = strcspn(text + at, "./");

        if (at + k > n)
            k = n - at;
        memcpy(part, text + at, k);
        part[k] = '\0';
        rule = api_format_rule(format, part);
        at += k + 1;
    }
    return rule;
}

/* `field`: a child of the current path. "example.com/signer-name". */
static void check_signer(struct api_check *c, const char *field, const char *signer)
{
    const char *slash = strchr(signer, '/'), *rule;
    size_t domain;

    if (slash == NULL || strchr(slash + 1, '/') != NULL) {
        api_fault_at(c, field, "%s must be a domain and a path of the form \"example.com/signer-name\"",
                     QUOTE(signer));
        return;
    }
    domain = (size_t)(slash - signer);
    if (strlen(signer) > SIGNER_MAX || domain > SIGNER_DOMAIN_MAX) {
        api_fault_at(c, field, "too long, at most %d bytes are allowed, %d of them before the '/'",
                     SIGNER_MAX, SIGNER_DOMAIN_MAX);
        return;
    }
    if (memchr(signer, '.', domain) == NULL)
        api_fault_at(c, field, "the domain of %s needs at least two parts with a dot between", QUOTE(signer));
    rule = parts_rule(signer, domain, API_FMT_LABEL);
    if (rule != NULL)
        api_fault_at(c, field, "each part of the domain of %s %s", QUOTE(signer), rule);
    rule = parts_rule(slash + 1, strlen(slash + 1), API_FMT_SUBDOMAIN);
    if (rule != NULL)
        api_fault_at(c, field, "each part of the path of %s %s", QUOTE(signer), rule);
}

/* A bundle of a signer has the signer's name before its own: "example.com:signer-name:own". */
static void check_name(struct api_check *c, const char *name)
{
    const char *colon = strrchr(name, ':');
    const char *rule = api_format_rule(API_FMT_SUBDOMAIN, colon != NULL ? colon + 1 : name);

    if (name[0] == '\0')
        api_fault_at(c, "name", "required");
    else if (colon != NULL && memchr(name, '/', (size_t)(colon - name)) != NULL)
        api_fault_at(c, "name", "%s has the signer's '/' written as ':'", QUOTE(name));
    else if (rule != NULL)
        api_fault_at(c, "name", "%s of %s %s", colon != NULL ? "what follows the last ':'" : "the name",
                     QUOTE(name), rule);
    else if (strlen(name) > SIGNER_MAX + 254)
        api_fault_at(c, "name", "too long, at most %d bytes are allowed", SIGNER_MAX + 254);
}

static void check_labels(struct api_check *c, const struct api_label_selector *s)
{
    size_t outer = api_enter(c, "labelSelector");

    api_validate_kvs(c, "matchLabels", &s->labels, API_FMT_LABEL_VALUE);
    api_enter(c, "matchExpressions");
    for (size_t i = 0; i < s->n_expressions; i++) {
        const struct api_node_requirement *r = &s->expressions[i];
        bool takes = r->op == API_NODE_IN || r->op == API_NODE_NOT_IN;
        size_t mark = api_enter_index(c, i);

        if (takes && r->values.n == 0)
            api_fault_at(c, "values", "at least one is required with operators In and NotIn");
        if (!takes && r->values.n > 0)
            api_fault_at(c, "values", "not allowed with operators Exists and DoesNotExist");
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

void api_validate_trust(struct api_check *c, const struct api_payload_source *s)
{
    if (s->name != NULL && s->signer != NULL) {
        api_fault(c, "only one of name and signerName is allowed");
    } else if (s->name != NULL) {
        check_name(c, s->name);
        if (s->labels != NULL)
            api_fault_at(c, "labelSelector", "not allowed with name");
    } else if (s->signer != NULL && s->signer[0] != '\0') {
        check_signer(c, "signerName", s->signer);
        if (s->labels != NULL)
            check_labels(c, s->labels);
    } else if (s->signer != NULL) {
        api_fault_at(c, "signerName", "required");
    } else {
        api_fault(c, "name or signerName is required");
    }
}
