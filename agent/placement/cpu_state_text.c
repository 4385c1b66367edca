/* SPDX-License-Identifier: Apache-2.0 */
/* The text of cpu_manager_state. The form was derived from recorded files:
 *
 *   {"policyName":"static","defaultCpuSet":"0,2","entries":{"uid-a":{"c":"1"}},"checksum":1511202308}
 */
#include "agent/placement/cpu_state.h"
#include "agent/placement/state_text.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdlib.h>

/* ---- checksum ---- */

static void add_container(struct buf *b, const char *key, const json_t *value)
{
    buf_addf(b, "%s:%s", key, json_string_value(value));
}

static void add_pod(struct buf *b, const char *key, const json_t *value)
{
    struct err e = { 0 };

    buf_addf(b, "%s:", key);
    if (pl_add_map(b, value, add_container, &e) != ERR_OK)
        b->failed = true;
}

static enum err_code add_hashed(struct buf *b, const char *policy, const char *shared, const json_t *entries,
                                struct err *e)
{
    buf_addf(b, "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s ", policy,
             shared);
    buf_adds(b, "Entries:(map[string]map[string]string)");
    if (pl_add_map(b, entries, add_pod, e) != ERR_OK)
        return e->code;
    buf_adds(b, " Checksum:(checksum.Checksum)0}");
    return buf_check(b, e);
}

/* ---- writing ---- */

static json_t *entries_json(const struct pl_cpu_state *s)
{
    json_t *all = json_object();

    for (size_t i = 0; all != NULL && i < s->n; i++) {
        json_t *pod = json_object_get(all, s->v[i].owner.pod);
        char text[CPUS_TEXT_SIZE];

        cpus_print(&s->v[i].cpus, text);
        if (pod == NULL && json_object_set_new(all, s->v[i].owner.pod, json_object()) == 0)
            pod = json_object_get(all, s->v[i].owner.pod);
        if (pod == NULL || json_object_set_new(pod, s->v[i].owner.container, json_string(text)) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

enum err_code pl_cpu_state_write(const struct pl_cpu_state *s, const char *policy, char **ret, size_t *ret_n,
                                 struct err *e)
{
    buf_auto b = BUF_INIT(PL_STATE_MAX);
    json_auto_t *entries = entries_json(s), *file = NULL;
    char shared[CPUS_TEXT_SIZE], *text;

    if (entries == NULL)
        return err_nomem(e);
    cpus_print(&s->shared, shared);
    if (add_hashed(&b, policy, shared, entries, e) != ERR_OK)
        return e->code;
    file = json_pack("{s:s, s:s}", "policyName", policy, "defaultCpuSet", shared);
    if (file == NULL || (s->n > 0 && json_object_set(file, "entries", entries) != 0) ||
        json_object_set_new(file, "checksum", json_integer(pl_sum(b.p, b.n))) != 0)
        return err_nomem(e);
    text = json_text(file);
    if (text == NULL)
        return err_nomem(e);
    *ret = text;
    *ret_n = strlen(text);
    return ERR_OK;
}

/* ---- reading ---- */

static enum err_code read_entry(struct pl_cpu_state *s, const char *pod, const char *container,
                                const json_t *value, struct err *e)
{
    const char *text = json_string_value(value);
    struct cpus cpus;

    if (!pl_name_is_ok(pod) || !pl_name_is_ok(container) || s->n >= PL_ENTRIES_MAX)
        return err_set(e, ERR_DATA_LOSS,
                       "entries: a name is empty or longer than %d bytes, or there are "
                       "more than %d",
                       PL_NAME_MAX, PL_ENTRIES_MAX);
    if (text == NULL || strlen(text) > CPUS_TEXT_MAX)
        return err_set(e, ERR_DATA_LOSS, "entries: the processors of %.64s are not a string", container);
    if (cpus_parse(&cpus, text, "entries", e) != ERR_OK) {
        e->code = ERR_DATA_LOSS;
        return e->code;
    }
    return pl_cpu_state_put(s, pod, container, &cpus, e);
}

static enum err_code read_entries(struct pl_cpu_state *s, json_t *entries, struct err *e)
{
    const char *pod, *container;
    json_t *containers, *value;

    if (entries == NULL || json_is_null(entries))
        return ERR_OK;
    if (!json_is_object(entries))
        return err_set(e, ERR_DATA_LOSS, "entries is not an object");
    json_object_foreach (entries, pod, containers) {
        if (!json_is_object(containers))
            return err_set(e, ERR_DATA_LOSS, "entries: the containers of %.64s are not an object", pod);
        json_object_foreach (containers, container, value) {
            if (read_entry(s, pod, container, value, e) != ERR_OK)
                return e->code;
        }
    }
    return ERR_OK;
}

static enum err_code read_file(json_t *file, struct pl_cpu_state *s, char **ret_policy, struct err *e)
{
    const char *policy = pl_member_text(file, "policyName", PL_NAME_MAX, e), *shared;
    json_t *entries = json_object_get(file, "entries");
    buf_auto b = BUF_INIT(PL_STATE_MAX);

    if (policy == NULL || (shared = pl_member_text(file, "defaultCpuSet", CPUS_TEXT_MAX, e)) == NULL)
        return e->code;
    if (cpus_parse(&s->shared, shared, "defaultCpuSet", e) != ERR_OK) {
        e->code = ERR_DATA_LOSS;
        return e->code;
    }
    if (read_entries(s, entries, e) != ERR_OK ||
        add_hashed(&b, policy, shared, json_is_object(entries) ? entries : NULL, e) != ERR_OK ||
        pl_check_sum(file, &b, "V2", e) != ERR_OK)
        return e->code;
    *ret_policy = strdup(policy);
    return *ret_policy != NULL ? ERR_OK : err_nomem(e);
}

enum err_code pl_cpu_state_read(const char *text, size_t n, struct pl_cpu_state *ret, char **ret_policy,
                                struct err *e)
{
    struct pl_cpu_state s = { 0 };
    json_auto_t *file = NULL;

    if (json_parse(text, n, PL_STATE_MAX, &file, "the state of processors", e) != ERR_OK) {
        e->code = e->code == ERR_INVALID ? ERR_DATA_LOSS : e->code;
        return e->code;
    }
    if (!json_is_object(file))
        return err_set(e, ERR_DATA_LOSS, "the state of processors is not an object");
    if (read_file(file, &s, ret_policy, e) != ERR_OK) {
        pl_cpu_state_done(&s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}
