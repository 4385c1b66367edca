/* SPDX-License-Identifier: Apache-2.0 */
/* The Accept header, as apimachinery's goautoneg and kube-apiserver's negotiation read it. */
#include "agent/api/serve/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char available[] = "application/json, application/yaml";

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct str trimmed(const char *p, size_t n)
{
    while (n > 0 && is_blank(*p)) {
        p++;
        n--;
    }
    while (n > 0 && is_blank(p[n - 1]))
        n--;
    return (struct str){ p, n };
}

static bool str_is(struct str s, const char *text)
{
    return strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

/* The part of *rest up to `end`, which is skipped. */
static struct str next_part(struct str *rest, char end)
{
    const char *at = memchr(rest->p, end, rest->n);
    const struct str part = { rest->p, at == NULL ? rest->n : (size_t)(at - rest->p) };

    rest->p += part.n + (at != NULL);
    rest->n -= part.n + (at != NULL);
    return part;
}

static double quality(struct str text)
{
    char number[16];
    char *end;
    double q;

    if (text.n == 0 || text.n >= sizeof(number))
        return 1;
    memcpy(number, text.p, text.n);
    number[text.n] = '\0';
    q = strtod(number, &end);
    return *end == '\0' && q >= 0 && q <= 1 ? q : 1;
}

static void parse_parameter(struct api_clause *c, struct str text)
{
    const struct str name_part = next_part(&text, '=');
    const struct str name = trimmed(name_part.p, name_part.n), value = trimmed(text.p, text.n);

    if (value.n == 0)
        return;
    if (str_is(name, "q"))
        c->q = quality(value);
    else if (str_is(name, "as"))
        c->as = value;
    else if (str_is(name, "g"))
        c->group = value;
    else if (str_is(name, "v"))
        c->version = value;
    else if (str_is(name, "stream"))
        c->stream = value;
    else if (str_is(name, "pretty"))
        c->pretty = str_is(value, "1");
}

/* False: it has no type and is ignored. */
static bool parse_clause(struct str text, struct api_clause *ret)
{
    struct str type = next_part(&text, ';');
    const struct str first = next_part(&type, '/');

    *ret =
        (struct api_clause){ .q = 1, .type = trimmed(first.p, first.n), .subtype = trimmed(type.p, type.n) };
    if (type.n == 0 && str_is(ret->type, "*"))
        ret->subtype = ret->type;
    if (ret->subtype.n == 0 || memchr(ret->subtype.p, '/', ret->subtype.n) != NULL)
        return false;
    while (text.n > 0)
        parse_parameter(ret, next_part(&text, ';'));
    return true;
}

static int specific(const struct api_clause *c)
{
    return str_is(c->type, "*") ? 0 : str_is(c->subtype, "*") ? 1 : 2;
}

/* Whether a comes before b: the greater q first, then the more specific type; otherwise the order does not
 * change. */
static bool before(const struct api_clause *a, const struct api_clause *b)
{
    return a->q > b->q || (a->q >= b->q && specific(a) > specific(b));
}

size_t api_accept_parse(const char *header, struct api_clause ret[API_CLAUSES_MAX])
{
    struct str rest = { header, strlen(header) };
    size_t n = 0;

    while (rest.n > 0 && n < API_CLAUSES_MAX) {
        struct api_clause c;
        size_t at = n;
        if (!parse_clause(next_part(&rest, ','), &c))
            continue;
        for (; at > 0 && before(&c, &ret[at - 1]); at--)
            ret[at] = ret[at - 1];
        ret[at] = c;
        n++;
    }
    return n;
}

bool api_clause_is(const struct api_clause *c, const char *type, const char *subtype)
{
    return (str_is(c->type, "*") && str_is(c->subtype, "*")) ||
           (str_is(c->type, type) && (str_is(c->subtype, "*") || str_is(c->subtype, subtype)));
}

bool api_clause_wants(const struct api_clause *c, const char *group, const char *version, const char *as)
{
    return str_is(c->group, group) && str_is(c->version, version) && str_is(c->as, as);
}

/* The form named by as, g and v. False: there is none of that name. */
static bool clause_form(const struct api_clause *c, struct api_accept *ret)
{
    static const struct {
        const char *as;
        enum api_form form;
    } forms[] = { { "Table", API_FORM_TABLE },
                  { "PartialObjectMetadata", API_FORM_METADATA },
                  { "PartialObjectMetadataList", API_FORM_METADATA_LIST } };

    if (c->as.n == 0 && c->group.n == 0 && c->version.n == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        ret->beta = api_clause_wants(c, "meta.k8s.io", "v1beta1", forms[i].as);
        if (ret->beta || api_clause_wants(c, "meta.k8s.io", "v1", forms[i].as)) {
            ret->form = forms[i].form;
            return true;
        }
    }
    return false;
}

/* Routes are chosen before the parameters are read, and only by these names. */
static bool names_a_type(const char *header)
{
    struct str rest = { header, strlen(header) };

    while (rest.n > 0) {
        struct str clause = next_part(&rest, ',');
        const struct str part = next_part(&clause, ';'), type = trimmed(part.p, part.n);
        if (str_is(type, "*/*") || str_is(type, "application/json") || str_is(type, "application/yaml"))
            return true;
    }
    return false;
}

static bool negotiate(const char *header, struct api_accept *ret)
{
    struct api_clause clauses[API_CLAUSES_MAX];
    const size_t n = api_accept_parse(header, clauses);

    for (size_t i = 0; i < n; i++) {
        const struct api_clause *c = &clauses[i];
        struct api_accept a = { .pretty = c->pretty };
        const bool json = api_clause_is(c, "application", "json");
        if (!json && !api_clause_is(c, "application", "yaml"))
            continue;
        a.yaml = !json;
        if (c->stream.n > 0 && (a.yaml || !str_is(c->stream, "watch")))
            continue;
        if (clause_form(c, &a)) {
            *ret = a;
            return true;
        }
    }
    return false;
}

json_t *api_not_acceptable(void)
{
    json_t *status = api_status(406, "NotAcceptable", NULL,
                                "406: Not Acceptable\n\nAvailable representations: %s", available);

    api_put(&status, "details", json_object());
    return status;
}

bool api_accept_read(const char *header, struct api_accept *ret, json_t **ret_status)
{
    *ret_status = NULL;
    if (header == NULL || header[0] == '\0') {
        *ret = (struct api_accept){ 0 };
        return true;
    }
    if (!names_a_type(header)) {
        *ret_status = api_not_acceptable();
        return false;
    }
    if (negotiate(header, ret))
        return true;
    *ret_status =
        api_status(406, "NotAcceptable", NULL, "only the following media types are accepted: %s", available);
    return false;
}
