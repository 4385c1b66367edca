/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/declared/decl_internal.h"
#include "base/files/fs.h"

#include <stdlib.h>
#include <string.h>

/* ---- match ---- */

static const char *read_usb_number(struct decl_parser *p, const json_t *v)
{
    const char *text = json_string_value(v),
               *digits = text != NULL && str_starts(text, "0x") ? text + 2 : text;
    size_t n = digits != NULL ? strlen(digits) : 0;
    char *copy;

    if (n < 1 || n > 4 || digits[strspn(digits, "0123456789abcdefABCDEF")] != '\0') {
        api_fault(&p->c, "not a hexadecimal number of up to four digits in quotes, as in \"0403\"");
        return NULL;
    }
    copy = arena_printf(p->arena, "%04lx", strtoul(digits, NULL, 16));
    if (copy == NULL)
        p->c.no_memory = true;
    return copy;
}

static void read_subsystem(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_match *)to)->subsystem = decl_read_pattern(p, v);
}

static void read_vendor(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_match *)to)->vendor = read_usb_number(p, v);
}

static void read_product(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_match *)to)->product = read_usb_number(p, v);
}

static void read_serial(struct decl_parser *p, const json_t *v, void *to)
{
    if (json_is_string(v) && json_string_length(v) == 0) /* "" means any, as in the generic device plugin */
        return;
    ((struct decl_match *)to)->serial = decl_read_pattern(p, v);
}

static void read_port(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_match *)to)->port = decl_read_pattern(p, v);
}

static void read_attributes(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_match *m = to;
    const char *name;
    json_t *item;

    if (!json_is_object(v) || json_object_size(v) > DECL_ATTRIBUTES_MAX) {
        api_fault(&p->c, "not a mapping of up to %d attributes", DECL_ATTRIBUTES_MAX);
        return;
    }
    m->attributes = decl_alloc(p, (json_object_size(v) + 1) * sizeof(m->attributes[0]));
    json_object_foreach ((json_t *)v, name, item) {
        size_t mark = api_enter_key(&p->c, name);
        struct decl_attribute a = { arena_strdup(p->arena, name), decl_read_pattern(p, item) };

        if (!fs_path_is_safe(name))
            api_fault(&p->c, "%s is not the name of an attribute, as in \"idVendor\" or \"power/level\"",
                      QUOTE(name));
        if (a.name == NULL)
            p->c.no_memory = true;
        if (m->attributes != NULL && a.name != NULL && a.value != NULL)
            m->attributes[m->n_attributes++] = a;
        api_leave(&p->c, mark);
    }
}

/* ---- members of a group ---- */

static void read_path(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_member *m = to;

    m->path = decl_read_text(p, v, DECL_PATH_MAX);
    if (m->path != NULL && (!decl_is_path(m->path) || str_ends(m->path, "/") || !decl_is_pattern(m->path)))
        api_fault(&p->c,
                  "%s is not an absolute path, with *, ? and [...] but without \".\", \"..\" and \"//\"",
                  QUOTE(m->path));
}

static void read_mount_path(struct decl_parser *p, const json_t *v, void *to)
{
    struct decl_member *m = to;

    m->mount_path = decl_read_text(p, v, DECL_PATH_MAX);
    if (m->mount_path != NULL && (!decl_is_path(m->mount_path) || strchr(m->mount_path, ':') != NULL))
        api_fault(&p->c, "%s is not an absolute path without \".\", \"..\", \"//\" and \":\"",
                  QUOTE(m->mount_path));
}

/* "mrw" becomes "rwm". */
static void read_permissions(struct decl_parser *p, const json_t *v, void *to)
{
    const char *text = json_string_value(v);
    char letters[4], *at = letters;

    if (text == NULL || text[0] == '\0' || strspn(text, "rwm") != strlen(text)) {
        api_fault(&p->c, "not letters of rwm (read, write, make nodes)");
        return;
    }
    for (const char *letter = "rwm"; *letter != '\0'; letter++)
        if (strchr(text, *letter) != NULL)
            *at++ = *letter;
    *at = '\0';
    ((struct decl_member *)to)->permissions = arena_strdup(p->arena, letters);
    if (((struct decl_member *)to)->permissions == NULL)
        p->c.no_memory = true;
}

