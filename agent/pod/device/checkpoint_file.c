/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_file - <root>/device-plugins/kubelet_internal_checkpoint, which kubelet reads if the node
 * changes over to it, and which we read if it changed over to us.
 *
 * The text is made on the loop and written on the pool. Changes during a write go into the next one, so many
 * pods share a write. A pod's devices are written at once, and before its containers start. Lists of devices,
 * which plugins may send as often as they like, are written once in LATER_MS at most.
 *
 * The agent itself relies on the pods' records. If the file is lost or damaged, only a change-over to kubelet
 * is impossible until the next write.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/device/internal.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"
#include "base/siphash.h"
#include "deviceplugin/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "kubelet_internal_checkpoint"
#define LATER_MS 1000
#define AGAIN_MS 5000 /* after a write that failed */
/* Bytes of ids in the lists of registered devices. The lists are for people, as kubelet reads only the names
 * of the resources; so they can be cut, and a plugin with huge lists does not keep the loop busy. */
#define REGISTERED_MAX (4 * 1024 * 1024)

static struct checkpoint_file *file_of(const struct node *n)
{
    return &device_node(n)->checkpoint;
}

static void start(struct node *n);
static void write_now(struct node *n);
static void on_timer(uv_timer_t *timer);

/* ---- writing ---- */

static enum err_code write_text(void *arg, struct err *e)
{
    const struct checkpoint_file *f = arg;

    return fs_replace_at(AT_FDCWD, f->path, f->text, f->n_text, 0600, true, e);
}

/* Wakes pods whose containers wait for the file: until now it had the generation `had`. */
static void wake_waiting(struct node *n, uint64_t had)
{
    pods_each (n, p)
        if (device_of(p)->generation > had)
            pod_wake(p, "the checkpoint of devices is written");
}

static void on_failed(struct node *n, const struct err *why)
{
    struct checkpoint_file *f = file_of(n);

    if (strncmp(f->error, why->text, sizeof(f->error) - 1) != 0)
        log_error("cannot write the device checkpoint; will retry", F_ERR(why));
    snprintf(f->error, sizeof(f->error), "%.250s", why->text);
    f->failing = f->due = true;
    if (!n->closing)
        uv_timer_start(&f->timer, on_timer, AGAIN_MS, 0);
}

static void on_written(struct op *op, const struct err *result)
{
    struct node *n = op->owner;
    struct checkpoint_file *f = file_of(n);
    uint64_t had = f->written;

    free(take_ptr(&f->text));
    if (result->code == ERR_OK) {
        if (f->failing)
            log_info("the checkpoint of devices can be written again");
        f->failing = false;
        f->error[0] = '\0';
        f->written = f->writing;
    } else {
        f->hash = 0;
        if (n->closing)
            return;
        on_failed(n, result);
    }
    if (n->closing && (f->due || f->due_later))
        write_now(n); /* the last write */
    if (n->closing)
        return;
    wake_waiting(n, had);
    if (f->failing)
        return;
    if (f->due)
        start(n);
    else if (f->due_later)
        checkpoint_later(n);
}

/* The resources of plugins that are there, with their healthy devices, and of plugins that went recently. */
static enum err_code add_registered(const struct node *n, struct dp_registered **ret, size_t *ret_n,
                                    const char ***ret_ids, struct err *e)
{
    const struct dp_inventory *v = devices_inventory(n);
    size_t n_resources = 0, n_ids = 0, bytes = 0;

    for (const struct dp_resource *r = dp_inventory_next(v, NULL); r != NULL; r = dp_inventory_next(v, r)) {
        n_resources++;
        n_ids += r->n_healthy;
    }
    *ret = calloc(n_resources + 1, sizeof(**ret));
    *ret_ids = calloc(n_ids + 1, sizeof(**ret_ids));
    *ret_n = n_ids = 0;
    if (*ret == NULL || *ret_ids == NULL)
        return err_nomem(e);
    for (const struct dp_resource *r = dp_inventory_next(v, NULL); r != NULL; r = dp_inventory_next(v, r)) {
        struct dp_registered *x = &(*ret)[*ret_n];
        if (r->provider != NULL ? r->provider->rank != DP_RANK_PLUGIN : !clock_boot_is_set(r->gone_at))
            continue;
        ++*ret_n;
        *x = (struct dp_registered){ .resource = r->name, .ids = *ret_ids + n_ids };
        for (size_t i = 0; i < r->n_devices && r->provider != NULL; i++) {
            bytes += r->devices[i].healthy ? strlen(r->devices[i].id) : 0;
            if (r->devices[i].healthy && bytes <= REGISTERED_MAX)
                (*ret_ids)[n_ids++] = r->devices[i].id;
        }
        x->n_ids = (size_t)(*ret_ids + n_ids - x->ids);
    }
    return ERR_OK;
}

