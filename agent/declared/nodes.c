/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes: scanned in a child, watched by events, and passed to the inventory. */
#include "agent/declared/internal.h"

#include "base/array.h"
#include "base/scope.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

static const uint32_t node_mask =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/* ---- events ---- */

static bool is_like(const struct declared_watched *w, const char *name)
{
    for (size_t i = 0; i < w->names.n; i++)
        if (fnmatch(w->names.v[i], name, FNM_PERIOD | FNM_NOESCAPE) == 0)
            return true;
    return false;
}

static void on_change(int wd, uint32_t mask, const char *name, void *arg)
{
    struct declared *d = arg;
    bool self = (mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF | IN_Q_OVERFLOW)) != 0, matters = self;

    for (size_t i = 0; i < d->n_watched; i++) { /* a folder may be watched under two names */
        struct declared_watched *w = &d->watched[i];
        if (w->wd != wd || wd < 0)
            continue;
        matters = matters || is_like(w, name);
        if ((mask & IN_IGNORED) != 0)
            w->wd = -1;
    }
    if (matters)
        declared_ask(d, false);
}

static void on_uevent(void *arg)
{
    declared_ask(arg, false);
}

static void listen_to_kernel(struct declared *d)
{
    struct strs now = { 0 };
    struct err e = { 0 };

    if (d->uevents != NULL)
        return;
    if (uevents_open(&d->uevents, d->o.loop, on_uevent, d, &e) != ERR_OK)
        strs_take(&now, str_printf("the kernel's device events are not available, only inotify: %s", e.text));
    declared_set_problems(d, &d->event_problems, &now, "devices");
}

/* ---- watches ---- */

static void watched_done(struct declared_watched *w)
{
    free(w->dir);
    strs_done(&w->names);
}

static void forget_watches(struct declared *d, struct declared_watched *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool used = false;

        for (size_t k = 0; k < d->n_watched; k++)
            used = used || d->watched[k].wd == v[i].wd;
        if (!used && v[i].wd >= 0)
            watch_set_remove(d->node_watches, v[i].wd);
        watched_done(&v[i]);
    }
    free(v);
}

static bool had_watch(const struct declared_watched *v, size_t n, const struct declared_watched *w)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].wd == w->wd && strcmp(v[i].dir, w->dir) == 0)
            return true;
    return false;
}

/* Watches the folders that the scan read. Returns whether some of them were not watched before, so that an
 * event may have been missed. */
static bool watch_nodes(struct declared *d, const struct look *l)
{
    struct declared_watched *before = d->watched;
    size_t n_before = d->n_watched;
    bool news = false;

    d->watched = calloc(l->n_watch + 1, sizeof(*d->watched));
    d->n_watched = 0;
    for (size_t i = 0; i < l->n_watch && d->watched != NULL; i++) {
        struct declared_watched *w = &d->watched[d->n_watched++];
        bool ok = (w->dir = strdup(l->watch[i].dir)) != NULL;

        for (size_t k = 0; k < l->watch[i].n_names; k++)
            ok = strs_add(&w->names, l->watch[i].names[k]) && ok;
        w->wd = ok ? watch_set_add(d->node_watches, w->dir, node_mask) : -1;
        if (w->wd < 0) /* the folder was removed, or no memory: the scan is repeated */
            news = true;
        else
            news = news || !had_watch(before, n_before, w);
    }
    news = news || d->watched == NULL;
    forget_watches(d, before, n_before);
    return news;
}

/* ---- resources ---- */

static struct declared_resource *find_resource(struct declared *d, const char *name)
{
    for (size_t i = 0; i < d->n_resources; i++)
        if (strcmp(d->resources[i]->name, name) == 0)
            return d->resources[i];
    return NULL;
}

static struct declared_resource *add_resource(struct declared *d, const char *name)
{
    struct declared_resource *r = find_resource(d, name);

    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r));
    if (r == NULL || (r->name = strdup(name)) == NULL || !array_room(d->resources, d->n_resources)) {
        if (r != NULL)
            free(r->name);
        free(r);
        return NULL;
    }
    r->declared = d;
    declared_provider_init(r);
    d->resources[d->n_resources++] = r;
    return r;
}

