/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the effective settings as JSON and as YAML with origins; and the sample file. */
#include "agent/config/internal.h"
#include "base/codec/json.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS 8
#define VALUE_COLUMN 56 /* origins follow it */
#define WRAP 112

/* ---- JSON ---- */

/* obj.a.b.c = value (stolen); creates missing objects. */
static bool put_path(json_t *obj, const char *path, json_t *value)
{
    const char *dot;

    while ((dot = strchr(path, '.')) != NULL) {
        str_auto name = strndup(path, (size_t)(dot - path));
        json_t *next = name != NULL ? json_object_get(obj, name) : NULL;

        if (next == NULL && (name == NULL || json_object_set_new(obj, name, next = json_object()) != 0)) {
            json_decref(value);
            return false;
        }
        obj = next;
        path = dot + 1;
    }
    return json_object_set_new(obj, path, value) == 0;
}

static const json_t *get_path(const json_t *obj, const char *path)
{
    const char *dot;

    while (obj != NULL && (dot = strchr(path, '.')) != NULL) {
        char name[80];

        snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
        obj = json_object_get(obj, name);
        path = dot + 1;
    }
    return json_object_get(obj, path);
}

static void add_warning(const struct config_warning *w, void *arg)
{
    json_t *value = json_loads(w->value, JSON_DECODE_ANY, NULL);

    json_array_append_new(arg,
                          json_pack("{s:s, s:o, s:s, s:s}", "setting", w->setting, "value",
                                    value != NULL ? value : json_null(), "from", w->from, "why", w->why));
}

json_t *config_json(const struct agent_config *c)
{
    json_t *docs[N_DOCS] = { json_object(), json_object(), NULL }, *sources = json_object(),
           *without = json_object(), *warnings = json_array();
    size_t n = config_n_rows();
    bool ok = sources != NULL && without != NULL && warnings != NULL && docs[DOC_KUBELET] != NULL &&
              docs[DOC_OWN] != NULL;
    enum config_doc doc;

    for (size_t i = 0; i < n && ok; i++) {
        const struct config_row *r = config_row(i, &doc);
        const json_t *v = config_effective(c->state, i);
        const char *from = c->state->set[i].from, *why = config_why_idle(c->state, i);

        if (r->key == NULL || v == NULL)
            continue;
        ok = put_path(docs[doc], r->key, r->marks & SECRET ? json_string("<masked>") : json_deep_copy(v)) &&
             json_object_set_new(sources, r->key, json_string(from != NULL ? from : "default")) == 0 &&
             (why == NULL || json_object_set_new(without, r->key, json_string(why)) == 0);
    }
    config_warnings(c, add_warning, warnings);
    if (!ok) {
        json_decref(docs[DOC_KUBELET]);
        json_decref(docs[DOC_OWN]);
        json_decref(sources);
        json_decref(without);
        json_decref(warnings);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "kubeletconfig", docs[DOC_KUBELET], "coracleconfig",
                     docs[DOC_OWN], "sources", sources, "withoutEffect", without, "warnings", warnings);
}

/* ---- YAML ---- */

/* Opens the mappings of a key that the previous key did not open. */
static void open_mappings(struct buf *out, const char *lead, const char *before, const char *key)
{
    size_t same = 0, indent = 0;

    for (size_t i = 0; before[i] != '\0' && before[i] == key[i]; i++)
        if (key[i] == '.')
            same = i + 1;
    for (size_t i = 0; key[i] != '\0'; i++) {
        size_t start = i;

        i += strcspn(key + i, ".");
        if (key[i] == '\0')
            break;
        if (start >= same)
            buf_addf(out, "%s%*s%.*s:\n", lead, (int)indent, "", (int)(i - start), key + start);
        indent += 2;
    }
}

static int indent_of(const char *key)
{
    int dots = 0;

    for (; *key != '\0'; key++)
        dots += *key == '.';
    return 2 * dots;
}

static const char *last_name(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

static void config_print_add_value(struct buf *out, const json_t *v)
{
    mem_auto char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_SORT_KEYS);

    buf_adds(out, text != NULL ? text : "null");
}

static void add_document(const json_t *configz, const char *member, enum config_doc which, struct buf *out)
{
    const json_t *doc = json_object_get(configz, member), *sources = json_object_get(configz, "sources");
    const char *before = "";
    size_t n = config_n_rows();
    enum config_doc of;

    buf_addf(out, "apiVersion: %s\nkind: %s\n", config_doc_api[which], config_doc_kind[which]);
    for (size_t i = 0; i < n; i++) {
        const char *key = config_row(i, &of)->key;
        const json_t *v = of == which ? get_path(doc, key) : NULL;
        const char *from, *why;
        size_t start;

        if (v == NULL)
            continue;
        open_mappings(out, "", before, key);
        start = out->n;
        buf_addf(out, "%*s%s: ", indent_of(key), "", last_name(key));
        config_print_add_value(out, v);
        from = json_str(sources, key);
        why = json_str(json_object_get(configz, "withoutEffect"), key);
        buf_addf(out, "%*s  # %s%s%s\n",
                 (int)(out->n - start < VALUE_COLUMN ? VALUE_COLUMN - (out->n - start) : 0), "",
                 from != NULL ? from : "default", why != NULL ? "; no effect: " : "", why != NULL ? why : "");
        before = key;
    }
}