static enum err_code make_text(struct node *n, char **ret, size_t *ret_n, struct err *e)
{
    struct dp_registered *registered = NULL;
    const char **ids = NULL;
    size_t n_registered = 0;

    if (add_registered(n, &registered, &n_registered, &ids, e) == ERR_OK)
        ERR_IGNORE(dp_checkpoint_write(devices_holdings(n), registered, n_registered, ret, ret_n, e));
    free(registered);
    free(ids);
    return e->code;
}

/* By another program, maybe with its folder. */
static bool was_removed(const struct checkpoint_file *f)
{
    struct stat st;

    return presence_is_absent(fs_look_at(AT_FDCWD, f->path, &st, ERR_IGNORED));
}

/* Called only while no write is under way. */
static void write_now(struct node *n)
{
    struct checkpoint_file *f = file_of(n);
    struct err e = { 0 };
    uint64_t hash, had = f->written, generation = dp_holdings_generation(devices_holdings(n));

    f->due = f->due_later = false;
    uv_timer_stop(&f->timer);
    if (make_text(n, &f->text, &f->n_text, &e) != ERR_OK) {
        on_failed(n, &e);
        wake_waiting(n, had);
        return;
    }
    hash = siphash_part(0, f->text, f->n_text);
    if (hash == f->hash && !was_removed(f)) {
        free(take_ptr(&f->text));
        f->written = generation;
        wake_waiting(n, had);
        return;
    }
    f->hash = hash;
    f->writing = generation;
    work_start(&f->work, "device checkpoint", "", write_text, f, n->o.loop, on_written, n);
}

static void start(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    if (f->usable && !n->closing && !op_live(&f->work.op))
        write_now(n);
}

static void on_timer(uv_timer_t *timer)
{
    start(timer->data);
}

void checkpoint_changed(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    if (dp_holdings_generation(devices_holdings(n)) == f->written && f->hash == 0 && !f->due)
        return; /* a pod that holds nothing, and no file so far */
    f->due = true;
    if (!f->failing)
        start(n);
}

void checkpoint_later(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    if (!f->usable || n->closing)
        return;
    f->due_later = true;
    if (!op_live(&f->work.op) && !uv_is_active((uv_handle_t *)&f->timer))
        uv_timer_start(&f->timer, on_timer, LATER_MS, 0);
}

bool devices_durable(const struct pod *p)
{
    const struct checkpoint_file *f = file_of(p->node);

    return !f->usable || f->failing || f->written >= device_of(p)->generation;
}

/* ---- reading, at the start ---- */

/* The entry is not used: its pod has ended, does not exist, or requests something else now. */
static bool is_stale(struct node *n, const struct dp_holding *x)
{
    const struct pod *p = pods_by_uid(n, x->pod_uid);

    if (p == NULL)
        return n->sources_ready;
    if (device_has_ended(p))
        return true;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct quantity *q = api_resource_get(&p->ctrs[i]->spec->resources.limits, x->resource);
        if (strcmp(p->ctrs[i]->spec->name, x->container) == 0)
            return q == NULL || quantity_value(q) != (int64_t)x->n_devices;
    }
    return true;
}

