/* SPDX-License-Identifier: Apache-2.0 */
/* containerEdits of a spec file. */
#include "agent/cdi/internal.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define NET_DEVICES_MAX 256 /* all pairs are compared */
#define CLOS_ID_MAX 4095    /* the kernel's limit of a path */

/* ---- values of several kinds of edits ---- */

static void check_env(struct cdi_reader *r, const char *const *env, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (env[i][0] == '=' || strchr(env[i], '=') == NULL) {
            size_t mark = api_enter_index(&r->check, i);

            api_fault(&r->check, "%s must be NAME=value", QUOTE(env[i]));
            api_leave(&r->check, mark);
        }
}

static void require(struct cdi_reader *r, const char *field, const char *value)
{
    if (value == NULL || *value == '\0')
        api_fault_at(&r->check, field, "is required");
}

/* ---- deviceNodes ---- */

#define NODE(to) ((struct rt_edit_node *)(to))

static void node_path(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->path = cdi_text(r, v);
}

static void node_host_path(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *path = cdi_text(r, v);

    if (*path == '\0')
        return;
    cdi_needs(r, CDI_050);
    NODE(to)->host_path = path;
}

static void node_type(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *type = cdi_text(r, v);

    if (strlen(type) > 1 || (*type != '\0' && strchr("bcup", *type) == NULL))
        api_fault(&r->check, "%s is not a type of device, allowed are b, c, u and p", QUOTE(type));
    else
        NODE(to)->type = *type;
}

static void node_major(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->major = cdi_number(r, v, 0, INT32_MAX);
}

static void node_minor(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->minor = cdi_number(r, v, 0, INT32_MAX);
}

static void node_mode(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->file_mode = (uint32_t)cdi_number(r, v, 0, UINT32_MAX) & 07777;
    NODE(to)->has_file_mode = !json_is_null(v);
}

static void node_permissions(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *text = cdi_text(r, v);

    if (strcmp(text, "none") == 0)
        NODE(to)->permissions = "";
    else if (strspn(text, "rwm") != strlen(text))
        api_fault(&r->check, "%s must be made of r, w and m, or be none", QUOTE(text));
    else if (*text != '\0')
        NODE(to)->permissions = text;
}

static void node_uid(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->uid = (uint32_t)cdi_number(r, v, 0, UINT32_MAX);
    NODE(to)->has_uid = !json_is_null(v);
}

static void node_gid(struct cdi_reader *r, const json_t *v, void *to)
{
    NODE(to)->gid = (uint32_t)cdi_number(r, v, 0, UINT32_MAX);
    NODE(to)->has_gid = !json_is_null(v);
}

static const struct cdi_member node_members[] = {
    { "path", node_path },
    { "hostPath", node_host_path },
    { "type", node_type },
    { "major", node_major },
    { "minor", node_minor },
    { "fileMode", node_mode },
    { "uid", node_uid },
    { "gid", node_gid },
    { "permissions", node_permissions },
};

static void read_node(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_members(r, v, node_members, ARRAY_LEN(node_members), to);
    require(r, "path", NODE(to)->path);
}

/* ---- mounts ---- */

#define MOUNT(to) ((struct rt_edit_mount *)(to))

static void mount_source(struct cdi_reader *r, const json_t *v, void *to)
{
    MOUNT(to)->source = cdi_text(r, v);
}

static void mount_destination(struct cdi_reader *r, const json_t *v, void *to)
{
    MOUNT(to)->destination = cdi_text(r, v);
}

static void mount_options(struct cdi_reader *r, const json_t *v, void *to)
{
    MOUNT(to)->options = cdi_texts(r, v, &MOUNT(to)->n_options);
}

static void mount_type(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *type = cdi_text(r, v);

    if (*type == '\0')
        return;
    cdi_needs(r, CDI_040);
    MOUNT(to)->type = type;
}

static const struct cdi_member mount_members[] = {
    { "hostPath", mount_source },
    { "containerPath", mount_destination },
    { "options", mount_options },
    { "type", mount_type },
};

static void read_mount(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_members(r, v, mount_members, ARRAY_LEN(mount_members), to);
    require(r, "hostPath", MOUNT(to)->source);
    require(r, "containerPath", MOUNT(to)->destination);
}

