/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the text of a spec file to checked structs. Unknown members are refused, as the specification
 * requires. */
#include "agent/cdi/internal.h"

#include "agent/api/yaml/yaml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ANNOTATIONS_MAX (256 * 1024) /* bytes of all keys and values, the limit of a Kubernetes object */

const char *const cdi_version_names[CDI_VERSIONS] = {
    "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0",
};

/* ---- values ---- */

void cdi_needs(struct cdi_reader *r, enum cdi_version v)
{
    if (v > r->version)
        api_fault(&r->check, "needs cdiVersion %s or later, this file says %s", cdi_version_names[v],
                  cdi_version_names[r->version]);
}

const char *cdi_text(struct cdi_reader *r, const json_t *v)
{
    const char *text = NULL;

    if (json_is_string(v))
        text = api_strdup(&r->check, json_string_value(v));
    else if (!json_is_null(v))
        api_fault(&r->check, "must be a string");
    return text != NULL ? text : "";
}

int64_t cdi_number(struct cdi_reader *r, const json_t *v, int64_t min, int64_t max)
{
    if (json_is_null(v))
        return 0;
    if (!json_is_integer(v)) {
        api_fault(&r->check, "must be a whole number");
        return 0;
    }
    if (json_integer_value(v) < min || json_integer_value(v) > max) {
        api_fault(&r->check, "%lld is out of range, allowed are %lld to %lld",
                  (long long)json_integer_value(v), (long long)min, (long long)max);
        return 0;
    }
    return json_integer_value(v);
}

void *cdi_list(struct cdi_reader *r, const json_t *v, size_t max, size_t size, size_t *ret_n,
               void (*read)(struct cdi_reader *r, const json_t *v, void *to))
{
    size_t n = json_array_size(v);
    char *list;

    *ret_n = 0;
    if (!json_is_array(v) && !json_is_null(v)) {
        api_fault(&r->check, "must be a list");
        return NULL;
    }
    if (n > max) {
        api_fault(&r->check, "has %zu elements, allowed are %zu", n, max);
        return NULL;
    }
    if (n == 0 || (list = api_alloc(&r->check, n * size)) == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t mark = api_enter_index(&r->check, i);

        read(r, json_array_get(v, i), list + i * size);
        api_leave(&r->check, mark);
    }
    *ret_n = n;
    return list;
}

static void read_text(struct cdi_reader *r, const json_t *v, void *to)
{
    *(const char **)to = cdi_text(r, v);
}

const char *const *cdi_texts(struct cdi_reader *r, const json_t *v, size_t *ret_n)
{
    return cdi_list(r, v, API_LIST_MAX, sizeof(char *), ret_n, read_text);
}

static size_t member_of(const char *key, const struct cdi_member *members, size_t n)
{
    size_t i = 0;

    while (i < n && strcasecmp(key, members[i].name) != 0)
        i++;
    return i;
}

void cdi_read_members(struct cdi_reader *r, const json_t *v, const struct cdi_member *members, size_t n,
                      void *to)
{
    uint64_t seen = 0;
    const char *key;
    json_t *value;

    if (json_is_null(v))
        return;
    if (!json_is_object(v)) {
        api_fault(&r->check, "must be an object");
        return;
    }
    json_object_foreach ((json_t *)v, key, value) {
        size_t i = member_of(key, members, n), mark = api_enter(&r->check, key);

        if (i == n)
            api_fault(&r->check, "is not a field of the CDI specification");
        else if ((seen & UINT64_C(1) << i) != 0)
            api_fault(&r->check, "appears twice");
        else
            members[i].read(r, value, to);
        if (i < n)
            seen |= UINT64_C(1) << i;
        api_leave(&r->check, mark);
    }
}

/* ---- annotations: checked, but not used ---- */

static void lower(const char *key, char ret[400])
{
    size_t i;

    for (i = 0; i < 399 && key[i] != '\0'; i++)
        ret[i] = key[i] >= 'A' && key[i] <= 'Z' ? (char)(key[i] + 'a' - 'A') : key[i];
    ret[i] = '\0';
}