void config_yaml(const json_t *configz, struct buf *out)
{
    const json_t *warnings = json_object_get(configz, "warnings");
    json_t *w;
    size_t i;

    add_document(configz, "kubeletconfig", DOC_KUBELET, out);
    buf_adds(out, "---\n");
    add_document(configz, "coracleconfig", DOC_OWN, out);
    if (json_array_size(warnings) > 0)
        buf_adds(out, "# Accepted, but without effect:\n");
    json_array_foreach (warnings, i, w) {
        buf_addf(out, "#   %s: ", json_str(w, "setting"));
        config_print_add_value(out, json_object_get(w, "value"));
        buf_addf(out, " (%s): %s\n", json_str(w, "from"), json_str(w, "why"));
    }
}

/* ---- the sample ---- */

static void add_comment(struct buf *out, int indent, const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t word = strcspn(text, " ");

        if (column == 0 || column + 1 + word > WRAP) {
            /* "# text" at the top is a comment, "# key" (at least two blanks) a commented-out key. */
            buf_addf(out, indent > 0 ? "%s#%*s# %.*s" : "%s#%*s %.*s", column > 0 ? "\n" : "", indent, "",
                     (int)word, text);
            column = (size_t)indent + 4 + word;
        } else {
            buf_addf(out, " %.*s", (int)word, text);
            column += 1 + word;
        }
        text += word + strspn(text + word, " ");
    }
    buf_addc(out, '\n');
}

static const char *nothing(const struct config_row *r)
{
    switch (r->type) {
    case T_TEXTS:
    case T_INTS:
    case T_OBJECTS:
        return "[]";
    case T_TEXT_MAP:
    case T_BOOL_MAP:
    case T_TEXTS_MAP:
    case T_COUNT_MAP:
        return "{}";
    default:
        return r->marks & ZERO ? "\"\"" : "null";
    }
}

/* Settings that the sample sets, so that an installed node has them; all others are commented out. */
static const struct {
    const char *key, *value;
} chosen[] = { { "shutdownGracePeriod", "30s" }, { "shutdownGracePeriodCriticalPods", "10s" } };

static const char *chosen_value(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(chosen); i++)
        if (strcmp(chosen[i].key, key) == 0)
            return chosen[i].value;
    return NULL;
}

static void config_print_add_row(struct buf *out, const struct config_row *r, const char *before)
{
    const char *set = chosen_value(r->key);
    int indent = indent_of(r->key);
    json_auto_t *v = NULL;
    struct err e = { 0 };
    buf_auto text = BUF_INIT(2000);

    open_mappings(out, "#", before, r->key);
    buf_addf(&text, "%c%s.", r->help[0] >= 'a' && r->help[0] <= 'z' ? r->help[0] - 32 : r->help[0],
             r->help + 1);
    if (r->type == T_WORD)
        buf_addf(&text, " One of %s.", r->allowed);
    if (r->why != NULL)
        buf_addf(&text, " %s: %s.", r->effect == LATER ? "Not supported yet" : "No effect here", r->why);
    if (r->marks & JOINED)
        buf_adds(&text, " Only on a node that joins a cluster.");
    if (r->flag != NULL)
        buf_addf(&text, " (%s%s)", strlen(r->flag) == 1 ? "-" : "--", r->flag);
    if (set != NULL)
        buf_addf(&text, " Without this line: %s.", r->otherwise);
    add_comment(out, indent, text.p);
    buf_addf(out, "%s%*s%s: ", set != NULL ? "" : "#", indent, "", last_name(r->key));
    if (set != NULL)
        buf_adds(out, set);
    else if (r->otherwise != NULL && config_flag_value(r, r->otherwise, &v, &e) == ERR_OK)
        config_print_add_value(out, v);
    else
        buf_adds(out, nothing(r));
    buf_addc(out, '\n');
}

static void add_rows(struct buf *out, enum config_doc which)
{
    const char *before = "";
    size_t n = config_n_rows();
    enum config_doc of;

    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, &of);
        if (of != which || r->key == NULL)
            continue;
        config_print_add_row(out, r, before);
        before = r->key;
    }
}

void config_sample(struct buf *out)
{
    buf_addf(out,
             "# Configuration of Coracle's agent: a KubeletConfiguration as in kubelet, and a "
             "CoracleConfiguration with\n"
             "# settings kubelet does not have. Every key is here with its meaning, its default and the flag "
             "that overrides it.\n"
             "# `coracle config` shows the settings in force and their origin; drop-ins (--config-dir) are "
             "merged over it.\n"
             "apiVersion: %s\nkind: %s\n",
             config_doc_api[DOC_KUBELET], config_doc_kind[DOC_KUBELET]);
    add_rows(out, DOC_KUBELET);
    buf_addf(out, "---\napiVersion: %s\nkind: %s\n", config_doc_api[DOC_OWN], config_doc_kind[DOC_OWN]);
    add_rows(out, DOC_OWN);
}
