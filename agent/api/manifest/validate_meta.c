/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations, and rules for annotations with a meaning for a pod. */
#include "agent/api/annotations.h"
#include "agent/api/manifest/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANNOTATIONS_MAX (256 * 1024) /* keys and values together, as in apimachinery */

void api_validate_kvs(struct api_check *c, const char *field, const struct api_kvs *m,
                      enum api_format value_format)
{
    size_t outer = api_enter(c, field);

    for (size_t i = 0; i < m->n; i++) {
        const struct api_kv *kv = &m->v[i];
        size_t mark = api_enter_key(c, kv->key);
        const char *rule = api_format_rule(API_FMT_LABEL_KEY, kv->key);
        if (rule != NULL)
            api_fault(c, "the key %s %s", QUOTE(kv->key), rule);
        rule = api_format_rule(value_format, kv->value);
        if (rule != NULL)
            api_fault(c, "the value %s %s", QUOTE(kv->value), rule);
        api_leave(c, mark);
    }
    api_leave(c, outer);
}

/* Known, and acted on by podman alone: a manifest that was written for it runs without. */
static bool is_podmans(const char *key)
{
    static const char *const beginnings[] = { "volume.podman.io/", "io.podman.annotations." };

    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (str_starts(key, beginnings[i]))
            return true;
    return false;
}

static void check_annotations(struct api_check *c, const struct api_kvs *m)
{
    size_t outer = api_enter(c, "annotations"), total = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct api_kv *kv = &m->v[i];
        char lowered[400];
        const char *rule;
        size_t n = 0, mark = api_enter_key(c, kv->key);
        for (; n < sizeof(lowered) - 1 && kv->key[n] != '\0'; n++)
            lowered[n] = (char)tolower((unsigned char)kv->key[n]);
        lowered[n] = '\0';
        rule = api_format_rule(API_FMT_LABEL_KEY, lowered);
        if (rule != NULL)
            api_fault(c, "the key %s %s", QUOTE(kv->key), rule);
        if (is_podmans(kv->key) && !c->served)
            api_ignore(c, "an option of podman");
        total += strlen(kv->key) + strlen(kv->value);
        api_leave(c, mark);
    }
    if (total > ANNOTATIONS_MAX)
        api_fault(c, "%zu bytes are too many, at most %d are allowed", total, ANNOTATIONS_MAX);
    api_leave(c, outer);
}

void api_validate_meta(struct api_check *c, const struct api_meta *meta)
{
    size_t mark = api_enter(c, "metadata");

    api_validate_kvs(c, "labels", &meta->labels, API_FMT_LABEL_VALUE);
    check_annotations(c, &meta->annotations);
    api_leave(c, mark);
}

/* ---- annotations with a meaning ---- */
static const struct api_container *find_container(const struct api_pod_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_containers; i++) {
        if (str_eq(spec->containers[i].name, name))
            return &spec->containers[i];
    }
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        if (str_eq(spec->init_containers[i].name, name))
            return &spec->init_containers[i];
    }
    return api_ephemeral_find(spec, name);
}

static void check_seccomp_text(struct api_check *c, const char *value)
{
    static const char local[] = "localhost/";
    const char *rule;

    if (strcmp(value, "runtime/default") == 0 || strcmp(value, "docker/default") == 0 ||
        strcmp(value, "unconfined") == 0)
        return;
    if (strncmp(value, local, sizeof(local) - 1) != 0) {
        api_fault(c,
                  "%s is not a seccomp profile, allowed are unconfined, runtime/default and localhost/<path>",
                  QUOTE(value));
        return;
    }
    rule = api_format_rule(API_FMT_DESCENDING, value + sizeof(local) - 1);
    if (rule != NULL)
        api_fault(c, "the profile of %s %s", QUOTE(value), rule);
}

static bool seccomp_agrees(const struct api_seccomp *field, const char *value)
{
    static const char local[] = "localhost/";

    switch (field->type) {
    case API_SECCOMP_UNSET:
        return true;
    case API_SECCOMP_UNCONFINED:
        return strcmp(value, "unconfined") == 0;
    case API_SECCOMP_RUNTIME_DEFAULT:
        return strcmp(value, "runtime/default") == 0 || strcmp(value, "docker/default") == 0;
    case API_SECCOMP_LOCALHOST:
        return strncmp(value, local, sizeof(local) - 1) == 0 &&
               str_eq(field->localhost_profile, value + sizeof(local) - 1);
    }
    return false;
}

