/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/hoststate.h"

#include "base/buf.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <fcntl.h>
#include <net/if.h>
#include <string.h>

#define VALUE_MAX 64 /* all of these are small numbers */

SCOPE_DEFINE(struct if_nameindex, if_freenameindex)

/* In the order of restoring: the first ones change the others. */
static const char *const of_host[] = { "net/ipv4/ip_forward",
                                       "net/ipv4/conf/all/accept_redirects",
                                       "net/ipv4/conf/all/route_localnet",
                                       "net/ipv4/conf/default/forwarding",
                                       "net/ipv6/conf/all/forwarding",
                                       "net/ipv6/conf/default/forwarding" };
static const struct {
    const char *family, *name;
} of_link[] = { { "ipv4", "forwarding" }, { "ipv4", "route_localnet" }, { "ipv6", "forwarding" } };

json_t *cni_hoststate_links(struct err *e)
{
    scoped(if_freenameindex) struct if_nameindex *links = if_nameindex();
    json_auto_t *ret = json_array();

    if (links == NULL) {
        err_sys(e, errno, "list network links");
        return NULL;
    }
    for (size_t i = 0; ret != NULL && links[i].if_name != NULL; i++) {
        if (json_array_append_new(ret, json_string(links[i].if_name)) < 0) {
            err_nomem(e);
            return NULL;
        }
    }
    if (ret == NULL)
        err_nomem(e);
    return take_ptr(&ret);
}

bool cni_hoststate_link_exists(const char *name)
{
    return if_nametoindex(name) != 0 || (errno != ENODEV && errno != ENXIO); /* if unsure, assume it exists */
}

/* The value without its newline; false: no such sysctl, or *e has the error. */
static bool get(int proc, const char *path, char ret[VALUE_MAX], struct err *e)
{
    str_auto text = NULL;
    size_t n;

    if (fs_read_at(proc, path, VALUE_MAX - 1, &text, &n, e) != ERR_OK)
        return false;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return true;
}

static bool record(int proc, const char *path, json_t *ret, struct err *e)
{
    struct err bad = { 0 };
    char value[VALUE_MAX];

    if (!get(proc, path, value, &bad)) {
        if (bad.sys == ENOMEM)
            *e = bad;
        return bad.sys != ENOMEM;
    }
    if (json_object_set_new(ret, path, json_string(value)) < 0) {
        err_nomem(e);
        return false;
    }
    return true;
}

json_t *cni_hoststate_sysctls(struct err *e)
{
    fd_auto proc = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int sys = errno;
    scoped(if_freenameindex) struct if_nameindex *links = if_nameindex();
    json_auto_t *ret = json_object();

    if (proc < 0 || links == NULL) {
        err_sys(e, proc < 0 ? sys : errno, proc < 0 ? "open /proc/sys" : "list network links");
        return NULL;
    }
    if (ret == NULL) {
        err_nomem(e);
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(of_host); i++) {
        if (!record(proc, of_host[i], ret, e))
            return NULL;
    }
    for (size_t i = 0; links[i].if_name != NULL; i++) {
        for (size_t k = 0; k < ARRAY_LEN(of_link); k++) {
            char path[128];

            snprintf(path, sizeof(path), "net/%s/conf/%s/%s", of_link[k].family, links[i].if_name,
                     of_link[k].name);
            if (!record(proc, path, ret, e))
                return NULL;
        }
    }
    return take_ptr(&ret);
}

static void restore(int proc, const char *path, const char *value, struct err *first)
{
    char now[VALUE_MAX];
    struct err e = { 0 };

    if (!fs_path_is_safe(path) || !str_starts(path, "net/")) /* the record is ours, but still a file */
        return;
    if (!get(proc, path, now, &e) || strcmp(now, value) == 0)
        return;
    if (fs_write_control(proc, path, value, &e) != ERR_OK && first->code == ERR_OK)
        *first = e;
}

enum err_code cni_hoststate_restore(const json_t *sysctls, struct err *e)
{
    fd_auto proc = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err first = { 0 };
    const char *path;
    json_t *value;

    if (proc < 0)
        return err_sys(e, errno, "open /proc/sys");
    for (size_t i = 0; i < ARRAY_LEN(of_host); i++) {
        const char *text = json_string_value(json_object_get(sysctls, of_host[i]));

        if (text != NULL)
            restore(proc, of_host[i], text, &first);
    }
    json_object_foreach ((json_t *)sysctls, path, value) {
        if (json_is_string(value))
            restore(proc, path, json_string_value(value), &first);
    }
    if (first.code != ERR_OK)
        *e = first;
    return first.code;
}

char *cni_hoststate_program(const char *name)
{
    static const char *const dirs[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                        "/usr/bin",        "/sbin",          "/bin" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) { /* the plugins' PATH */
        str_auto path = str_printf("%s/%s", dirs[i], name);

        if (path == NULL || access(path, X_OK) == 0)
            return take_ptr(&path);
    }
    return NULL;
}
