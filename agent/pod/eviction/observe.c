/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe - the values of all signals. Memory and process ids are read at once, in some 100 microseconds;
 * file systems on the pool, where a read may hang.
 */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/eviction/internal.h"
#include "agent/pod/usage/usage.h"
#include "base/log.h"
#include "base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum place { PLACE_ROOT, PLACE_IMAGES, PLACE_LAYERS, PLACES };

static const struct {
    const char *name;
    enum ev_signal bytes, inodes;
} places[PLACES] = {
    [PLACE_ROOT] = { "nodefs", EV_NODEFS, EV_NODEFS_INODES },
    [PLACE_IMAGES] = { "imagefs", EV_IMAGEFS, EV_IMAGEFS_INODES },
    [PLACE_LAYERS] = { "containerfs", EV_CONTAINERFS, EV_CONTAINERFS_INODES },
};

struct disk {
    char *path;
    dev_t device;
    struct ev_value bytes, inodes;
    struct err error;
};

struct observe {
    struct node *node;
    struct cg_meters *meters;
    struct cg_meter *machine, *pods;
    struct memory_seen memory;
    struct err memory_error;
    bool pids_failed;
    /* disks: the pool's while `busy` */
    struct work work;
    struct disk disks[PLACES];
    bool busy, closing, settled;
    enum ev_layout layout;
    unsigned signals; /* that were asked for */
    void (*fn)(const struct ev_observation *seen, void *arg);
    void *arg;
};

/* ---- memory ---- */

static void read_pods(struct observe *o, struct memory_seen *m)
{
    struct cg_sample s = { 0 };
    struct err e = { 0 };

    if (o->pods == NULL || cg_meter_read(o->pods, CG_PART_MEMORY | CG_PART_LIMIT, &s, &e) != ERR_OK ||
        !(s.parts & CG_PART_MEMORY))
        return;
    m->pods_known = true;
    m->pods_usage = s.memory.usage;
    m->pods_working_set = s.memory.working_set;
    m->pods_limit =
        (s.parts & CG_PART_LIMIT) && s.memory.limit < UINT64_C(1) << 62 ? s.memory.limit : UINT64_MAX;
}

static void note_memory_error(struct observe *o, const struct err *e)
{
    if (e->code != ERR_OK && o->memory_error.code == ERR_OK)
        log_warn("cannot read the memory of the machine", F_ERR(e));
    o->memory_error = *e;
}

static void read_memory(struct observe *o, const struct usage_machine *machine)
{
    struct memory_seen m = { 0 };
    struct cg_sample s = { 0 };
    struct err e = { 0 };

    if (o->machine == NULL)
        err_set(&e, ERR_PRECONDITION, "no cgroup hierarchy counts memory");
    else if (cg_meter_read(o->machine, CG_PART_MEMORY, &s, &e) == ERR_OK &&
             (!(s.parts & CG_PART_MEMORY) || machine->memory_bytes == 0))
        err_set(&e, ERR_UNAVAILABLE, "the kernel does not report the memory usage");
    note_memory_error(o, &e);
    m.known = e.code == ERR_OK;
    m.total = machine->memory_bytes;
    m.kernel_available = machine->memory_available_bytes != 0 ? machine->memory_available_bytes
                                                              : UINT64_MAX; /* < Linux 3.14 */
    m.usage = s.memory.usage;
    m.working_set = s.memory.working_set;
    read_pods(o, &m);
    o->memory = m;
}

const struct memory_seen *observe_memory(const struct observe *o)
{
    return &o->memory;
}

/* ---- process ids ---- */

static void read_pids(struct observe *o, const struct usage_machine *m, struct ev_value *ret)
{
    o->pids_failed = m->pid_max == 0 || m->processes == 0;
    if (o->pids_failed)
        return;
    *ret = (struct ev_value){ .known = true,
                              .available = m->pid_max > m->processes ? m->pid_max - m->processes : 0,
                              .capacity = m->pid_max };
}

