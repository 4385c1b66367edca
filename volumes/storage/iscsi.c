/* SPDX-License-Identifier: Apache-2.0 */
/* iscsi - disks of an iSCSI server, by iscsiadm (open-iscsi). Calls as kubelet's (pkg/volume/iscsi). */
#include "volumes/storage/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 10000
#define MULTIPATH_MS 5000
/* Of all portals: the first that works is enough, and the mount has to end in time. A kubelet tries each. */
#define PORTALS_MAX 16
#define PORTALS_MS 45000
#define CALL_MS 25000 /* of one call of iscsiadm: a login gives up after 15 s */
#define LOGGED_IN 15  /* iscsiadm: the session exists */
#define NO_OBJECTS 21

static bool is_plain(const char *text, size_t max)
{
    return text != NULL && text[0] != '\0' && text[0] != '-' && strlen(text) <= max &&
           strpbrk(text, " \t\n/\\,;'\"") == NULL;
}

enum err_code storage_iscsi_portal(const char *portal, char *ret, size_t size, struct err *e)
{
    const char *bracket = portal != NULL ? strrchr(portal, ']') : NULL;
    const char *colon = portal != NULL ? strrchr(portal, ':') : NULL;
    const bool has_port = colon != NULL && (bracket != NULL ? colon > bracket : strchr(portal, ':') == colon);

    if (!is_plain(portal, 200))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an iSCSI portal", portal != NULL ? portal : "");
    snprintf(ret, size, "%s%s", portal, has_port ? "" : ":3260");
    return ERR_OK;
}

static enum err_code iscsiadm(const char *const *args, int ok, struct err *e)
{
    int code = 0;
    buf_auto out = BUF_INIT(2 * STORAGE_OUT_MAX);
    struct storage_run run = { .program = "iscsiadm", .package = "open-iscsi", .args = args, .ms = CALL_MS };

    if (ok == 0)
        return storage_run(&run, e);
    run.ret_exit = &code;
    run.out = &out;
    if (storage_run(&run, e) != ERR_OK || code == 0 || code == ok)
        return e->code;
    return err_set(e, ERR_UNKNOWN, "iscsiadm %s: exit status %d", args[1], code);
}

#define ISCSIADM(e, ok, ...) iscsiadm((const char *const[]){ __VA_ARGS__, NULL }, ok, e)

static const char *secret(const struct storage_spec *s, const char *key)
{
    for (size_t i = 0; i < s->n_secrets; i++)
        if (strcmp(s->secrets[i].key, key) == 0)
            return s->secrets[i].value;
    return NULL;
}

/* Names of the Secret's keys are those of iscsiadm's settings. */
static enum err_code set_chap_session(const struct storage_spec *s, const char *portal, const char *iface,
                                      struct err *e)
{
    static const char *const keys[] = { "node.session.auth.username", "node.session.auth.password",
                                        "node.session.auth.username_in", "node.session.auth.password_in" };

