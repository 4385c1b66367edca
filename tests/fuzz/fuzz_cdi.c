/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI spec file; what it resolves to; and the text as the value of a pod's annotation. */
#include "agent/cdi/internal.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_edits(const struct rt_edits *e)
{
    for (size_t i = 0; i < e->n_env; i++)
        assert(strchr(e->env[i], '=') > e->env[i]);
    for (size_t i = 0; i < e->n_nodes; i++)
        assert(e->nodes[i].path[0] != '\0' && e->nodes[i].major >= 0 && e->nodes[i].minor >= 0 &&
               (e->nodes[i].permissions == NULL ||
                strspn(e->nodes[i].permissions, "rwm") == strlen(e->nodes[i].permissions)));
    for (size_t i = 0; i < e->n_mounts; i++)
        assert(e->mounts[i].source[0] != '\0' && e->mounts[i].destination[0] != '\0');
    for (size_t i = 0; i < e->n_hooks; i++)
        assert(e->hooks[i].path[0] == '/' && e->hooks[i].kind < RT_HOOK_KINDS && e->hooks[i].timeout_s >= 0);
    for (size_t i = 0; i < e->n_net_devices; i++)
        assert(e->net_devices[i].host_name[0] != '\0' && e->net_devices[i].name[0] != '\0');
}

static void resolve_all(struct cdi_content *c)
{
    struct err e = { 0 };

    assert(cdi_index(c, &e) == ERR_OK && c->n_entries == c->n_devices);
    for (size_t i = 0; i < c->n_entries && i < 20; i++) {
        const char *const names[] = { c->entries[i].device->name, c->entries[0].device->name };
        struct cdi_resolved r;

        assert(cdi_is_name(names[0]));
        e = (struct err){ 0 };
        if (cdi_content_resolve(c, names, 2, &r, &e) != ERR_OK) {
            assert(e.code == ERR_EXHAUSTED);
            continue;
        }
        check_edits(&r.edits);
        assert(!cdi_edits_are_empty(&r.edits));
        cdi_resolved_done(&r);
    }
}

static void use_annotation(const char *value)
{
    struct strs names = { 0 };
    struct err e = { 0 };

    if (cdi_annotation_names(CDI_ANNOTATION "x", value, &names, &e) != ERR_OK)
        assert(strstr(e.text, CDI_BAD_ANNOTATION) == e.text);
    for (size_t i = 0; i < names.n; i++)
        assert(cdi_is_name(names.v[i]));
    strs_done(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdi_content *c = calloc(1, sizeof(*c));
    struct cdi_spec *spec = calloc(1, sizeof(*spec));
    char *text = malloc(size + 1);
    struct err e = { 0 };

    if (c == NULL || spec == NULL || text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    c->refs = 1;
    c->specs = spec;
    c->n_specs = 1;
    if (cdi_decode("x.yaml", text, size, &c->arena, &c->problems, spec, &e)) {
        assert(c->problems.n == 0 && spec->n_devices > 0);
        c->n_devices = spec->n_devices;
        resolve_all(c);
    } else {
        assert(c->problems.n > 0);
    }
    cdi_content_unref(c);
    use_annotation(text);
    free(text);
    return 0;
}
