/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet's /stats/summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1); unknown members are omitted. Values that
 * need a scan of foreign files (rootfs and volumes in bytes) are those of quotas, otherwise of the last scan
 * of a pod that was scanned (storage_usage.h). */
#include "agent/pod/limits/allocatable.h"
#include "agent/pod/project/project.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/usage/claim_usage.h"
#include "agent/pod/usage/local_storage.h"
#include "agent/pod/usage/storage_usage.h"
#include "agent/pod/usage/usage.h"
#include "agent/pod/volume/volumes.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "cni/links.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define NAMES_MAX (16u << 20) /* for all pods: enough for the maximum number */
#define TEXT_MAX (64u << 20)  /* likewise */
#define LOG_FILES_MAX 1000    /* rotation keeps a few */

struct summary {
    struct node *node;
    bool basic, pretty;
    json_t *node_json, *system_containers;
    json_t *pod_json; /* the pod whose containers follow */
    struct buf pods;  /* the text of those before it */
    size_t missing;
    bool failed;
    struct usage_machine machine;
    struct usage_walk walk;
    struct buf keys; /* of the pods, each NUL-terminated: pods come and go between two steps */
    size_t next;
};

static unsigned summary_parts(const struct summary *s)
{
    return s->basic ? CG_PARTS_BASIC : CG_PARTS_ALL;
}

static void usage_summary_put(struct summary *s, json_t *o, const char *key, json_t *value)
{
    if (json_object_set_new(o, key, value) != 0)
        s->failed = true;
}

static void usage_summary_put_number(struct summary *s, json_t *o, const char *key, uint64_t value)
{
    usage_summary_put(s, o, key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

static void put_time(struct summary *s, json_t *o, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_s(ns, text);
    usage_summary_put(s, o, key, json_string(text));
}

static json_t *timed(struct summary *s, int64_t at_ns)
{
    json_t *o = json_object();

    put_time(s, o, "time", at_ns);
    return o;
}

/* ---- of a cgroup ---- */

static json_t *psi_line(const struct cg_psi_line *l)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "total", (json_int_t)l->total_us, "avg10", l->avg10 / 100.0,
                     "avg60", l->avg60 / 100.0, "avg300", l->avg300 / 100.0);
}

static void put_psi(struct summary *s, json_t *o, const struct cg_psi *p)
{
    json_t *psi;

    if (!p->known)
        return;
    psi = json_object();
    usage_summary_put(s, psi, "full", psi_line(&p->full));
    usage_summary_put(s, psi, "some", psi_line(&p->some));
    usage_summary_put(s, o, "psi", psi);
}

static void put_cpu(struct summary *s, json_t *o, const struct usage_row *row)
{
    json_t *cpu;

    if (!(row->s.parts & CG_PART_CPU))
        return;
    cpu = timed(s, row->s.at_ns);
    if (row->rate_known)
        usage_summary_put_number(s, cpu, "usageNanoCores", row->nano_cores);
    else
        s->missing++;
    usage_summary_put_number(s, cpu, "usageCoreNanoSeconds", row->s.cpu.usage_ns);
    put_psi(s, cpu, &row->s.psi[CG_RES_CPU]);
    usage_summary_put(s, o, "cpu", cpu);
}

static uint64_t usage_summary_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void put_memory(struct summary *s, json_t *o, const struct usage_row *row)
{
    uint64_t limit = row->kind == USAGE_NODE ? s->machine.memory_bytes : row->s.memory.limit;
    json_t *m;

    if (!(row->s.parts & CG_PART_MEMORY))
        return;
    m = timed(s, row->s.at_ns);
    if (limit != CG_NO_LIMIT && limit != 0)
        usage_summary_put_number(s, m, "availableBytes",
                                 usage_summary_less(limit, row->s.memory.working_set));
    usage_summary_put_number(s, m, "usageBytes", row->s.memory.usage);
    usage_summary_put_number(s, m, "workingSetBytes", row->s.memory.working_set);
    usage_summary_put_number(s, m, "rssBytes", row->s.memory.rss);
    usage_summary_put_number(s, m, "pageFaults", row->s.memory.page_faults);
    usage_summary_put_number(s, m, "majorPageFaults", row->s.memory.major_page_faults);
    put_psi(s, m, &row->s.psi[CG_RES_MEMORY]);
    usage_summary_put(s, o, "memory", m);
}

