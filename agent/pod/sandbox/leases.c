/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/leases.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_attach.h"

#include "base/files/fs.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    int networks;
    const char *network; /* the one that is swept */
    int fd;              /* its folder */
    struct err e;        /* the first that a retry may get past */
    struct err stays;    /* the first that stays until the file or its file system changes */
};

static void leases_failed(struct sweep *s, const struct err *e)
{
    if (s->e.code == ERR_OK)
        s->e = *e;
}

/* The entry is no file that host-local wrote, or the file system refuses every change. */
static bool leases_is_lasting(const struct err *e)
{
    switch (e->sys) {
    case 0: /* not a regular file, or too long */
    case EISDIR:
    case ENXIO: /* a socket */
    case ELOOP:
    case EPERM: /* immutable */
    case EROFS:
        return true;
    default:
        return false;
    }
}

/* An address that no running pod needs: nothing is lost while it stays reserved. */
static void leases_address_failed(struct sweep *s, const char *address, struct err *e)
{
    ERR_IGNORE(err_wrap(e, "address %s of network %.128s", address, s->network));
    if (!leases_is_lasting(e))
        leases_failed(s, e);
    else if (s->stays.code == ERR_OK)
        s->stays = *e;
}

static bool leases_sweep_address(const char *address, void *arg)
{
    struct sweep *s = arg;
    struct err e = { 0 };
    str_auto id = NULL;
    struct presence found = presence_absent();

    if (is_address(address))
        found = fs_read_if_there(s->fd, address, LEASE_MAX, &id, NULL, &e);
    if (presence_is_unknown(found))
        leases_address_failed(s, address, &e);
    if (id == NULL)
        return true;
    id[strcspn(id, "\r\n")] = '\0';
    if (id[0] == '\0' ? !s->alone : leases_is_known(s->node, &s->cached, id))
        return true;
    /* One of ours: a DEL releases the address and everything else; it stays reserved until then. */
    if (strlen(id) == SANDBOX_ID_DIGITS && cni_has_network(s->node->o.cni, s->network) &&
        cni_strays_add(s->lost, s->network, id, address))
        return true;
    if (unlinkat(s->fd, address, 0) != 0) {
        err_sys(&e, errno, "remove %s", address);
        leases_address_failed(s, address, &e);
    } else {
        log_info("removed a leftover", F_STR("what", "address"), F_STR("id", address));
    }
    return true;
}

static bool leases_sweep_network(const char *network, void *arg)
{
    struct sweep *s = arg;
    struct err e = { 0 };
    fd_auto fd = network[0] == '.'
                     ? -1
                     : openat(s->networks, network, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (network[0] == '.')
        return true;
    if (fd < 0) {
        err_sys(&e, errno, "open %s", network);
        if (errno != ENOTDIR && errno != ENOENT && errno != ELOOP)
            leases_failed(s, &e);
        return true;
    }
    s->fd = fd;
    s->network = network;
    if (presence_is_unknown(fs_list(fd, ".", leases_sweep_address, s, &e)))
        leases_failed(s, &e);
    return true;
}

struct taking {
    int networks;
    const char *address;
    bool taken;
    struct err unseen; /* a network could not be examined */
};

static bool note_taken(const char *network, void *arg)
{
    struct taking *t = arg;
    str_auto path = str_printf("%s/%s", network, t->address);
    struct presence found;

    if (path == NULL) {
        err_nomem(&t->unseen);
        return false;
    }
    found = fs_look_at(t->networks, path, NULL, &t->unseen);
    t->taken = !presence_is_unknown(found) && !presence_is_absent(found);
    return presence_is_absent(found);
}

/* Whether all networks were examined, and none has it. */
static bool is_free(struct sweep *s, const char *address)
{
    struct taking t = { .networks = s->networks, .address = address };

    if (presence_is_unknown(fs_list(s->networks, ".", note_taken, &t, &t.unseen)) ||
        t.unseen.code != ERR_OK) {
        leases_failed(s, &t.unseen);
        return false;
    }
    return !t.taken;
}

static enum err_code take_again(struct sweep *s, const struct pod *p, const char *address, struct err *e)
{
    str_auto network = NULL;
    str_auto path = NULL;
    str_auto text = str_printf("%s\r\n" POD_IFNAME, p->sandbox_id);
    struct presence found;
    struct stat st;

    if (text == NULL)
        return err_nomem(e);
    if (cni_cached_network(s->node->o.cni, p->sandbox_id, POD_IFNAME, &network, e) != ERR_OK) {
        if (e->sys != 0 && e->code != ERR_NOT_FOUND)
            return e->code;
        *e = (struct err){ 0 }; /* there is none, or it is damaged: nothing to wait for */
        return ERR_OK;
    }
    found = fs_look_at(s->networks, network, &st, e);
    if (presence_is_unknown(found))
        return e->code;
    if (presence_is_absent(found) || !S_ISDIR(st.st_mode))
        return ERR_OK; /* its addresses come from elsewhere */
    path = str_printf("%s/%s", network, address);
    if (path == NULL)
        return err_nomem(e);
    if (fs_replace_at(s->networks, path, text, strlen(text), 0644, false, e) != ERR_OK)
        return e->code;
    log_warn("reserved the address of a running pod again", F_STR("pod", p->key), F_STR("address", address));
    return ERR_OK;
}

static void take_all_again(struct sweep *s)
{
    pods_each (s->node, p)
        for (size_t i = 0; sandbox_of(p)->net == NET_READY && p->sandbox_id[0] != '\0' &&
                           i < sandbox_of(p)->net_result.n_ips;
             i++) {
            const char *address = sandbox_of(p)->net_result.ips[i];
            struct err e = { 0 };

            if (!is_free(s, address) || take_again(s, p, address, &e) == ERR_OK)
                continue;
            ERR_IGNORE(err_wrap(&e, "address %s of %.128s is not reserved, another pod may get it", address,
                                p->key));
            leases_failed(s, &e);
        }
}

enum err_code leases_sweep(struct node *n, bool alone, struct cni_stray_list *lost, struct err *ret_stays,
                           struct err *e)
{
    str_auto path = str_printf("%s/cni/networks", n->o.state_dir);
    struct sweep s = { .node = n, .lost = lost, .alone = alone };
    fd_auto fd = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (path == NULL)
        return err_nomem(e);
    if (fd < 0) /* ENOENT: no network has assigned any */
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s", path);
    if (cni_cached_ids(n->o.cni, &s.cached, e) != ERR_OK)
        return e->code;
    s.networks = fd;
    if (presence_is_unknown(fs_list(fd, ".", leases_sweep_network, &s, e)))
        leases_failed(&s, e);
    strs_done(&s.cached);
    take_all_again(&s);
    *ret_stays = s.stays;
    *e = s.e;
    return e->code;
}
