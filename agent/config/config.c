/* SPDX-License-Identifier: Apache-2.0 */
/* Reads defaults, files, drop-ins and flags into the settings, in this order; collects warnings. */
#include "agent/config/config.h"
#include "agent/config/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the settings ---- */

static void state_free(struct config_state *s)
{
    size_t n = config_n_rows();

    for (size_t i = 0; s != NULL && i < n; i++) {
        json_decref(s->set != NULL ? s->set[i].value : NULL);
        free(s->set != NULL ? s->set[i].from : NULL);
        json_decref(s->defaults != NULL ? s->defaults[i] : NULL);
    }
    if (s != NULL) {
        free(s->set);
        free(s->defaults);
        json_decref(s->problems);
    }
    free(s);
}

static enum err_code state_new(struct config_state **ret, struct err *e)
{
    size_t n = config_n_rows();
    struct config_state *s = calloc(1, sizeof(*s));

    if (s == NULL || (s->set = calloc(n, sizeof(*s->set))) == NULL ||
        (s->defaults = calloc(n, sizeof(json_t *))) == NULL) {
        state_free(s);
        return err_nomem(e);
    }
    *ret = s;
    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        if (r->otherwise != NULL && config_flag_value(r, r->otherwise, &s->defaults[i], e) != ERR_OK)
            return err_wrap(e, "default of %s", r->key);
    }
    return ERR_OK;
}

void config_unset(struct config_state *s, size_t i)
{
    json_decref(s->set[i].value);
    free(s->set[i].from);
    s->set[i] = (struct config_setting){ 0 };
}

static enum err_code merge(json_t *into, const json_t *patch, struct err *e)
{
    const char *key;
    json_t *item;

