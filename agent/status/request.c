/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/request.h"

#include "base/scope.h"

#include <stdio.h>
#include <string.h>

static const struct {
    enum status_route route;
    unsigned methods;
    const char *segments[HTTP_SEGMENTS_MAX + 1]; /* "{ns}" and "{name}" take any */
    bool takes_body;
} routes[] = {
    { ROUTE_HEALTHZ, METHOD_GET, { "healthz" } },
    { ROUTE_READYZ, METHOD_GET, { "readyz" } },
    { ROUTE_VERSION, METHOD_GET, { "version" } },
    { ROUTE_METRICS, METHOD_GET, { "metrics" } },
    { ROUTE_METRICS_CADVISOR, METHOD_GET, { "metrics", "cadvisor" } },
    { ROUTE_METRICS_RESOURCE, METHOD_GET, { "metrics", "resource" } },
    { ROUTE_METRICS_PROBES, METHOD_GET, { "metrics", "probes" } },
    { ROUTE_STATS, METHOD_GET, { "stats", "summary" } },
    { ROUTE_PODS, METHOD_GET, { "api", "v1", "pods" } },
    { ROUTE_PODS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods" } },
    { ROUTE_POD, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods", "{name}" } },
    { ROUTE_POD_LOG, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "log" } },
    { ROUTE_POD_EXEC,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "exec" } },
    { ROUTE_POD_ATTACH,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "attach" } },
    { ROUTE_POD_FORWARD,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "portforward" } },
    { ROUTE_POD_ARCHIVE,
      METHOD_GET | METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "archive" } },
    { ROUTE_POD_RESTART, METHOD_POST, { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "restart" } },
    { ROUTE_POD_DEBUG,
      METHOD_POST,
      { "api", "v1", "namespaces", "{ns}", "pods", "{name}", "ephemeralcontainers" },
      .takes_body = true },
    { ROUTE_EVENTS, METHOD_GET, { "api", "v1", "events" } },
    { ROUTE_EVENTS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "events" } },
    { ROUTE_NODES, METHOD_GET, { "api", "v1", "nodes" } },
    { ROUTE_NODES, METHOD_GET, { "api", "v1", "nodes", "{name}" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "configmaps" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "configmaps" } },
    { ROUTE_CONFIG_MAPS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "configmaps", "{name}" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "secrets" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "secrets" } },
    { ROUTE_SECRETS, METHOD_GET, { "api", "v1", "namespaces", "{ns}", "secrets", "{name}" } },
    { ROUTE_PRIORITY_CLASSES, METHOD_GET, { "apis", "scheduling.k8s.io", "v1", "priorityclasses" } },
    { ROUTE_PRIORITY_CLASSES,
      METHOD_GET,
      { "apis", "scheduling.k8s.io", "v1", "priorityclasses", "{name}" } },
    { ROUTE_EXPLAIN, METHOD_GET, { "explain" } },
    { ROUTE_EXPLAIN, METHOD_GET, { "explain", "{ns}", "{name}" } },
    { ROUTE_MANIFESTS, METHOD_GET, { "manifests" } },
    { ROUTE_CONFIG, METHOD_GET, { "configz" } },
    { ROUTE_DEVICES, METHOD_GET, { "devices" } },
    { ROUTE_EVICTIONS, METHOD_GET, { "evictions" } },
    { ROUTE_PLACEMENTS, METHOD_GET, { "placements" } },
    { ROUTE_IMAGES, METHOD_GET | METHOD_POST | METHOD_DELETE, { "images" } },
    { ROUTE_IMAGE_TASK, METHOD_POST, { "images", "{name}" } },
    { ROUTE_STORE, METHOD_GET, { "store" } },
    { ROUTE_STORE, METHOD_GET, { "store", "node" } },
    { ROUTE_STORE_OBJECT,
      METHOD_GET | METHOD_PUT | METHOD_DELETE,
      { "store", "object" },
      .takes_body = true },
    { ROUTE_KUBECONFIG, METHOD_GET, { "kubeconfig" } },
    { ROUTE_OPERATIONS, METHOD_GET, { "debug", "operations" } },
};

/* /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NS/]PLURAL[/NAME]. */
static bool generic_route(const struct http_request *r, struct status_match *m)
{
    char version[100];
    const char *const *s = (const char *const *)r->segments;
    size_t n = r->n_segments, at = 2;

    if (n < 3 || strcmp(s[0], n > 3 && strcmp(s[0], "apis") == 0 ? "apis" : "api") != 0)
        return false;
    if (strcmp(s[0], "apis") == 0) {
        snprintf(version, sizeof(version), "%s/%s", s[1], s[2]);
        at = 3;
    } else {
        snprintf(version, sizeof(version), "%s", s[1]);
    }
    if (n - at >= 3 && strcmp(s[at], "namespaces") == 0 && s[at + 1][0] != '\0') {
        m->namespace_ = s[at + 1];
        at += 2;
    }
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++) {
        if (!api_kind_is_generic(k->id) || strcmp(k->api_version, version) != 0 ||
            strcmp(k->plural, s[at]) != 0)
            continue;
        m->kind = k->id;
        m->name = n == at + 2 && s[at + 1][0] != '\0' ? s[at + 1] : NULL;
        return (n == at + 1 || m->name != NULL) && (k->namespaced || m->namespace_ == NULL) &&
               (m->name == NULL || !k->namespaced || m->namespace_ != NULL);
    }
    return false;
}

/* The URL as it was sent: clients that escape more than names send no bodies here. */
static bool url_is(const char *url, const char *const *want)
{
    for (; *want != NULL; want++) {
        size_t n;

        if (*url++ != '/')
            return false;
        n = strcspn(url, "/?");
        if ((*want)[0] == '{' ? n == 0 : strlen(*want) != n || memcmp(url, *want, n) != 0)
            return false;
        url += n;
    }
    url += *url == '/';
    return *url == '\0' || *url == '?';
}

bool status_takes_body(const char *url)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        if (routes[i].takes_body && url_is(url, routes[i].segments))
            return true;
    return false;
}

struct status_match status_route(const struct http_request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        struct status_match m = { .route = routes[i].route, .methods = routes[i].methods };
        const char *const *want = routes[i].segments;
        size_t n = 0;

        if (m.methods & METHOD_GET)
            m.methods |= METHOD_HEAD;
        for (; n < r->n_segments && want[n] != NULL; n++) {
            const char *got = r->segments[n];

            if (strcmp(want[n], "{ns}") == 0 && got[0] != '\0')
                m.namespace_ = got;
            else if (strcmp(want[n], "{name}") == 0 && got[0] != '\0')
                m.name = got;
            else if (strcmp(want[n], got) != 0)
                break;
        }
        if (n > 0 && n == r->n_segments && want[n] == NULL)
            return m;
    }
    struct status_match m = { .route = ROUTE_GENERIC, .methods = METHOD_GET | METHOD_HEAD };

    if (generic_route(r, &m))
        return m;
    return (struct status_match){ .route = ROUTE_NONE };
}