void observe_quick(struct observe *o, unsigned signals, struct ev_observation *ret)
{
    struct usage_machine machine;

    *ret = (struct ev_observation){ 0 };
    if (!(signals & (SIGNALS_MEMORY | SIGNALS_PID)))
        return;
    usage_machine_read(&machine);
    if (signals & SIGNALS_MEMORY)
        read_memory(o, &machine);
    if ((signals & SIGNAL_BIT(EV_MEMORY)) && o->memory.known)
        ret->v[EV_MEMORY] = (struct ev_value){ .known = true,
                                               .available = memory_available(&o->memory),
                                               .capacity = o->memory.total };
    if ((signals & SIGNAL_BIT(EV_ALLOCATABLE_MEMORY)) &&
        !memory_allocatable(&o->memory, &ret->v[EV_ALLOCATABLE_MEMORY]))
        ret->v[EV_ALLOCATABLE_MEMORY] = (struct ev_value){ 0 };
    if (signals & SIGNALS_PID)
        read_pids(o, &machine, &ret->v[EV_PID]);
}

/* ---- disks ---- */

/* struct xfs_fs_eofblocks and XFS_IOC_FREE_EOFBLOCKS of the kernel's xfs_fs.h, which libc does not have. */
struct xfs_trim {
    uint32_t version, flags, uid, gid, project, pad;
    uint64_t min_size, reserved[12];
};
#define XFS_TRIM_VERSION 1
#define XFS_TRIM_MIN_SIZE (1u << 4)
#define XFS_TRIM _IOR('X', 58, struct xfs_trim)

/* Since Linux 5.14 XFS frees the space of removed files in the background, and statfs() does not wait. This
 * call waits, after it has trimmed preallocated space of files of at least min_size: there are none. Other
 * file systems refuse it. */
static void settle(const char *path)
{
    struct xfs_trim trim = { .version = XFS_TRIM_VERSION, .flags = XFS_TRIM_MIN_SIZE, .min_size = INT64_MAX };
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (ioctl(fd, XFS_TRIM, &trim) != 0 && errno != ENOTTY && errno != EOPNOTSUPP)
        log_debug("cannot wait for the space of removed files", F_STR("path", path), F_I64("errno", errno));
    close(fd);
}

static enum err_code read_disk(struct disk *d, struct err *e)
{
    struct statvfs fs;
    struct stat st;

    d->bytes = d->inodes = (struct ev_value){ 0 };
    if (stat(d->path, &st) != 0 || statvfs(d->path, &fs) != 0)
        return err_sys(e, errno, "read the file system of %s", d->path);
    d->device = st.st_dev;
    d->bytes = (struct ev_value){ .known = true,
                                  .available = (uint64_t)fs.f_bavail * fs.f_frsize,
                                  .capacity = (uint64_t)fs.f_blocks * fs.f_frsize };
    /* 0: it has as many as it needs (btrfs). */
    d->inodes =
        (struct ev_value){ .known = fs.f_files != 0, .available = fs.f_ffree, .capacity = fs.f_files };
    return ERR_OK;
}

static enum err_code read_disks(void *arg, struct err *e)
{
    struct observe *o = arg;

    (void)e; /* each has its own */
    for (size_t i = 0; i < PLACES; i++) {
        o->disks[i].error = (struct err){ 0 };
        if (o->settled)
            settle(o->disks[i].path);
        if (read_disk(&o->disks[i], &o->disks[i].error) != ERR_OK)
            continue;
    }
    return ERR_OK;
}

/* kubelet calls it an image file system of its own also when images and layers are apart from each other. */
enum ev_layout observe_layout_of(uint64_t root, uint64_t images, uint64_t layers)
{
    if (images == root && layers == root)
        return EV_LAYOUT_ONE;
    return images != root && layers == root ? EV_LAYOUT_SPLIT : EV_LAYOUT_IMAGEFS;
}

