/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/config/write.h"

#include "agent/api/yaml/yaml.h"
#include "agent/kube/config/internal.h"

char *kube_config_written(const struct kube_choice *bootstrap, const char *pem)
{
    static const char *const kept[] = { "certificate-authority",
                                        "certificate-authority-data",
                                        "disable-compression",
                                        "insecure-skip-tls-verify",
                                        "proxy-url",
                                        "tls-server-name" };
    json_auto_t *cluster = json_object(), *doc = NULL;
    bool file = kube_has(bootstrap, KUBE_CLUSTER, "certificate-authority");

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *v = json_object_get(bootstrap->of[KUBE_CLUSTER].value, kept[i]);
        if (v == NULL || (i == 1 && file))
            continue;
        if (json_object_set(cluster, kept[i], v) != 0)
            return NULL;
    }
    if (json_object_set_new(cluster, "server",
                            json_string(bootstrap->server != NULL ? bootstrap->server : "")) != 0)
        return NULL;
    doc = json_pack("{s:s, s:[{s:O, s:s}], s:[{s:{s:s, s:s, s:s}, s:s}], s:s, s:s, s:[{s:s, s:{s:s, s:s}}]}",
                    "apiVersion", "v1", "clusters", "cluster", cluster, "name", "default-cluster", "contexts",
                    "context", "cluster", "default-cluster", "namespace", "default", "user", "default-auth",
                    "name", "default-context", "current-context", "default-context", "kind", "Config",
                    "users", "name", "default-auth", "user", "client-certificate", pem, "client-key", pem);
    return doc != NULL ? yaml_from_json(doc) : NULL;
}
