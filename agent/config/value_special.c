/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for single settings: addresses, sysctls, reservations, taints, priorities,
 * labels. */
#include "agent/api/check.h"
#include "agent/api/quantity.h"
#include "agent/api/sysctls.h"
#include "agent/config/internal.h"
#include "base/codec/json.h"
#include "base/duration.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

enum err_code config_check_ips(const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    json_array_foreach (v, i, item)
        if (!config_is_ip(json_string_value(item)))
            return err_set(e, ERR_INVALID, "\"%.100s\" is not an IP address", json_string_value(item));
    return ERR_OK;
}

/* "10.1.0.0/16" or "fd00::/64". */
static bool is_cidr(const char *text)
{
    char address[64];
    const char *slash = strchr(text, '/');
    uint64_t bits;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(address))
        return false;
    memcpy(address, text, (size_t)(slash - text));
    address[slash - text] = '\0';
    return config_is_ip(address) && parse_u64(slash + 1, 0, strchr(address, ':') != NULL ? 128 : 32, &bits,
                                              "prefix length", ERR_IGNORED) == ERR_OK;
}

/* --pod-cidr accepts one network of each family. */
enum err_code config_check_cidrs(const json_t *v, struct err *e)
{
    str_auto copy = strdup(json_string_value(v));
    char *rest = copy, *item;
    int n4 = 0, n6 = 0;

    if (copy == NULL)
        return err_nomem(e);
    while (copy[0] != '\0' && (item = strsep(&rest, ",")) != NULL) {
        if (!is_cidr(item))
            return err_set(e, ERR_INVALID, "\"%.100s\" is not an address range such as 10.1.0.0/16", item);
        *(strchr(item, ':') != NULL ? &n6 : &n4) += 1;
    }
    if (n4 > 1 || n6 > 1)
        return err_set(e, ERR_INVALID, "more than one range of a family");
    return ERR_OK;
}

/* --node-ip accepts one address of each family. */
enum err_code config_check_ip_list(const json_t *v, struct err *e)
{
    str_auto copy = strdup(json_string_value(v));
    char *rest = copy, *item;
    int n4 = 0, n6 = 0;

    if (copy == NULL)
        return err_nomem(e);
    while ((item = strsep(&rest, ",")) != NULL) {
        if (!config_is_ip(item))
            return err_set(e, ERR_INVALID, "\"%.100s\" is not an IP address", item);
        *(strchr(item, ':') != NULL ? &n6 : &n4) += 1;
    }
    if (n4 > 1 || n6 > 1)
        return err_set(e, ERR_INVALID, "more than one address of a family");
    return ERR_OK;
}

enum err_code config_check_sysctls(const json_t *v, struct err *e)
{
    const char *patterns[CONFIG_LIST_MAX + 1] = { NULL };

    for (size_t i = 0; i < json_array_size(v) && i < CONFIG_LIST_MAX; i++)
        patterns[i] = json_string_value(json_array_get(v, i));
    return sysctls_check_patterns(patterns, e);
}

/* ---- images ---- */

/* As in kubelet: whole names without tag and digest ("docker.io/library/busybox", the meaning of "busybox"),
 * or a prefix with a star after a slash. */
static enum err_code check_image_pattern(const char *pattern, struct err *e)
{
    const bool beginning = str_ends(pattern, "/*");
    const size_t n = strlen(pattern) - (beginning ? 1 : 0), host = strcspn(pattern, "/");
    const char *path = pattern + host;

    if (strpbrk(pattern, " \t\n") != NULL || memchr(pattern, '*', n) != NULL || host == 0)
        return err_set(e, ERR_INVALID,
                       "\"%.200s\" is neither a repository nor the beginning of one with \"/*\" at its end",
                       pattern);
    if (*path == '\0' || (strcspn(pattern, ".:") >= host && strncmp(pattern, "localhost/", 10) != 0))
        return err_set(e, ERR_INVALID,
                       "\"%.200s\" does not begin with a registry, as in docker.io/library/%s", pattern,
                       "busybox");
    if (strpbrk(path, "@:") != NULL)
        return err_set(e, ERR_INVALID, "\"%.200s\" has a tag or a digest", pattern);
    return ERR_OK;
}