/* ---- hooks ---- */

#define HOOK(to) ((struct rt_edit_hook *)(to))

static void hook_name(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *name = cdi_text(r, v);

    for (int kind = 0; kind < RT_HOOK_KINDS; kind++)
        if (strcmp(name, rt_hook_names[kind]) == 0) {
            HOOK(to)->kind = (enum rt_hook_kind)kind;
            return;
        }
    api_fault(&r->check,
              "%s is not a hook, allowed are prestart, createRuntime, createContainer, startContainer, "
              "poststart and poststop",
              QUOTE(name));
}

static void hook_path(struct cdi_reader *r, const json_t *v, void *to)
{
    HOOK(to)->path = cdi_text(r, v);
    if (*HOOK(to)->path != '\0' && *HOOK(to)->path != '/')
        api_fault(&r->check, "%s is not an absolute path", QUOTE(HOOK(to)->path));
}

static void hook_args(struct cdi_reader *r, const json_t *v, void *to)
{
    HOOK(to)->args = cdi_texts(r, v, &HOOK(to)->n_args);
}

static void hook_env(struct cdi_reader *r, const json_t *v, void *to)
{
    HOOK(to)->env = cdi_texts(r, v, &HOOK(to)->n_env);
    check_env(r, HOOK(to)->env, HOOK(to)->n_env);
}

static void hook_timeout(struct cdi_reader *r, const json_t *v, void *to)
{
    HOOK(to)->timeout_s = (int)cdi_number(r, v, 1, INT_MAX);
}

static const struct cdi_member hook_members[] = {
    { "hookName", hook_name }, { "path", hook_path },       { "args", hook_args },
    { "env", hook_env },       { "timeout", hook_timeout },
};

static bool has_member(const json_t *v, const char *name)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)v, key, value)
        if (strcasecmp(key, name) == 0)
            return true;
    return false;
}

static void read_hook(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_members(r, v, hook_members, ARRAY_LEN(hook_members), to);
    if (json_is_object(v) && !has_member(v, "hookName"))
        api_fault_at(&r->check, "hookName", "is required");
    require(r, "path", HOOK(to)->path);
}

/* ---- netDevices ---- */

#define NET(to) ((struct rt_edit_net_device *)(to))

static void net_host_name(struct cdi_reader *r, const json_t *v, void *to)
{
    NET(to)->host_name = cdi_text(r, v);
}

static void net_name(struct cdi_reader *r, const json_t *v, void *to)
{
    NET(to)->name = cdi_text(r, v);
}

static const struct cdi_member net_members[] = {
    { "hostInterfaceName", net_host_name },
    { "name", net_name },
};

static void read_net(struct cdi_reader *r, const json_t *v, void *to)
{
    cdi_read_members(r, v, net_members, ARRAY_LEN(net_members), to);
    require(r, "hostInterfaceName", NET(to)->host_name);
    require(r, "name", NET(to)->name);
}

static void check_nets(struct cdi_reader *r, const struct rt_edits *e)
{
    for (size_t i = 0; i < e->n_net_devices; i++)
        for (size_t k = 0; k < i; k++) {
            const struct rt_edit_net_device *a = &e->net_devices[k], *b = &e->net_devices[i];

            if (a->host_name == NULL || a->name == NULL || b->host_name == NULL || b->name == NULL)
                return; /* reported */
            if (strcmp(a->host_name, b->host_name) == 0 || strcmp(a->name, b->name) == 0) {
                api_fault(&r->check, "[%zu] and [%zu] have the same name", k, i);
                return;
            }
        }
}

/* ---- intelRdt ---- */

#define RDT(to) ((struct rt_edit_rdt *)(to))

static void rdt_clos(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *id = cdi_text(r, v);

    if (*id == '\0')
        return;
    if (strcmp(id, "/") != 0 && (strlen(id) > CLOS_ID_MAX || strcmp(id, ".") == 0 || strcmp(id, "..") == 0 ||
                                 strpbrk(id, "/\n") != NULL))
        api_fault(&r->check, "%s must be the name of a folder, or /", QUOTE(id));
    RDT(to)->clos_id = id;
}

