/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file into the settings: its documents, each key by its row. */
#include "agent/api/yaml/yaml.h"
#include "agent/config/internal.h"
#include "base/codec/json.h"
#include "base/files/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1024 * 1024)
#define DROP_INS_MAX 500
#define DROP_IN_LEVELS 8

struct decoder {
    struct config_state *state;
    const char *path; /* of the file */
    enum config_doc doc;
    json_t *lines;
};

static const char *config_decode_place(const struct decoder *d, const char *key, char ret[320])
{
    json_int_t line = d->lines != NULL ? json_int(d->lines, key, 0) : 0;

    if (line > 0)
        snprintf(ret, 320, "%.290s:%lld", d->path, (long long)line);
    else
        snprintf(ret, 320, "%.290s", d->path);
    return ret;
}

static enum err_code unknown_key(const struct decoder *d, const char *key, struct err *e)
{
    const char *near = config_nearest_key(d->doc, key);
    enum config_doc other = d->doc == DOC_KUBELET ? DOC_OWN : DOC_KUBELET;
    char from[320];

    if (config_find_key(other, key) < config_n_rows())
        return err_set(e, ERR_INVALID, "%s: %.100s: unknown key in a %s; it belongs in a %s (apiVersion %s)",
                       config_decode_place(d, key, from), key, config_doc_kind[d->doc],
                       config_doc_kind[other], config_doc_api[other]);
    if (near != NULL)
        return err_set(e, ERR_INVALID, "%s: %.100s: unknown key in a %s; did you mean %s?",
                       config_decode_place(d, key, from), key, config_doc_kind[d->doc], near);
    return err_set(e, ERR_INVALID, "%s: %.100s: unknown key in a %s; `coracle config --sample` shows all",
                   config_decode_place(d, key, from), key, config_doc_kind[d->doc]);
}

/* Removes the values of earlier files for all keys below. */
static void unset_below(const struct decoder *d, const char *prefix)
{
    size_t n = config_n_rows(), length = strlen(prefix);
    enum config_doc of;

    for (size_t i = 0; i < n; i++) {
        const char *key = config_row(i, &of)->key;
        if (of == d->doc && key != NULL && strncmp(key, prefix, length) == 0 && key[length] == '.')
            config_unset(d->state, i);
    }
}

static enum err_code take_setting(struct decoder *d, size_t i, const char *key, const json_t *value,
                                  struct err *e)
{
    const struct config_row *r = config_row(i, NULL);
    json_auto_t *checked = NULL;
    char from[320];

    if (json_is_null(value)) {
        config_unset(d->state, i);
        return ERR_OK;
    }
    if (config_check_value(r, value, &checked, e) != ERR_OK)
        return e->code == ERR_INVALID ? err_wrap(e, "%s: %s", config_decode_place(d, key, from), key)
                                      : e->code;
    if (config_means_default(r, checked)) {
        config_unset(d->state, i);
        return ERR_OK;
    }
    return config_set(d->state, i, checked, config_decode_place(d, key, from), e);
}

/* Records a problem and continues; an error not caused by the file stops. */
static enum err_code config_decode_go_on(struct config_state *s, const struct err *why, struct err *e)
{
    if (why->code == ERR_OK)
        return ERR_OK;
    if (why->code != ERR_INVALID) {
        *e = *why;
        return e->code;
    }
    if (s->problems == NULL)
        s->problems = json_array();
    return json_array_append_new(s->problems, json_string_of(why->text)) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code take_mapping(struct decoder *d, const json_t *mapping, const char *prefix,
                                  struct err *e);

static enum err_code config_decode_take_key(struct decoder *d, const char *key, const json_t *value,
                                            struct err *e)
{
    const size_t i = config_find_key(d->doc, key);
    char from[320];

    if (i < config_n_rows())
        return take_setting(d, i, key, value, e);
    if (!config_is_mapping(d->doc, key))
        return unknown_key(d, key, e);
    if (json_is_object(value))
        return take_mapping(d, value, key, e);
    if (!json_is_null(value))
        return err_set(e, ERR_INVALID, "%s: %s: not a mapping", config_decode_place(d, key, from), key);
    unset_below(d, key);
    return ERR_OK;
}

static enum err_code take_mapping(struct decoder *d, const json_t *mapping, const char *prefix, struct err *e)
{
    const char *name;
    json_t *value;
    char key[200];

