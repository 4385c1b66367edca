/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the settings to the fields of struct agent_config. */
#include "agent/api/quantity.h"
#include "agent/config/internal.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const json_t *apply_of(const struct agent_config *c, enum config_doc doc, const char *key)
{
    return config_effective(c->state, config_find_key(doc, key));
}

static enum err_code apply_set_text(char **at, const char *text, struct err *e)
{
    free(*at);
    *at = strdup(text);
    return *at != NULL ? ERR_OK : err_nomem(e);
}

static void list_done(struct config_list *l)
{
    while (l->n > 0) {
        l->n--;
        free(take_ptr(&l->v[l->n]));
    }
}

static enum err_code set_list(struct config_list *l, const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    list_done(l);
    json_array_foreach (v, i, item) {
        if ((l->v[l->n] = strdup(json_string_value(item))) == NULL)
            return err_nomem(e);
        l->n++;
    }
    return ERR_OK;
}

static bool apply_is_text(const struct config_row *r)
{
    return r->type == T_TEXT || r->type == T_WORD || r->type == T_PATH || r->type == T_IP ||
           r->type == T_QUANTITY;
}

static enum err_code set_field(struct agent_config *c, const struct config_row *r, const json_t *v,
                               struct err *e)
{
    void *at = (char *)c + r->offset;

    if (apply_is_text(r))
        return apply_set_text(at, v != NULL ? json_string_value(v) : "", e);
    switch (r->type) {
    case T_BOOL:
        *(bool *)at = json_is_true(v);
        return ERR_OK;
    case T_INT:
        *(int64_t *)at = json_integer_value(v);
        return ERR_OK;
    case T_DURATION:
        *(uint64_t *)at = (uint64_t)(config_duration_ns(v) / 1000000);
        return ERR_OK;
    case T_TEXTS:
        return set_list(at, v, e);
    default: /* rows of other types have no field */
        return ERR_OK;
    }
}

static void field_done(struct agent_config *c, const struct config_row *r)
{
    void *at = (char *)c + r->offset;

    if (r->offset == 0)
        return;
    if (apply_is_text(r))
        free(take_ptr((char **)at));
    else if (r->type == T_TEXTS)
        list_done(at);
}

static void labels_done(struct api_kvs *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].key);
        free(m->v[i].value);
    }
    free(m->v);
    *m = (struct api_kvs){ 0 };
}

static int apply_by_key(const void *a, const void *b)
{
    return strcmp(((const struct api_kv *)a)->key, ((const struct api_kv *)b)->key);
}

static enum err_code set_labels(struct api_kvs *m, const json_t *v, struct err *e)
{
    const char *key;
    json_t *item;

    m->v = calloc(json_object_size(v) + 1, sizeof(*m->v));
    if (m->v == NULL)
        return err_nomem(e);
    json_object_foreach ((json_t *)v, key, item) {
        struct api_kv *kv = &m->v[m->n++];
        kv->key = strdup(key);
        kv->value = strdup(json_string_value(item));
        if (kv->key == NULL || kv->value == NULL)
            return err_nomem(e);
    }
    qsort(m->v, m->n, sizeof(*m->v), apply_by_key);
    return ERR_OK;
}

static void counts_done(struct api_counts *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i].name);
    free(c->v);
    *c = (struct api_counts){ 0 };
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct api_count *)a)->name, ((const struct api_count *)b)->name);
}

static enum err_code set_counts(struct api_counts *c, const json_t *v, struct err *e)
{
    const char *name;
    json_t *item;

    counts_done(c);
    c->v = calloc(json_object_size(v) + 1, sizeof(*c->v));
    if (c->v == NULL)
        return err_nomem(e);
    json_object_foreach ((json_t *)v, name, item) {
        c->v[c->n] = (struct api_count){ .name = strdup(name), .n = json_integer_value(item) };
        if (c->v[c->n].name == NULL)
            return err_nomem(e);
        c->n++;
    }
    qsort(c->v, c->n, sizeof(*c->v), by_name);
    return ERR_OK;
}

static void taints_done(struct agent_config *c)
{
    for (size_t i = 0; i < c->n_node_taints; i++) {
        free(c->node_taints[i].key);
        free(c->node_taints[i].value);
        free(c->node_taints[i].effect);
    }
    free(take_ptr(&c->node_taints));
    c->n_node_taints = 0;
}

static enum err_code set_taints(struct agent_config *c, const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    taints_done(c);
    c->node_taints = calloc(json_array_size(v) + 1, sizeof(*c->node_taints));
    if (c->node_taints == NULL)
        return err_nomem(e);
    json_array_foreach (v, i, item) {
        struct api_taint *t = &c->node_taints[c->n_node_taints++];
        const char *value = json_str(item, "value");
        t->key = strdup(json_str(item, "key"));
        t->value = strdup(value != NULL ? value : "");
        t->effect = strdup(json_str(item, "effect"));
        if (t->key == NULL || t->value == NULL || t->effect == NULL)
            return err_nomem(e);
    }
    return ERR_OK;
}

static unsigned max_pods(const struct agent_config *c)
{
    json_int_t max = json_integer_value(apply_of(c, DOC_KUBELET, "maxPods")),
               per_core = json_integer_value(apply_of(c, DOC_KUBELET, "podsPerCore"));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (per_core > 0 && cores > 0 && per_core * cores < max)
        max = per_core * cores;
    return max > CONFIG_PODS_MAX ? CONFIG_PODS_MAX : (unsigned)max;
}

static uint64_t apply_bytes_of(const json_t *quantity)
{
    const char *text = json_string_value(quantity);
    struct quantity q;
    int64_t bytes = text != NULL && quantity_parse(text, &q, ERR_IGNORED) == ERR_OK ? quantity_value(&q) : 0;

    return bytes > 0 ? (uint64_t)bytes : 0;
}

