/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drivers - which FlexVolume drivers there are. A kubelet calls the init of a failing driver at each look-up
 * of any volume; here it is called again after a back-off, or when its file changed. Loop thread only; the
 * folder is on a disk of this node, so stat(2) is called directly.
 */
#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/files/watches.h"
#include "base/log.h"
#include "base/process/process.h"
#include "base/scope.h"
#include "volumes/flex/flex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <uthash.h>

#define INIT_MS 30000
#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 122000
#define EVENTS                                                                                               \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF)

struct stamp { /* of the file: another one is another driver */
    ino_t ino;
    off_t size;
    struct timespec changed;
    mode_t mode;
};

struct driver {
    UT_hash_handle hh;
    char *name, *dir_name, *program; /* "VENDOR/DRIVER", "VENDOR~DRIVER", its path */
    enum { ABSENT, NEW, ASKED, READY, FAILED } state;
    struct stamp stamp;
    struct flex_caps caps;
    struct proc init;
    bool again; /* the file changed while init ran */
    int wd;     /* of its folder; -1: none */
    uint64_t backoff_ms;
    struct boot_time retry_at;
    char error[400];
    struct flex_drivers *all;
};

struct flex_drivers {
    struct flex_drivers_options o;
    char *dir;
    struct driver *drivers;
    struct watch_set *watches;
    bool stopped;
};

/* ---- names ---- */

static bool is_plain(const char *name, size_t n)
{
    return n > 0 && n < 200 && name[0] != '.' && memchr(name, '/', n) == NULL && memchr(name, '~', n) == NULL;
}

static enum err_code name_driver(struct driver *d, const char *dir, const char *name, struct err *e)
{
    const char *slash = strchr(name, '/'), *last = slash != NULL ? slash + 1 : name;

    if ((slash != NULL && !is_plain(name, (size_t)(slash - name))) || !is_plain(last, strlen(last)))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a valid FlexVolume driver name", name);
    d->name = strdup(name);
    d->dir_name = strdup(name);
    if (d->dir_name != NULL && slash != NULL)
        d->dir_name[slash - name] = '~';
    d->program = d->dir_name != NULL ? str_printf("%s/%s/%s", dir, d->dir_name, last) : NULL;
    return d->name != NULL && d->program != NULL ? ERR_OK : err_nomem(e);
}

static void driver_free(struct driver *d)
{
    free(d->name);
    free(d->dir_name);
    free(d->program);
    free(d);
}

/* ---- init ---- */

static void tell(struct flex_drivers *all)
{
    if (!all->stopped && all->o.changed != NULL)
        all->o.changed(all->o.arg);
}

static void failed(struct driver *d, const struct err *why)
{
    d->state = FAILED;
    d->backoff_ms = backoff_next_ms(d->backoff_ms, RETRY_FIRST_MS, RETRY_MAX_MS);
    d->retry_at = clock_boot_in_ms(d->backoff_ms);
    snprintf(d->error, sizeof(d->error), "init of driver %.100s failed: %.250s", d->name, why->text);
    log_warn("FlexVolume driver cannot be used", F_STR("driver", d->name), F_ERR(why));
}

static void on_init(struct op *op, const struct err *result);

static void start_init(struct driver *d)
{
    const char *const argv[] = { d->program, "init", NULL };
    const struct proc_spec spec = {
        .name = "FlexVolume init",
        .subject = d->name,
        .argv = argv,
        .stdout_max = FLEX_ANSWER_MAX,
        .cgroup_fd = d->all->o.cgroup_fd,
        .cgroup_procs = d->all->o.cgroup_procs,
        .deadline_ms = INIT_MS,
    };

    d->state = ASKED;
    d->again = false;
    proc_start(&d->init, &spec, d->all->o.loop, on_init, d);
}

static void on_init(struct op *op, const struct err *result)
{
    struct driver *d = op->owner;
    struct flex_answer answer = { 0 };
    struct err e = *result;

    if (d->all->stopped) {
        d->state = NEW;
        return;
    }
    if (d->again) {
        start_init(d);
        return;
    }
    /* What it says counts more than its exit code. */
    if (d->init.exited && d->init.out.n > 0) {
        e = (struct err){ 0 };
        if (flex_answer_parse("init", d->init.out.p, d->init.out.n, &answer, &e) == ERR_OK &&
            answer.status != FLEX_SUCCESS)
            err_set(&e, ERR_UNKNOWN, "%s", answer.message);
        else if (e.code == ERR_OK && result->code != ERR_OK)
            e = *result;
    } else if (e.code == ERR_OK) {
        err_set(&e, ERR_INVALID, "it answered nothing");
    }
    if (e.code == ERR_OK) {
        d->state = READY;
        d->caps = answer.caps;
        d->backoff_ms = 0;
        log_info("FlexVolume driver found", F_STR("driver", d->name),
                 F_STR("attach", answer.caps.attach ? "yes" : "no"));
    } else {
        failed(d, &e);
    }
    tell(d->all);
}

/* ---- the folder ---- */

static bool stamp_of(const char *path, struct stamp *ret)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *ret = (struct stamp){ .ino = st.st_ino, .size = st.st_size, .changed = st.st_ctim, .mode = st.st_mode };
    return true;
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return a->ino == b->ino && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec && a->mode == b->mode;
}

