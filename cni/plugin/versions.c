/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/versions.h"

#include "cni/plugin/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Entries of supportedVersions that are read; there are seven versions. */
#define ANSWER_MAX 64

void cni_versions_init(struct cni_versions *v)
{
    TAILQ_INIT(&v->list);
    v->n = 0;
}

static void versions_forget(struct cni_versions *v, struct cni_speaker *s)
{
    TAILQ_REMOVE(&v->list, s, link);
    v->n--;
    free(s->path);
    free(s);
}

void cni_versions_done(struct cni_versions *v)
{
    struct cni_speaker *s, *tmp;

    TAILQ_FOREACH_SAFE (s, &v->list, link, tmp)
        versions_forget(v, s);
}

static int64_t versions_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static bool versions_is_same(const struct cni_speaker *s, const struct stat *st)
{
    return s->dev == st->st_dev && s->ino == st->st_ino && s->size == (uint64_t)st->st_size &&
           s->changed_ns == versions_ns(&st->st_ctim) && s->modified_ns == versions_ns(&st->st_mtim);
}

struct cni_speaker *cni_versions_of(struct cni_versions *v, const char *path)
{
    struct cni_speaker *s, *tmp;
    struct stat st;

    if (stat(path, &st) != 0)
        return NULL;
    TAILQ_FOREACH_SAFE (s, &v->list, link, tmp) {
        if (strcmp(s->path, path) != 0)
            continue;
        if (versions_is_same(s, &st) || s->asking) /* replaced during the query: the next load detects that */
            return s;
        versions_forget(v, s);
    }
    if (v->n >= CNI_SPEAKERS_MAX)
        return NULL;
    s = calloc(1, sizeof(*s));
    if (s == NULL || (s->path = strdup(path)) == NULL) {
        free(s);
        return NULL;
    }
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    s->size = (uint64_t)st.st_size;
    s->changed_ns = versions_ns(&st.st_ctim);
    s->modified_ns = versions_ns(&st.st_mtim);
    TAILQ_INSERT_TAIL(&v->list, s, link);
    v->n++;
    return s;
}

void cni_versions_try_again(struct cni_versions *v)
{
    struct cni_speaker *s;

    TAILQ_FOREACH (s, &v->list, link)
        s->again = s->state == SPEAKER_SILENT || s->state == SPEAKER_BROKEN;
}

bool cni_speaker_may_speak(const struct cni_speaker *s, int version)
{
    if (s == NULL || s->state == SPEAKER_UNASKED || s->state == SPEAKER_SILENT)
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->versions[i] == version)
            return true;
    return false;
}

void cni_speaker_text(const struct cni_speaker *s, char *ret, size_t size)
{
    size_t k = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < s->n && k < size; i++)
        k += (size_t)snprintf(ret + k, size - k, "%s%s", i > 0 ? ", " : "", cni_version_text(s->versions[i]));
    if (s->n == 0)
        snprintf(ret, size, "none that is known here");
}

enum err_code cni_versions_parse(const json_t *answer, int ret[CNI_VERSIONS_MAX], size_t *ret_n,
                                 struct err *e)
{
    const json_t *list = json_object_get(answer, "supportedVersions"), *v;
    size_t i, n = 0;

    if (!json_is_array(list))
        return err_set(e, ERR_INVALID, "supportedVersions: not a list");
    json_array_foreach (list, i, v) {
        const char *text = json_string_value(v);
        int number = text != NULL && text[0] != '\0' ? cni_version_number(text) : -1;
        bool known = number < 0;

        if (text == NULL || i == ANSWER_MAX)
            return err_set(e, ERR_INVALID,
                           text == NULL ? "supportedVersions[%zu]: not a string"
                                        : "supportedVersions: more than %zu entries",
                           i);
        for (size_t k = 0; k < n; k++)
            known = known || ret[k] == number;
        if (!known && n < CNI_VERSIONS_MAX)
            ret[n++] = number;
    }
    *ret_n = n;
    return ERR_OK;
}