    json_object_foreach ((json_t *)patch, key, item) {
        if (json_is_null(item))
            json_object_del(into, key);
        else if (json_object_set(into, key, item) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code config_set(struct config_state *s, size_t i, const json_t *value, const char *from,
                         struct err *e)
{
    struct config_setting *at = &s->set[i];
    bool merged = json_is_object(value) && at->value != NULL;
    str_auto origin =
        merged && strcmp(at->from, from) != 0 ? str_printf("%s, %s", at->from, from) : strdup(from);
    json_auto_t *copy = merged                  ? json_deep_copy(at->value)
                        : json_is_object(value) ? json_object()
                                                : json_deep_copy(value);

    if (origin == NULL || copy == NULL || (json_is_object(value) && merge(copy, value, e) != ERR_OK))
        return err_nomem(e);
    config_unset(s, i);
    at->value = json_incref(copy);
    at->from = take_ptr(&origin);
    return ERR_OK;
}

const json_t *config_effective(const struct config_state *s, size_t i)
{
    if (i >= config_n_rows())
        return NULL;
    return s->set[i].value != NULL ? s->set[i].value : s->defaults[i];
}

static bool is_joined(const struct config_state *s)
{
    const char *path = json_string_value(config_effective(s, config_find_key(DOC_OWN, "kubeconfig")));

    return path != NULL && path[0] != '\0';
}

const char *config_why_idle(const struct config_state *s, size_t i)
{
    const struct config_row *r = config_row(i, NULL);

    if (r->effect != WORKS)
        return r->why;
    return r->marks & JOINED && !is_joined(s) ? CONFIG_ONLY_JOINED : NULL;
}

/* As in kubelet, an explicit nodeStatusUpdateFrequency is also the default of nodeStatusReportFrequency; and
 * evictionHard replaces all defaults unless mergeDefaultEvictionSettings. */
static enum err_code dependent_defaults(struct config_state *s, struct err *e)
{
    size_t update = config_find_key(DOC_KUBELET, "nodeStatusUpdateFrequency"),
           report = config_find_key(DOC_KUBELET, "nodeStatusReportFrequency"),
           hard = config_find_key(DOC_KUBELET, "evictionHard"),
           merging = config_find_key(DOC_KUBELET, "mergeDefaultEvictionSettings");

    if (s->set[update].value != NULL && s->set[report].value == NULL) {
        json_decref(s->defaults[report]);
        s->defaults[report] = json_incref(s->set[update].value);
    }
    if (s->set[hard].value != NULL && json_is_true(config_effective(s, merging))) {
        json_t *both = json_deep_copy(s->defaults[hard]);
        if (both == NULL || json_object_update(both, s->set[hard].value) != 0) {
            json_decref(both);
            return err_nomem(e);
        }
        json_decref(s->set[hard].value);
        s->set[hard].value = both;
    }
    return ERR_OK;
}

static enum err_code read_files(struct config_state *s, const struct config_flags *f, struct err *e)
{
    const char *file = config_flags_last(f, "config"), *dir = config_flags_last(f, "config-dir");

    if (file != NULL && file[0] != '\0') {
        if (config_read_file(s, file, e) != ERR_OK)
            return err_wrap(e, "--config");
    } else if (access(CONFIG_FILE, F_OK) == 0 && config_read_file(s, CONFIG_FILE, e) != ERR_OK) {
        return e->code;
    }
    if (dir != NULL && dir[0] != '\0' && config_read_dir(s, dir, e) != ERR_OK)
        return err_wrap(e, "--config-dir");
    return ERR_OK;
}

enum err_code config_parse(struct agent_config *c, int argc, char **argv, bool *ret_help, struct err *e)
{
    struct config_flags flags = { 0 };

    *ret_help = false;
    if (config_flags_parse(&flags, argc, argv, e) == ERR_OK && !flags.help &&
        state_new(&c->state, e) == ERR_OK && read_files(c->state, &flags, e) == ERR_OK &&
        config_flags_apply(c->state, &flags, e) == ERR_OK && dependent_defaults(c->state, e) == ERR_OK &&
        config_check(c->state, e) == ERR_OK)
        ERR_IGNORE(config_apply(c, e));
    *ret_help = e->code == ERR_OK && flags.help;
    config_flags_done(&flags);
    return e->code;
}

size_t config_problems(const struct agent_config *c, void (*fn)(const char *text, void *arg), void *arg)
{
    const json_t *problems = c->state != NULL ? c->state->problems : NULL, *text;
    size_t i;

    json_array_foreach (problems, i, text)
        fn(json_string_value(text), arg);
    return json_array_size(problems);
}

void config_done(struct agent_config *c)
{
    config_fields_done(c);
    state_free(c->state);
    *c = (struct agent_config){ 0 };
}

const json_t *config_value(const struct agent_config *c, const char *key)
{
    const json_t *v = config_effective(c->state, config_find_key(DOC_KUBELET, key));

    return v != NULL ? v : config_effective(c->state, config_find_key(DOC_OWN, key));
}

/* ---- warnings ---- */

/* Whether the configured behaviour differs from the actual one. */
static bool config_differs(const struct config_state *s, size_t i, const struct config_row *r)
{
    const json_t *v = s->set[i].value;

    if (v == NULL)
        return false;
    if (r->marks & ALWAYS)
        return !config_is_zero(v) ||
               (r->key == NULL && !json_is_string(v)); /* "--cloud-provider=" selects none */
    if (s->defaults[i] != NULL)
        return !json_equal(v, s->defaults[i]);
    return !config_is_zero(v);
}

struct telling {
    void (*fn)(const struct config_warning *w, void *arg);
    void *arg;
};

static void config_tell(const struct telling *t, const char *setting, const json_t *value, const char *from,
                        const char *why)
{
    mem_auto char *text =
        value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    const struct config_warning w = { setting, text != NULL ? text : "\"<masked>\"", from, why };

    t->fn(&w, t->arg);
}

static void report_gates(const struct config_state *s, size_t i, const struct telling *t)
{
    const char *name, *problem;
    json_t *on;

    json_object_foreach (s->set[i].value, name, on) {
        str_auto setting = str_printf("featureGates.%.100s", name);
        if ((problem = config_gate_problem(name, json_is_true(on))) != NULL)
            config_tell(t, setting != NULL ? setting : "featureGates", on, s->set[i].from, problem);
    }
}

void config_warnings(const struct agent_config *c, void (*fn)(const struct config_warning *w, void *arg),
                     void *arg)
{
    const struct config_state *s = c->state;
    const struct telling t = { fn, arg };
    size_t n = config_n_rows(), max_pods = config_find_key(DOC_KUBELET, "maxPods");

    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        str_auto flag = r->key == NULL ? str_printf("--%s", r->flag) : NULL;

        if (r->type == T_BOOL_MAP)
            report_gates(s, i, &t);
        else if (config_why_idle(s, i) != NULL && config_differs(s, i, r))
            config_tell(&t, r->key != NULL ? r->key : flag, r->marks & SECRET ? NULL : s->set[i].value,
                        s->set[i].from, config_why_idle(s, i));
    }
    if (json_integer_value(config_effective(s, max_pods)) > CONFIG_PODS_MAX)
        config_tell(&t, "maxPods", s->set[max_pods].value, s->set[max_pods].from,
                    "the maximum is 1000 pods per node");
}
