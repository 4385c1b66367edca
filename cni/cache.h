/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache - the data that a DEL needs, stored on disk, 0600, one file for each attachment:
 * <folder>/<network>-<container id>-<ifname>.json
 *
 *     {"kind": "cniAttachment", "version": 1, "complete": true, "containerId": "...", "ifName": "...",
 *      "networkName": "...", "netns": "...", "cniArgs": "K=V;K=V", "capabilityArgs": {...},
 *      "config": {the whole list in its normal form}, "result": {of the last plugin so far},
 *      "bootId": "...", "check": "the finding of the first CHECK", "unrun": 1}
 *
 * An entry is written before the first plugin of an ADD runs (complete: false), after each plugin that
 * changes the result (it is the prevResult of a DEL that has to clean up half an ADD) and at the end
 * (complete: true), always by atomic replacement, so an agent killed at any instruction finds a usable entry.
 * Not synced: after a power failure there are no namespaces either, and the addresses that our own IPAM
 * assigned are checked at the start (agent/pod/sandbox/leases.h).  An entry that is not valid, or has another
 * version, is set aside (base/files/damaged_file.h); an entry without "version" has version 1. An empty file,
 * which a power cut can leave of a file that was just written, is removed. Loop thread only.
 */
#ifndef CNI_CACHE_H
#define CNI_CACHE_H
#include "cni/plugin/conf.h"

/* A list and a result of up to 1 MiB each, plus JSON overhead. */
#define CNI_CACHE_ENTRY_MAX (4 * 1024 * 1024)

struct cni_entry { /* strings and capability_args are borrowed: from the caller (write) or from doc (read) */
    struct cni_list list;
    const char *container_id, *ifname, *netns, *args;
    json_t *capability_args; /* may be NULL */
    json_t *result;          /* in the list's version; may be NULL */
    /* The problem found by the first CHECK after the ADD; "": none; NULL: not checked yet. */
    const char *check;
    const char *boot_id; /* of the ADD; NULL if unknown */
    size_t n_unrun;      /* plugins at the list's end that an ADD could not execute; 0: all may have run */
    bool complete;
    json_t *doc; /* owned; NULL unless read from disk */
};

/* Opens the folder and creates it if missing; -1 on failure. */
int cni_cache_open(const char *path, struct err *e) MUST_CHECK;
enum err_code cni_cache_write(int dirfd, const struct cni_entry *entry, struct err *e) MUST_CHECK;
/* ERR_OK also if it did not exist. */
enum err_code cni_cache_remove(int dirfd, const struct cni_entry *entry, struct err *e) MUST_CHECK;

/* The first entry of this attachment, in any network; ERR_NOT_FOUND if none. Release with
 * cni_entry_done(). */
enum err_code cni_cache_find(int dirfd, const char *container_id, const char *ifname, struct cni_entry *ret,
                             struct err *e) MUST_CHECK;
/* The one in this network, without a look at the other files. After any error cni_cache_find() decides. */
enum err_code cni_cache_find_in(int dirfd, const char *network, const char *container_id, const char *ifname,
                                struct cni_entry *ret, struct err *e) MUST_CHECK;
/* Calls fn for each readable entry, in no particular order; `entry` is borrowed. fn returns false to stop.
 * Damaged entries are ignored; an entry that cannot be read at present (no memory, no descriptor) is an
 * error. */
enum err_code cni_cache_each(int dirfd, bool (*fn)(const struct cni_entry *entry, void *arg), void *arg,
                             struct err *e) MUST_CHECK;
/* Whether entries were set aside; there may then be attachments of which only the name is known. */
bool cni_cache_lacks_some(int dirfd);
/* Releases an entry that was read, or { 0 }. */
void cni_entry_done(struct cni_entry *entry);
#endif