enum err_code config_check_image_patterns(const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    json_array_foreach ((json_t *)v, i, item)
        if (check_image_pattern(json_string_value(item), e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* ---- reservations ---- */

enum err_code config_check_reserved(const json_t *v, struct err *e)
{
    const char *name;
    json_t *item;

    json_object_foreach ((json_t *)v, name, item) {
        struct quantity q;

        if (!json_is_string(item))
            continue;
        if (strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0 &&
            strcmp(name, "ephemeral-storage") != 0 && strcmp(name, "pid") != 0)
            return err_set(e, ERR_INVALID,
                           "cannot reserve \"%.100s\"; there are cpu, memory, ephemeral-storage, pid", name);
        if (quantity_parse(json_string_value(item), &q, e) != ERR_OK)
            return err_wrap(e, "%s", name);
        if (q.nano < 0)
            return err_set(e, ERR_INVALID, "%s: \"%.60s\" is negative", name, json_string_value(item));
    }
    return ERR_OK;
}

enum err_code config_check_qos_reserved(const json_t *v, struct err *e)
{
    const char *name;
    struct ev_amount a;
    json_t *item;

    json_object_foreach ((json_t *)v, name, item) {
        if (!json_is_string(item))
            continue;
        if (strcmp(name, "memory") != 0)
            return err_set(e, ERR_INVALID, "only memory can be given, not \"%.100s\"", name);
        if (!str_ends(json_string_value(item), "%") ||
            ev_amount_parse(json_string_value(item), true, &a, e) != ERR_OK)
            return err_set(e, ERR_INVALID, "memory: \"%.60s\" is not a percentage from 0%% to 100%%",
                           json_string_value(item));
    }
    return ERR_OK;
}

enum err_code config_check_allocatable(const json_t *v, struct err *e)
{
    json_t *item;
    size_t i;

    json_array_foreach (v, i, item) {
        const char *t = json_string_value(item);

        if (strcmp(t, "none") != 0 && strcmp(t, "pods") != 0 && strcmp(t, "system-reserved") != 0 &&
            strcmp(t, "system-reserved-compressible") != 0 && strcmp(t, "kube-reserved") != 0 &&
            strcmp(t, "kube-reserved-compressible") != 0)
            return err_set(
                e, ERR_INVALID,
                "\"%.60s\" is not one of none, pods, system-reserved, system-reserved-compressible, "
                "kube-reserved, "
                "kube-reserved-compressible",
                t);
        if (strcmp(t, "none") == 0 && json_array_size(v) > 1)
            return err_set(e, ERR_INVALID, "\"none\" must be the only entry");
    }
    return ERR_OK;
}

/* "0-3,7" */
enum err_code config_check_cpus(const json_t *v, struct err *e)
{
    const char *p = json_string_value(v);

    for (;;) {
        char *end;
        unsigned long from, to;

        if (*p < '0' || *p > '9')
            break;
        from = to = strtoul(p, &end, 10);
        if (*end == '-') {
            p = end + 1;
            if (*p < '0' || *p > '9')
                break;
            to = strtoul(p, &end, 10);
        }
        if (from > to || to > 8191)
            break;
        if (*end == '\0')
            return ERR_OK;
        if (*end != ',')
            break;
        p = end + 1;
    }
    return err_set(e, ERR_INVALID, "\"%.100s\" is not a list of CPUs like \"0-1,4\"", json_string_value(v));
}

enum err_code config_check_ids(const json_t *v, struct err *e)
{
    json_int_t n = json_integer_value(v);

    return n > 0 && n % 65536 == 0 && n < 4294967296LL
               ? ERR_OK
               : err_set(e, ERR_INVALID, "%lld is not a multiple of 65536 below 4294967296", (long long)n);
}

/* ---- mappings in lists ---- */

static enum err_code only_keys(const json_t *item, const char *const *keys, struct err *e)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)item, key, value) {
        const char *const *k = keys;

        while (*k != NULL && strcmp(*k, key) != 0)
            k++;
        if (*k == NULL)
            return err_set(e, ERR_INVALID, "unknown key \"%.60s\"", key);
    }
    return ERR_OK;
}

enum err_code config_check_taints(const json_t *v, struct err *e)
{
    static const char *const keys[] = { "key", "value", "effect", "timeAdded", NULL };
    json_t *t;
    size_t i;

