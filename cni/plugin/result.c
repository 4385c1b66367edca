/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/result.h"

#include "base/codec/json.h"
#include "base/parse.h"
#include "base/scope.h"
#include "cni/plugin/names.h"

#include <arpa/inet.h>
#include <string.h>

static enum err_code result_version(const json_t *result, int config_version, int *ret, struct err *e)
{
    const json_t *v = json_object_get(result, "cniVersion");
    const char *text = json_string_value(v);
    int number;

    if (v != NULL && text == NULL)
        return err_set(e, ERR_INVALID, "cniVersion: not a string");
    number = text != NULL && text[0] != '\0' ? cni_version_number(text) : config_version;
    if (number < 0)
        return err_set(e, ERR_INVALID, "cniVersion: \"%.20s\" is not supported", text != NULL ? text : "");
    *ret = number;
    return ERR_OK;
}

/* Family of an address with or without prefix length, 0 if invalid; `ret` (or NULL): its normal form. */
static int result_parse_address(const char *text, char ret[46])
{
    unsigned char raw[16];
    char addr[46];
    const char *slash = strchr(text, '/');
    size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
    uint64_t bits;
    int family;

    if (n == 0 || n >= sizeof(addr))
        return 0;
    memcpy(addr, text, n);
    addr[n] = '\0';
    family = strchr(addr, ':') != NULL ? AF_INET6 : AF_INET;
    if (inet_pton(family, addr, raw) != 1)
        return 0;
    if (slash != NULL &&
        parse_u64(slash + 1, 0, family == AF_INET ? 32 : 128, &bits, "prefix length", ERR_IGNORED) != ERR_OK)
        return 0;
    if (ret != NULL && inet_ntop(family, raw, ret, 46) == NULL)
        return 0;
    return family;
}

static enum err_code get_array(json_t *obj, const char *key, json_t **ret, struct err *e)
{
    json_t *v = json_object_get(obj, key), *item;
    size_t i;

    if (v == NULL || json_is_null(v)) {
        *ret = NULL; /* accepted by all jansson functions as empty */
        return ERR_OK;
    }
    if (!json_is_array(v))
        return err_set(e, ERR_INVALID, "%s: not a list", key);
    if (json_array_size(v) > CNI_RESULT_ITEMS_MAX)
        return err_set(e, ERR_EXHAUSTED, "%s: %zu entries are more than the %d allowed", key,
                       json_array_size(v), CNI_RESULT_ITEMS_MAX);
    json_array_foreach (v, i, item) {
        if (!json_is_object(item))
            return err_set(e, ERR_INVALID, "%s[%zu]: not an object", key, i);
    }
    *ret = v;
    return ERR_OK;
}

/* A list of copies of the entries, to be modified. */
static enum err_code copy_array(json_t *obj, const char *key, json_t **ret, struct err *e)
{
    json_auto_t *copy = json_array();
    json_t *from, *item;
    size_t i;

    if (copy == NULL)
        return err_nomem(e);
    if (get_array(obj, key, &from, e) != ERR_OK)
        return e->code;
    json_array_foreach (from, i, item) {
        if (json_array_append_new(copy, json_copy(item)) < 0)
            return err_nomem(e);
    }
    *ret = take_ptr(&copy);
    return ERR_OK;
}

static enum err_code check_optional_text(const json_t *obj, const char *list, size_t i, const char *key,
                                         struct err *e)
{
    const json_t *v = json_object_get(obj, key);

    if (v != NULL && !json_is_string(v))
        return err_set(e, ERR_INVALID, "%s[%zu].%s: not a string", list, i, key);
    return ERR_OK;
}

/* The kernel accepts no other names; other runtimes, for which some plugins are written, have longer ones. A
 * control character would break lines wherever the name is shown. */
static bool is_link_name(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '/')
            return false;
    return n > 0 && n <= CNI_RESULT_NAME_MAX;
}