static void put_swap(struct summary *s, json_t *o, const struct usage_row *row)
{
    json_t *swap;

    if (s->basic || (row->kind != USAGE_NODE && !(row->s.parts & CG_PART_SWAP)))
        return;
    swap = timed(s, row->s.at_ns);
    if (row->kind == USAGE_NODE) {
        usage_summary_put_number(s, swap, "swapAvailableBytes", s->machine.swap_free_bytes);
        usage_summary_put_number(s, swap, "swapUsageBytes",
                                 usage_summary_less(s->machine.swap_bytes, s->machine.swap_free_bytes));
    } else {
        if (row->s.memory.swap_limit != CG_NO_LIMIT)
            usage_summary_put_number(s, swap, "swapAvailableBytes",
                                     usage_summary_less(row->s.memory.swap_limit, row->s.memory.swap));
        usage_summary_put_number(s, swap, "swapUsageBytes", row->s.memory.swap);
    }
    usage_summary_put(s, o, "swap", swap);
}

static void put_io(struct summary *s, json_t *o, const struct usage_row *row)
{
    json_t *io;

    if (s->basic || !row->s.psi[CG_RES_IO].known)
        return;
    io = timed(s, row->s.at_ns);
    put_psi(s, io, &row->s.psi[CG_RES_IO]);
    usage_summary_put(s, o, "io", io);
}

static void put_usage(struct summary *s, json_t *o, const struct usage_row *row)
{
    put_cpu(s, o, row);
    put_memory(s, o, row);
    put_io(s, o, row);
    put_swap(s, o, row);
}

/* ---- network ---- */

static void put_link(struct summary *s, json_t *o, const struct cni_link *l)
{
    usage_summary_put(s, o, "name", json_string(l->name));
    usage_summary_put_number(s, o, "rxBytes", l->rx_bytes);
    usage_summary_put_number(s, o, "rxErrors", l->rx_errors);
    usage_summary_put_number(s, o, "txBytes", l->tx_bytes);
    usage_summary_put_number(s, o, "txErrors", l->tx_errors);
}

/* eth0's counters first, like kubelet; then all interfaces except lo. */
static void put_network(struct summary *s, json_t *o, const struct pod *p, int64_t at_ns)
{
    str_auto path = str_printf("%s/net", sandbox_pins(p));
    struct cni_links *l = calloc(1, sizeof(*l));
    json_t *network, *interfaces;
    struct err e = { 0 };

    if (l != NULL && path != NULL && sandbox_net(p) == NET_READY && !p->api->spec.host_network &&
        cni_links_read_bare(path, l, &e) == ERR_OK) {
        const struct cni_link *eth0 = cni_links_find(l, "eth0");
        network = timed(s, at_ns);
        interfaces = json_array();
        if (eth0 != NULL)
            put_link(s, network, eth0);
        for (size_t i = 0; i < l->n; i++) {
            json_t *one;
            if (l->v[i].loopback)
                continue;
            one = json_object();
            put_link(s, one, &l->v[i]);
            json_array_append_new(interfaces, one);
        }
        usage_summary_put(s, network, "interfaces", interfaces);
        usage_summary_put(s, o, "network", network);
    }
    free(l);
}

/* ---- file systems ---- */

static json_t *usage_json(struct summary *s, const struct fs_usage *u)
{
    json_t *o = timed(s, u->at_ns);

    if (u->sized) {
        usage_summary_put_number(s, o, "availableBytes", u->available_bytes);
        usage_summary_put_number(s, o, "capacityBytes", u->capacity_bytes);
        usage_summary_put_number(s, o, "usedBytes", u->used_bytes);
        usage_summary_put_number(s, o, "inodesFree", u->inodes_free);
        usage_summary_put_number(s, o, "inodes", u->inodes);
        usage_summary_put_number(s, o, "inodesUsed", u->inodes_used);
    }
    if (u->has_health)
        usage_summary_put(s, o, "volumeHealthStats", json_pack("{s:b}", "abnormal", u->abnormal));
    return o;
}

