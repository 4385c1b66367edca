/* SPDX-License-Identifier: Apache-2.0 */
/* node_labels - the labels of every node, and those of the configuration. */
#include "agent/pod/core/node_labels.h"

#include "agent/pod/core/node_written.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Inserts in order of keys; replaces the value of an existing key. */
static void node_labels_add(struct api_kv *labels, size_t *n, const struct api_kv *label)
{
    size_t i = 0;
    int order = 1;

    while (i < *n && (order = strcmp(labels[i].key, label->key)) < 0)
        i++;
    if (i == *n || order != 0) {
        memmove(labels + i + 1, labels + i, (*n - i) * sizeof(*labels));
        ++*n;
    }
    labels[i] = *label;
}

/* Go's name, as used by Kubernetes. */
const char *node_architecture(const struct utsname *u)
{
    static const struct {
        const char *machine, *arch;
    } archs[] = { { "x86_64", "amd64" },    { "aarch64", "arm64" },   { "armv7l", "arm" },
                  { "ppc64le", "ppc64le" }, { "riscv64", "riscv64" }, { "s390x", "s390x" } };

    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (strcmp(archs[i].machine, u->machine) == 0)
            return archs[i].arch;
    return "";
}

const char *const node_own_labels[NODE_OWN_LABELS] = { "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
                                                       "kubernetes.io/arch", "kubernetes.io/hostname",
                                                       "kubernetes.io/os" };

/* With room for `more`. */
static struct api_kv *configured(const struct node *n, size_t more, size_t *ret_n)
{
    const struct api_kvs *own = n->o.labels;
    struct api_kv *labels = calloc(NODE_OWN_LABELS + (own != NULL ? own->n : 0) + more, sizeof(*labels));
    struct utsname u = { 0 };
    const char *arch, *name = n->o.node_name;

    if (labels == NULL)
        return NULL;
    uname(&u);
    arch = node_architecture(&u);
    const char *const values[NODE_OWN_LABELS] = { arch, "linux", arch, name, "linux" };
    for (size_t i = 0; i < NODE_OWN_LABELS; i++)
        labels[i] = (struct api_kv){ (char *)(uintptr_t)node_own_labels[i], (char *)(uintptr_t)values[i] };
    *ret_n = NODE_OWN_LABELS;
    for (size_t i = 0; own != NULL && i < own->n; i++)
        node_labels_add(labels, ret_n, &own->v[i]);
    return labels;
}

struct api_kv *node_labels_configured(const struct node *n, size_t *ret_n)
{
    return configured(n, 0, ret_n);
}

static void take_away(struct api_kv *labels, size_t *n, const char *key)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(labels[i].key, key) == 0) {
            memmove(labels + i, labels + i + 1, (--*n - i) * sizeof(*labels));
            return;
        }
}

struct api_kv *node_labels(const struct node *n, size_t *ret_n)
{
    const json_t *written = node_written_labels(n);
    struct api_kv *labels = configured(n, json_object_size(written), ret_n);
    const char *key;
    json_t *v;

    if (labels == NULL)
        return NULL;
    json_object_foreach ((json_t *)(uintptr_t)written, key, v) {
        const struct api_kv label = { (char *)(uintptr_t)key, (char *)(uintptr_t)json_string_value(v) };

        if (label.value != NULL)
            node_labels_add(labels, ret_n, &label);
        else
            take_away(labels, ret_n, key);
    }
    return labels;
}