    json_array_foreach (v, i, t) {
        const char *key = json_str(t, "key"), *effect = json_str(t, "effect"), *value = json_str(t, "value");

        if (only_keys(t, keys, e) != ERR_OK)
            return err_wrap(e, "[%zu]", i);
        if (key == NULL || api_format_rule(API_FMT_LABEL_KEY, key) != NULL)
            return err_set(e, ERR_INVALID, "[%zu]: key: \"%.100s\" is not a taint key", i,
                           key != NULL ? key : "");
        if (json_object_get(t, "value") != NULL &&
            (value == NULL || (value[0] != '\0' && api_format_rule(API_FMT_LABEL_VALUE, value) != NULL)))
            return err_set(e, ERR_INVALID, "[%zu]: value: not the value of a label", i);
        if (effect == NULL || (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "PreferNoSchedule") != 0 &&
                               strcmp(effect, "NoExecute") != 0))
            return err_set(e, ERR_INVALID,
                           "[%zu]: effect: \"%.60s\" is not one of NoSchedule, PreferNoSchedule, NoExecute",
                           i, effect != NULL ? effect : "");
        if (json_object_get(t, "timeAdded") != NULL && !json_is_null(json_object_get(t, "timeAdded")))
            return err_set(e, ERR_INVALID, "[%zu]: timeAdded: cannot be given here", i);
    }
    return ERR_OK;
}

/* Amount `name` of the i-th entry; kubelet refuses amounts of 0 and repeated ones, too. */
static enum err_code check_reserved(const json_t *v, size_t i, const char *name, const json_t *limit,
                                    struct err *e)
{
    json_int_t node = json_int(json_array_get(v, i), "numaNode", 0);
    struct quantity q = quantity_from_int(json_integer_value(limit), QUANTITY_DECIMAL_SI);

    if (strcmp(name, "memory") != 0 && strncmp(name, "hugepages-", strlen("hugepages-")) != 0)
        return err_set(e, ERR_INVALID, "[%zu]: limits: \"%.60s\" is neither memory nor hugepages-<size>", i,
                       name);
    if (!json_is_integer(limit) &&
        (!json_is_string(limit) || quantity_parse(json_string_value(limit), &q, e) != ERR_OK))
        return err_set(e, ERR_INVALID, "[%zu]: limits: %.60s: not a quantity", i, name);
    if (quantity_value(&q) <= 0)
        return err_set(e, ERR_INVALID, "[%zu]: limits: %.60s: not above 0", i, name);
    for (size_t k = 0; k < i; k++)
        if (json_int(json_array_get(v, k), "numaNode", 0) == node &&
            json_object_get(json_object_get(json_array_get(v, k), "limits"), name) != NULL)
            return err_set(e, ERR_INVALID, "[%zu]: limits: %.60s: given twice for NUMA node %lld", i, name,
                           (long long)node);
    return ERR_OK;
}

enum err_code config_check_reserved_memory(const json_t *v, struct err *e)
{
    static const char *const keys[] = { "numaNode", "limits", NULL };
    json_t *m, *limit;
    const char *name;
    size_t i;

    json_array_foreach (v, i, m) {
        if (only_keys(m, keys, e) != ERR_OK)
            return err_wrap(e, "[%zu]", i);
        if (!json_is_integer(json_object_get(m, "numaNode")) || json_int(m, "numaNode", -1) < 0)
            return err_set(e, ERR_INVALID, "[%zu]: numaNode: not a NUMA node number", i);
        if (!json_is_object(json_object_get(m, "limits")))
            return err_set(e, ERR_INVALID, "[%zu]: limits: not a mapping", i);
        json_object_foreach (json_object_get(m, "limits"), name, limit) {
            if (check_reserved(v, i, name, limit, e) != ERR_OK)
                return e->code;
        }
    }
    return ERR_OK;
}

enum err_code config_check_priorities(const json_t *v, struct err *e)
{
    static const char *const keys[] = { "priority", "shutdownGracePeriodSeconds", NULL };
    json_t *p;
    size_t i;

    if (json_array_size(v) > CONFIG_SHUTDOWN_PRIORITIES_MAX)
        return err_set(e, ERR_INVALID, "more than %d priorities", CONFIG_SHUTDOWN_PRIORITIES_MAX);
    json_array_foreach (v, i, p) {
        json_int_t priority = json_int(p, "priority", 0),
                   seconds = json_int(p, "shutdownGracePeriodSeconds", 0);

        if (only_keys(p, keys, e) != ERR_OK)
            return err_wrap(e, "[%zu]", i);
        if (!json_is_integer(json_object_get(p, "priority")) || priority < INT32_MIN || priority > INT32_MAX)
            return err_set(e, ERR_INVALID, "[%zu]: priority: not a number from -2147483648 to 2147483647", i);
        if (!json_is_integer(json_object_get(p, "shutdownGracePeriodSeconds")) || seconds < 0 ||
            seconds > INT32_MAX)
            return err_set(e, ERR_INVALID,
                           "[%zu]: shutdownGracePeriodSeconds: not a number from 0 to 2147483647", i);
        for (size_t j = 0; j < i; j++)
            if (json_int(json_array_get(v, j), "priority", 0) == priority)
                return err_set(e, ERR_INVALID, "[%zu]: priority: %lld is given twice", i,
                               (long long)priority);
    }
    return ERR_OK;
}