static void take_disks(struct observe *o, struct ev_observation *ret)
{
    const struct disk *d = o->disks;

    for (size_t i = 0; i < PLACES; i++) {
        if (d[i].error.code != ERR_OK) {
            log_debug("cannot read a file system", F_STR("signal", places[i].name), F_ERR(&d[i].error));
            continue;
        }
        if (o->signals & SIGNAL_BIT(places[i].bytes))
            ret->v[places[i].bytes] = d[i].bytes;
        if (o->signals & SIGNAL_BIT(places[i].inodes))
            ret->v[places[i].inodes] = d[i].inodes;
    }
    if (d[PLACE_ROOT].error.code == ERR_OK && d[PLACE_IMAGES].error.code == ERR_OK &&
        d[PLACE_LAYERS].error.code == ERR_OK)
        o->layout = observe_layout_of(d[PLACE_ROOT].device, d[PLACE_IMAGES].device, d[PLACE_LAYERS].device);
}

static void observe_free(struct observe *o)
{
    cg_meter_free(o->machine);
    cg_meter_free(o->pods);
    cg_meters_close(o->meters);
    for (size_t i = 0; i < PLACES; i++)
        free(o->disks[i].path);
    free(o);
}

static void observe_on_read(struct op *op, const struct err *result)
{
    struct observe *o = op->owner;
    struct ev_observation seen;

    (void)result;
    o->busy = false;
    if (o->closing) {
        observe_free(o);
        return;
    }
    observe_quick(o, o->signals, &seen);
    take_disks(o, &seen);
    o->fn(&seen, o->arg);
}

void observe_start(struct observe *o, unsigned signals, bool settled,
                   void (*fn)(const struct ev_observation *seen, void *arg), void *arg)
{
    o->busy = true;
    o->signals = signals;
    o->settled = settled;
    o->fn = fn;
    o->arg = arg;
    work_start(&o->work, "look at disks", NULL, read_disks, o, o->node->o.loop, observe_on_read, o);
}

bool observe_busy(const struct observe *o)
{
    return o->busy;
}

enum ev_layout observe_layout(const struct observe *o)
{
    return o->layout;
}

/* ---- output for people ---- */

void observe_explain(const struct observe *o, json_t *steps)
{
    if (o->memory_error.code != ERR_OK)
        explain_step(steps, "memory.available", "failed", 0, o->memory_error.text, 0);
    if (o->pids_failed)
        explain_step(steps, "pid.available", "failed", 0, "the kernel does not say how many processes run",
                     0);
    for (size_t i = 0; !o->busy && i < PLACES; i++)
        if (o->disks[i].error.code != ERR_OK)
            explain_step(steps, places[i].name, "failed", 0, o->disks[i].error.text, 0);
}

/* ---- life ---- */

static enum err_code open_meters(struct observe *o, struct err *e)
{
    const struct cg_meters_options options = { .tree = o->node->o.cgroups, .keep_open = 8 };
    char path[1024];

    if (options.tree == NULL)
        return ERR_OK;
    if (cg_meters_open(&o->meters, &options, e) != ERR_OK ||
        cg_meter_new(&o->machine, o->meters, "/", e) != ERR_OK ||
        cg_class_path(options.tree, CG_GUARANTEED, path, sizeof(path), e) != ERR_OK)
        return e->code;
    return cg_meter_new(&o->pods, o->meters, path, e);
}

struct observe *observe_open(struct node *n)
{
    struct observe *o = calloc(1, sizeof(*o));
    struct err e = { 0 };

    if (o != NULL) {
        o->node = n;
        o->disks[PLACE_ROOT].path = strdup(n->o.root_dir);
        o->disks[PLACE_IMAGES].path = strdup(img_store_dir(n->o.images));
        o->disks[PLACE_LAYERS].path = str_printf("%s/containers", n->o.state_dir);
    }
    if (o == NULL || o->disks[PLACE_ROOT].path == NULL || o->disks[PLACE_IMAGES].path == NULL ||
        o->disks[PLACE_LAYERS].path == NULL || open_meters(o, &e) != ERR_OK) {
        if (e.code == ERR_OK)
            err_nomem(&e);
        log_error("eviction signals are not measured", F_ERR(&e));
        if (o != NULL)
            observe_free(o);
        return NULL;
    }
    return o;
}

void observe_close(struct observe *o)
{
    if (o == NULL)
        return;
    o->closing = true;
    if (!o->busy)
        observe_free(o);
}
