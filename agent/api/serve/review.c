/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to the reviews that kubectl requests for its own user: there is only one user, who may do
 * everything. */
#include "agent/api/serve/internal.h"

#include <stdio.h>
#include <string.h>

static json_t *user_info(const struct api_reviewed_user *user)
{
    json_t *o = json_pack("{s:s}", "username", user->name), *groups = json_array();

    for (size_t i = 0; user->groups[i] != NULL; i++)
        api_append(&groups, json_string(user->groups[i]));
    api_put(&o, "groups", groups);
    return o;
}

static json_t *rules(void)
{
    return json_pack("{s:[{s:[s], s:[s], s:[s]}], s:[{s:[s], s:[s]}], s:b}", "resourceRules", "verbs", "*",
                     "apiGroups", "*", "resources", "*", "nonResourceRules", "verbs", "*", "nonResourceURLs",
                     "*", "incomplete", 0);
}

json_t *api_review_of(const struct api_kind_row *kind, const json_t *body,
                      const struct api_reviewed_user *user, const char *now)
{
    char version[80];
    const json_t *spec = json_object_get(body, "spec");
    json_t *o;

    snprintf(version, sizeof(version), "%s/%s", kind->group, kind->version);
    o = json_pack("{s:s, s:s}", "kind", kind->kind, "apiVersion", version);
    if (strcmp(kind->kind, "SelfSubjectReview") == 0) {
        api_put(&o, "metadata", json_pack("{s:s}", "creationTimestamp", now));
        api_put(&o, "status", json_pack("{s:o}", "userInfo", user_info(user)));
        return o;
    }
    api_put(&o, "metadata", json_object());
    /* A copy: the body is wiped before the answer is sent. */
    api_put(&o, "spec", spec != NULL ? json_deep_copy(spec) : json_object());
    api_put(&o, "status",
            strcmp(kind->kind, "SelfSubjectRulesReview") == 0 ? rules() : json_pack("{s:b}", "allowed", 1));
    return o;
}
