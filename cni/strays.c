/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/strays.h"

#include "base/array.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/host/hoststate.h"
#include "cni/host/rules.h"
#include "cni/internal.h"
#include "cni/plugin/names.h"
#include "cni/plugin/result.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#define LEASE_MAX 1024 /* an id, a line end, an interface's name */

/* bandwidth's names: "bwp" and 12 hex digits (plugins 0.9 to 1.7). */
#define IFB_PREFIX "bwp"
#define IFB_LENGTH 15

/* ---- the rules ---- */

struct rule { /* the relevant parts of a rule; "": absent, or negated with "!" */
    char chain[CNI_RULES_WORD], target[CNI_RULES_WORD];
    char source[CNI_RULES_WORD], to[CNI_RULES_WORD], protocol[CNI_RULES_WORD];
    char comment[512], ports[512]; /* the kernel's limits: 256 bytes, and 15 numbers */
};

static bool strays_parse_rule(const char *line, struct rule *r)
{
    char word[CNI_RULES_WORD], ignored[CNI_RULES_WORD];
    bool not = false;

    *r = (struct rule){ 0 };
    if (!str_starts(line, "-A "))
        return false;
    line += strlen("-A ");
    if (!cni_rules_word(&line, r->chain, sizeof(r->chain)))
        return false;
    while (cni_rules_word(&line, word, sizeof(word))) {
        const struct {
            const char *option;
            char *value;
            size_t size;
        } options[] = {
            { "-j", r->target, sizeof(r->target) },          { "-s", r->source, sizeof(r->source) },
            { "-p", r->protocol, sizeof(r->protocol) },      { "--to-destination", r->to, sizeof(r->to) },
            { "--comment", r->comment, sizeof(r->comment) }, { "--dports", r->ports, sizeof(r->ports) },
        };
        size_t i = 0;

        while (i < ARRAY_LEN(options) && strcmp(word, options[i].option) != 0)
            i++;
        if (i < ARRAY_LEN(options) && !not )
            cni_rules_word(&line, options[i].value, options[i].size);
        else if (i < ARRAY_LEN(options))
            cni_rules_word(&line, ignored, sizeof(ignored));
        not = strcmp(word, "!") == 0;
    }
    return true;
}

/* [dnat ]name: "N" id: "I"; the pointers are into `comment`, which is modified. */
static bool parse_comment(char *comment, const char **ret_network, const char **ret_id)
{
    static const char name[] = "name: \"", id[] = "\" id: \"";
    char *at = str_starts(comment, "dnat ") ? comment + strlen("dnat ") : comment, *middle;
    size_t n;

    if (!str_starts(at, name))
        return false;
    at += strlen(name);
    middle = strstr(at, id);
    if (middle == NULL)
        return false;
    *middle = '\0';
    middle += strlen(id);
    n = strcspn(middle, "\"");
    if (strcmp(middle + n, "\"") != 0) /* truncated, or followed by more */
        return false;
    middle[n] = '\0';
    *ret_network = at;
    *ret_id = middle;
    return cni_name_ok(at) && cni_name_ok(middle);
}

static struct cni_stray *stray_of(struct cni_stray_list *l, const char *network, const char *id)
{
    struct cni_stray *v;

    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].network, network) == 0 && strcmp(l->v[i].id, id) == 0)
            return &l->v[i];
    if (l->n == CNI_STRAYS_MAX || !array_room(l->v, l->n))
        return NULL;
    v = &l->v[l->n];
    *v = (struct cni_stray){ .network = strdup(network), .id = strdup(id) };
    if (v->network == NULL || v->id == NULL) {
        free(v->network);
        free(v->id);
        return NULL;
    }
    l->n++;
    return v;
}

/* "10.0.0.2", "10.0.0.2/32", "10.0.0.2:80", "fd00::2", "[fd00::2]:80" */
static bool note_address(struct cni_stray *s, const char *text)
{
    unsigned char raw[16];
    char address[CNI_RULES_WORD];
    bool port = text[0] != '[' && strchr(text, ':') == strrchr(text, ':');

    snprintf(address, sizeof(address), "%s", text[0] == '[' ? text + 1 : text);
    address[strcspn(address, port ? ":/" : "]/")] = '\0';
    if ((inet_pton(AF_INET, address, raw) != 1 && inet_pton(AF_INET6, address, raw) != 1) ||
        s->addresses.n == CNI_IPS_MAX)
        return true;
    return strs_add_once(&s->addresses, address);
}