static unsigned pulls_max(const struct agent_config *c)
{
    const json_t *parallel = apply_of(c, DOC_KUBELET, "maxParallelImagePulls");

    if (json_is_true(apply_of(c, DOC_KUBELET, "serializeImagePulls")))
        return 1;
    return parallel != NULL ? (unsigned)json_integer_value(parallel) : 0;
}

static int by_priority(const void *a, const void *b)
{
    const struct config_shutdown_priority *x = a, *y = b;

    return x->priority < y->priority ? -1 : x->priority > y->priority;
}

static void set_priorities(struct agent_config *c)
{
    json_t *p;
    size_t i;

    c->n_shutdown_priorities = 0;
    json_array_foreach (apply_of(c, DOC_KUBELET, "shutdownGracePeriodByPodPriority"), i, p)
        c->shutdown_priorities[c->n_shutdown_priorities++] = (struct config_shutdown_priority){
            .priority = (int32_t)json_int(p, "priority", 0),
            .grace_ms = (uint64_t)json_int(p, "shutdownGracePeriodSeconds", 0) * 1000
        };
    qsort(c->shutdown_priorities, c->n_shutdown_priorities, sizeof(c->shutdown_priorities[0]), by_priority);
}

static enum err_code set_log(struct agent_config *c, struct err *e)
{
    const char *format = json_string_value(apply_of(c, DOC_KUBELET, "logging.format"));

    if (c->log_level[0] == '\0' &&
        apply_set_text(&c->log_level,
                       json_integer_value(apply_of(c, DOC_KUBELET, "logging.verbosity")) >= 4 ? "debug"
                                                                                              : "info",
                       e) != ERR_OK)
        return e->code;
    return c->log_format[0] == '\0' && str_eq(format, "json") ? apply_set_text(&c->log_format, format, e)
                                                              : ERR_OK;
}

static enum err_code set_socket(struct agent_config *c, struct err *e)
{
    str_auto path = NULL;

    if (c->socket[0] != '\0')
        return ERR_OK;
    path = str_printf("%s/coracle.sock", c->run_dir);
    if (path == NULL)
        return err_nomem(e);
    if (strlen(path) > 100)
        return err_set(e, ERR_INVALID, "--socket: \"%s\" is longer than 100 bytes", path);
    return apply_set_text(&c->socket, path, e);
}

static enum err_code set_node_ip(struct agent_config *c, struct err *e)
{
    const json_t *v = apply_of(c, DOC_OWN, "nodeIP");
    str_auto first =
        v != NULL ? strndup(json_string_value(v), strcspn(json_string_value(v), ",")) : strdup("");

    if (first == NULL)
        return err_nomem(e);
    free(c->node_ip);
    c->node_ip = take_ptr(&first);
    return ERR_OK;
}

static enum err_code set_cert_dir(struct agent_config *c, struct err *e)
{
    str_auto path = NULL;

    if (c->kube.cert_dir[0] != '\0')
        return ERR_OK;
    path = str_printf("%s/pki", c->root_dir);
    return path != NULL ? apply_set_text(&c->kube.cert_dir, path, e) : err_nomem(e);
}

enum err_code config_apply(struct agent_config *c, struct err *e)
{
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        if (r->offset != 0 && set_field(c, r, config_effective(c->state, i), e) != ERR_OK)
            return e->code;
    }
    c->max_pods_n = max_pods(c);
    c->pulls_max = pulls_max(c);
    c->log_max_files = (unsigned)json_integer_value(apply_of(c, DOC_KUBELET, "containerLogMaxFiles"));
    c->image_gc_high = (unsigned)json_integer_value(apply_of(c, DOC_KUBELET, "imageGCHighThresholdPercent"));
    c->image_gc_low = (unsigned)json_integer_value(apply_of(c, DOC_KUBELET, "imageGCLowThresholdPercent"));
    c->pulls_per_registry_max =
        (unsigned)json_integer_value(apply_of(c, DOC_OWN, "maxParallelImagePullsPerRegistry"));
    c->image_max_bytes = apply_bytes_of(apply_of(c, DOC_OWN, "maxImageSize"));
    c->pod_pids_limit = json_integer_value(apply_of(c, DOC_KUBELET, "podPidsLimit"));
    if (c->pod_pids_limit <= 0)
        c->pod_pids_limit = -1;
    c->cpu_cfs_period_us =
        (uint64_t)(config_duration_ns(apply_of(c, DOC_KUBELET, "cpuCFSQuotaPeriod")) / 1000);
    config_apply_resources(c);
    set_priorities(c);
    labels_done(&c->node_labels);
    if (config_parse_eviction(c->state, &c->eviction, e) != ERR_OK ||
        set_labels(&c->node_labels, apply_of(c, DOC_OWN, "nodeLabels"), e) != ERR_OK ||
        set_taints(c, apply_of(c, DOC_KUBELET, "registerWithTaints"), e) != ERR_OK ||
        set_counts(&c->extended_resources, apply_of(c, DOC_OWN, "extendedResources"), e) != ERR_OK ||
        set_node_ip(c, e) != ERR_OK || set_log(c, e) != ERR_OK || set_cert_dir(c, e) != ERR_OK)
        return e->code;
    return set_socket(c, e);
}

void config_fields_done(struct agent_config *c)
{
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++)
        field_done(c, config_row(i, NULL));
    labels_done(&c->node_labels);
    taints_done(c);
    counts_done(&c->extended_resources);
    free(take_ptr(&c->node_ip));
}
