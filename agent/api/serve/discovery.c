/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery: which groups, versions and kinds there are, as plain lists and as one aggregated document. */
#include "agent/api/serve/internal.h"

#include <sha2.h>
#include <stdio.h>
#include <string.h>

const struct api_group api_group_core = { "", "v1" };

/* The group policy also contains the Eviction, which `kubectl drain` looks up before it evicts. */
const struct api_group api_groups[] = {
    { "apps", "v1" },
    { "events.k8s.io", "v1" },
    { "authentication.k8s.io", "v1" },
    { "authorization.k8s.io", "v1" },
    { "autoscaling", "v2" },
    { "batch", "v1" },
    { "networking.k8s.io", "v1" },
    { "policy", "v1" },
    { "rbac.authorization.k8s.io", "v1" },
    { "storage.k8s.io", "v1" },
    { "scheduling.k8s.io", "v1" },
    { "coordination.k8s.io", "v1" },
    { "node.k8s.io", "v1" },
    { "metrics.k8s.io", "v1beta1" },
    { 0 },
};

static const struct {
    unsigned verb;
    const char *name;
} verb_names[] = {
    { API_VERB_CREATE, "create" },
    { API_VERB_DELETE, "delete" },
    { API_VERB_DELETECOLLECTION, "deletecollection" },
    { API_VERB_GET, "get" },
    { API_VERB_LIST, "list" },
    { API_VERB_PATCH, "patch" },
    { API_VERB_UPDATE, "update" },
    { API_VERB_WATCH, "watch" },
};

static json_t *verbs_json(unsigned verbs)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ARRAY_LEN(verb_names); i++) {
        if (verbs & verb_names[i].verb)
            api_append(&list, json_string(verb_names[i].name));
    }
    return list;
}

static bool of_group(const struct api_kind_row *k, const char *group, const char *version)
{
    return strcmp(k->group, group) == 0 && strcmp(k->version, version) == 0;
}

/* kube-apiserver's hash of the kind that is stored: the first eight bytes of SHA-256, in base64. */
static json_t *storage_hash(const struct api_kind_row *k)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t sum[SHA256_DIGEST_LENGTH];
    char text[200], base64[13];
    SHA2_CTX ctx;

    if (k->stored != NULL)
        k = k->stored;
    snprintf(text, sizeof(text), "%s/%s/%s", k->group, k->version, k->kind);
    SHA256Init(&ctx);
    SHA256Update(&ctx, (const uint8_t *)text, strlen(text));
    SHA256Final(sum, &ctx);
    sum[8] = 0; /* 64 bits and two zero bits make eleven digits */
    for (size_t i = 0; i < 11; i++) {
        const size_t bit = i * 6, at = bit / 8;
        base64[i] = digits[((sum[at] << 8 | sum[at + 1]) >> (10 - bit % 8)) & 63];
    }
    base64[11] = '=';
    base64[12] = '\0';
    return json_string(base64);
}

/* ---- plain ---- */

static json_t *resource(const struct api_kind_row *k)
{
    json_t *o = json_object();

    api_put(&o, "name", json_string(k->plural));
    api_put(&o, "singularName", json_string(k->singular));
    api_put(&o, "namespaced", json_boolean(k->namespaced));
    api_put(&o, "kind", json_string(k->kind));
    api_put(&o, "verbs", verbs_json(api_service_of(k)->verbs));
    if (k->short_name != NULL)
        api_put(&o, "shortNames", json_pack("[s]", k->short_name));
    if (k->in_all)
        api_put(&o, "categories", json_pack("[s]", "all"));
    if (api_service_of(k)->verbs & API_VERB_WATCH)
        api_put(&o, "storageVersionHash", storage_hash(k));
    return o;
}

static json_t *subresource(const struct api_kind_row *k, const struct api_subresource *s)
{
    char name[120];
    json_t *o = json_object();

    snprintf(name, sizeof(name), "%s/%s", k->plural, s->name);
    api_put(&o, "name", json_string(name));
    api_put(&o, "singularName", json_string(""));
    api_put(&o, "namespaced", json_boolean(k->namespaced));
    if (s->group != NULL) {
        api_put(&o, "group", json_string(s->group));
        api_put(&o, "version", json_string(s->version));
    }
    api_put(&o, "kind", json_string(s->kind));
    api_put(&o, "verbs", verbs_json(s->verbs));
    return o;
}

json_t *api_discovery_resources(const char *group, const char *version)
{
    json_t *o = json_pack("{s:s}", "kind", "APIResourceList"), *list = json_array();
    char text[120];

    snprintf(text, sizeof(text), "%s%s%s", group, group[0] == '\0' ? "" : "/", version);
    if (group[0] != '\0')
        api_put(&o, "apiVersion", json_string("v1"));
    api_put(&o, "groupVersion", json_string(text));
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (!of_group(k, group, version))
            continue;
        api_append(&list, resource(k));
        for (const struct api_subresource *s = api_service_of(k)->subresources; s != NULL && s->name != NULL;
             s++)
            api_append(&list, subresource(k, s));
    }
    api_put(&o, "resources", list);
    return o;
}

