/* SPDX-License-Identifier: Apache-2.0 */
/* iscsi - disks of an iSCSI server, by iscsiadm (open-iscsi). Calls as kubelet's (pkg/volume/iscsi). */
#include "volumes/storage/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 10000
#define LOGGED_IN 15 /* iscsiadm: the session exists */
#define NO_OBJECTS 21

static bool is_plain(const char *text, size_t max)
{
    return text != NULL && text[0] != '\0' && text[0] != '-' && strlen(text) <= max &&
           strpbrk(text, " \t\n/\\,;'\"") == NULL;
}

/* "1.2.3.4:3260" */
static enum err_code with_port(const char *portal, char *ret, size_t size, struct err *e)
{
    const char *bracket = portal != NULL ? strrchr(portal, ']') : NULL;
    const char *colon = portal != NULL ? strrchr(portal, ':') : NULL;
    const bool has_port = colon != NULL && (bracket != NULL ? colon > bracket : strchr(portal, ':') == colon);

    if (!is_plain(portal, 200))
        return err_set(e, ERR_INVALID, "\"%.100s\" is no address of an iSCSI server",
                       portal != NULL ? portal : "");
    snprintf(ret, size, "%s%s", portal, has_port ? "" : ":3260");
    return ERR_OK;
}

static enum err_code iscsiadm(const char *const *args, int ok, struct err *e)
{
    int code = 0;
    buf_auto out = BUF_INIT(2 * STORAGE_OUT_MAX);
    struct storage_run run = { .program = "iscsiadm", .package = "open-iscsi", .args = args };

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
static enum err_code make_iface(const struct storage_spec *s, const char *portal, char *ret, size_t size,
                                struct err *e)
{
    const char *plain = s->interface != NULL && s->interface[0] != '\0' ? s->interface : "default";

    if (!is_plain(plain, 200))
        return err_set(e, ERR_INVALID, "\"%.100s\" is no iSCSI interface", plain);
    snprintf(ret, size, "%s", plain);
    if (s->initiator == NULL || s->initiator[0] == '\0')
        return ERR_OK;
    if (!is_plain(s->initiator, 223))
        return err_set(e, ERR_INVALID, "\"%.100s\" is no initiator name", s->initiator);
    snprintf(ret, size, "%.200s:%.253s", portal, s->name);
    if (ISCSIADM(e, LOGGED_IN, "-m", "iface", "-I", ret, "-o", "new") != ERR_OK)
        return e->code;
    return ISCSIADM(e, 0, "-m", "iface", "-I", ret, "-o", "update", "-n", "iface.initiatorname", "-v",
                    s->initiator);
}

static enum err_code log_in(const struct storage_spec *s, const char *portal, const char *iface,
                            struct err *e)
{
    if (ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "-o", "new") !=
            ERR_OK ||
        (s->chap_discovery && set_chap_discovery(s, portal, iface, e) != ERR_OK))
        return e->code;
    if (ISCSIADM(e, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface, "--discover") !=
        ERR_OK) {
        ERR_IGNORE(ISCSIADM(ERR_IGNORED, 0, "-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I",
                            iface, "-o", "delete"));
        return err_wrap(e, "failed to sendtargets to portal %s", portal);
    }
    if (s->chap_session && set_chap_session(s, portal, iface, e) != ERR_OK)
        return e->code;
    if (ISCSIADM(e, LOGGED_IN, "-m", "node", "-p", portal, "-T", s->iqn, "-I", iface, "--login") != ERR_OK)
        return err_wrap(e, "failed to attach disk");
    /* After a reboot the agent logs in, not the system. */
    ERR_IGNORE(ISCSIADM(ERR_IGNORED, 0, "-m", "node", "-p", portal, "-T", s->iqn, "-o", "update", "-n",
                        "node.startup", "-v", "manual"));
    return ERR_OK;
}

static void device_path(const char *portal, const struct storage_spec *s, char *ret, size_t size)
{
    snprintf(ret, size, "/dev/disk/by-path/ip-%s-iscsi-%s-lun-%d", portal, s->iqn, s->lun);
}

enum err_code storage_iscsi_mount(const struct storage_spec *s, struct err *e)
{
    char portal[300], iface[600], path[800], disk[300], device[300], global[STORAGE_PATH_MAX];
    bool here;

    if (!is_plain(s->iqn, 223))
        return err_set(e, ERR_INVALID, "\"%.100s\" is no iSCSI target", s->iqn != NULL ? s->iqn : "");
    if (with_port(s->portal, portal, sizeof(portal), e) != ERR_OK ||
        make_iface(s, portal, iface, sizeof(iface), e) != ERR_OK)
        return e->code;
    device_path(portal, s, path, sizeof(path));
    here = storage_wait_for((const char *const[]){ path }, 1, 0, disk, sizeof(disk), ERR_IGNORED) == ERR_OK;
    if (!here && log_in(s, portal, iface, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; !here && i < s->n_portals; i++) { /* more ways: they may fail */
        char other[300];

        if (with_port(s->portals[i], other, sizeof(other), ERR_IGNORED) == ERR_OK)
            ERR_IGNORE(log_in(s, other, iface, ERR_IGNORED));
    }
    if (storage_wait_for((const char *const[]){ path }, 1, WAIT_MS, disk, sizeof(disk), e) != ERR_OK)
        return e->code;
    storage_multipath(disk, device, sizeof(device));
    snprintf(global, sizeof(global), "%.300s/plugins/kubernetes.io/iscsi/iface-%.100s/%.200s-%.223s-lun-%d",
             s->root, iface, portal, s->iqn, s->lun);
    return storage_mount_device(s, device, global, e);
}

/* ".../iscsi/iface-default/1.2.3.4:3260-iqn.2026-11.dev:disk-lun-0" */
enum err_code storage_iscsi_detach(const char *root, const char *global, struct err *e)
{
    const char *base = strrchr(global, '/'), *lun = NULL, *iqn = NULL;
    char portal[300], name[300];

    (void)root;
    if (base == NULL)
        return ERR_OK;
    base++;
    for (const char *at = base; (at = strstr(at, "-lun-")) != NULL; at++)
        lun = at;
    for (size_t i = 0; i < 3 && iqn == NULL; i++)
        iqn = strstr(base, ((const char *const[]){ "-iqn.", "-eui.", "-naa." })[i]);
    if (lun == NULL || iqn == NULL || iqn > lun)
        return err_set(e, ERR_INVALID, "%s is no folder of an iSCSI disk", base);
    snprintf(portal, sizeof(portal), "%.*s", (int)(iqn - base), base);
    snprintf(name, sizeof(name), "%.*s", (int)(lun - iqn - 1), iqn + 1);
    if (ISCSIADM(e, NO_OBJECTS, "-m", "node", "-p", portal, "-T", name, "--logout") != ERR_OK)
        return e->code;
    return ISCSIADM(e, NO_OBJECTS, "-m", "node", "-p", portal, "-T", name, "-o", "delete");
}