static bool note_ports(struct cni_stray *s, const char *protocol, char *ports)
{
    char *rest = NULL;

    for (char *word = strtok_r(ports, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char *end = NULL;
        long port = strtol(word, &end, 10);
        json_auto_t *one = NULL;
        bool known = false;
        const json_t *have;
        size_t i;

        if (port < 1 || port > 65535 || *end != '\0')
            continue;
        if (s->ports == NULL && (s->ports = json_array()) == NULL)
            return false;
        one = json_pack("{s:i, s:i, s:s}", "hostPort", (int)port, "containerPort", (int)port, "protocol",
                        protocol);
        if (one == NULL)
            return false;
        json_array_foreach (s->ports, i, have)
            known = known || json_equal(have, one);
        if (!known && json_array_size(s->ports) < CNI_STRAY_PORTS_MAX && json_array_append(s->ports, one) < 0)
            return false;
    }
    return true;
}

struct parse {
    struct cni_stray_list *list;
    bool ok;
};

static bool who(const char *table, const char *line, void *arg)
{
    struct parse *p = arg;
    const char *network, *id;
    struct cni_stray *s;
    struct rule r;

    if (strcmp(table, "nat") != 0 || !strays_parse_rule(line, &r) || !parse_comment(r.comment, &network, &id))
        return true;
    s = stray_of(p->list, network, id);
    if (s == NULL) {
        p->ok = p->list->n == CNI_STRAYS_MAX; /* further strays wait for the next scan */
        return p->ok;
    }
    if (strcmp(r.chain, "CNI-HOSTPORT-DNAT") == 0) {
        if (strlen(r.target) < sizeof(s->dnat))
            strcpy(s->dnat, r.target);
        p->ok = note_ports(s, r.protocol, r.ports);
    } else if (strcmp(r.chain, "POSTROUTING") == 0) {
        p->ok = note_address(s, r.source);
    }
    return p->ok;
}

static bool where(const char *table, const char *line, void *arg)
{
    struct parse *p = arg;
    struct rule r;

    if (strcmp(table, "nat") != 0 || !strays_parse_rule(line, &r) || r.to[0] == '\0')
        return true;
    for (size_t i = 0; i < p->list->n && p->ok; i++)
        if (strcmp(p->list->v[i].dnat, r.chain) == 0)
            p->ok = note_address(&p->list->v[i], r.to);
    return p->ok;
}

enum err_code cni_strays_parse(struct cni_stray_list *list, const char *save, struct err *e)
{
    struct parse p = { .list = list, .ok = true };

    cni_rules_each(save, who, &p);
    if (p.ok)
        cni_rules_each(save, where, &p); /* a chain may precede the rule that names its owner */
    return p.ok ? ERR_OK : err_nomem(e);
}

bool cni_strays_add(struct cni_stray_list *list, const char *network, const char *id, const char *address)
{
    struct cni_stray *s = cni_name_ok(network) && cni_name_ok(id) ? stray_of(list, network, id) : NULL;

    if (s == NULL)
        return false;
    s->certain = true;
    return note_address(s, address);
}

void cni_strays_done(struct cni_stray_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->v[i].network);
        free(list->v[i].id);
        strs_done(&list->v[i].addresses);
        json_decref(list->v[i].ports);
    }
    free(list->v);
    *list = (struct cni_stray_list){ 0 };
}

/* ---- reconstructing an entry ---- */

struct user {
    const char *address, *id;
    bool taken;
};

static bool uses(const struct cni_entry *entry, void *arg)
{
    struct user *u = arg;
    struct cni_result r = { 0 };

    if (strcmp(entry->container_id, u->id) == 0 || entry->result == NULL ||
        cni_result_addresses(&r, entry->result, entry->list.version, entry->ifname, ERR_IGNORED) != ERR_OK)
        return true;
    for (size_t i = 0; i < r.n_ips; i++)
        u->taken = u->taken || strcmp(r.ips[i], u->address) == 0;
    return !u->taken;
}

/* Whether host-local stores its state below our folder. */
static bool by_host_local(const struct cni *c, const struct cni_list *list)
{
    for (size_t i = 0; c->data_dir != NULL && i < cni_list_size(list); i++) {
        const json_t *plugin = cni_list_plugin(list, i);

        if (str_eq(cni_plugin_ipam_type(plugin), "host-local") &&
            str_eq(json_str(json_object_get(plugin, "ipam"), "dataDir"), c->data_dir))
            return true;
    }
    return false;
}

