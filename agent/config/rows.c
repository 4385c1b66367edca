/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all tables, numbered consecutively, and searches in them. */
#include "agent/config/internal.h"
#include "base/near.h"

#include <string.h>

const char *const config_doc_api[N_DOCS] = { "kubelet.config.k8s.io/v1beta1", "coracle.dev/v1", "" };
const char *const config_doc_kind[N_DOCS] = { "KubeletConfiguration", "CoracleConfiguration", "" };

static const struct {
    const struct config_rows *rows;
    enum config_doc doc;
} tables[] = {
    { &config_rows_server, DOC_KUBELET },
    { &config_rows_pods, DOC_KUBELET },
    { &config_rows_own, DOC_OWN },
    { &config_rows_flags, DOC_FLAG },
};

size_t config_n_rows(void)
{
    size_t n = 0;

    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        n += tables[t].rows->n;
    return n;
}

const struct config_row *config_row(size_t i, enum config_doc *ret_doc)
{
    size_t t = 0;

    while (t + 1 < ARRAY_LEN(tables) && i >= tables[t].rows->n)
        i -= tables[t++].rows->n;
    if (ret_doc != NULL)
        *ret_doc = tables[t].doc;
    return &tables[t].rows->v[i];
}

size_t config_find_key(enum config_doc doc, const char *key)
{
    size_t n = config_n_rows();
    enum config_doc of;

    for (size_t i = 0; i < n; i++)
        if (str_eq(config_row(i, &of)->key, key) && of == doc)
            return i;
    return n;
}

/* As in kubelet's flags, "_" equals "-". */
size_t config_find_flag(const char *name, size_t length)
{
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        const char *flag = config_row(i, NULL)->flag;
        size_t at = 0;

        if (flag == NULL || strlen(flag) != length)
            continue;
        while (at < length && (name[at] == flag[at] || (name[at] == '_' && flag[at] == '-')))
            at++;
        if (at == length)
            return i;
    }
    return n;
}

bool config_is_mapping(enum config_doc doc, const char *prefix)
{
    size_t n = config_n_rows(), length = strlen(prefix);
    enum config_doc of;

    for (size_t i = 0; i < n; i++) {
        const char *key = config_row(i, &of)->key;

        if (of == doc && key != NULL && strncmp(key, prefix, length) == 0 && key[length] == '.')
            return true;
    }
    return false;
}

const char *config_nearest_key(enum config_doc doc, const char *key)
{
    struct near near = { .name = key };
    size_t n = config_n_rows();
    enum config_doc of;

    for (size_t i = 0; i < n; i++) {
        const char *candidate = config_row(i, &of)->key;

        if (of == doc && candidate != NULL)
            near_try(&near, candidate);
    }
    return near.found;
}

const char *config_nearest_flag(const char *name)
{
    struct near near = { .name = name };
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        const char *candidate = config_row(i, NULL)->flag;

        if (candidate != NULL)
            near_try(&near, candidate);
    }
    return near.found;
}
