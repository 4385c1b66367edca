/* SPDX-License-Identifier: Apache-2.0 */
/* load - reads the files of a kubeconfig and merges them (clientcmd/loader.go). */
#include "agent/api/yaml/yaml.h"
#include "agent/kube/config/file.h"
#include "agent/kube/config/internal.h"
#include "base/codec/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- secrets ---- */

void kube_json_wipe(json_t *v)
{
    json_t *item;
    const char *key;
    size_t i;

    if (v == NULL)
        return;
    if (v->refcount == 1 && json_is_string(v)) {
        explicit_bzero((char *)json_string_value(v), json_string_length(v));
    } else if (v->refcount == 1) {
        json_array_foreach (v, i, item)
            kube_json_wipe(json_incref(item));
        json_object_foreach (v, key, item)
            kube_json_wipe(json_incref(item));
    }
    json_decref(v);
}

void kube_config_done(struct kube_config *c)
{
    for (size_t k = 0; k < KUBE_KINDS; k++) {
        for (size_t i = 0; i < c->of[k].n; i++) {
            free(c->of[k].v[i].name);
            kube_json_wipe(c->of[k].v[i].value);
        }
        free(c->of[k].v);
    }
    free(c->current);
    strs_done(&c->files);
    strs_done(&c->missing);
    *c = (struct kube_config){ 0 };
}

/* ---- one file ---- */

static const struct kube_entry *load_find(const struct kube_entries *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].name, name) == 0)
            return &all->v[i];
    return NULL;
}

/* Takes the reference. */
static enum err_code add_entry(struct kube_entries *to, const char *name, const char *from, json_t *value,
                               struct err *e)
{
    struct kube_entry *more = realloc(to->v, (to->n + 1) * sizeof(*more));
    char *copy = strdup(name);

    if (more != NULL)
        to->v = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        kube_json_wipe(value);
        return err_nomem(e);
    }
    to->v[to->n++] = (struct kube_entry){ copy, from, value };
    return ERR_OK;
}

struct loading { /* one file */
    struct kube_config *into;
    const char *path; /* kept */
    const char *base;
    struct strs names;
};

static enum err_code load_entry(struct loading *l, enum kube_kind kind, const json_t *item, struct err *e)
{
    const json_t *name = json_object_get(item, "name");
    const char *text = json_is_string(name) ? json_string_value(name) : "";
    json_t *value = NULL;

    if (!json_is_null(item) && !json_is_object(item))
        return err_set(e, ERR_INVALID, "%s, where a mapping is needed", kube_type_name(item));
    if (name != NULL && !json_is_null(name) && !json_is_string(name))
        return err_set(e, ERR_INVALID, "name: %s, where a text is needed (numbers need quotes)",
                       kube_type_name(name));
    if (strs_has(&l->names, text))
        return err_set(e, ERR_INVALID, "duplicate name \"%.100s\" in list", text);
    if (!strs_add(&l->names, text))
        return err_nomem(e);
    if (kube_fields_take(kube_fields[kind], json_object_get(item, kube_kind_name[kind]), l->base, &value,
                         e) != ERR_OK)
        return err_wrap(e, "\"%.100s\": %s", text, kube_kind_name[kind]);
    if (load_find(&l->into->of[kind], text) != NULL) { /* of an earlier file: that one counts, whole */
        kube_json_wipe(value);
        return ERR_OK;
    }
    return add_entry(&l->into->of[kind], text, l->path, value, e);
}

static enum err_code load_list(struct loading *l, enum kube_kind kind, const json_t *list, struct err *e)
{
    json_t *item;
    size_t i;

    if (list == NULL || json_is_null(list))
        return ERR_OK;
    if (!json_is_array(list))
        return err_set(e, ERR_INVALID, "%s: %s, where a list is needed", kube_kind_list[kind],
                       kube_type_name(list));
    strs_done(&l->names);
    json_array_foreach ((json_t *)list, i, item)
        if (load_entry(l, kind, item, e) != ERR_OK)
            return err_wrap(e, "%s[%zu]", kube_kind_list[kind], i);
    return ERR_OK;
}

static enum err_code load_text(const json_t *doc, const char *key, const char **ret, struct err *e)
{
    const json_t *v = json_object_get(doc, key);

    *ret = "";
    if (v == NULL || json_is_null(v))
        return ERR_OK;
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "%s: %s, where a text is needed", key, kube_type_name(v));
    *ret = json_string_value(v);
    return ERR_OK;
}

static enum err_code load_head(const json_t *doc, struct err *e)
{
    const char *version, *kind;

    if (!json_is_object(doc))
        return err_set(e, ERR_INVALID, "it is %s, where a mapping is needed", kube_type_name(doc));
    if (load_text(doc, "apiVersion", &version, e) != ERR_OK || load_text(doc, "kind", &kind, e) != ERR_OK)
        return e->code;
    if (version[0] != '\0' && strcmp(version, "v1") != 0)
        return err_set(e, ERR_INVALID, "apiVersion: \"%.100s\" is not \"v1\"", version);
    if (kind[0] != '\0' && strcmp(kind, "Config") != 0)
        return err_set(e, ERR_INVALID, "kind: \"%.100s\" is not \"Config\"", kind);
    return ERR_OK;
}