static void rdt_l3(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *text = cdi_text(r, v);

    RDT(to)->l3_cache_schema = *text != '\0' ? text : NULL;
}

static void rdt_mem_bw(struct cdi_reader *r, const json_t *v, void *to)
{
    const char *text = cdi_text(r, v);

    RDT(to)->mem_bw_schema = *text != '\0' ? text : NULL;
}

static void rdt_schemata(struct cdi_reader *r, const json_t *v, void *to)
{
    if (!json_is_null(v))
        cdi_needs(r, CDI_110);
    RDT(to)->schemata = cdi_texts(r, v, &RDT(to)->n_schemata);
}

static void rdt_monitoring(struct cdi_reader *r, const json_t *v, void *to)
{
    if (!json_is_boolean(v) && !json_is_null(v))
        api_fault(&r->check, "must be true or false");
    if (json_is_true(v))
        cdi_needs(r, CDI_110);
    RDT(to)->enable_monitoring = json_is_true(v);
}

static const struct cdi_member rdt_members[] = {
    { "closID", rdt_clos },
    { "l3CacheSchema", rdt_l3 },
    { "memBwSchema", rdt_mem_bw },
    { "schemata", rdt_schemata },
    { "enableMonitoring", rdt_monitoring },
};

/* ---- all ---- */

#define EDITS(to) ((struct rt_edits *)(to))

static void edits_env(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->env = cdi_texts(r, v, &EDITS(to)->n_env);
    check_env(r, EDITS(to)->env, EDITS(to)->n_env);
}

static void edits_nodes(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->nodes =
        cdi_list(r, v, API_LIST_MAX, sizeof(*EDITS(to)->nodes), &EDITS(to)->n_nodes, read_node);
}

static void edits_mounts(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->mounts =
        cdi_list(r, v, API_LIST_MAX, sizeof(*EDITS(to)->mounts), &EDITS(to)->n_mounts, read_mount);
}

static void edits_hooks(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->hooks =
        cdi_list(r, v, API_LIST_MAX, sizeof(*EDITS(to)->hooks), &EDITS(to)->n_hooks, read_hook);
}

static void edits_nets(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->net_devices =
        cdi_list(r, v, NET_DEVICES_MAX, sizeof(*EDITS(to)->net_devices), &EDITS(to)->n_net_devices, read_net);
    if (EDITS(to)->n_net_devices > 0)
        cdi_needs(r, CDI_110);
    check_nets(r, EDITS(to));
}

static void edits_rdt(struct cdi_reader *r, const json_t *v, void *to)
{
    struct rt_edit_rdt *rdt;

    if (json_is_null(v) || (rdt = api_alloc(&r->check, sizeof(*rdt))) == NULL)
        return;
    cdi_needs(r, CDI_070);
    cdi_read_members(r, v, rdt_members, ARRAY_LEN(rdt_members), rdt);
    EDITS(to)->rdt = rdt;
}

static void read_gid(struct cdi_reader *r, const json_t *v, void *to)
{
    *(uint32_t *)to = (uint32_t)cdi_number(r, v, 0, UINT32_MAX);
}

static void edits_gids(struct cdi_reader *r, const json_t *v, void *to)
{
    EDITS(to)->gids = cdi_list(r, v, API_LIST_MAX, sizeof(uint32_t), &EDITS(to)->n_gids, read_gid);
    if (EDITS(to)->n_gids > 0)
        cdi_needs(r, CDI_070);
}

static const struct cdi_member edits_members[] = {
    { "env", edits_env },
    { "deviceNodes", edits_nodes },
    { "mounts", edits_mounts },
    { "hooks", edits_hooks },
    { "netDevices", edits_nets },
    { "intelRdt", edits_rdt },
    { "additionalGids", edits_gids },
};

void cdi_read_edits(struct cdi_reader *r, const json_t *v, struct rt_edits *to)
{
    cdi_read_members(r, v, edits_members, ARRAY_LEN(edits_members), to);
}

bool cdi_edits_are_empty(const struct rt_edits *e)
{
    return e->n_env + e->n_nodes + e->n_mounts + e->n_hooks + e->n_net_devices + e->n_gids == 0 &&
           e->rdt == NULL;
}