static json_t *fs_json(struct summary *s, const char *path, int64_t at_ns)
{
    struct fs_usage u;

    return fs_usage_read(path, at_ns, &u) ? usage_json(s, &u) : NULL;
}

static void put_fs(struct summary *s, json_t *node, int64_t at_ns)
{
    json_t *root = fs_json(s, s->node->o.root_dir, at_ns), *images = fs_json(s, s->node->o.state_dir, at_ns);

    if (root != NULL)
        usage_summary_put(s, node, "fs", root);
    if (images != NULL) {
        json_t *runtime = json_object();
        usage_summary_put(s, runtime, "containerFs", json_deep_copy(images));
        usage_summary_put(s, runtime, "imageFs", images);
        usage_summary_put(s, node, "runtime", runtime);
    }
}

/* NULL: not known. */
static json_t *part_json(struct summary *s, const char *fs, const struct storage_part *part)
{
    json_t *o = part->known ? fs_json(s, fs, part->at_ns) : NULL;

    if (o == NULL)
        return NULL;
    usage_summary_put_number(s, o, "usedBytes", part->bytes);
    usage_summary_put_number(s, o, "inodesUsed", part->inodes);
    return o;
}

static void usage_summary_put_layer(struct summary *s, json_t *o, const struct ctr *c)
{
    const struct pod *p = c->pod;
    const struct storage_part part = storage_usage_layer(p, c->index);
    json_t *rootfs = part_json(s, s->node->o.state_dir, &part);

    if (rootfs != NULL)
        usage_summary_put(s, o, "rootfs", rootfs);
}

static json_t *driver_json(struct summary *s, const struct pod *p, const char *volume)
{
    struct fs_usage u;

    return driver_usage(p, volume, &u) ? usage_json(s, &u) : NULL;
}

static json_t *mounted_json(struct summary *s, const struct pod *p, const char *volume)
{
    struct fs_usage u;

    return mounted_usage(p, volume, &u) ? usage_json(s, &u) : NULL;
}

static json_t *claim_json(struct summary *s, const struct pod *p, const struct api_volume *v)
{
    struct fs_usage u;
    char name[256];
    json_t *o;

    if (!claim_usage(p, v, &u))
        return NULL;
    o = usage_json(s, &u);
    claim_name(p, v, name, sizeof(name));
    usage_summary_put(s, o, "pvcRef",
                      json_pack("{s:s, s:s}", "name", name, "namespace", p->api->meta.namespace));
    return o;
}

static void put_volumes(struct summary *s, json_t *o, const struct pod *p)
{
    const struct storage_part all = storage_usage_pod(p);
    json_t *volumes = json_array(), *together;

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct storage_part part = storage_usage_volume(p, i);
        const struct api_volume *api = &p->api->spec.volumes[i];
        json_t *v = api->kind == API_VOL_CSI       ? driver_json(s, p, api->name)
                    : api->kind == API_VOL_STORAGE ? mounted_json(s, p, api->name)
                                                   : part_json(s, s->node->o.root_dir, &part);

        if (v == NULL)
            v = claim_json(s, p, api);
        if (v == NULL)
            continue;
        usage_summary_put(s, v, "name", json_string(p->api->spec.volumes[i].name));
        json_array_append_new(volumes, v);
    }
    if (json_array_size(volumes) > 0)
        usage_summary_put(s, o, "volume", json_incref(volumes));
    json_decref(volumes);
    together = part_json(s, s->node->o.root_dir, &all);
    if (together != NULL)
        usage_summary_put(s, o, "ephemeral-storage", together);
}

/* ---- node, pods, containers ---- */

static void usage_summary_add_node(struct summary *s, const struct usage_row *row)
{
    json_t *o = s->node_json, *allocatable = json_object();

    put_usage(s, o, row);
    if (s->machine.boot_ns != 0)
        put_time(s, o, "startTime", s->machine.boot_ns);
    /* Not in kubelet: the basis for percentages, because there is no Node object to ask. */
    usage_summary_put_number(s, allocatable, "nanoCores",
                             (uint64_t)node_allocatable(s->node, "cpu") * 1000000);
    usage_summary_put_number(s, allocatable, "memoryBytes", (uint64_t)node_allocatable(s->node, "memory"));
    usage_summary_put(s, o, "allocatable", allocatable);
    if (s->basic)
        return;
    put_fs(s, o, row->s.at_ns);
    if (s->machine.pid_max != 0) {
        json_t *limits = timed(s, row->s.at_ns);
        usage_summary_put_number(s, limits, "maxpid", s->machine.pid_max);
        usage_summary_put_number(s, limits, "curproc", s->machine.processes);
        usage_summary_put(s, o, "rlimit", limits);
    }
}