static void drop_stale(struct node *n)
{
    struct dp_holdings *h = device_node(n)->holdings;
    const struct dp_holding *x = dp_holdings_next(h, NULL);

    while (x != NULL) {
        if (!is_stale(n, x)) {
            x = dp_holdings_next(h, x);
            continue;
        }
        log_info("devices that no pod of this node holds are released", F_STR("podUID", x->pod_uid),
                 F_STR("containerName", x->container), F_STR("resource", x->resource));
        dp_holdings_drop(h, x->pod_uid, x->container, x->resource);
        x = dp_holdings_next(h, NULL);
    }
}

/* Keeps it for people; agent/pod/record/quarantine.c reports it. */
static void set_aside(const char *dir, const struct err *why)
{
    char away[DAMAGED_FILE_NAME_SIZE];
    struct err e = { 0 };
    fd_auto fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    log_error("the device checkpoint is damaged; using the pods' records instead", F_ERR(why));
    if (fd < 0)
        err_sys(&e, errno, "open %s", dir);
    else
        ERR_IGNORE(damaged_file_set_aside(fd, FILE_NAME, away, &e));
    if (e.code != ERR_OK)
        log_error("cannot set aside the device checkpoint", F_ERR(&e));
}

/* Adds holdings that the records do not have. *from_file: all of the file's. */
static void take(struct node *n, const char *dir, const char *text, size_t size,
                 struct dp_holdings *from_file)
{
    struct strs resources = { 0 }, ignored = { 0 };
    struct err e = { 0 };

    if (dp_checkpoint_read(text, size, from_file, &resources, &ignored, &e) == ERR_DATA_LOSS)
        set_aside(dir, &e);
    else if (e.code != ERR_OK)
        log_error("cannot read the device checkpoint", F_ERR(&e));
    for (size_t i = 0; i < ignored.n; i++)
        log_warn("ignoring an entry of the checkpoint of devices", F_STR("entry", ignored.v[i]));
    for (size_t i = 0; i < resources.n; i++)
        ERR_IGNORE(dp_inventory_remember(device_node(n)->inventory, resources.v[i], ERR_IGNORED));
    for (const struct dp_holding *x = dp_holdings_next(from_file, NULL); x != NULL;
         x = dp_holdings_next(from_file, x)) {
        struct err one = { 0 };
        if (dp_holdings_find(devices_holdings(n), x->pod_uid, x->container, x->resource) == NULL &&
            !is_stale(n, x) && dp_holdings_put(device_node(n)->holdings, x, &one) != ERR_OK)
            log_warn("ignoring an entry of the checkpoint of devices", F_STR("podUID", x->pod_uid),
                     F_ERR(&one));
    }
    strs_done(&resources);
    strs_done(&ignored);
}

static void read_file(struct node *n, const char *dir, struct dp_holdings *from_file)
{
    struct patience patience = { 0 };
    str_auto text = NULL;
    size_t size = 0;
    struct err e;

    do {
        e = (struct err){ 0 };
        ERR_IGNORE(fs_read_at(AT_FDCWD, file_of(n)->path, DP_CHECKPOINT_MAX, &text, &size, &e));
    } while (e.code != ERR_OK && e.code != ERR_NOT_FOUND && patience_wait(&patience));
    if (e.code == ERR_OK)
        take(n, dir, text, size, from_file);
    else if (e.code != ERR_NOT_FOUND)
        log_error("cannot read the device checkpoint; using the pods' records instead", F_ERR(&e));
}

static bool same_devices(const struct dp_holding *a, const struct dp_holding *b)
{
    if (a->n_devices != b->n_devices)
        return false;
    for (size_t i = 0; i < a->n_devices; i++)
        if (strcmp(a->devices[i].id, b->devices[i].id) != 0)
            return false;
    return true;
}

