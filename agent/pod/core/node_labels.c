/* SPDX-License-Identifier: Apache-2.0 */
/* node_labels - the labels of every node, and those of the configuration. */
#include "agent/pod/core/node_labels.h"

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

struct api_kv *node_labels(const struct node *n, size_t *ret_n)
{
    const struct api_kvs *own = n->o.labels;
    struct api_kv *labels = calloc(5 + (own != NULL ? own->n : 0), sizeof(*labels));
    struct utsname u = { 0 };
    char *arch;

    if (labels == NULL)
        return NULL;
    uname(&u);
    arch = (char *)(uintptr_t)node_architecture(&u);
    labels[0] = (struct api_kv){ (char *)"beta.kubernetes.io/arch", arch };
    labels[1] = (struct api_kv){ (char *)"beta.kubernetes.io/os", (char *)"linux" };
    labels[2] = (struct api_kv){ (char *)"kubernetes.io/arch", arch };
    labels[3] = (struct api_kv){ (char *)"kubernetes.io/hostname", (char *)(uintptr_t)n->o.node_name };
    labels[4] = (struct api_kv){ (char *)"kubernetes.io/os", (char *)"linux" };
    *ret_n = 5;
    for (size_t i = 0; own != NULL && i < own->n; i++)
        node_labels_add(labels, ret_n, &own->v[i]);
    return labels;
}
