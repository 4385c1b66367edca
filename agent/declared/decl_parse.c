/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/yaml/yaml.h"
#include "agent/declared/decl_internal.h"
#include "base/scope.h"
#include "deviceplugin/resource_name.h"

#include <string.h>

/* ---- groups and resources ---- */

static void read_count(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_group *)to)->count = decl_read_number(p, v);
}

static void read_paths(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_group *g = to;

    g->v = decl_read_list(p, v, DECL_MEMBERS_MAX, sizeof(*g->v), decl_read_path, &g->n);
}

static void read_usb(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_group *g = to;

    g->v = decl_read_list(p, v, DECL_MEMBERS_MAX, sizeof(*g->v), decl_read_usb, &g->n);
}

static void read_group(struct decl_parser *p, const json_t *v, void *to)
{
    static const struct decl_field fields[] = {
        { "count", read_count }, { "paths", read_paths }, { "usb", read_usb }, { NULL, NULL }
    };
    struct decl_group *g = to;
    size_t faults = p->c.faults;
    bool paths = json_is_array(json_object_get(v, "paths")), usb = json_is_array(json_object_get(v, "usb"));

    g->count = 1;
    decl_read_fields(p, fields, v, g);
    if (p->c.faults == faults && paths == usb)
        api_fault(&p->c,
                  paths ? "has both paths and usb, allowed is one of them" : "has neither paths nor usb");
}

static void read_name(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_resource *r = to;
    const char *text = decl_read_text(p, v, 400), *name = text;

    if (text == NULL)
        return;
    if (strchr(text, '/') == NULL && p->domain == NULL) {
        api_fault(&p->c, "%s has no domain; either a name like example.com/%.60s, or domain: at the top",
                  QUOTE(text), text);
        return;
    }
    if (strchr(text, '/') == NULL)
        name = arena_printf(p->arena, "%s/%s", p->domain, text);
    if (name == NULL)
        p->c.no_memory = true;
    else if (!dp_resource_name_ok(name))
        api_fault(
            &p->c,
            "%s is not the name of an extended resource, which is a domain outside kubernetes.io, a slash, "
            "and up to 63 characters: example.com/modem",
            QUOTE(name));
    r->name = name;
}

static void read_groups(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_resource *r = to;

    r->groups = decl_read_list(p, v, DECL_GROUPS_MAX, sizeof(*r->groups), read_group, &r->n_groups);
}

static void read_resource(struct decl_parser *p, const json_t *v, void *to)
{
    static const struct decl_field fields[] = { { "name", read_name },
                                                { "groups", read_groups },
                                                { NULL, NULL } };
    struct decl_resource *r = to;
    size_t faults = p->c.faults;

    r->document = p->c.document;
    decl_read_fields(p, fields, v, r);
    if (p->c.faults != faults || p->c.no_memory)
        return;
    if (r->name == NULL)
        api_fault_at(&p->c, "name", "required");
    if (r->n_groups == 0)
        api_fault_at(&p->c, "groups", "required");
}

/* ---- documents ---- */

static void read_domain(struct decl_parser *p, const json_t *v, void *to)
{
    (void)p, (void)v, (void)to; /* before the rest: find_domain() */
}

static void find_domain(struct decl_parser *p, const json_t *document)
{
    const json_t *v = json_object_get(document, "domain");
    size_t mark = api_enter(&p->c, "domain");
    const char *rule;

    p->domain = v != NULL && !json_is_null(v) ? decl_read_text(p, v, 253) : NULL;
    if (p->domain != NULL && (rule = api_format_rule(API_FMT_SUBDOMAIN, p->domain)) != NULL)
        api_fault(&p->c, "%s %s", QUOTE(p->domain), rule);
    api_leave(&p->c, mark);
}

struct part { /* of one document */
    struct decl_resource *v;
    size_t n;
};

static void read_devices(struct decl_parser *p, const json_t *v, void *to)
{
    struct part *part = to;

    part->v = decl_read_list(p, v, DECL_RESOURCES_MAX, sizeof(*part->v), read_resource, &part->n);
}

static void add_resources(struct decl_parser *p, struct decl_file *f, const struct part *part)
{
    struct decl_resource *all = decl_alloc(p, (f->n + part->n) * sizeof(*all) + 1);

    if (all == NULL)
        return;
    if (f->n + part->n > DECL_RESOURCES_MAX) {
        api_fault(&p->c, "the file has more than %d resources", DECL_RESOURCES_MAX);
        return;
    }
    if (f->n > 0)
        memcpy(all, f->v, f->n * sizeof(*all));
    if (part->n > 0)
        memcpy(all + f->n, part->v, part->n * sizeof(*all));
    for (size_t i = f->n; i < f->n + part->n; i++)
        for (size_t j = 0; j < i; j++)
            if (all[i].name != NULL && str_eq(all[i].name, all[j].name))
                api_fault(&p->c, "%s is declared twice", QUOTE(all[i].name));
    f->v = all;
    f->n += part->n;
}

static void read_document(struct decl_parser *p, const json_t *document, struct decl_file *f)
{
    static const struct decl_field fields[] = { { "domain", read_domain },
                                                { "devices", read_devices },
                                                { NULL, NULL } };
    struct part part = { 0 };
    size_t faults = p->c.faults;

    find_domain(p, document);
    decl_read_fields(p, fields, document, &part);
    if (p->c.faults == faults && part.n == 0)
        api_fault_at(&p->c, "devices", "required");
    add_resources(p, f, &part);
}

enum err_code decl_parse(const char *file, const char *text, size_t size, struct decl_file *ret,
                         struct api_problems *problems, struct err *e)
{
    struct decl_file f = { 0 };
    struct api_places places = { 0 };
    struct decl_parser p = { .c = { .problems = problems, .file = file, .document = 1, .places = &places },
                             .arena = &f.arena };
    struct err syntax = { 0 };
    json_auto_t *documents = NULL;
    mem_auto int *numbers = NULL;

    if (size > DECL_FILE_MAX) {
        api_problems_add(problems, file, "has %zu bytes, allowed are %d", size, DECL_FILE_MAX);
        *ret = f;
        return ERR_OK;
    }
    if (yaml_to_json(text, size, &documents, &numbers, &places, &syntax) != ERR_OK) {
        if (syntax.code == ERR_INVALID)
            yaml_add_problem(problems, file, &syntax);
        else
            p.c.no_memory = true;
    }
    for (size_t i = 0; i < json_array_size(documents) && !p.c.no_memory; i++) {
        p.c.document = numbers[i];
        read_document(&p, json_array_get(documents, i), &f);
    }
    api_problems_sort(problems);
    api_places_done(&places);
    api_check_done(&p.c);
    if (p.c.no_memory || syntax.code != ERR_OK || p.c.faults > 0)
        decl_done(&f);
    *ret = f;
    return p.c.no_memory ? err_nomem(e) : ERR_OK;
}

void decl_done(struct decl_file *f)
{
    arena_done(&f->arena);
    *f = (struct decl_file){ 0 };
}