/* False: the address has a new owner, and a DEL naming it would remove their rules. Otherwise the address
 * stays reserved until the DEL is done. */
static bool keep_address(struct cni *c, const struct cni_list *list, const struct cni_stray *s,
                         const char *ifname, const char *address)
{
    struct user u = { .address = address, .id = s->id };
    str_auto path = str_printf("%s/%s/%s", c->data_dir != NULL ? c->data_dir : "", s->network, address);
    str_auto folder = str_printf("%s/%s", c->data_dir != NULL ? c->data_dir : "", s->network);
    str_auto text = str_printf("%s\r\n%s", s->id, ifname); /* host-local's format */
    str_auto holder = NULL;
    struct err e = { 0 };
    bool lacks_some;

    if (path == NULL || folder == NULL || text == NULL ||
        cni_cache_each(c->cache_fd, uses, &u, &e) != ERR_OK || u.taken)
        return false;
    /* The address may belong to a living pod whose entry was damaged: only a lease proves the owner. */
    lacks_some = cni_cache_lacks_some(c->cache_fd);
    if (!by_host_local(c, list))
        return !lacks_some;
    if (fs_read_at(AT_FDCWD, path, LEASE_MAX, &holder, NULL, &e) == ERR_OK)
        return str_starts(holder, s->id);
    if (e.code != ERR_NOT_FOUND || lacks_some)
        return false;
    e = (struct err){ 0 };
    return fs_mkdirs(folder, 0755, &e) == ERR_OK &&
           fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e) == ERR_OK;
}

/* In the list's version. */
static json_t *strays_result_of(struct cni *c, const struct cni_list *list, const struct cni_stray *s,
                                const char *ifname, struct err *e)
{
    json_auto_t *ips = json_array();
    json_auto_t *result = json_pack("{s:s, s:O?}", "cniVersion", "1.0.0", "ips", ips);
    json_t *converted = NULL;

    if (ips == NULL || result == NULL) {
        err_nomem(e);
        return NULL;
    }
    for (size_t i = 0; i < s->addresses.n; i++) {
        const char *address = s->addresses.v[i];
        if (!keep_address(c, list, s, ifname, address))
            continue;
        str_auto whole = str_printf("%s/%d", address, strchr(address, ':') != NULL ? 128 : 32);

        if (whole == NULL || json_array_append_new(ips, json_pack("{s:s}", "address", whole)) < 0) {
            err_nomem(e);
            return NULL;
        }
    }
    if (cni_result_convert(&converted, result, CNI_V(1, 0, 0), list->version, e) != ERR_OK)
        return NULL;
    return converted;
}

static enum err_code strays_adopt(struct cni *c, const struct cni_stray *s, const char *ifname, struct err *e)
{
    const struct cni_list *list = cni_network(c, s->network);
    json_auto_t *supplied = NULL;
    json_auto_t *declared = NULL;
    json_auto_t *result = NULL;
    struct cni_entry entry;

    if (cni_find(c, s->id, ifname, &entry, e) == ERR_OK) {
        cni_entry_done(&entry);
        return err_set(e, ERR_EXISTS, "container %s: it is already attached", s->id);
    }
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };
    if (list == NULL)
        return err_set(e, ERR_NOT_FOUND, "no network \"%s\"", s->network);
    supplied = s->ports != NULL ? json_pack("{s:O}", "portMappings", s->ports) : json_object();
    declared = supplied != NULL ? cni_list_declared(list, supplied) : NULL;
    if (declared == NULL)
        return err_nomem(e);
    result = strays_result_of(c, list, s, ifname, e);
    if (result == NULL)
        return e->code;
    entry = (struct cni_entry){ .list = *list,
                                .container_id = s->id,
                                .ifname = ifname,
                                .netns = "",
                                .args = "IgnoreUnknown=1",
                                .capability_args = declared,
                                .result = result };
    return cni_cache_write(c->cache_fd, &entry, e);
}

/* ---- links ---- */

struct known {
    struct strs links; /* named by results */
    bool ok;
};