static void read_annotations(struct cdi_reader *r, const json_t *v, void *to)
{
    size_t total = 0;
    const char *key;
    json_t *value;

    (void)to;
    if (!json_is_object(v) && !json_is_null(v)) {
        api_fault(&r->check, "must be an object");
        return;
    }
    if (json_object_size(v) > 0)
        cdi_needs(r, CDI_060);
    json_object_foreach ((json_t *)v, key, value) {
        size_t mark = api_enter_key(&r->check, key);
        char name[400];

        lower(key, name);
        if (api_format_rule(API_FMT_LABEL_KEY, name) != NULL)
            api_fault(&r->check, "key %s", api_format_rule(API_FMT_LABEL_KEY, name));
        if (!json_is_string(value))
            api_fault(&r->check, "must be a string");
        total += strlen(key) + json_string_length(value);
        api_leave(&r->check, mark);
    }
    if (total > ANNOTATIONS_MAX)
        api_fault(&r->check, "have %zu bytes, allowed are %d", total, ANNOTATIONS_MAX);
}

/* ---- devices ---- */

struct raw_device {
    const char *name;
    struct rt_edits edits;
};

static void read_device_name(struct cdi_reader *r, const json_t *v, void *to)
{
    struct raw_device *d = to;
    const char *problem;

    d->name = cdi_text(r, v);
    problem = cdi_device_problem(d->name, strlen(d->name));
    if (problem != NULL && json_is_string(v))
        api_fault(&r->check, "%s %s", QUOTE(d->name), problem);
    else if (d->name[0] >= '0' && d->name[0] <= '9')
        cdi_needs(r, CDI_050); /* names that begin with a digit */
}

static void read_device_edits(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_edits(r, v, &((struct raw_device *)to)->edits);
}

static const struct cdi_member device_members[] = {
    { "name", read_device_name },
    { "annotations", read_annotations },
    { "containerEdits", read_device_edits },
};

static void read_device(struct cdi_reader *r, const json_t *v, void *to)
{
    struct raw_device *d = to;
    size_t faults = r->check.faults;

    cdi_read_members(r, v, device_members, ARRAY_LEN(device_members), d);
    if (r->check.faults != faults)
        return;
    if (d->name == NULL)
        api_fault(&r->check, "must have a name");
    else if (cdi_edits_are_empty(&d->edits))
        api_fault_at(&r->check, "containerEdits", "of a device must not be empty");
}

/* ---- the file ---- */

struct raw_spec {
    const char *version, *kind;
    struct rt_edits edits;
    struct raw_device *devices;
    size_t n_devices;
};

static void read_version(struct cdi_reader *r, const json_t *v, void *to)
{
    ((struct raw_spec *)to)->version = cdi_text(r, v); /* checked before, by choose_version() */
}

static void read_kind(struct cdi_reader *r, const json_t *v, void *to)
{
    struct raw_spec *s = to;
    const char *slash, *problem;

    s->kind = cdi_text(r, v);
    if (!json_is_string(v))
        return;
    slash = strchr(s->kind, '/');
    if (slash == NULL) {
        api_fault(&r->check, "%s must be vendor/class", QUOTE(s->kind));
        return;
    }
    problem = cdi_vendor_problem(s->kind, (size_t)(slash - s->kind));
    if (problem != NULL)
        api_fault(&r->check, "%s: the vendor %s", QUOTE(s->kind), problem);
    problem = cdi_vendor_problem(slash + 1, strlen(slash + 1));
    if (problem != NULL)
        api_fault(&r->check, "%s: the class %s", QUOTE(s->kind), problem);
    else if (strchr(slash + 1, '.') != NULL)
        cdi_needs(r, CDI_060); /* dots in the class */
}

static void read_devices(struct cdi_reader *r, const json_t *v, void *to)
{
    struct raw_spec *s = to;

    s->devices = cdi_list(r, v, CDI_DEVICES_MAX, sizeof(*s->devices), &s->n_devices, read_device);
}

static void read_spec_edits(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_edits(r, v, &((struct raw_spec *)to)->edits);
}

static const struct cdi_member spec_members[] = {
    { "cdiVersion", read_version },        { "kind", read_kind },       { "annotations", read_annotations },
    { "containerEdits", read_spec_edits }, { "devices", read_devices },
};