    json_object_foreach ((json_t *)mapping, name, value) {
        struct err why = { 0 };

        snprintf(key, sizeof(key), "%s%s%.120s", prefix, prefix[0] != '\0' ? "." : "", name);
        if (prefix[0] == '\0' && (strcmp(key, "apiVersion") == 0 || strcmp(key, "kind") == 0))
            continue;
        ERR_IGNORE(config_decode_take_key(d, key, value, &why));
        if (config_decode_go_on(d->state, &why, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code config_decode_find_kind(struct decoder *d, const json_t *document, struct err *e)
{
    const char *api = json_str(document, "apiVersion"), *kind = json_str(document, "kind");

    for (enum config_doc doc = DOC_KUBELET; doc <= DOC_OWN; doc++)
        if (str_eq(api, config_doc_api[doc]) && str_eq(kind, config_doc_kind[doc])) {
            d->doc = doc;
            return ERR_OK;
        }
    return err_set(e, ERR_INVALID,
                   "%.200s: apiVersion \"%.60s\", kind \"%.60s\" is neither a %s (%s) nor a %s (%s)", d->path,
                   api != NULL ? api : "", kind != NULL ? kind : "", config_doc_kind[DOC_KUBELET],
                   config_doc_api[DOC_KUBELET], config_doc_kind[DOC_OWN], config_doc_api[DOC_OWN]);
}

struct file {
    const char *text;
    size_t n;
    bool had[N_DOCS];
};

static enum err_code take_document(struct decoder *d, struct file *file, const json_t *document, int number,
                                   struct err *e)
{
    if (!json_is_object(document))
        return err_set(e, ERR_INVALID, "%.200s: document %d: not a mapping", d->path, number);
    if (config_decode_find_kind(d, document, e) != ERR_OK)
        return e->code;
    if (file->had[d->doc])
        return err_set(e, ERR_INVALID, "%.200s: document %d: a second %s", d->path, number,
                       config_doc_kind[d->doc]);
    file->had[d->doc] = true;
    d->lines = config_lines(file->text, file->n, number);
    ERR_IGNORE(take_mapping(d, document, "", e));
    json_decref(d->lines);
    return e->code;
}

static enum err_code config_decode_decode(struct config_state *s, const char *path, const char *text,
                                          size_t n, struct err *e)
{
    struct decoder d = { .state = s, .path = path };
    struct file file = { .text = text, .n = n };
    json_auto_t *documents = NULL;
    mem_auto int *numbers = NULL;
    json_t *document;
    size_t i;

    if (yaml_to_json(text, n, &documents, &numbers, NULL, e) != ERR_OK)
        return err_wrap(e, "%.200s", path);
    if (json_array_size(documents) == 0)
        return err_set(e, ERR_INVALID, "%.200s: has no document", path);
    json_array_foreach (documents, i, document) {
        struct err why = { 0 };

        ERR_IGNORE(take_document(&d, &file, document, numbers[i], &why));
        if (config_decode_go_on(s, &why, e) != ERR_OK)
            return e->code;
    }
    if (s->problems != NULL)
        err_set(e, ERR_INVALID, "%s", json_string_value(json_array_get(s->problems, 0)));
    return e->code;
}

enum err_code config_read_file(struct config_state *s, const char *path, struct err *e)
{
    str_auto text = NULL;
    size_t n = 0;

    if (fs_read_at(AT_FDCWD, path, FILE_MAX, &text, &n, e) != ERR_OK)
        return e->code;
    return config_decode_decode(s, path, text, n, e);
}

/* ---- drop-ins ---- */

static int not_hidden(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Bytewise, like Go's filepath.WalkDir. */
static int config_decode_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum err_code read_dir(struct config_state *s, const char *path, int level, unsigned *left,
                              struct err *e)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, not_hidden, config_decode_by_name);

    if (n < 0)
        return err_sys(e, errno, "%.200s", path);
    for (int i = 0; i < n; i++) {
        str_auto below = str_printf("%s/%s", path, entries[i]->d_name);
        struct stat st;

        if (e->code == ERR_OK && below == NULL)
            err_nomem(e);
        /* Links to folders are not followed, links to files are. */
        if (e->code == ERR_OK && lstat(below, &st) == 0 && S_ISDIR(st.st_mode)) {
            if (level == DROP_IN_LEVELS)
                err_set(e, ERR_INVALID, "%.200s: more than %d folders deep", below, DROP_IN_LEVELS);
            else
                ERR_IGNORE(read_dir(s, below, level + 1, left, e)); /* *e ends the loop */
        } else if (e->code == ERR_OK && str_ends(entries[i]->d_name, ".conf")) {
            if ((*left)-- == 0)
                err_set(e, ERR_INVALID, "%.200s: more than %d drop-ins", path, DROP_INS_MAX);
            else
                ERR_IGNORE(config_read_file(s, below, e));
        }
        free(entries[i]);
    }
    free(entries);
    return e->code;
}

enum err_code config_read_dir(struct config_state *s, const char *path, struct err *e)
{
    unsigned left = DROP_INS_MAX;

    return read_dir(s, path, 1, &left, e);
}
