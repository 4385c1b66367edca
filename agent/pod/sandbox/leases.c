/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/leases.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_attach.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#define LEASE_MAX 1024 /* an id, a line end, an interface's name */

static bool is_address(const char *name)
{
    unsigned char bytes[16];
    char text[64];

    if (strlen(name) >= sizeof(text))
        return false;
    strcpy(text, name);
    if (inet_pton(AF_INET, text, bytes) == 1)
        return true;
    /* host-local's notation for IPv6 on systems that forbid ':' in names */
    for (char *c = text; *c != '\0'; c++)
        if (*c == '_')
            *c = ':';
    return inet_pton(AF_INET6, text, bytes) == 1;
}

static bool leases_is_known(struct node *n, const struct strs *cached, const char *id)
{
    if (strs_has(cached, id))
        return true;
    pods_each (n, p)
        if (strcmp(p->sandbox_id, id) == 0)
            return true;
    return false;
}

struct sweep {
    struct node *node;
    struct strs cached;
    struct cni_stray_list *lost;
    bool alone; /* no plugin is running: a file without id is truncated, and not just being written */
};

static void leases_sweep_network(const struct sweep *s, int networks, const char *network)
{
    int fd = openat(networks, network, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(d)) != NULL) {
        struct err e = { 0 };
        str_auto id = NULL;

        if (!is_address(entry->d_name) || fs_read_at(fd, entry->d_name, LEASE_MAX, &id, NULL, &e) != ERR_OK)
            continue;
        id[strcspn(id, "\r\n")] = '\0';
        if (id[0] == '\0' ? !s->alone : leases_is_known(s->node, &s->cached, id))
            continue;
        /* One of ours: a DEL releases the address and everything else; it stays reserved until then. */
        if (strlen(id) == SANDBOX_ID_DIGITS && cni_has_network(s->node->o.cni, network) &&
            cni_strays_add(s->lost, network, id, entry->d_name))
            continue;
        if (unlinkat(fd, entry->d_name, 0) != 0)
            log_warn("cannot release an unused address", F_STR("network", network),
                     F_STR("address", entry->d_name), F_STR("err", strerrordesc_np(errno)));
        else
            log_info("removed a left-over", F_STR("what", "address"), F_STR("id", entry->d_name));
    }
    closedir(d);
}

struct taking {
    int networks;
    const char *address;
    bool maybe; /* a network has it, or could not be examined */
};

static bool note_taken(const char *network, void *arg)
{
    struct taking *t = arg;
    struct err unseen = { 0 };
    str_auto path = str_printf("%s/%s", network, t->address);

    t->maybe = path == NULL || !presence_is_absent(fs_look_at(t->networks, path, NULL, &unseen));
    return !t->maybe;
}

/* Whether all networks were examined, and none has it. */
static bool is_free(int networks, const char *address)
{
    struct taking t = { .networks = networks, .address = address };
    struct err unseen = { 0 };

    return !presence_is_unknown(fs_list(networks, ".", note_taken, &t, &unseen)) && !t.maybe;
}

static void take_again(struct node *n, int networks, const struct pod *p, const char *address)
{
    struct err e = { 0 };
    str_auto network = NULL;
    str_auto path = NULL;
    str_auto text = str_printf("%s\r\n" POD_IFNAME, p->sandbox_id);
    struct stat st;

    if (cni_cached_network(n->o.cni, p->sandbox_id, POD_IFNAME, &network, &e) != ERR_OK || text == NULL ||
        fstatat(networks, network, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return; /* its addresses come from elsewhere */
    path = str_printf("%s/%s", network, address);
    if (path == NULL)
        return;
    if (fs_replace_at(networks, path, text, strlen(text), 0644, false, &e) == ERR_OK)
        log_warn("reserved the address of a running pod again", F_STR("pod", p->key),
                 F_STR("address", address));
    else
        log_warn("address of a running pod is not reserved, another may get it", F_STR("pod", p->key),
                 F_STR("address", address), F_ERR(&e));
}

static void take_all_again(struct node *n, int networks)
{
    pods_each (n, p)
        for (size_t i = 0; sandbox_of(p)->net == NET_READY && p->sandbox_id[0] != '\0' &&
                           i < sandbox_of(p)->net_result.n_ips;
             i++)
            if (is_free(networks, sandbox_of(p)->net_result.ips[i]))
                take_again(n, networks, p, sandbox_of(p)->net_result.ips[i]);
}

void leases_sweep(struct node *n, bool alone, struct cni_stray_list *lost)
{
    str_auto path = str_printf("%s/cni/networks", n->o.state_dir);
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct sweep s = { .node = n, .lost = lost, .alone = alone };
    struct dirent *entry;
    struct err e = { 0 };

    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return; /* no network has assigned any */
    }
    if (cni_cached_ids(n->o.cni, &s.cached, &e) == ERR_OK) {
        while ((entry = readdir(d)) != NULL)
            if (entry->d_name[0] != '.')
                leases_sweep_network(&s, fd, entry->d_name);
        strs_done(&s.cached);
        take_all_again(n, fd);
    }
    closedir(d);
}
