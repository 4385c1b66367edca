/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links - the interfaces of a network namespace with their addresses and counters, read by rtnetlink.
 *
 * No thread enters the namespace: the kernel is queried from outside (IFLA_TARGET_NETNSID, Linux 4.20), which
 * assigns it an id in ours. Synchronous, local, about 10 microseconds per interface. Any thread.
 */
#ifndef CNI_LINKS_H
#define CNI_LINKS_H
#include "cni/cni.h"

#define CNI_LINKS_MAX 32         /* per pod; real ones have lo and one or two more */
#define CNI_LINK_ADDRESSES_MAX 8 /* remembered per interface */

struct cni_link {
    int index;
    char name[16];
    char mac[18]; /* "": none */
    bool up, loopback;
    uint32_t mtu;
    uint64_t rx_bytes, rx_packets, rx_errors, rx_dropped;
    uint64_t tx_bytes, tx_packets, tx_errors, tx_dropped;
    char addresses[CNI_LINK_ADDRESSES_MAX][46]; /* without prefix length */
    size_t n_addresses;
};

struct cni_links {
    struct cni_link v[CNI_LINKS_MAX]; /* in the kernel's order; more are left out */
    size_t n;
    bool cut; /* incomplete: missing entries may exist */
};

/* ERR_NOT_FOUND: no such namespace. If something changes during the read, it is repeated a few times. A pod
 * may create any number of interfaces: at most CNI_LINKS_ANSWERS_MAX parts of the answer are read. */
#define CNI_LINKS_TRIES 10
#define CNI_LINKS_ANSWERS_MAX 64 /* of up to 32 KiB: about 1500 interfaces */
enum err_code cni_links_read(const char *netns_path, struct cni_links *ret, struct err *e) MUST_CHECK;
/* Without the addresses, which take half of the time: n_addresses is 0. */
enum err_code cni_links_read_bare(const char *netns_path, struct cni_links *ret, struct err *e) MUST_CHECK;
/* The same for an open namespace, over a given socket (tests use their own peer). */
enum err_code cni_links_read_over(int fd, int netns, struct cni_links *ret, struct err *e) MUST_CHECK;

/* The id of a namespace in ours, assigned if it has none yet; it ends with the namespace. */
enum err_code cni_links_nsid(const char *netns_path, int32_t *ret, struct err *e) MUST_CHECK;

/* NULL: no such interface. */
const struct cni_link *cni_links_find(const struct cni_links *l, const char *name);

/* Checks that the namespace still has the interface and addresses of the ADD. ERR_NOT_FOUND: the interface or
 * one of its addresses is missing; ERR_PRECONDITION: it is down. With `cut`, missing entries are not
 * reported. Pure. */
enum err_code cni_links_check(const struct cni_links *l, const char *ifname,
                              const struct cni_result *expected, struct err *e) MUST_CHECK;

/* Adds messages of a dump, RTM_NEWLINK and RTM_NEWADDR, to *ret; ignores others. Pure. */
void cni_links_parse(struct cni_links *ret, const void *messages, size_t n);
#endif