static void validate_meta_check_seccomp(struct api_check *c, const struct api_pod_spec *spec,
                                        const struct api_kv *kv)
{
    static const char pod_key[] = "seccomp.security.alpha.kubernetes.io/pod";
    static const char prefix[] = "container.seccomp.security.alpha.kubernetes.io/";
    const struct api_seccomp *field = NULL;

    if (strcmp(kv->key, pod_key) == 0) {
        field = &spec->security.seccomp;
    } else if (str_starts(kv->key, prefix)) {
        const struct api_container *container = find_container(spec, kv->key + sizeof(prefix) - 1);
        field = container != NULL ? &container->security.seccomp : NULL;
    } else {
        return;
    }
    check_seccomp_text(c, kv->value);
    if (field != NULL && !seccomp_agrees(field, kv->value))
        api_fault(c, "differs from the field seccompProfile");
    else if (field == NULL || field->type == API_SECCOMP_UNSET)
        api_ignore(c, "without effect since Kubernetes 1.27; set the field seccompProfile");
}

static void validate_meta_check_apparmor(struct api_check *c, const struct api_pod_spec *spec,
                                         const struct api_kv *kv)
{
    static const char local[] = "localhost/";
    const char *name = kv->key + sizeof(API_APPARMOR_OF) - 1;

    if (!str_starts(kv->key, API_APPARMOR_OF))
        return;
    if (find_container(spec, name) == NULL)
        api_fault(c, "there is no container %s", QUOTE(name));
    if (str_starts(kv->value, local) && kv->value[sizeof(local) - 1] != '\0')
        api_validate_apparmor_name(c, kv->value + sizeof(local) - 1);
    else if (kv->value[0] != '\0' && strcmp(kv->value, "runtime/default") != 0 &&
             strcmp(kv->value, "unconfined") != 0)
        api_fault(
            c, "%s is not an AppArmor profile, allowed are unconfined, runtime/default and localhost/<name>",
            QUOTE(kv->value));
}

static void check_deletion_cost(struct api_check *c, const struct api_kv *kv)
{
    char *end;
    long long cost;

    if (strcmp(kv->key, "controller.kubernetes.io/pod-deletion-cost") != 0)
        return;
    errno = 0;
    cost = strtoll(kv->value, &end, 10);
    if (errno != 0 || end == kv->value || *end != '\0' || kv->value[0] == '+' || cost < INT32_MIN ||
        cost > INT32_MAX)
        api_fault(c, "%s must be a whole number of 32 bits", QUOTE(kv->value));
}

/* Only `validate` refuses an unknown key: a later version may know it, and its pods run on after a downgrade.
 */
static void check_own(struct api_check *c, const struct api_kv *kv)
{
    const struct api_annotation *a = api_annotation_find(kv->key);
    const char *meant = a == NULL ? api_annotation_near(kv->key) : NULL;
    char text[100] = "unknown annotation";

    if (a != NULL && !a->valid(kv->value))
        api_fault(c, "%s is not allowed, allowed %s %s", QUOTE(kv->value),
                  strchr(a->allowed, ' ') != NULL ? "are" : "is", a->allowed);
    if (a != NULL || !str_starts(kv->key, API_OWN_DOMAIN))
        return;
    if (meant != NULL)
        snprintf(text, sizeof(text), "unknown annotation, did you mean %s?", meant);
    if (c->lint != NULL)
        api_fault(c, "%s", text);
    else
        api_ignore(c, text);
}

void api_validate_annotations(struct api_check *c, const struct api_pod *pod)
{
    const struct api_kvs *m = &pod->meta.annotations;
    size_t outer = api_enter(c, "metadata");

    api_enter(c, "annotations");
    for (size_t i = 0; i < m->n; i++) {
        size_t mark = api_enter_key(c, m->v[i].key);
        validate_meta_check_seccomp(c, &pod->spec, &m->v[i]);
        validate_meta_check_apparmor(c, &pod->spec, &m->v[i]);
        check_deletion_cost(c, &m->v[i]);
        check_own(c, &m->v[i]);
        if (strcmp(m->v[i].key, "kubernetes.io/config.mirror") == 0 && pod->spec.node_name == NULL)
            api_fault(c, "a mirror pod needs spec.nodeName");
        api_leave(c, mark);
    }
    api_leave(c, outer);
}
