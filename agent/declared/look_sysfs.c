/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a device node in sysfs, and the devices on the USB buses (Documentation/ABI/stable/
 * sysfs-bus-usb, sysfs-bus-pci). */
#include "agent/declared/look_internal.h"
#include "base/files/fs.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>

#define ATTRIBUTE_MAX 4096 /* a page: the kernel's limit of an attribute */

/* ---- attributes ---- */

/*
 * *ret is malloc'ed, without the last newline; NULL: there is no attribute. A device that is being removed
 * has no attributes, and an attribute that can never be read counts as absent, too; only a temporary failure
 * is an error.
 */
static enum err_code attribute(const char *dir, const char *name, char **ret, struct err *e)
{
    str_auto path = str_printf("%s/%s", dir, name);
    str_auto text = NULL;
    size_t n = 0;

    if (path == NULL)
        return err_nomem(e);
    *ret = NULL;
    if (fs_read_at(AT_FDCWD, path, ATTRIBUTE_MAX, &text, &n, e) != ERR_OK) {
        if (err_is_shortage(e))
            return e->code;
        *e = (struct err){ 0 };
        return ERR_OK;
    }
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    *ret = take_ptr(&text);
    return ERR_OK;
}

static enum err_code copy_attribute(const char *dir, const char *name, char *ret, size_t size, struct err *e)
{
    str_auto text = NULL;

    ret[0] = '\0';
    if (attribute(dir, name, &text, e) != ERR_OK)
        return e->code;
    if (text != NULL && strlen(text) < size)
        strcpy(ret, text);
    return ERR_OK;
}

static bool like(const char *pattern, const char *text)
{
    return pattern == NULL || (text != NULL && fnmatch(pattern, text, FNM_NOESCAPE) == 0);
}

/* "0x8086" of PCI and "0403" of USB. */
static bool same_number(const char *wanted, const char *text)
{
    if (wanted == NULL)
        return true;
    return strcasecmp(str_starts(text, "0x") ? text + 2 : text, wanted) == 0;
}

/* ---- a node's device and its ancestors ---- */

struct facts {
    char subsystem[64];                        /* of the node's own device */
    char vendor[16], product[16], serial[256]; /* of the nearest ancestor that has them */
    char port[64];                             /* its name: "1-1.2", "0000:00:02.0" */
    int64_t numa;
    bool has_ids, attributes[DECL_ATTRIBUTES_MAX];
};

static void subsystem_of(const char *dir, char *ret, size_t size)
{
    str_auto path = str_printf("%s/subsystem", dir);
    char target[PATH_MAX];
    ssize_t n = path != NULL ? readlink(path, target, sizeof(target) - 1) : -1;
    const char *slash;

    ret[0] = '\0';
    if (n <= 0)
        return;
    target[n] = '\0';
    slash = strrchr(target, '/');
    snprintf(ret, size, "%.63s", slash != NULL ? slash + 1 : target);
}

static enum err_code ids_of(const char *dir, struct facts *f, struct err *e)
{
    if (copy_attribute(dir, "idVendor", f->vendor, sizeof(f->vendor), e) != ERR_OK)
        return e->code;
    snprintf(f->port, sizeof(f->port), "%.63s", strrchr(dir, '/') + 1);
    if (f->vendor[0] != '\0') {
        f->has_ids = true;
        if (copy_attribute(dir, "idProduct", f->product, sizeof(f->product), e) != ERR_OK)
            return e->code;
        return copy_attribute(dir, "serial", f->serial, sizeof(f->serial), e);
    }
    if (copy_attribute(dir, "vendor", f->vendor, sizeof(f->vendor), e) != ERR_OK ||
        copy_attribute(dir, "device", f->product, sizeof(f->product), e) != ERR_OK)
        return e->code;
    f->has_ids = str_starts(f->vendor, "0x") && f->product[0] != '\0';
    if (!f->has_ids)
        f->vendor[0] = f->product[0] = f->port[0] = '\0';
    return ERR_OK;
}

static enum err_code level(const char *dir, const struct decl_match *m, struct facts *f, struct err *e)
{
    char number[32];

    if (!f->has_ids && ids_of(dir, f, e) != ERR_OK)
        return e->code;
    if (f->numa < 0) {
        if (copy_attribute(dir, "numa_node", number, sizeof(number), e) != ERR_OK)
            return e->code;
        if (parse_i64(number, 0, 1 << 20, &f->numa, "numa_node", ERR_IGNORED) != ERR_OK)
            f->numa = -1;
    }
    for (size_t i = 0; i < m->n_attributes; i++) {
        str_auto text = NULL;
        if (f->attributes[i])
            continue;
        if (attribute(dir, m->attributes[i].name, &text, e) != ERR_OK)
            return e->code;
        f->attributes[i] = text != NULL && like(m->attributes[i].value, text);
    }
    return ERR_OK;
}