json_t *api_discovery_versions(const char *server)
{
    return json_pack("{s:s, s:[s], s:[{s:s, s:s}]}", "kind", "APIVersions", "versions", "v1",
                     "serverAddressByClientCIDRs", "clientCIDR", "0.0.0.0/0", "serverAddress",
                     server != NULL ? server : "");
}

/* The members of an APIGroup, put into `o`. */
static void add_group(json_t **o, const struct api_group *group)
{
    char text[120];

    snprintf(text, sizeof(text), "%s/%s", group->name, group->version);
    api_put(o, "name", json_string(group->name));
    api_put(o, "versions", json_pack("[{s:s, s:s}]", "groupVersion", text, "version", group->version));
    api_put(o, "preferredVersion", json_pack("{s:s, s:s}", "groupVersion", text, "version", group->version));
}

json_t *api_discovery_group(const struct api_group *group)
{
    json_t *o = json_pack("{s:s, s:s}", "kind", "APIGroup", "apiVersion", "v1");

    add_group(&o, group);
    return o;
}

json_t *api_discovery_groups(void)
{
    json_t *o = json_pack("{s:s, s:s}", "kind", "APIGroupList", "apiVersion", "v1"), *list = json_array();

    for (const struct api_group *g = api_groups; g->name != NULL; g++) {
        json_t *group = json_object();
        add_group(&group, g);
        api_append(&list, group);
    }
    api_put(&o, "groups", list);
    return o;
}

/* ---- aggregated ---- */

static json_t *response_kind(const char *group, const char *version, const char *kind)
{
    return json_pack("{s:s, s:s, s:s}", "group", group != NULL ? group : "", "version",
                     version != NULL ? version : "", "kind", kind);
}

static json_t *aggregated_resource(const struct api_kind_row *k)
{
    json_t *o = json_object(), *subs = json_array();

    api_put(&o, "resource", json_string(k->plural));
    api_put(&o, "responseKind", response_kind(NULL, NULL, k->kind));
    api_put(&o, "scope", json_string(k->namespaced ? "Namespaced" : "Cluster"));
    api_put(&o, "singularResource", json_string(k->singular));
    api_put(&o, "verbs", verbs_json(api_service_of(k)->verbs));
    if (k->short_name != NULL)
        api_put(&o, "shortNames", json_pack("[s]", k->short_name));
    if (k->in_all)
        api_put(&o, "categories", json_pack("[s]", "all"));
    for (const struct api_subresource *s = api_service_of(k)->subresources; s != NULL && s->name != NULL;
         s++) {
        json_t *sub = json_object();
        api_put(&sub, "subresource", json_string(s->name));
        api_put(&sub, "responseKind", response_kind(s->group, s->version, s->kind));
        api_put(&sub, "verbs", verbs_json(s->verbs));
        api_append(&subs, sub);
    }
    if (subs != NULL && json_array_size(subs) == 0)
        json_decref(subs);
    else
        api_put(&o, "subresources", subs);
    return o;
}

static json_t *aggregated_group(const struct api_group *group)
{
    json_t *list = json_array(), *o = json_object();

    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (of_group(k, group->name, group->version))
            api_append(&list, aggregated_resource(k));
    }
    if (group->name[0] == '\0')
        api_put(&o, "metadata", json_object());
    else
        api_put(&o, "metadata", json_pack("{s:s}", "name", group->name));
    api_put(
        &o, "versions",
        json_pack("[{s:s, s:o, s:s}]", "version", group->version, "resources", list, "freshness", "Current"));
    return o;
}

json_t *api_discovery_aggregated(bool core, bool beta)
{
    json_t *o = json_pack("{s:s, s:s, s:{}}", "kind", "APIGroupDiscoveryList", "apiVersion",
                          beta ? "apidiscovery.k8s.io/v2beta1" : "apidiscovery.k8s.io/v2", "metadata");
    json_t *items = json_array();

    if (core)
        api_append(&items, aggregated_group(&api_group_core));
    for (const struct api_group *g = api_groups; !core && g->name != NULL; g++)
        api_append(&items, aggregated_group(g));
    api_put(&o, "items", items);
    return o;
}

/* ---- the version ---- */

#if defined(__x86_64__)
static const char platform[] = "linux/amd64";
#elif defined(__aarch64__)
static const char platform[] = "linux/arm64";
#else
static const char platform[] = "linux";
#endif

json_t *api_discovery_version(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "major", "1",
                     "minor", "36", "emulationMajor", "1", "emulationMinor", "36", "minCompatibilityMajor",
                     "1", "minCompatibilityMinor", "35", "gitVersion", "v1.36.0+coracle." CORACLE_VERSION,
                     "gitCommit", "", "gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z",
                     "goVersion", "", "compiler", "c", "platform", platform);
}
