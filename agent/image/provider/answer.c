/* SPDX-License-Identifier: Apache-2.0 */
/* answer - reads a CredentialProviderResponse (k8s.io/kubelet/pkg/apis/credentialprovider). */
#include "agent/image/provider/internal.h"

#include "agent/api/yaml/yaml.h"
#include "base/codec/json.h"
#include "base/duration.h"
#include "base/scope.h"

#include <string.h>

void provider_answer_done(struct provider_answer *a)
{
    provider_wipe(a->auths);
    *a = (struct provider_answer){ 0 };
}

static enum err_code answer_head(const json_t *doc, const char *version, struct err *e)
{
    const char *kind = json_str(doc, "kind"), *has = json_str(doc, "apiVersion");

    if (kind == NULL || strcmp(kind, "CredentialProviderResponse") != 0)
        return err_set(e, ERR_INVALID,
                       "its answer has the kind \"%.100s\", where a "
                       "CredentialProviderResponse is needed",
                       kind != NULL ? kind : "");
    if (has == NULL || strcmp(has, version) != 0)
        return err_set(e, ERR_INVALID, "its answer has the apiVersion \"%.100s\", where %s is configured",
                       has != NULL ? has : "", version);
    return ERR_OK;
}

static enum err_code answer_cache(struct provider_answer *a, const json_t *doc, struct err *e)
{
    static const char *const scopes[] = { "Image", "Registry", "Global" };
    const char *key = json_str(doc, "cacheKeyType"), *duration;
    const json_t *given = json_object_get(doc, "cacheDuration");
    size_t i = 0;

    while (i < ARRAY_LEN(scopes) && (key == NULL || strcmp(key, scopes[i]) != 0))
        i++;
    if (i == ARRAY_LEN(scopes))
        return err_set(e, ERR_INVALID,
                       "cacheKeyType of its answer is \"%.100s\", where Image, Registry or Global is needed",
                       key != NULL ? key : "");
    a->scope = (enum provider_scope)i;
    if (given == NULL || json_is_null(given))
        return ERR_OK;
    duration = json_string_value(given);
    if (duration == NULL || !duration_parse(duration, &a->duration_ns))
        return err_set(e, ERR_INVALID,
                       "cacheDuration of its answer is not a duration as \"5m\", but \"%.100s\"",
                       duration != NULL ? duration : "");
    a->has_duration = true;
    return ERR_OK;
}

static enum err_code answer_entry(json_t *auths, const char *glob, const json_t *value, struct err *e)
{
    const json_t *user = json_object_get(value, "username"), *password = json_object_get(value, "password");
    json_t *entry;

    if (!json_is_object(value) || (user != NULL && !json_is_string(user)) ||
        (password != NULL && !json_is_string(password)))
        return err_set(e, ERR_INVALID,
                       "auth of its answer needs texts as username and password of \"%.100s\"", glob);
    entry = json_object();
    if (entry == NULL ||
        (user != NULL && json_object_set_new(entry, "username", json_copy((json_t *)user)) != 0) ||
        (password != NULL && json_object_set_new(entry, "password", json_copy((json_t *)password)) != 0) ||
        json_object_set(auths, glob, entry) != 0)
        err_nomem(e);
    json_decref(entry);
    return e->code;
}

static enum err_code answer_auths(json_t *auths, json_t *given, struct err *e)
{
    const char *glob;
    json_t *value;

    if (given != NULL && !json_is_null(given) && !json_is_object(given))
        return err_set(e, ERR_INVALID, "auth of its answer is not a map");
    if (json_object_size(given) > PROVIDER_AUTHS_MAX)
        return err_set(e, ERR_INVALID, "auth of its answer has more than %d entries", PROVIDER_AUTHS_MAX);
    json_object_foreach (given, glob, value)
        if (answer_entry(auths, glob, value, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

enum err_code provider_answer_read(struct provider_answer *ret, const char *text, size_t n,
                                   const char *version, struct err *e)
{
    struct provider_answer a = { .auths = json_object() };
    json_t *doc = NULL;
    struct err bad = { 0 };

    if (a.auths == NULL)
        err_nomem(e);
    else if (n > PROVIDER_ANSWER_MAX)
        err_set(e, ERR_INVALID, "its answer has more than %u KiB", PROVIDER_ANSWER_MAX >> 10);
    else if (yaml_first_to_json(text, n, &doc, &bad) != ERR_OK)
        err_set(e, bad.code, "its answer is neither JSON nor YAML: %.200s", bad.text);
    else if (!json_is_object(doc))
        err_set(e, ERR_INVALID, "its answer is not a CredentialProviderResponse");
    else if (answer_head(doc, version, e) == ERR_OK && answer_cache(&a, doc, e) == ERR_OK)
        ERR_IGNORE(answer_auths(a.auths, json_object_get(doc, "auth"), e));
    provider_wipe(doc);
    if (e->code != ERR_OK) {
        provider_answer_done(&a);
        return e->code;
    }
    *ret = a;
    return ERR_OK;
}