static bool add_links(const struct cni_entry *entry, void *arg)
{
    struct known *k = arg;
    const json_t *v;
    size_t i;

    if (!entry->complete) /* without a result yet, its link may exist */
        k->ok = false;
    json_array_foreach (json_object_get(entry->result, "interfaces"), i, v) {
        const char *name = json_string_value(json_object_get(v, "name"));

        k->ok = k->ok && (name == NULL || strs_add_once(&k->links, name));
    }
    return k->ok;
}

static bool is_ifb(const char *name)
{
    return name != NULL && str_starts(name, IFB_PREFIX) && strlen(name) == IFB_LENGTH &&
           strspn(name + strlen(IFB_PREFIX), "0123456789abcdef") == IFB_LENGTH - strlen(IFB_PREFIX);
}

static void report_links(struct cni_strays *s)
{
    struct known known = { .ok = true };
    json_auto_t *links = cni_hoststate_links(ERR_IGNORED);
    const json_t *v;
    size_t i, n = 0;

    if (links != NULL && cni_cache_each(s->c->cache_fd, add_links, &known, ERR_IGNORED) == ERR_OK &&
        known.ok && !cni_cache_lacks_some(s->c->cache_fd)) {
        json_array_foreach (links, i, v) {
            const char *name = json_string_value(v);

            if (is_ifb(name) && !strs_has(&known.links, name) && n + IFB_LENGTH + 3 < sizeof(s->links))
                n += (size_t)snprintf(s->links + n, sizeof(s->links) - n, "%s%s", n > 0 ? ", " : "", name);
        }
    }
    strs_done(&known.links);
}

/* ---- the operation ---- */

static void strays_end(struct cni_strays *s, const struct err *e)
{
    struct cni *c = s->c;

    cni_strays_done(&s->found);
    c->n_held--;
    op_finish(&s->op, e->code != ERR_OK ? e : NULL);
    cni_run_next(c);
}

static void adopt_all(struct cni_strays *s)
{
    for (size_t i = 0; i < s->found.n; i++) {
        const struct cni_stray *one = &s->found.v[i];
        struct err e = { 0 };

        if (!one->certain && (s->prefix[0] == '\0' || !str_starts(one->id, s->prefix)))
            continue;
        if (strays_adopt(s->c, one, s->ifname, &e) == ERR_OK) {
            s->n_adopted++;
            log_warn("found a network attachment only by its rules", F_STR("network", one->network),
                     F_STR("containerID", one->id));
        } else if (e.code != ERR_EXISTS) {
            log_warn("keeping the rules of an unknown network attachment", F_STR("network", one->network),
                     F_STR("containerID", one->id), F_ERR(&e));
        }
    }
    report_links(s);
}

static enum err_code strays_edit(void *arg, const char *family, const char *save, struct buf *script,
                                 struct err *e)
{
    struct cni_strays *s = arg;

    (void)family;
    (void)script;
    return cni_strays_parse(&s->found, save, e);
}

static void strays_on_rules_done(struct op *op, const struct err *result)
{
    struct cni_strays *s = op->owner;

    if (s->op.why.code == ERR_OK)
        adopt_all(s);
    strays_end(s, result);
}

static void strays_on_abort(struct op *op)
{
    struct cni_strays *s = container_of(op, struct cni_strays, op);

    if (op_live(&s->rules.op))
        op_cancel(&s->rules.op);
}

void cni_strays_start(struct cni_strays *s, struct cni *c, const char *prefix, const char *ifname,
                      struct cni_stray_list *lost, op_done_fn done, void *owner)
{
    const struct cni_iptables_spec rules = { .table = "nat",
                                             .edit = strays_edit,
                                             .arg = s,
                                             .cgroup_fd = c->cgroup_fd,
                                             .cgroup_procs = c->cgroup_procs,
                                             .deadline_ms = CNI_STRAYS_DEADLINE_MS };
    struct err none = { 0 };

    *s = (struct cni_strays){ .c = c, .found = *lost };
    *lost = (struct cni_stray_list){ 0 };
    op_init(&s->op, c->loop, "cni strays", 0, strays_on_abort, done, owner);
    snprintf(s->prefix, sizeof(s->prefix), "%s", prefix);
    snprintf(s->ifname, sizeof(s->ifname), "%s", ifname);
    c->n_held++;
    if (c->n_live > 0) {
        adopt_all(s);
        strays_end(s, &none);
        return;
    }
    cni_iptables_start(&s->rules, c->loop, "list rules", NULL, &rules, strays_on_rules_done, s);
}