    if (ISCSIADM(e, 0, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "-o", "update", "-n",
                 "node.session.auth.authmethod", "-v", "CHAP") != ERR_OK)
        return e->code;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (secret(s, keys[i]) != NULL &&
            ISCSIADM(e, 0, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "-o", "update", "-n",
                     keys[i], "-v", secret(s, keys[i])) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code set_chap_discovery(const struct storage_spec *s, const char *portal, const char *iface,
                                        struct err *e)
{
    static const char *const keys[] = { "discovery.sendtargets.auth.username",
                                        "discovery.sendtargets.auth.password",
                                        "discovery.sendtargets.auth.username_in",
                                        "discovery.sendtargets.auth.password_in" };

    if (ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o", "update",
                 "-n", "discovery.sendtargets.auth.authmethod", "-v", "CHAP") != ERR_OK)
        return e->code;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (secret(s, keys[i]) != NULL &&
            ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o",
                     "update", "-n", keys[i], "-v", secret(s, keys[i])) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* An initiator name of its own needs an interface of its own. */
static enum err_code name_iface(const struct storage_spec *s, const char *portal, char *ret, size_t size,
                                struct err *e)
{
    const char *plain = s->interface != NULL && s->interface[0] != '\0' ? s->interface : "default";

    if (!is_plain(plain, 200))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an iSCSI interface", plain);
    snprintf(ret, size, "%s", plain);
    if (s->initiator == NULL || s->initiator[0] == '\0')
        return ERR_OK;
    if (!is_plain(s->initiator, 223))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an initiator name", s->initiator);
    snprintf(ret, size, "%.200s:%.253s", portal, s->name);
    return ERR_OK;
}

static enum err_code make_iface(const struct storage_spec *s, const char *iface, struct err *e)
{
    if (s->initiator == NULL || s->initiator[0] == '\0')
        return ERR_OK;
    if (ISCSIADM(e, LOGGED_IN, "-m", "iface", "-I", iface, "-o", "new") != ERR_OK)
        return e->code;
    return ISCSIADM(e, 0, "-m", "iface", "-I", iface, "-o", "update", "-n", "iface.initiatorname", "-v",
                    s->initiator);
}

static enum err_code discover(const struct storage_spec *s, const char *portal, const char *iface,
                              struct err *e)
{
    if (ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o", "new") !=
            ERR_OK ||
        (s->chap_discovery && set_chap_discovery(s, portal, iface, e) != ERR_OK))
        return e->code;
    if (ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "--discover") ==
        ERR_OK)
        return ERR_OK;
    ERR_IGNORE(ISCSIADM(ERR_IGNORED, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface,
                        "-o", "delete"));
    return err_wrap(e, "failed to sendtargets to portal %s", portal);
}

static enum err_code log_in(const struct storage_spec *s, const char *portal, const char *iface,
                            struct err *e)
{
    if (discover(s, portal, iface, e) != ERR_OK ||
        (s->chap_session && set_chap_session(s, portal, iface, e) != ERR_OK))
        return e->code;
    if (ISCSIADM(e, LOGGED_IN, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "--login") != ERR_OK)
        return err_wrap(e, "failed to attach disk");
    /* A session of before has not seen disks that were added since. */
    ERR_IGNORE(ISCSIADM(ERR_IGNORED, 0, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "--rescan"));
    /* After a reboot the agent logs in, not the system. */
    ERR_IGNORE(ISCSIADM(ERR_IGNORED, 0, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "-o", "update",
                        "-n", "node.startup", "-v", "manual"));
    return ERR_OK;
}

/* ---- portals ---- */

struct ways {
    const char *iface;
    struct way {
        char portal[208], path[500]; /* where udev has the disk */
    } v[PORTALS_MAX];
    size_t n;
};

/* The first portal has to be one; of the others, those that are none are left out. */
static enum err_code find_ways(const struct storage_spec *s, struct ways *w, struct err *e)
{
    for (size_t i = 0; i <= s->n_portals && w->n < PORTALS_MAX; i++) {
        const char *given = i == 0 ? s->portal : s->portals[i - 1];
        struct way one;

        if (storage_iscsi_portal(given, one.portal, sizeof(one.portal), i == 0 ? e : ERR_IGNORED) == ERR_OK) {
            snprintf(one.path, sizeof(one.path), "/dev/disk/by-path/ip-%.207s-iscsi-%.223s-lun-%d",
                     one.portal, s->iqn, s->lun);
            w->v[w->n++] = one;
        } else if (i == 0) {
            return e->code;
        }
    }
    return ERR_OK;
}

static bool is_here(const char *path, char *ret, size_t size)
{
    return storage_wait_for((const char *const[]){ path }, 1, 0, ret, size, ERR_IGNORED) == ERR_OK;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Logs in wherever it can; *ret_n: portals with a session. The first failure counts if none works. */
static enum err_code log_in_all(const struct storage_spec *s, const struct ways *w, size_t *ret_n,
                                struct err *e)
{
    int64_t until = now_ms() + PORTALS_MS;
    char disk[300];
    size_t n = 0;

    for (size_t i = 0; i < w->n && (i == 0 || now_ms() < until); i++) {
        struct err one = { 0 };

        if (is_here(w->v[i].path, disk, sizeof(disk)) || log_in(s, w->v[i].portal, w->iface, &one) == ERR_OK)
            n++;
        else if (e->code == ERR_OK)
            *e = one;
    }
    if (n > 0)
        *e = (struct err){ 0 };
    *ret_n = n;
    return e->code;
}

static enum err_code attach(const struct storage_spec *s, const void *arg, char *ret_device, size_t size,
                            struct err *e)
{
    const struct ways *w = arg;
    const char *paths[PORTALS_MAX];
    char disk[300];
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        paths[i] = w->v[i].path;
    if (make_iface(s, w->iface, e) != ERR_OK || log_in_all(s, w, &n, e) != ERR_OK ||
        storage_wait_for(paths, w->n, WAIT_MS, disk, sizeof(disk), e) != ERR_OK)
        return e->code;
    storage_multipath(disk, n > 1 ? MULTIPATH_MS : 0, ret_device, size);
    return ERR_OK;
}

/* ---- the disk ---- */

enum err_code storage_iscsi_disk(const struct storage_spec *s, struct storage_disk *ret, struct err *e)
{
    char portal[208], iface[500], name[600], target[256];

    if (!is_plain(s->iqn, 223))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an iSCSI target", s->iqn != NULL ? s->iqn : "");
    if (storage_iscsi_portal(s->portal, portal, sizeof(portal), e) != ERR_OK ||
        name_iface(s, portal, iface, sizeof(iface), e) != ERR_OK)
        return e->code;
    snprintf(name, sizeof(name), "%s-%s-lun-%d", portal, s->iqn, s->lun);
    /* The removal of the disk has only this name. */
    if (!storage_iscsi_target(name, target, sizeof(target)) || strcmp(target, s->iqn) != 0)
        return err_set(e, ERR_INVALID, "\"%.100s\" is not an iSCSI target of \"%.100s\"", s->iqn, portal);
    return storage_disk_make(ret, s->root, STORAGE_ISCSI, s->block, iface, name, e);
}

enum err_code storage_iscsi_mount(const struct storage_spec *s, struct err *e)
{
    struct storage_disk disk;
    struct ways w = { .iface = disk.iface };

    if (storage_iscsi_disk(s, &disk, e) != ERR_OK || find_ways(s, &w, e) != ERR_OK)
        return e->code;
    return storage_disk_mount(s, &disk, attach, &w, e);
}

/* "1.2.3.4:3260-iqn.2026-11.dev:disk-lun-0" */
bool storage_iscsi_target(const char *name, char *ret, size_t size)
{
    const char *lun = NULL, *iqn = NULL;

    for (const char *at = name; (at = strstr(at, "-lun-")) != NULL; at++)
        lun = at;
    for (size_t i = 0; i < 3 && iqn == NULL; i++)
        iqn = strstr(name, ((const char *const[]){ "-iqn.", "-eui.", "-naa." })[i]);
    if (lun == NULL || iqn == NULL || iqn >= lun || (size_t)(lun - iqn - 1) >= size)
        return false;
    snprintf(ret, size, "%.*s", (int)(lun - iqn - 1), iqn + 1);
    return true;
}

/* Without iscsiadm there is no session of ours. */
enum err_code storage_iscsi_detach(const char *iface, const char *iqn, struct err *e)
{
    if (ISCSIADM(e, NO_OBJECTS, "-m", "node", "-T", iqn, "-I", iface, "--logout") == ERR_OK &&
        ISCSIADM(e, NO_OBJECTS, "-m", "node", "-T", iqn, "-I", iface, "-o", "delete") == ERR_OK &&
        strchr(iface, ':') != NULL) /* one of ours, with an initiator name */
        ERR_IGNORE(ISCSIADM(ERR_IGNORED, NO_OBJECTS, "-m", "iface", "-I", iface, "-o", "delete"));
    if (e->code == ERR_NOT_FOUND)
        *e = (struct err){ 0 };
    return e->code;
}
