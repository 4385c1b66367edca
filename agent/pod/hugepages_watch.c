#include "agent/pod/hugepages_watch.h"
#include "agent/pod/hugepages.h"
#include "base/log.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>

#define FILES_MAX 64 /* sizes times memory nodes of a big machine, and some */

static const char *const patterns[] = {
    "/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
    "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages",
    "/proc/sys/vm/nr_hugepages",
};

struct hugepages_watch {
    struct node *node;
    struct hugepages_size known[HUGEPAGES_SIZES_MAX];
    size_t n_known, n_files, n_open;
    uv_fs_event_t files[FILES_MAX];
};

static const struct hugepages_size *find(const struct hugepages_size *v, size_t n, uint64_t page_bytes)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].page_bytes == page_bytes)
            return &v[i];
    return NULL;
}

static void on_write(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct hugepages_watch *w = handle->data;
    struct hugepages_size now[HUGEPAGES_SIZES_MAX];
    size_t n = hugepages_sizes(w->node, now);
    bool changed = false;

    (void)name;
    (void)events;
    if (status < 0 || w->node->closing)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct hugepages_size *was = find(w->known, w->n_known, now[i].page_bytes);
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
        pods_wake_pending(w->node);
}

static void on_closed(uv_handle_t *handle)
{
    struct hugepages_watch *w = handle->data;

    if (--w->n_open == 0)
        free(w);
}

static void add_file(struct hugepages_watch *w, const char *path)
{
    uv_fs_event_t *f = &w->files[w->n_files];
    int rc;

    if (w->n_files == FILES_MAX || uv_fs_event_init(w->node->o.loop, f) != 0)
        return;
    f->data = w;
    w->n_files++;
    w->n_open++;
    rc = uv_fs_event_start(f, on_write, path, 0);
    if (rc != 0)
        log_warn("huge pages of the node are not watched", F_STR("file", path),
                 F_STR("err", uv_strerror(rc)));
}

void hugepages_watch_begin(struct node *n)
{
    struct hugepages_watch *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        log_warn("huge pages of the node are not watched", F_STR("err", "no memory"));
        return;
    }
    w->node = n;
    w->n_known = hugepages_sizes(n, w->known);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        glob_t found = { 0 };
        if (glob(patterns[i], GLOB_NOSORT, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                add_file(w, found.gl_pathv[k]);
        globfree(&found);
    }
    if (w->n_files == 0) /* a kernel without huge pages */
        free(take_ptr(&w));
    n->hugepages_watch = w;
}

void hugepages_watch_end(struct node *n)
{
    struct hugepages_watch *w = take_ptr(&n->hugepages_watch);

    for (size_t i = 0; w != NULL && i < w->n_files; i++)
        uv_close((uv_handle_t *)&w->files[i], on_closed);
}