/* Whether the address is valid as a packet's source: neither "any" nor a multicast group. */
static bool is_hosts(const char *address)
{
    unsigned char raw[16];
    char text[46];

    if (result_parse_address(address, text) == AF_INET)
        return inet_pton(AF_INET, text, raw) == 1 && raw[0] != 0 && raw[0] < 224;
    return inet_pton(AF_INET6, text, raw) == 1 && !IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *)raw) &&
           raw[0] != 0xff;
}

static enum err_code check_interface(const json_t *v, size_t i, struct err *e)
{
    const char *name = json_str(v, "name");

    if (name == NULL || name[0] == '\0')
        return err_set(e, ERR_INVALID, "interfaces[%zu].name: missing", i);
    if (!is_link_name(name))
        return err_set(e, ERR_INVALID, "interfaces[%zu].name: not the name of an interface", i);
    return check_optional_text(v, "interfaces", i, "sandbox", e);
}

/* Checks everything that we or the conversions read. `c` has the format of 1.1.0. */
static enum err_code check_canonical(const json_t *c, struct err *e)
{
    const json_t *interfaces = json_object_get(c, "interfaces"), *v;
    size_t i;

    json_array_foreach (interfaces, i, v) {
        if (check_interface(v, i, e) != ERR_OK)
            return e->code;
    }
    json_array_foreach (json_object_get(c, "ips"), i, v) {
        const char *address = json_str(v, "address");
        const json_t *index = json_object_get(v, "interface");

        if (address == NULL)
            return err_set(e, ERR_INVALID, "ips[%zu].address: missing", i);
        if (result_parse_address(address, NULL) == 0 || strchr(address, '/') == NULL)
            return err_set(e, ERR_INVALID,
                           "ips[%zu].address: \"%.60s\" is not an address with a prefix length", i, address);
        if (!is_hosts(address))
            return err_set(e, ERR_INVALID, "ips[%zu].address: \"%.60s\" is not an address a pod can have", i,
                           address);
        if (check_optional_text(v, "ips", i, "gateway", e) != ERR_OK)
            return e->code;
        if (index == NULL)
            continue;
        if (!json_is_integer(index) || json_integer_value(index) >= (json_int_t)json_array_size(interfaces))
            return err_set(e, ERR_INVALID, "ips[%zu].interface: not an index of interfaces", i);
    }
    json_array_foreach (json_object_get(c, "routes"), i, v) {
        if (json_str(v, "dst") == NULL || result_parse_address(json_str(v, "dst"), NULL) == 0)
            return err_set(e, ERR_INVALID, "routes[%zu].dst: not a destination", i);
        if (check_optional_text(v, "routes", i, "gw", e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

/* 0.1 and 0.2: one address per family with the routes of that family. */
static enum err_code add_old_family(const json_t *result, const char *key, int family, json_t *ips,
                                    json_t *routes, struct err *e)
{
    json_t *old = json_object_get(result, key), *more, *v;
    const char *address, *gateway;
    json_auto_t *ip = NULL;
    size_t i;

    if (old == NULL || json_is_null(old))
        return ERR_OK;
    address = json_str(old, "ip");
    if (address == NULL || result_parse_address(address, NULL) != family)
        return err_set(e, ERR_INVALID, "%s.ip: not an address of this family", key);
    ip = json_pack("{s:s}", "address", address);
    gateway = json_str(old, "gateway");
    if (ip == NULL || !json_put_str(ip, "gateway", gateway) || json_array_append(ips, ip) < 0)
        return err_nomem(e);
    if (get_array(old, "routes", &more, e) != ERR_OK)
        return err_wrap(e, "%s", key);
    json_array_foreach (more, i, v) {
        if (json_array_append_new(routes, json_copy(v)) < 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

/* Any version -> a new, checked object in the format of 1.1.0. */
static enum err_code to_canonical(json_t **ret, json_t *result, int version, struct err *e)
{
    json_auto_t *c = json_copy(result), *ips = NULL, *routes = NULL, *interfaces = NULL;
    json_t *dns = json_object_get(result, "dns"), *v;
    size_t i;

    if (c == NULL)
        return err_nomem(e);
    if (dns != NULL && !json_is_object(dns) && !json_is_null(dns))
        return err_set(e, ERR_INVALID, "dns: not an object");
    if (version < CNI_V(0, 3, 0)) {
        ips = json_array();
        routes = json_array();
        interfaces = json_array();
        if (ips == NULL || routes == NULL || interfaces == NULL)
            return err_nomem(e);
        if (add_old_family(result, "ip4", AF_INET, ips, routes, e) != ERR_OK ||
            add_old_family(result, "ip6", AF_INET6, ips, routes, e) != ERR_OK)
            return e->code;
    } else if (copy_array(result, "ips", &ips, e) != ERR_OK ||
               copy_array(result, "routes", &routes, e) != ERR_OK ||
               copy_array(result, "interfaces", &interfaces, e) != ERR_OK) {
        return e->code;
    }
    json_object_del(c, "ip4"); /* in any version: these keys mean nothing there and must not gain a meaning */
    json_object_del(c, "ip6");
    json_array_foreach (ips, i, v) {
        json_t *index = json_object_get(v, "interface");

        json_object_del(v, "version");
        if (json_is_null(index) || (json_is_integer(index) && json_integer_value(index) < 0))
            json_object_del(v, "interface"); /* early 0.3 libraries wrote -1 for "none" */
    }
    if (json_object_set(c, "ips", ips) < 0 || json_object_set(c, "routes", routes) < 0 ||
        json_object_set(c, "interfaces", interfaces) < 0)
        return err_nomem(e);
    if (check_canonical(c, e) != ERR_OK)
        return e->code;
    *ret = take_ptr(&c);
    return ERR_OK;
}

/* The first address of a family with that family's routes; 0.2 can hold no more. */
static enum err_code encode_old_family(json_t *out, const char *key, int family, const json_t *canonical,
                                       struct err *e)
{
    json_auto_t *old = NULL, *routes = json_array();
    json_t *v;
    size_t i;

    if (routes == NULL)
        return err_nomem(e);
    json_array_foreach (json_object_get(canonical, "ips"), i, v) {
        if (result_parse_address(json_str(v, "address"), NULL) != family)
            continue;
        old = json_pack("{s:s}", "ip", json_str(v, "address"));
        if (old == NULL || !json_put_str(old, "gateway", json_str(v, "gateway")))
            return err_nomem(e);
        break;
    }
    if (old == NULL)
        return ERR_OK;
    json_array_foreach (json_object_get(canonical, "routes"), i, v) {
        if (result_parse_address(json_str(v, "dst"), NULL) == family && json_array_append(routes, v) < 0)
            return err_nomem(e);
    }
    if (json_array_size(routes) > 0 && json_object_set(old, "routes", routes) < 0)
        return err_nomem(e);
    return json_object_set(out, key, old) < 0 ? err_nomem(e) : ERR_OK;
}

static void drop_members(json_t *list, const char *const *keys)
{
    json_t *v;
    size_t i;

    json_array_foreach (list, i, v) {
        for (const char *const *k = keys; *k != NULL; k++)
            json_object_del(v, *k);
    }
}

/* Converts the canonical object, which is ours, to version `to`. */
static enum err_code encode(json_t *c, int to, struct err *e)
{
    static const char *const new_link[] = { "mtu", "socketPath", "pciID", NULL };
    static const char *const new_route[] = { "mtu", "advmss", "priority", "table", "scope", NULL };
    json_t *v;
    size_t i;

    if (json_object_set_new(c, "cniVersion", json_string(cni_version_text(to))) < 0)
        return err_nomem(e);
    if (to < CNI_V(1, 1, 0)) {
        drop_members(json_object_get(c, "interfaces"), new_link);
        drop_members(json_object_get(c, "routes"), new_route);
    }
    if (to < CNI_V(0, 3, 0)) {
        if (encode_old_family(c, "ip4", AF_INET, c, e) != ERR_OK ||
            encode_old_family(c, "ip6", AF_INET6, c, e) != ERR_OK)
            return e->code;
        json_object_del(c, "ips");
        json_object_del(c, "routes");
        json_object_del(c, "interfaces");
    } else if (to < CNI_V(1, 0, 0)) {
        json_array_foreach (json_object_get(c, "ips"), i, v) {
            const char *family = result_parse_address(json_str(v, "address"), NULL) == AF_INET ? "4" : "6";

            if (json_object_set_new(v, "version", json_string(family)) < 0)
                return err_nomem(e);
        }
    }
    return ERR_OK;
}

static bool is_deeper_than(const json_t *v, int levels)
{
    const char *key;
    json_t *item;
    size_t i;

    if ((json_is_object(v) || json_is_array(v)) && levels == 0)
        return true;
    json_array_foreach (v, i, item) {
        if (is_deeper_than(item, levels - 1))
            return true;
    }
    json_object_foreach ((json_t *)v, key, item) {
        if (is_deeper_than(item, levels - 1))
            return true;
    }
    return false;
}

enum err_code cni_result_parse(json_t **ret, const char *text, size_t n, int config_version, struct err *e)
{
    json_auto_t *v = NULL, *c = NULL;
    int version;

    if (json_parse(text, n, CNI_RESULT_MAX, &v, "CNI result", e) != ERR_OK)
        return e->code;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "CNI result: not a JSON object");
    if (is_deeper_than(v, CNI_RESULT_DEPTH_MAX))
        return err_set(e, ERR_EXHAUSTED, "CNI result: nested in more than %d levels", CNI_RESULT_DEPTH_MAX);
    if (result_version(v, config_version, &version, e) != ERR_OK || to_canonical(&c, v, version, e) != ERR_OK)
        return err_wrap(e, "CNI result");
    *ret = take_ptr(&v);
    return ERR_OK;
}

enum err_code cni_result_convert(json_t **ret, json_t *result, int config_version, int to, struct err *e)
{
    const char *written = json_str(result, "cniVersion");
    json_auto_t *c = NULL;
    int version;

    if (result_version(result, config_version, &version, e) != ERR_OK)
        return err_wrap(e, "CNI result");
    if (version == to && written != NULL && written[0] != '\0') {
        *ret = json_incref(result);
        return ERR_OK;
    }
    if (to_canonical(&c, result, version, e) != ERR_OK || encode(c, to, e) != ERR_OK)
        return err_wrap(e, "CNI result");
    *ret = take_ptr(&c);
    return ERR_OK;
}

/* Whether ips[].interface names `ifname` inside the sandbox (or no interface). */
static bool is_pods(const json_t *ip, const json_t *interfaces, const char *ifname)
{
    const json_t *index = json_object_get(ip, "interface"), *link;
    const char *sandbox;

    if (index == NULL)
        return true;
    link = json_array_get(interfaces, (size_t)json_integer_value(index));
    sandbox = json_str(link, "sandbox");
    return sandbox != NULL && sandbox[0] != '\0' && strcmp(json_str(link, "name"), ifname) == 0;
}

static bool has_ip(const struct cni_result *r, const char *ip)
{
    for (size_t i = 0; i < r->n_ips; i++)
        if (strcmp(r->ips[i], ip) == 0)
            return true;
    return false;
}

enum err_code cni_result_addresses(struct cni_result *ret, json_t *result, int config_version,
                                   const char *ifname, struct err *e)
{
    json_auto_t *c = NULL;
    struct cni_result r = { 0 };
    json_t *v;
    size_t i;
    int version;

    if (result_version(result, config_version, &version, e) != ERR_OK ||
        to_canonical(&c, result, version, e) != ERR_OK)
        return err_wrap(e, "CNI result");
    for (int all = 0; all < 2 && r.n_ips == 0; all++) {
        json_array_foreach (json_object_get(c, "ips"), i, v) {
            char ip[46];

            if (r.n_ips < CNI_IPS_MAX && (all || is_pods(v, json_object_get(c, "interfaces"), ifname)) &&
                result_parse_address(json_str(v, "address"), ip) != 0 && !has_ip(&r, ip))
                strcpy(r.ips[r.n_ips++], ip);
        }
    }
    *ret = r;
    return ERR_OK;
}
