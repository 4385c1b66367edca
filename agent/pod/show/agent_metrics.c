/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/agent_metrics.h"

#include "agent/pod/core/pod_starts.h"
#include "agent/pod/core/start_times.h"
#include "agent/pod/core/usage_text.h"
#include "agent/pod/sandbox/sandbox.h"
#include "base/clock.h"
#include "base/files/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static void agent_metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void agent_metrics_number(struct buf *out, const char *name, const char *type, const char *help,
                                 uint64_t value, enum usage_unit unit)
{
    agent_metrics_head(out, name, type, help);
    buf_addf(out, "%s ", name);
    usage_value(out, value, unit);
    buf_addc(out, '\n');
}

static void put_starts(const struct pod_starts *s, struct buf *out)
{
    static const char name[] = "kubelet_pod_start_duration_seconds";

    agent_metrics_head(out, name, "histogram", "Time from when a pod is first seen until it runs.");
    for (size_t i = 0; i < POD_START_BUCKETS; i++)
        buf_addf(out, "%s_bucket{le=\"%s\"} %llu\n", name, pod_starts_bounds[i].text,
                 (unsigned long long)s->buckets[i]);
    buf_addf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (unsigned long long)s->count, name);
    usage_value(out, s->sum_ns, UNIT_NS);
    buf_addf(out, "\n%s_count %llu\n", name, (unsigned long long)s->count);
}

static void put_kubelet(struct node *n, struct buf *out)
{
    unsigned running_pods = 0, running = 0, created = 0, exited = 0;

    pods_each (n, p) {
        unsigned of_pod = 0;
        for (size_t i = 0; i < p->n_ctrs; i++) {
            const struct ctr *c = p->ctrs[i];
            of_pod += c->state >= CTR_RUNNING;
            created += c->state == CTR_CREATED || c->state == CTR_STARTING;
            exited += c->state == CTR_NONE && c->cur.ended;
        }
        running += of_pod;
        running_pods += of_pod > 0 || sandbox_ready(p);
    }
    agent_metrics_head(out, "kubelet_node_name", "gauge", "The node's name.");
    buf_adds(out, "kubelet_node_name{");
    usage_label(out, "node", n->o.node_name, true);
    buf_adds(out, "} 1\n");
    agent_metrics_number(out, "kubelet_running_pods", "gauge", "Pods with a running sandbox.", running_pods,
                         UNIT_ONE);
    agent_metrics_head(out, "kubelet_running_containers", "gauge", "Containers by state.");
    buf_addf(out,
             "kubelet_running_containers{container_state=\"created\"} %u\n"
             "kubelet_running_containers{container_state=\"exited\"} %u\n"
             "kubelet_running_containers{container_state=\"running\"} %u\n",
             created, exited, running);
    agent_metrics_number(out, "coracle_failed_looks_total", "counter",
                         "Lookups of files, mounts, processes and cgroups that failed and were repeated.",
                         presence_unknown_count(), UNIT_ONE);
    put_starts(pod_starts_of(n), out);
    start_times_metrics(n, out);
}

/* ---- the process ---- */

static uint64_t open_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (list == NULL)
        return 0;
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list))
        n += d->d_name[0] != '.';
    closedir(list);
    return n - 1; /* without this one */
}

/* The n-th field of /proc/self/stat, counted from 3 (the state), after the arbitrary name. */
static uint64_t stat_field(const char *text, unsigned n)
{
    const char *p = strrchr(text, ')');

    for (unsigned i = 2; p != NULL && i < n; i++)
        p = strchr(p + 1, ' ');
    return p != NULL ? strtoull(p + 1, NULL, 10) : 0;
}

void agent_metrics_start_time(struct buf *out)
{
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    str_auto text = NULL;
    struct timespec up;
    int64_t boot_ns;

    if (clock_gettime(CLOCK_BOOTTIME, &up) != 0 || ticks == 0 ||
        fs_read_at(AT_FDCWD, "/proc/self/stat", FS_SMALL_MAX, &text, NULL, ERR_IGNORED) != ERR_OK)
        return;
    boot_ns = clock_wall_ns() - ((int64_t)up.tv_sec * 1000000000 + up.tv_nsec);
    agent_metrics_number(out, "process_start_time_seconds", "gauge",
                         "Start time of the agent, in seconds since 1970.",
                         (uint64_t)boot_ns + stat_field(text, 22) * (1000000000 / ticks), UNIT_NS);
}

static void put_process(struct buf *out)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    str_auto text = NULL;
    struct timespec cpu;
    struct rlimit files;
    struct err e = { 0 };

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0)
        agent_metrics_number(out, "process_cpu_seconds_total", "counter", "CPU time of the agent.",
                             (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec, UNIT_NS);
    agent_metrics_number(out, "process_open_fds", "gauge", "Open file descriptors of the agent.",
                         open_files(), UNIT_ONE);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        agent_metrics_number(out, "process_max_fds", "gauge",
                             "Maximum number of open file descriptors of the agent.", files.rlim_cur,
                             UNIT_ONE);
    if (fs_read_at(AT_FDCWD, "/proc/self/stat", FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return;
    agent_metrics_number(out, "process_resident_memory_bytes", "gauge", "Memory of the agent.",
                         stat_field(text, 24) * page, UNIT_ONE);
    agent_metrics_number(out, "process_virtual_memory_bytes", "gauge", "Address space of the agent.",
                         stat_field(text, 23), UNIT_ONE);
    agent_metrics_start_time(out);
}

void agent_metrics(struct node *n, struct buf *out)
{
    put_kubelet(n, out);
    put_process(out);
}