static void resource_free(struct declared_resource *r)
{
    if (r->provided)
        dp_inventory_withdraw(r->declared->o.inventory, &r->provider, r->name);
    free(r->name);
    free(r->file);
    decl_list_done(&r->list);
    strs_done(&r->problems);
    free(r);
}

static void drop_unwanted(struct declared *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->n_resources; i++) {
        if (d->resources[i]->wanted)
            d->resources[kept++] = d->resources[i];
        else
            resource_free(d->resources[i]);
    }
    d->n_resources = kept;
    for (size_t i = 0; i < kept; i++)
        d->resources[i]->wanted = false; /* until the next scan */
}

static enum err_code hand_over(struct declared_resource *r, struct err *e)
{
    struct dp_inventory *v = r->declared->o.inventory;
    mem_auto struct dp_device *devices = calloc(r->list.n + 1, sizeof(*devices));

    if (devices == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < r->list.n; i++)
        devices[i] = (struct dp_device){ .id = r->list.v[i].id,
                                         .healthy = !r->list.v[i].ambiguous,
                                         .numa = r->list.v[i].numa,
                                         .n_numa = r->list.v[i].n_numa };
    return dp_inventory_list(v, &r->provider, r->name, devices, r->list.n, e);
}

/* The reason why the devices of a resource are unknown; NULL: they are known. */
static const char *unknown_of(const struct look_member *found, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (found[i].unknown != NULL)
            return found[i].unknown;
    return NULL;
}

static enum err_code take_list(struct declared_resource *r, const struct decl_resource *decl,
                               const struct look_member *found, size_t n, struct strs *problems,
                               struct err *e)
{
    const char *unknown = unknown_of(found, n);
    struct decl_list next = { 0 };

    if (!r->provided) {
        if (dp_inventory_provide(r->declared->o.inventory, r->name, &r->provider,
                                 (struct dp_options){ .pre_start = true }, e) != ERR_OK)
            return e->code;
        r->provided = true;
    }
    if (unknown != NULL)
        return err_set(e, ERR_UNAVAILABLE, "%.400s", unknown);
    if (decl_list_make(&next, decl, found, &r->list, e) != ERR_OK)
        return e->code;
    decl_list_done(&r->list);
    r->list = next;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < found[i].n_problems; k++)
            strs_add_once(problems, found[i].problems[k]);
    strs_copy(problems, &r->list.problems);
    return hand_over(r, e);
}

static size_t count_members(const struct decl_resource *r)
{
    const struct look_job one = { .v = &r, .n = 1 };

    return look_count(&one);
}

/* Returns whether all devices are known. */
static bool apply(struct declared *d, const struct look *l)
{
    const struct look_member *found = l->members;
    bool all = true;

    for (size_t i = 0; i < d->look_job.n; i++) {
        const struct decl_resource *decl = d->look_job.v[i];
        struct declared_resource *r = add_resource(d, decl->name);
        size_t n = count_members(decl);
        struct strs problems = { 0 };
        struct err e = { 0 };
        str_auto file = strdup(d->look_files[i]);

        if (r != NULL)
            r->wanted = true;
        if (r != NULL && file != NULL) {
            free(r->file);
            r->file = take_ptr(&file);
            if (take_list(r, decl, found, n, &problems, &e) != ERR_OK)
                strs_add(&problems, e.text);
            declared_set_problems(d, &r->problems, &problems, r->name);
        }
        all = all && r != NULL && file == NULL && e.code == ERR_OK;
        found += n;
    }
    drop_unwanted(d);
    return all;
}

/* ---- scanning ---- */

static bool is_in_job(const struct declared *d, const char *name)
{
    for (size_t i = 0; i < d->look_job.n; i++)
        if (strcmp(d->look_job.v[i]->name, name) == 0)
            return true;
    return false;
}

/* Builds the job from all resources of all files; of two resources with one name, the one of the first file
 * is used. */