/* The file has exactly the held devices. */
static bool is_current(const struct dp_holdings *file, const struct dp_holdings *held)
{
    const struct dp_holding *a = dp_holdings_next(file, NULL), *b = dp_holdings_next(held, NULL);

    for (; a != NULL && b != NULL; a = dp_holdings_next(file, a), b = dp_holdings_next(held, b))
        if (strcmp(a->pod_uid, b->pod_uid) != 0 || strcmp(a->container, b->container) != 0 ||
            strcmp(a->resource, b->resource) != 0 || !same_devices(a, b))
            return false;
    return a == NULL && b == NULL;
}

/* Adds the resources that pods hold by their records to the inventory, although no provider offers them yet.
 */
static void remember_held(struct node *n)
{
    const struct dp_holdings *h = devices_holdings(n);

    for (const struct dp_holding *x = dp_holdings_next(h, NULL); x != NULL; x = dp_holdings_next(h, x))
        ERR_IGNORE(dp_inventory_remember(device_node(n)->inventory, x->resource, ERR_IGNORED));
}

/* Without the folder every write fails and is repeated. */
static void make_folder(const char *dir)
{
    struct patience patience = { 0 };
    struct err e;

    do
        e = (struct err){ 0 };
    while (fs_mkdirs(dir, 0750, &e) != ERR_OK && patience_wait(&patience));
    if (e.code != ERR_OK)
        log_error("cannot create the folder of the device checkpoint", F_ERR(&e));
}

static bool add_unfinished(const char *name, void *names)
{
    return !str_starts(name, "." FILE_NAME ".") || strs_add(names, name);
}

/* Leftovers of an agent that was killed during a write. */
static void remove_unfinished(const char *dir)
{
    struct strs names = { 0 };
    fd_auto fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && presence_is_unknown(fs_list(fd, ".", add_unfinished, &names, ERR_IGNORED)))
        log_debug("unfinished checkpoints of devices stay until the next start");
    for (size_t i = 0; i < names.n; i++)
        fs_remove_quietly(fd, names.v[i]);
    strs_done(&names);
}

void checkpoint_begin(struct node *n)
{
    struct checkpoint_file *f = file_of(n);
    str_auto dir = str_printf("%s/device-plugins", n->o.root_dir);
    scoped(dp_holdings_free) struct dp_holdings *from_file = NULL;
    struct err e = { 0 };

    f->path = dir != NULL ? str_printf("%s/" FILE_NAME, dir) : NULL;
    if (f->path == NULL || dp_holdings_new(&from_file, &e) != ERR_OK) {
        log_error("the device checkpoint will not be written",
                  F_STR("err", f->path == NULL ? "out of memory" : e.text));
        return;
    }
    make_folder(dir);
    remove_unfinished(dir);
    read_file(n, dir, from_file);
    remember_held(n);
    f->usable = true;
    if (is_current(from_file, devices_holdings(n))) {
        f->written = dp_holdings_generation(devices_holdings(n));
    } else {
        f->due = true; /* the file was damaged, or differs from the held devices */
        checkpoint_changed(n);
    }
}

void devices_sources_ready(struct node *n)
{
    uint64_t before = dp_holdings_generation(devices_holdings(n));

    drop_stale(n);
    if (dp_holdings_generation(devices_holdings(n)) != before)
        checkpoint_changed(n);
}

/* ---- its place in the room ---- */

void checkpoint_open(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    uv_timer_init(n->o.loop, &f->timer);
    f->timer.data = n;
}

bool checkpoint_busy(const struct node *n)
{
    return op_live(&file_of(n)->work.op);
}

/* The agent ends: postponed changes are written now, because kubelet may start next. */
void checkpoint_cancel(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    uv_timer_stop(&f->timer);
    if (f->usable && (f->due || f->due_later) && !f->failing && !op_live(&f->work.op))
        write_now(n);
}

void checkpoint_close(struct node *n)
{
    struct checkpoint_file *f = file_of(n);

    free(f->path);
    free(f->text);
    rooms_close_handle(n, (uv_handle_t *)&f->timer);
}
