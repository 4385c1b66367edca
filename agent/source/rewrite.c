/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/rewrite.h"

#include "agent/api/yaml/yaml.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

bool src_key_is(const struct src_key *key, const struct api_object *object)
{
    const struct api_meta *meta = api_object_meta(object);

    return object->kind == key->kind && str_eq(meta->name, key->name) &&
           str_eq(meta->namespace, key->namespace_);
}

/* ---- an object as text ---- */

#define TEXT_MAX (64u << 20)
#define MARK_DIGITS 32

/* `yaml` with the line "managedFields: <mark>" made "managedFields: <list>". */
static char *with_list(const char *yaml, const char *mark, const char *list)
{
    struct buf b = BUF_SECRET(TEXT_MAX);
    const char *at = strstr(yaml, mark);
    char *text;

    if (at == NULL)
        return NULL;
    buf_add(&b, yaml, (size_t)(at - yaml));
    buf_adds(&b, list);
    buf_adds(&b, at + strlen(mark));
    text = b.failed ? NULL : buf_detach(&b);
    buf_done(&b);
    return text;
}

char *src_object_text(const json_t *object)
{
    json_t *meta = json_object_get(object, "metadata"), *managed = json_object_get(meta, "managedFields");
    json_auto_t *copy = NULL, *own = NULL;
    char mark[MARK_DIGITS + 2] = "m", *yaml, *text = NULL;
    str_auto list = NULL;

    if (managed == NULL)
        return yaml_from_json(object);
    id_random_hex(mark + 1, MARK_DIGITS);
    copy = json_copy((json_t *)(uintptr_t)object);
    own = json_copy(meta);
    list = json_text(managed);
    if (list == NULL || copy == NULL || own == NULL ||
        json_object_set_new(own, "managedFields", json_string(mark)) != 0 ||
        json_object_set(copy, "metadata", own) != 0)
        return NULL;
    yaml = yaml_from_json(copy);
    if (yaml != NULL)
        text = with_list(yaml, mark, list);
    str_wipe(yaml);
    return text;
}

/* ---- documents ---- */

/* Whether the line begins with "---" or "..." as a mark, not as part of other text. */
static bool is_mark(const char *line, size_t n, const char *mark)
{
    return n >= 3 && memcmp(line, mark, 3) == 0 &&
           (n == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r' || line[3] == '\n');
}

/* The length of the first line of n bytes, with its end. */
static size_t line_size(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);

    return end != NULL ? (size_t)(end - text) + 1 : n;
}

/* The end of the document that begins at `from`: the next line with a mark. */
static size_t document_end(const char *text, size_t n, size_t from)
{
    size_t at = from;

    while (at < n && !is_mark(text + at, n - at, "---") && !is_mark(text + at, n - at, "..."))
        at += line_size(text + at, n - at);
    return at;
}

static bool has_only(const char *text, size_t n, const struct src_key *key, struct err *e)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    bool ok = api_decode_file("", text, n, &objects, &problems, e) == ERR_OK && problems.n == 0 &&
              objects.n == 1 && src_key_is(key, &objects.v[0]);

    api_objects_done(&objects);
    api_problems_done(&problems);
    return ok;
}

enum err_code src_rewrite(const char *text, size_t n, const struct src_key *key, const char *replacement,
                          struct buf *ret, struct err *e)
{
    size_t mark = 0, from = 0, end;

    for (;; mark = end, from = end + line_size(text + end, n - end)) {
        /* A document that begins on the line of its mark ("--- {kind: ...}") is not found. */
        end = document_end(text, n, from);
        if (has_only(text + from, end - from, key, e))
            break;
        if (e->code != ERR_OK)
            return e->code;
        if (end >= n)
            return err_set(e, ERR_PRECONDITION, "the object is not a separate document");
    }
    if (replacement != NULL) {
        buf_add(ret, text, from);
        buf_adds(ret, replacement);
    } else {
        buf_add(ret, text, mark); /* its mark is removed with it */
    }
    buf_add(ret, text + end, n - end);
    return ret->failed ? err_nomem(e) : ERR_OK;
}
