/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/admit/hugepages_watch.h"
#include "agent/pod/admit/admit.h"
#include "agent/pod/admit/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/limits/hugepages.h"
#include "base/files/watches.h"
#include "base/log.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>
#include <sys/inotify.h>

static const char *const patterns[] = {
    "/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
    "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages",
    "/proc/sys/vm/nr_hugepages",
};

struct hugepages_watch {
    struct node *node;
    struct hugepages_size known[HUGEPAGES_SIZES_MAX];
    size_t n_known;
    struct watch_set *files;
};

static const struct hugepages_size *hugepages_watch_find(const struct hugepages_size *v, size_t n,
                                                         uint64_t page_bytes)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].page_bytes == page_bytes)
            return &v[i];
    return NULL;
}

static void on_write(int wd, uint32_t mask, const char *name, void *arg)
{
    struct hugepages_watch *w = arg;
    struct hugepages_size now[HUGEPAGES_SIZES_MAX];
    size_t n = hugepages_sizes(w->node, now);
    bool changed = false;

    (void)wd;
    (void)mask;
    (void)name;
    if (w->node->closing)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct hugepages_size *was = hugepages_watch_find(w->known, w->n_known, now[i].page_bytes);
        uint64_t before = was != NULL ? was->total_bytes : 0;
        char text[160];
        if (before == now[i].total_bytes)
            continue;
        changed = true;
        snprintf(text, sizeof(text), "%s of this node: %" PRIu64 " bytes, before %" PRIu64, now[i].resource,
                 now[i].total_bytes, before);
        log_info("huge pages of the node changed", F_STR("resource", now[i].resource),
                 F_U64("bytes", now[i].total_bytes), F_U64("before", before));
        node_event(w->node, false, "HugePagesChanged", text);
    }
    memcpy(w->known, now, n * sizeof(*now));
    w->n_known = n;
    if (changed)
        pods_wake_pending(w->node, "huge pages of the node changed");
}

void hugepages_watch_begin(struct node *n)
{
    struct hugepages_watch *w = calloc(1, sizeof(*w));
    struct err e = { 0 };
    size_t n_files = 0;

    if (w == NULL || watch_set_open(&w->files, n->o.loop, on_write, w, &e) != ERR_OK) {
        log_warn("cannot watch the node's huge pages", F_STR("err", "no memory"));
        free(w);
        return;
    }
    w->node = n;
    w->n_known = hugepages_sizes(n, w->known);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        glob_t found = { 0 };
        if (glob(patterns[i], GLOB_NOSORT, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                n_files += watch_set_add(w->files, found.gl_pathv[k], IN_MODIFY) >= 0;
        globfree(&found);
    }
    admit_node(n)->hugepages_watch = w;
    if (n_files == 0) /* a kernel without huge pages */
        hugepages_watch_end(n);
}

void hugepages_watch_end(struct node *n)
{
    struct hugepages_watch *w = take_ptr(&admit_node(n)->hugepages_watch);

    if (w == NULL)
        return;
    watch_set_close(w->files);
    free(w);
}
