/* SPDX-License-Identifier: Apache-2.0 */
/* own_node - labels and taints of this node in the apiserver: users with write access to Nodes change them at
 * any time, and admission uses them, as in kubelet. */
#include "agent/cluster/internal.h"
#include "agent/pod/core/events.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* An object of the apiserver has at most 1.5 MiB; a node with more is a mistake. */
#define LABELS_MAX 4096
#define TAINTS_MAX 1024

void own_node_free(struct cluster *c)
{
    for (size_t i = 0; i < c->labels.n; i++) {
        free(c->labels.v[i].key);
        free(c->labels.v[i].value);
    }
    for (size_t i = 0; i < c->n_taints; i++) {
        free(c->taints[i].key);
        free(c->taints[i].value);
        free(c->taints[i].effect);
    }
    free(c->labels.v);
    free(c->taints);
    c->labels = (struct api_kvs){ 0 };
    c->taints = NULL;
    c->n_taints = 0;
}

static bool own_node_labels(struct cluster *c, const json_t *from)
{
    const char *key;
    json_t *v;

    c->labels.v = calloc(json_object_size(from) + 1, sizeof(*c->labels.v));
    if (c->labels.v == NULL)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)from, key, v) {
        struct api_kv *kv = &c->labels.v[c->labels.n];

        if (!json_is_string(v) || c->labels.n >= LABELS_MAX)
            continue;
        kv->key = strdup(key);
        kv->value = strdup(json_string_value(v));
        c->labels.n++; /* freed even if a text is missing */
        if (kv->key == NULL || kv->value == NULL)
            return false;
    }
    api_kvs_sort(&c->labels);
    return true;
}

static bool own_node_taints(struct cluster *c, const json_t *from)
{
    const json_t *v;
    size_t i;

    c->taints = calloc(json_array_size(from) + 1, sizeof(*c->taints));
    if (c->taints == NULL)
        return false;
    json_array_foreach (from, i, v) {
        const char *key = json_str(v, "key"), *value = json_str(v, "value"), *effect = json_str(v, "effect");
        struct api_taint *t = &c->taints[c->n_taints];

        if (key == NULL || effect == NULL || c->n_taints >= TAINTS_MAX)
            continue;
        *t = (struct api_taint){ strdup(key), strdup(value != NULL ? value : ""), strdup(effect) };
        c->n_taints++;
        if (t->key == NULL || t->value == NULL || t->effect == NULL)
            return false;
    }
    return true;
}

/* kubelet's event of a reboot: the apiserver's status has an earlier boot id, until the status of this boot
 * was sent. */
static void own_node_boot(struct cluster *c, const json_t *object)
{
    const char *boot = json_str(json_object_get(json_object_get(object, "status"), "nodeInfo"), "bootID");
    struct node *n = c->o.node;
    char text[512];

    if (boot == NULL || c->boot_compared)
        return;
    c->boot_compared = true;
    if (boot[0] == '\0' || strcmp(boot, n->boot_id) == 0)
        return;
    snprintf(text, sizeof(text), "Node %s has been rebooted, boot id: %s", n->o.node_name, n->boot_id);
    node_event(n, true, "Rebooted", text);
}

void own_node_put(struct cluster *c, const json_t *object)
{
    const char *name = json_str(json_object_get(object, "metadata"), "name");

    if (name == NULL || strcmp(name, c->o.node->o.node_name) != 0)
        return;
    own_node_boot(c, object);
    bound_node(c, json_object_get(object, "status"));
    node_set_served(c->o.node, NULL, NULL, 0); /* the node borrows them */
    own_node_free(c);
    if (!own_node_labels(c, json_object_get(json_object_get(object, "metadata"), "labels")) ||
        !own_node_taints(c, json_object_get(json_object_get(object, "spec"), "taints"))) {
        log_error("cannot store the node's labels and taints: out of memory");
        own_node_free(c);
        return;
    }
    node_set_served(c->o.node, &c->labels, c->taints, c->n_taints);
    kept_changed(c->kept, KEEP_NODE, false);
}

json_t *own_node_keep(const struct cluster *c)
{
    json_t *labels = json_object(), *taints = json_array();

    for (size_t i = 0; i < c->labels.n; i++)
        json_object_set_new(labels, c->labels.v[i].key, json_string(c->labels.v[i].value));
    for (size_t i = 0; i < c->n_taints; i++)
        json_array_append_new(taints, json_pack("{s:s, s:s, s:s}", "key", c->taints[i].key, "value",
                                                c->taints[i].value, "effect", c->taints[i].effect));
    if (c->labels.v == NULL) {
        json_decref(labels);
        json_decref(taints);
        return NULL;
    }
    return json_pack("{s:{s:s, s:o}, s:{s:o}}", "metadata", "name", c->o.node->o.node_name, "labels", labels,
                     "spec", "taints", taints);
}

bool own_node_may_come(const struct cluster *c)
{
    return c->labels.v == NULL && !c->node_settled;
}

void own_node_settle(struct cluster *c)
{
    if (!own_node_may_come(c))
        return;
    c->node_settled = true;
    node_served_unknown(c->o.node);
}

void own_node_use(struct cluster *c, const json_t *object)
{
    if (c->labels.v == NULL)
        own_node_put(c, object);
}