enum err_code config_check_labels(const json_t *v, struct err *e)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)v, key, value) {
        if (!json_is_string(value))
            continue;
        if (api_format_rule(API_FMT_LABEL_KEY, key) != NULL)
            return err_set(e, ERR_INVALID, "\"%.100s\" is not a label key", key);
        if (json_string_length(value) > 0 &&
            api_format_rule(API_FMT_LABEL_VALUE, json_string_value(value)) != NULL)
            return err_set(e, ERR_INVALID, "%.100s: \"%.100s\" is not a label value", key,
                           json_string_value(value));
    }
    return ERR_OK;
}

enum err_code config_check_socket(const json_t *v, struct err *e)
{
    return json_string_length(v) <= 100 /* sun_path, including a temporary name */
               ? ERR_OK
               : err_set(e, ERR_INVALID, "\"%.120s\" is longer than 100 bytes", json_string_value(v));
}

/* An address of another interface would be reachable from other hosts. */
enum err_code config_check_loopback(const json_t *v, struct err *e)
{
    const char *text = json_string_value(v), *port = strrchr(text, ':');
    uint64_t number;

    if (text[0] == '\0')
        return ERR_OK;
    if (port == NULL || (strncmp(text, "127.", 4) != 0 && strncmp(text, "[::1]:", 6) != 0))
        return err_set(e, ERR_INVALID,
                       "\"%.120s\" is not a loopback address with a port, such as 127.0.0.1:6443", text);
    if (parse_u64(port + 1, 1, UINT16_MAX, &number, "port", e) != ERR_OK)
        return e->code;
    if (text[0] != '[') {
        str_auto host = str_printf("%.*s", (int)(port - text), text);

        if (host == NULL)
            return err_nomem(e);
        if (!config_is_ip(host))
            return err_set(e, ERR_INVALID, "\"%.64s\" is not an address", host);
    }
    return ERR_OK;
}

/* Options that the agent sets itself: the folder of a runtime's state, and its log. */
static bool is_ours(const char *option)
{
    static const char *const ours[] = { "--root", "--log", "--log-format", "--cgroup-manager",
                                        "--systemd-cgroup" };
    size_t n = strcspn(option, "=");

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strlen(ours[i]) == n && strncmp(option, ours[i], n) == 0)
            return true;
    return false;
}

static enum err_code check_handler(const json_t *words, struct err *e)
{
    const char *program = json_string_value(json_array_get(words, 0));
    json_t *word;
    size_t i;

    if (json_array_size(words) == 0) /* an empty list defines no handler */
        return ERR_OK;
    if (program[0] != '/')
        return err_set(e, ERR_INVALID, "\"%.100s\" is not the absolute path of a program", program);
    if (json_array_size(words) > CONFIG_HANDLER_OPTIONS_MAX + 1)
        return err_set(e, ERR_INVALID, "more than %d options", CONFIG_HANDLER_OPTIONS_MAX);
    json_array_foreach (words, i, word) {
        const char *text = json_string_value(word);

        if (text[0] == '\0' || strlen(text) > CONFIG_HANDLER_TEXT_MAX)
            return err_set(e, ERR_INVALID, "[%zu]: empty, or longer than %d bytes", i,
                           CONFIG_HANDLER_TEXT_MAX);
        if (i > 0 && is_ours(text))
            return err_set(e, ERR_INVALID, "[%zu]: \"%.100s\" is set by the agent", i, text);
    }
    return ERR_OK;
}

enum err_code config_check_handlers(const json_t *v, struct err *e)
{
    const char *name;
    json_t *words;

    if (json_object_size(v) > CONFIG_HANDLERS_MAX)
        return err_set(e, ERR_INVALID, "more than %d handlers", CONFIG_HANDLERS_MAX);
    json_object_foreach ((json_t *)v, name, words) {
        if (api_format_rule(API_FMT_LABEL, name) != NULL)
            return err_set(e, ERR_INVALID, "\"%.100s\" is not the name of a handler, a DNS label", name);
        if (!json_is_null(words) && check_handler(words, e) != ERR_OK)
            return err_wrap(e, "%.100s", name);
    }
    return ERR_OK;
}