/* The version is read first, because other checks depend on it. */
static bool choose_version(struct cdi_reader *r, const json_t *root)
{
    const char *key, *text = NULL;
    json_t *value;

    json_object_foreach ((json_t *)root, key, value)
        if (strcasecmp(key, "cdiVersion") == 0)
            text = json_string_value(value);
    if (text == NULL) {
        api_fault_at(&r->check, "cdiVersion", "is required, as a string");
        return false;
    }
    for (r->version = 0; r->version < CDI_VERSIONS; r->version++)
        if (strcmp(text + (text[0] == 'v'), cdi_version_names[r->version]) == 0)
            return true;
    api_fault_at(&r->check, "cdiVersion",
                 "%s is not known, allowed are 0.3.0, 0.4.0, 0.5.0, 0.6.0, 0.7.0, 0.8.0, 1.0.0 and 1.1.0",
                 QUOTE(text));
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cdi_device *)a)->name, ((const struct cdi_device *)b)->name);
}

static void take_devices(struct cdi_reader *r, const struct raw_spec *raw, struct cdi_spec *ret)
{
    ret->devices = api_alloc(&r->check, (raw->n_devices + 1) * sizeof(*ret->devices));
    for (size_t i = 0; ret->devices != NULL && i < raw->n_devices; i++) {
        char *name = arena_printf(r->check.arena, "%s=%s", raw->kind, raw->devices[i].name);

        if (name == NULL) {
            r->check.no_memory = true;
            return;
        }
        ret->devices[i] = (struct cdi_device){ name, raw->devices[i].edits };
    }
    if (ret->devices == NULL)
        return;
    ret->n_devices = raw->n_devices;
    qsort(ret->devices, ret->n_devices, sizeof(*ret->devices), by_name);
    for (size_t i = 1; i < ret->n_devices; i++)
        if (by_name(&ret->devices[i - 1], &ret->devices[i]) == 0) {
            api_fault_at(&r->check, "devices", "there are two with the name %s",
                         QUOTE(strchr(ret->devices[i].name, '=') + 1));
            return;
        }
}

static void read_root(struct cdi_reader *r, const json_t *root, struct cdi_spec *ret)
{
    struct raw_spec raw = { 0 };

    if (!json_is_object(root)) {
        api_fault(&r->check, "must be an object");
        return;
    }
    if (!choose_version(r, root))
        return;
    cdi_read_members(r, root, spec_members, ARRAY_LEN(spec_members), &raw);
    if (raw.kind == NULL)
        api_fault_at(&r->check, "kind", "is required");
    if (raw.n_devices == 0 && r->check.faults == 0)
        api_fault_at(&r->check, "devices", "must have at least one");
    if (r->check.faults > 0 || r->check.no_memory)
        return;
    ret->edits = raw.edits;
    take_devices(r, &raw, ret);
}

bool cdi_decode(const char *path, const char *text, size_t n, struct arena *arena,
                struct api_problems *problems, struct cdi_spec *ret, struct err *e)
{
    json_auto_t *documents = NULL;
    struct api_places places = { 0 };
    struct cdi_reader r = {
        .check = { .problems = problems, .arena = arena, .file = path, .document = 1, .places = &places }
    };
    mem_auto int *numbers = NULL;
    struct cdi_spec spec = { .path = path };
    struct err why = { 0 };

    if (yaml_to_json(text, n, &documents, &numbers, &places, &why) != ERR_OK) {
        if (why.code != ERR_INVALID)
            *e = why;
        else
            api_problems_add(problems, path, "%s", why.text);
    } else if (json_array_size(documents) != 1) {
        api_problems_add(problems, path, "must have one document, not %zu", json_array_size(documents));
    } else {
        r.check.document = numbers[0];
        read_root(&r, json_array_get(documents, 0), &spec);
        if (r.check.no_memory)
            err_nomem(e);
        api_places_done(&places);
        api_check_done(&r.check);
        if (r.check.faults == 0 && !r.check.no_memory) {
            *ret = spec;
            return true;
        }
        return false;
    }
    api_places_done(&places);
    return false;
}