static enum err_code load_document(struct loading *l, const json_t *doc, struct err *e)
{
    const char *current;

    if (load_head(doc, e) != ERR_OK || load_text(doc, "current-context", &current, e) != ERR_OK)
        return e->code;
    for (enum kube_kind k = 0; k < KUBE_KINDS; k++)
        if (load_list(l, k, json_object_get(doc, kube_kind_list[k]), e) != ERR_OK)
            return e->code;
    if (l->into->current == NULL && current[0] != '\0') {
        l->into->current = strdup(current);
        l->into->current_from = l->path;
        if (l->into->current == NULL)
            return err_nomem(e);
    }
    return ERR_OK;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    str_auto folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    str_auto cwd = folder != NULL && folder[0] != '/' ? getcwd(NULL, 0) : NULL;

    return folder != NULL ? kube_path_join(cwd != NULL ? cwd : "/", folder) : NULL;
}

enum err_code kube_config_add(struct kube_config *c, const char *path, const char *text, size_t n,
                              struct err *e)
{
    str_auto base = folder_of(path);
    struct loading l = { .into = c, .base = base };
    json_t *doc = NULL;

    if (base == NULL || !strs_add(&c->files, path))
        return err_nomem(e);
    l.path = c->files.v[c->files.n - 1];
    if (yaml_first_to_json(text, n, &doc, e) == ERR_OK && doc != NULL)
        ERR_IGNORE(load_document(&l, doc, e));
    kube_json_wipe(doc);
    strs_done(&l.names);
    return e->code;
}

/* ---- the files ---- */

static void add_problem(struct err *all, const struct err *e)
{
    struct err before = *all;

    if (all->code == ERR_OK)
        *all = *e;
    else
        err_set(all, before.code, "%s; %s", before.text, e->text);
}

static void load_file(struct kube_config *c, const char *path, struct err *problems)
{
    struct err e = { 0 };
    char *text = NULL;
    size_t n = 0;

    if (kube_file_read(path, KUBE_FILE_MAX, &text, &n, &e) != ERR_OK) {
        if (e.sys == ENOENT) {
            if (!strs_add(&c->missing, path))
                ERR_IGNORE(err_nomem(problems));
            return;
        }
        err_wrap(&e, "error loading config file \"%s\"", path);
        add_problem(problems, &e);
        return;
    }
    if (kube_config_add(c, path, text, n, &e) != ERR_OK) {
        err_wrap(&e, "error loading config file \"%s\"", path);
        add_problem(problems, &e);
    }
    kube_file_wipe(text, n);
}

/* The elements of KUBECONFIG, without empty ones and repeats. */
static enum err_code split_list(const char *list, struct strs *ret, struct err *e)
{
    for (const char *p = list; *p != '\0';) {
        size_t n = strcspn(p, ":");
        str_auto one = strndup(p, n);

        if (one == NULL || (n > 0 && !strs_add_once(ret, one)))
            return err_nomem(e);
        if (ret->n > KUBE_CONFIG_FILES_MAX)
            return err_set(e, ERR_INVALID, "KUBECONFIG: more than %d files", KUBE_CONFIG_FILES_MAX);
        p += n + (p[n] == ':');
    }
    return ERR_OK;
}

enum err_code kube_config_load(struct kube_config *ret, const struct kube_ask *ask, struct err *e)
{
    const char *one = ask->flags.kubeconfig;
    bool by_flag = one != NULL && one[0] != '\0';
    struct kube_config c = { 0 };
    struct strs paths = { 0 };

    if (by_flag) {
        if (!strs_add(&paths, one))
            err_nomem(e);
    } else if (ask->list != NULL && ask->list[0] != '\0') {
        ERR_IGNORE(split_list(ask->list, &paths, e));
    } else {
        bool home = ask->home != NULL && ask->home[0] != '\0';
        if (!strs_take(&paths, home ? str_printf("%s/.kube/config", ask->home) : strdup(".kube/config")))
            err_nomem(e);
    }
    /* Entries name their file by a pointer into c.files, whose texts do not move. */
    if (e->code == ERR_OK) {
        struct err problems = { 0 };
        for (size_t i = 0; i < paths.n; i++)
            load_file(&c, paths.v[i], &problems);
        *e = problems;
    }
    if (e->code == ERR_OK && by_flag && c.missing.n > 0)
        err_sys(e, ENOENT, "stat %s", one);
    strs_done(&paths);
    if (e->code != ERR_OK) {
        kube_config_done(&c);
        return e->code;
    }
    kube_config_done(ret);
    *ret = c;
    return ERR_OK;
}

const char *kube_env(const char *const *environment, const char *name)
{
    size_t n = strlen(name);
    const char *found = NULL;

    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            found = *environment + n + 1; /* the last one, as where a process has two */
    return found;
}

struct kube_ask kube_ask_of(const char *const *environment)
{
    return (struct kube_ask){ .list = kube_env(environment, "KUBECONFIG"),
                              .home = kube_env(environment, "HOME") };
}