static void add_system_container(struct summary *s, const char *name, const struct usage_row *row)
{
    json_t *o = json_object();

    usage_summary_put(s, o, "name", json_string(name));
    if (s->machine.boot_ns != 0)
        put_time(s, o, "startTime", s->machine.boot_ns);
    put_usage(s, o, row);
    if (json_array_append_new(s->system_containers, o) != 0)
        s->failed = true;
}

static json_t *hugetlb_json(struct summary *s, const struct usage_row *row)
{
    const char(*sizes)[16];
    size_t n = usage_page_sizes(s->node, &sizes);
    json_t *o = json_object();

    for (size_t i = 0; i < n; i++)
        usage_summary_put_number(s, o, sizes[i], row->s.hugetlb[i]);
    return o;
}

static void usage_summary_add_pod(struct summary *s, const struct usage_row *row)
{
    const struct pod *p = row->pod;
    json_t *o = json_object(), *ref = json_object(), *processes;

    usage_summary_put(s, ref, "name", json_string(p->api->meta.name));
    usage_summary_put(s, ref, "namespace", json_string(p->api->meta.namespace));
    usage_summary_put(s, ref, "uid", json_string(p->uid));
    usage_summary_put(s, o, "podRef", ref);
    put_time(s, o, "startTime", p->start_time_ns);
    usage_summary_put(s, o, "containers", json_array());
    put_usage(s, o, row);
    if (!s->basic) {
        put_network(s, o, p, row->s.at_ns);
        put_volumes(s, o, p);
        processes = json_object();
        usage_summary_put_number(s, processes, "process_count", 0); /* its containers are added to it */
        usage_summary_put(s, o, "process_stats", processes);
        if (row->s.parts & CG_PART_HUGETLB)
            usage_summary_put(s, o, "hugetlb", hugetlb_json(s, row)); /* not in kubelet */
    }
    s->pod_json = o;
}