static bool make_job(struct declared *d, struct strs *clashes)
{
    const struct decl_resource **v;
    size_t n = 0;

    for (size_t i = 0; i < d->n_files; i++)
        n += d->files[i].decl.n;
    free((void *)d->look_job.v);
    free((void *)d->look_files);
    d->look_job.n = 0;
    d->look_job.v = v = calloc(n + 1, sizeof(*v));
    d->look_files = calloc(n + 1, sizeof(*d->look_files));
    if (v == NULL || d->look_files == NULL)
        return false;
    for (size_t i = 0; i < d->n_files; i++)
        for (size_t k = 0; k < d->files[i].decl.n; k++) {
            const struct decl_resource *r = &d->files[i].decl.v[k];
            if (is_in_job(d, r->name)) {
                if (!strs_take(clashes, str_printf("%s declares %s, which an earlier file has already",
                                                   d->files[i].name, r->name)))
                    return false;
                continue;
            }
            d->look_files[d->look_job.n] = d->files[i].name;
            v[d->look_job.n++] = r;
        }
    return true;
}

static void finish_look(struct declared *d, const struct look *l)
{
    bool all = apply(d, l), news = watch_nodes(d, l);

    declared_now_ready(d);
    if (!all)
        declared_ask_later(d, false);
    else if (!d->want_read)
        d->retry_ms = 0;
    if (news)
        declared_ask(d, false);
}

static void on_looked(struct op *op, const struct err *result)
{
    struct declared *d = op->owner;
    struct proc_call *c = container_of(op, struct proc_call, op);
    struct strs now = { 0 };
    struct err e = *result;
    struct look l = { 0 };

    if (d->closing)
        declared_end(d);
    if (d->cancelled)
        return;
    if (e.code == ERR_OK && look_read(c->out.p, c->out.n, look_count(&d->look_job), &l, &e) == ERR_OK) {
        finish_look(d, &l);
        look_done(&l);
    } else {
        strs_add(&now, e.text);
        declared_ask_later(d, false);
        declared_now_ready(d);
    }
    declared_set_problems(d, &d->look_problems, &now, "devices");
    declared_step(d);
}

/* Without declarations, nothing is watched. */
static void rest(struct declared *d)
{
    uevents_close(take_ptr(&d->uevents));
    drop_unwanted(d);
    watch_nodes(d, &(struct look){ 0 });
    declared_now_ready(d);
    declared_step(d);
}

void declared_nodes_look_start(struct declared *d)
{
    const struct proc_call_spec spec = { .name = "look at declared devices",
                                         .fn = look_run,
                                         .arg = &d->look_job,
                                         .out_max = LOOK_OUT_MAX,
                                         .deadline_ms = LOOK_DEADLINE_MS,
                                         .cgroup_fd = d->o.cgroup_fd,
                                         .cgroup_procs = d->o.cgroup_procs,
                                         .moves_late = true };
    struct strs clashes = { 0 };

    d->want_look = false;
    if (!make_job(d, &clashes)) {
        strs_done(&clashes);
        declared_ask_later(d, false);
        declared_now_ready(d);
        return;
    }
    declared_set_problems(d, &d->clashes, &clashes, "devices");
    if (d->look_job.n == 0) {
        rest(d);
        return;
    }
    listen_to_kernel(d);
    proc_call_start(&d->look, &spec, d->o.loop, on_looked, d);
}

/* ---- life ---- */

enum err_code declared_nodes_open(struct declared *d, struct err *e)
{
    return watch_set_open(&d->node_watches, d->o.loop, on_change, d, e);
}

void declared_nodes_close(struct declared *d)
{
    for (size_t i = 0; i < d->n_resources; i++)
        resource_free(d->resources[i]);
    free(d->resources);
    for (size_t i = 0; i < d->n_watched; i++)
        watched_done(&d->watched[i]);
    free(d->watched);
    watch_set_close(d->node_watches);
    uevents_close(d->uevents);
    strs_done(&d->clashes);
    strs_done(&d->event_problems);
    strs_done(&d->look_problems);
}
