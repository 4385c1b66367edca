/* SPDX-License-Identifier: Apache-2.0 */
/* A network configuration: list, single plugin and one more plugin, and what its plugins would be given. */
#include "cni/plugin/conf.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct cni_list *l)
{
    struct cni_list again = { 0 };
    struct err e = { 0 };
    json_t *supplied, *prev;

    if (cni_list_check(l, "/data", &e) != ERR_OK) {
        assert(e.text[0] != '\0');
        return;
    }
    assert(cni_list_size(l) >= 1 && cni_list_size(l) <= CNI_PLUGINS_MAX);
    supplied = json_pack("{s:[], s:{}, s:s}", "portMappings", "bandwidth", "mac", "x");
    prev = json_pack("{s:s}", "cniVersion", "1.0.0");
    for (size_t i = 0; i < cni_list_size(l); i++) {
        const json_t *plugin = cni_list_plugin(l, i);
        const char *type = cni_plugin_type(plugin), *ipam = cni_plugin_ipam_type(plugin);
        const char *bridge = cni_plugin_bridge(plugin);
        json_t *input = cni_plugin_stdin(l, i, supplied, prev);

        assert(type != NULL && strchr(type, '/') == NULL && (ipam == NULL || strchr(ipam, '/') == NULL));
        assert(bridge == NULL || strlen(bridge) <= 15);
        assert(json_is_object(input) && json_is_string(json_object_get(input, "cniVersion")));
        json_decref(input);
    }
    json_decref(supplied);
    json_decref(prev);
    assert(cni_list_from_json(&again, l->conf, &e) == ERR_OK && cni_list_size(&again) == cni_list_size(l));
    cni_list_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct cni_list l = { 0 };
    struct err e = { 0 };
    bool more = false;

    if (cni_list_parse(&l, "10-x.conflist", text, size, &more, &e) == ERR_OK)
        use(&l);
    cni_list_done(&l);
    e = (struct err){ 0 };
    if (cni_list_parse_single(&l, "10-x.conf", text, size, &e) == ERR_OK) {
        use(&l);
        e = (struct err){ 0 };
        if (cni_list_append(&l, text, size, &e) == ERR_OK)
            use(&l);
    }
    cni_list_done(&l);
    return 0;
}