static bool fits(const struct facts *f, const struct decl_match *m)
{
    for (size_t i = 0; i < m->n_attributes; i++)
        if (!f->attributes[i])
            return false;
    return like(m->subsystem, f->subsystem) && same_number(m->vendor, f->vendor) &&
           same_number(m->product, f->product) && like(m->serial, f->serial) && like(m->port, f->port);
}

/* Walks from the device up to, but not including, "<sys>/devices". */
static enum err_code climb(const char *top, char *dir, const struct decl_match *m, struct facts *f,
                           struct err *e)
{
    size_t floor = strlen(top);

    subsystem_of(dir, f->subsystem, sizeof(f->subsystem));
    while (strlen(dir) > floor && strncmp(dir, top, floor) == 0 && dir[floor] == '/') {
        if (level(dir, m, f, e) != ERR_OK)
            return e->code;
        *strrchr(dir, '/') = '\0';
    }
    return ERR_OK;
}

enum err_code look_node(const char *sys_dir, const struct stat *st, const struct decl_match *m, bool *ret,
                        int64_t *ret_numa, struct err *e)
{
    str_auto link = str_printf("%s/dev/%s/%u:%u", sys_dir, S_ISBLK(st->st_mode) ? "block" : "char",
                               major(st->st_rdev), minor(st->st_rdev));
    str_auto devices = str_printf("%s/devices", sys_dir);
    struct facts f = { .numa = -1 };
    char dir[PATH_MAX], top[PATH_MAX];

    if (link == NULL || devices == NULL)
        return err_nomem(e);
    if (realpath(link, dir) == NULL || realpath(devices, top) == NULL) {
        if (errno != ENOENT && errno != ENOTDIR)
            return err_sys(e, errno, "resolve %s", link);
    } else if (climb(top, dir, m, &f, e) != ERR_OK) { /* a node without a device has nothing to match */
        return e->code;
    }
    *ret = fits(&f, m);
    *ret_numa = f.numa;
    return ERR_OK;
}

/* ---- USB ---- */

struct usb_walk {
    const char *dir;
    void (*fn)(const struct look_usb *u, void *arg);
    void *arg;
    struct err *e;
};

static enum err_code number_of(const char *dir, const char *name, unsigned *ret, struct err *e)
{
    char text[32];
    uint64_t n;

    *ret = 0;
    if (copy_attribute(dir, name, text, sizeof(text), e) != ERR_OK)
        return e->code;
    if (parse_u64(text, 1, 999, &n, name, ERR_IGNORED) == ERR_OK)
        *ret = (unsigned)n;
    return ERR_OK;
}

static void lower(char *text)
{
    for (; *text != '\0'; text++)
        if (*text >= 'A' && *text <= 'F')
            *text += 'a' - 'A';
}

static enum err_code read_usb(const char *dir, struct look_usb *u, struct err *e)
{
    char numa[32];

    if (copy_attribute(dir, "idVendor", u->vendor, sizeof(u->vendor), e) != ERR_OK ||
        copy_attribute(dir, "idProduct", u->product, sizeof(u->product), e) != ERR_OK ||
        copy_attribute(dir, "serial", u->serial, sizeof(u->serial), e) != ERR_OK ||
        copy_attribute(dir, "numa_node", numa, sizeof(numa), e) != ERR_OK ||
        number_of(dir, "busnum", &u->bus, e) != ERR_OK || number_of(dir, "devnum", &u->number, e) != ERR_OK)
        return e->code;
    if (parse_i64(numa, 0, 1 << 20, &u->numa, "numa_node", ERR_IGNORED) != ERR_OK)
        u->numa = -1;
    lower(u->vendor);
    lower(u->product);
    return ERR_OK;
}

static bool usb_entry(const char *name, void *arg)
{
    struct usb_walk *w = arg;
    struct look_usb u = { .numa = -1 };
    str_auto dir = NULL;

    if (strchr(name, ':') != NULL || strlen(name) >= sizeof(u.port)) /* "1-1:1.0" is an interface */
        return true;
    dir = str_printf("%s/%s", w->dir, name);
    if (dir == NULL)
        return err_nomem(w->e) == ERR_OK;
    strcpy(u.port, name);
    if (read_usb(dir, &u, w->e) != ERR_OK)
        return false;
    if (u.vendor[0] != '\0' && u.product[0] != '\0' && u.bus > 0 && u.number > 0)
        w->fn(&u, w->arg);
    return true;
}

enum err_code look_usb(const char *sys_dir, void (*fn)(const struct look_usb *u, void *arg), void *arg,
                       struct err *e)
{
    str_auto dir = str_printf("%s/bus/usb/devices", sys_dir);
    struct usb_walk w = { dir, fn, arg, e };
    struct presence found;

    if (dir == NULL)
        return err_nomem(e);
    found = fs_list(AT_FDCWD, dir, usb_entry, &w, e);
    return presence_is_unknown(found) || e->code != ERR_OK ? e->code : ERR_OK;
}

bool look_usb_matches(const struct look_usb *u, const struct decl_match *m)
{
    return same_number(m->vendor, u->vendor) && same_number(m->product, u->product) &&
           like(m->serial, u->serial) && like(m->port, u->port);
}