/* Files of its log, including rotated ones, like kubelet: a few in a folder of ours. */
static void put_listed_logs(struct summary *s, json_t *o, const struct ctr *c, int64_t at_ns)
{
    char path[1024];
    DIR *list =
        local_storage_path(c->pod, LOCAL_LOG, c->index, true, path, sizeof(path)) ? opendir(path) : NULL;
    struct storage_part part = { .known = true, .at_ns = at_ns };
    struct stat st;
    json_t *logs;

    if (list == NULL)
        return;
    for (struct dirent *d = readdir(list); d != NULL && part.inodes < LOG_FILES_MAX; d = readdir(list)) {
        if (d->d_name[0] == '.' || str_ends(d->d_name, ".tmp")) /* second names, and the empty next file */
            continue;
        if (fstatat(dirfd(list), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        part.bytes += (uint64_t)st.st_blocks * 512;
        part.inodes++;
    }
    closedir(list);
    logs = part_json(s, s->node->o.pod_logs_dir, &part);
    if (logs != NULL)
        usage_summary_put(s, o, "logs", logs);
}

/* Of its quota, if it has one: removed files that are still open count then. */
static void usage_summary_put_logs(struct summary *s, json_t *o, const struct ctr *c, int64_t at_ns)
{
    const struct storage_part part = storage_usage_log(c->pod, c->index);
    json_t *logs = part.exact ? part_json(s, s->node->o.pod_logs_dir, &part) : NULL;

    if (logs != NULL)
        usage_summary_put(s, o, "logs", logs);
    else
        put_listed_logs(s, o, c, at_ns);
}

static void usage_summary_add_container(struct summary *s, const struct usage_row *row)
{
    json_t *o = json_object(), *count;

    usage_summary_put(s, o, "name", json_string(row->ctr->spec->name));
    if (row->ctr->cur.started_ns != 0)
        put_time(s, o, "startTime", row->ctr->cur.started_ns);
    put_usage(s, o, row);
    if (!s->basic && (row->s.parts & CG_PART_HUGETLB))
        usage_summary_put(s, o, "hugetlb", hugetlb_json(s, row));
    if (!s->basic) {
        usage_summary_put_layer(s, o, row->ctr);
        usage_summary_put_logs(s, o, row->ctr, row->s.at_ns);
    }
    count = json_object_get(json_object_get(s->pod_json, "process_stats"), "process_count");
    if (count != NULL)
        json_integer_set(count, json_integer_value(count) + (json_int_t)row->s.processes);
    if (json_array_append_new(json_object_get(s->pod_json, "containers"), o) != 0)
        s->failed = true;
}

static void usage_summary_add(const struct usage_row *row, void *arg)
{
    struct summary *s = arg;

    switch (row->kind) {
    case USAGE_NODE:
        usage_summary_add_node(s, row);
        return;
    case USAGE_PODS:
        add_system_container(s, "pods", row);
        return;
    case USAGE_CLASS:
        add_system_container(s, row->class_ == CG_BURSTABLE ? "burstable" : "besteffort", row);
        return;
    case USAGE_POD:
        json_decref(s->pod_json);
        usage_summary_add_pod(s, row);
        return;
    case USAGE_CONTAINER:
        if (s->pod_json != NULL &&
            strcmp(json_str(json_object_get(s->pod_json, "podRef"), "uid"), row->pod->uid) == 0)
            usage_summary_add_container(s, row);
        return;
    }
}

struct summary *summary_new(struct node *n, bool basic, bool pretty)
{
    struct summary *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->node = n;
    s->basic = basic;
    s->pretty = pretty;
    buf_init(&s->keys, NAMES_MAX);
    buf_init(&s->pods, TEXT_MAX);
    pods_each (n, p)
        buf_add(&s->keys, p->key, strlen(p->key) + 1);
    usage_machine_read(&s->machine);
    s->node_json = json_object();
    s->system_containers = json_array();
    usage_summary_put(s, s->node_json, "nodeName", json_string(n->o.node_name));
    if (s->keys.failed || !usage_walk(n, &s->walk, summary_parts(s), NULL, usage_summary_add, s))
        s->failed = true;
    return s;
}

/* The pod that was read becomes text at once: that of a thousand pods would take too long at the end. */
static void put_pod(struct summary *s)
{
    if (s->pod_json == NULL)
        return;
    buf_adds(&s->pods, s->pods.n > 0 ? "," : "");
    buf_adds(&s->pods, s->pretty ? "\n    " : "");
    json_add_text(&s->pods, s->pod_json, s->pretty, 4);
    json_decref(take_ptr(&s->pod_json));
}

bool summary_step(struct summary *s)
{
    const char *key = s->keys.p + s->next;
    struct pod *p;

    if (s->next == s->keys.n || s->failed)
        return false;
    s->next += strlen(key) + 1;
    HASH_FIND_STR(s->node->pods, key, p);
    if (p != NULL && !usage_walk(s->node, &s->walk, summary_parts(s), p, usage_summary_add, s))
        s->failed = true;
    put_pod(s);
    return true;
}

bool summary_end(struct summary *s, struct buf *ret, size_t *ret_missing)
{
    const char *line = s->pretty ? "\n  " : "", *space = s->pretty ? " " : "";

    usage_walked(s->node, &s->walk, summary_parts(s));
    usage_summary_put(s, s->node_json, "systemContainers", json_incref(s->system_containers));
    *ret_missing = s->missing;
    buf_addf(ret, "{%s\"node\":%s", line, space);
    json_add_text(ret, s->node_json, s->pretty, 2);
    buf_addf(ret, ",%s\"pods\":%s[", line, space);
    buf_add(ret, s->pods.p, s->pods.n);
    buf_addf(ret, "%s]%s}\n", s->pods.n > 0 ? line : "", s->pretty ? "\n" : "");
    return !s->failed && !s->pods.failed && !ret->failed;
}

void summary_free(struct summary *s)
{
    if (s == NULL)
        return;
    json_decref(s->node_json);
    json_decref(s->pod_json);
    json_decref(s->system_containers);
    buf_done(&s->keys);
    buf_done(&s->pods);
    free(s);
}