static void watch(struct driver *d)
{
    str_auto dir = str_printf("%s/%s", d->all->dir, d->dir_name);

    if (dir != NULL && d->all->watches != NULL && d->wd < 0)
        d->wd = watch_set_add(d->all->watches, dir, EVENTS | IN_ONLYDIR);
}

static void look(struct driver *d)
{
    struct stamp now = { 0 };
    bool here;

    watch(d);
    here = stamp_of(d->program, &now);
    if (!here && d->state != ABSENT) {
        log_info("FlexVolume driver is gone", F_STR("driver", d->name));
        d->again = d->state == ASKED; /* and fails then */
        if (d->state != ASKED)
            d->state = ABSENT;
        return;
    }
    if (!here || (d->state != ABSENT && is_same(&d->stamp, &now)))
        return;
    d->stamp = now;
    d->backoff_ms = 0;
    if (d->state == ASKED)
        d->again = true;
    else
        start_init(d);
}

static void on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct flex_drivers *all = arg;

    (void)name;
    if (all->stopped)
        return;
    for (struct driver *d = all->drivers; d != NULL; d = d->hh.next) {
        if (d->wd == wd && (mask & (IN_IGNORED | IN_DELETE_SELF)) != 0)
            d->wd = -1;
        look(d);
    }
}

/* The folder is made as kubelet does, but only once a pod asks for a driver. */
static void begin(struct flex_drivers *all)
{
    struct err e = { 0 };

    if (all->watches != NULL)
        return;
    if (fs_mkdirs(all->dir, 0755, &e) != ERR_OK)
        log_warn("cannot create the folder of FlexVolume drivers", F_STR("folder", all->dir), F_ERR(&e));
    else if (watch_set_open(&all->watches, all->o.loop, on_event, all, &e) != ERR_OK)
        log_warn("cannot watch FlexVolume drivers", F_ERR(&e));
    else if (watch_set_add(all->watches, all->dir, EVENTS | IN_ONLYDIR) < 0)
        log_warn("cannot watch the folder of FlexVolume drivers", F_STR("folder", all->dir),
                 F_STR("error", strerror(errno)));
}

/* ---- for volumes ---- */

static enum err_code driver_get(struct flex_drivers *all, const char *name, struct driver **ret,
                                struct err *e)
{
    struct driver *d;

    HASH_FIND_STR(all->drivers, name, d);
    if (d == NULL) {
        d = calloc(1, sizeof(*d));
        if (d == NULL)
            return err_nomem(e);
        d->all = all;
        d->wd = -1;
        d->state = ABSENT;
        if (name_driver(d, all->dir, name, e) != ERR_OK) {
            driver_free(d);
            return e->code;
        }
        HASH_ADD_KEYPTR(hh, all->drivers, d->name, strlen(d->name), d);
        if (d->hh.tbl == NULL) {
            driver_free(d);
            return err_nomem(e);
        }
    }
    *ret = d;
    return ERR_OK;
}

enum err_code flex_drivers_find(struct flex_drivers *all, const char *name, struct flex_driver *ret,
                                struct err *e)
{
    struct driver *d;

    begin(all);
    if (driver_get(all, name, &d, e) != ERR_OK)
        return e->code;
    look(d);
    if (d->state == FAILED && clock_boot_is_due(d->retry_at))
        start_init(d);
    switch (d->state) {
    case READY:
        *ret = (struct flex_driver){ .program = d->program, .dir_name = d->dir_name, .caps = d->caps };
        return ERR_OK;
    case NEW:
    case ASKED:
        return err_set(e, ERR_UNAVAILABLE, "querying the capabilities of driver %.100s", name);
    case ABSENT:
        return err_set(e, ERR_NOT_FOUND, "there is no %.300s", d->program);
    case FAILED:
        break;
    }
    return err_set(e, ERR_NOT_FOUND, "%s", d->error);
}

/* ---- life ---- */

enum err_code flex_drivers_open(struct flex_drivers **ret, const struct flex_drivers_options *o,
                                struct err *e)
{
    struct flex_drivers *all = calloc(1, sizeof(*all));
    size_t n = strlen(o->dir);

    if (all == NULL)
        return err_nomem(e);
    all->o = *o;
    while (n > 1 && o->dir[n - 1] == '/')
        n--;
    all->dir = str_printf("%.*s", (int)n, o->dir);
    if (all->dir == NULL) {
        free(all);
        return err_nomem(e);
    }
    *ret = all;
    return ERR_OK;
}

bool flex_drivers_busy(const struct flex_drivers *all)
{
    for (const struct driver *d = all->drivers; d != NULL; d = d->hh.next)
        if (op_live(&d->init.op))
            return true;
    return false;
}

void flex_drivers_stop(struct flex_drivers *all)
{
    all->stopped = true;
    for (struct driver *d = all->drivers; d != NULL; d = d->hh.next)
        if (op_live(&d->init.op))
            proc_cancel(&d->init);
}

void flex_drivers_close(struct flex_drivers *all)
{
    struct driver *d, *tmp;

    if (all == NULL)
        return;
    all->stopped = true;
    watch_set_close(all->watches);
    HASH_ITER (hh, all->drivers, d, tmp) {
        HASH_DEL(all->drivers, d);
        driver_free(d);
    }
    free(all->dir);
    free(all);
}