static void read_type(struct decl_parser *p, const json_t *v, void *to)
{
    const char *text = json_string_value(v);

    if (str_eq(text, "Mount"))
        ((struct decl_member *)to)->type = DECL_MOUNT;
    else if (!str_eq(text, "Device"))
        api_fault(&p->c, "neither Device nor Mount");
}

static void read_read_only(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_member *)to)->read_only = decl_read_bool(p, v);
}

static void read_limit(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_member *)to)->limit = decl_read_number(p, v);
}

static void read_optional(struct decl_parser *p, const json_t *v, void *to)
{
    ((struct decl_member *)to)->optional = decl_read_bool(p, v);
}

static void read_env(struct decl_parser *p, const json_t *v, void *to)
{
    const char *name = decl_read_text(p, v, DECL_PATH_MAX), *rule;

    ((struct decl_member *)to)->env = name;
    if (name != NULL && (rule = api_format_rule(API_FMT_ENV_NAME, name)) != NULL)
        api_fault(&p->c, "%s %s", QUOTE(name), rule);
}

static void read_match(struct decl_parser *p, const json_t *v, void *to)
{
    static const struct decl_field fields[] = { { "subsystem", read_subsystem },
                                                { "vendor", read_vendor },
                                                { "product", read_product },
                                                { "serial", read_serial },
                                                { "port", read_port },
                                                { "attributes", read_attributes },
                                                { NULL, NULL } };
    struct decl_member *m = to;

    m->has_match = true;
    decl_read_fields(p, fields, v, &m->match);
}

void decl_read_path(struct decl_parser *p, const json_t *v, void *to)
{
    static const struct decl_field fields[] = { { "path", read_path },
                                                { "mountPath", read_mount_path },
                                                { "permissions", read_permissions },
                                                { "type", read_type },
                                                { "readOnly", read_read_only },
                                                { "limit", read_limit },
                                                { "optional", read_optional },
                                                { "env", read_env },
                                                { "match", read_match },
                                                { NULL, NULL } };
    struct decl_member *m = to;
    size_t faults = p->c.faults;

    *m = (struct decl_member){ .type = DECL_DEVICE, .permissions = "rwm", .limit = 1 };
    decl_read_fields(p, fields, v, m);
    if (p->c.faults != faults)
        return;
    if (m->path == NULL)
        api_fault_at(&p->c, "path", "required");
    if (m->read_only && m->type != DECL_MOUNT)
        api_fault_at(&p->c, "readOnly", "only for type: Mount; a device has permissions: r");
    if (m->has_match && m->type == DECL_MOUNT)
        api_fault_at(&p->c, "match", "only for type: Device");
}

static void usb_serial(struct decl_parser *p, const json_t *v, void *to)
{
    read_serial(p, v, &((struct decl_member *)to)->match);
}

static void usb_vendor(struct decl_parser *p, const json_t *v, void *to)
{
    read_vendor(p, v, &((struct decl_member *)to)->match);
}

static void usb_product(struct decl_parser *p, const json_t *v, void *to)
{
    read_product(p, v, &((struct decl_member *)to)->match);
}

static void usb_port(struct decl_parser *p, const json_t *v, void *to)
{
    read_port(p, v, &((struct decl_member *)to)->match);
}

void decl_read_usb(struct decl_parser *p, const json_t *v, void *to)
{
    static const struct decl_field fields[] = {
        { "vendor", usb_vendor },         { "product", usb_product },
        { "serial", usb_serial },         { "port", usb_port },
        { "mountPath", read_mount_path }, { "permissions", read_permissions },
        { "optional", read_optional },    { "env", read_env },
        { "limit", read_limit },          { NULL, NULL }
    };
    struct decl_member *m = to;
    size_t faults = p->c.faults;

    *m = (struct decl_member){ .type = DECL_USB, .permissions = "rw", .limit = 1, .has_match = true };
    decl_read_fields(p, fields, v, m);
    if (p->c.faults == faults && (m->match.vendor == NULL || m->match.product == NULL))
        api_fault_at(&p->c, m->match.vendor == NULL ? "vendor" : "product", "required");
}
