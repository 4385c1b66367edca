/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/internal.h"

#include "base/backoff.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/netlink.h"
#include "base/scope.h"
#include "cni/plugin/plugin.h"
#include "cni/plugin/result.h"
#include "cni/undo.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A list's new plugin folders may need to be watched before they are read; this ends after a few rounds. */
#define WATCH_ROUNDS 3

#define AGAIN_FIRST_MS 50
#define AGAIN_MAX_MS 10000

/* lists have at most 1 MiB, and there are few; beyond that, each event is reported */
#define PICTURE_MAX (16 * 1024 * 1024)

/* ---- loading ---- */

static bool cni_same(const struct strs *a, const struct strs *b)
{
    for (size_t i = 0; i < a->n; i++) {
        if (!strs_has(b, a->v[i]))
            return false;
    }
    return a->n == b->n;
}

static void watch_all(struct cni *c)
{
    struct strs dirs = { 0 };
    struct err e = { 0 };
    bool ok = strs_add(&dirs, c->conf_dir) && strs_copy(&dirs, &c->bin_dirs) &&
              strs_copy(&dirs, &c->networks.folders);

    if (!ok)
        err_nomem(&e);
    else if (cni_watch_set(c->watch, strs_list(&dirs), &e) == ERR_OK)
        e = (struct err){ 0 };
    c->watch_problem = e;
    strs_done(&dirs);
}

static void cni_load_once(struct cni *c)
{
    for (int round = 0; round < WATCH_ROUNDS; round++) {
        struct cni_networks fresh;
        struct err e = { 0 };
        bool done;

        watch_all(c); /* before reading, so that no change is missed */
        if (cni_networks_load(&fresh, c->conf_dir, strs_list(&c->bin_dirs), c->data_dir, &c->versions, &e) !=
            ERR_OK) {
            c->load_problem = e; /* keep the previous networks */
            return;
        }
        c->load_problem = e;
        done = cni_same(&fresh.folders, &c->networks.folders);
        cni_networks_done(&c->networks);
        c->networks = fresh;
        strs_done(&c->checked);
        if (done)
            return;
    }
}

static void cni_on_again(void *arg);

/* A failed load is retried on a timer, because an event may never come. */
static void cni_load(struct cni *c)
{
    cni_load_once(c);
    if (c->load_problem.code == ERR_OK && c->watch_problem.code == ERR_OK) {
        c->again_ms = 0;
        return;
    }
    c->again_ms = backoff_next_ms(c->again_ms, AGAIN_FIRST_MS, AGAIN_MAX_MS);
    cni_watch_again(c->watch, c->again_ms, cni_on_again);
}

static void cni_on_again(void *arg)
{
    cni_load_again(arg);
}

void cni_reload(struct cni *c)
{
    cni_versions_try_again(&c->versions);
    cni_load(c);
    cni_ask_versions(c);
    if (!cni_ask_holds(c))
        cni_status_ask(c);
}

/* The lists in use and the problems, for comparison. */
static char *picture(const struct cni *c)
{
    buf_auto b = BUF_INIT(PICTURE_MAX);
    const char *problem;

    for (size_t i = 0; i < c->networks.n; i++) {
        str_auto text = json_text(c->networks.lists[i].conf);

        buf_addf(&b, "%s\n", text != NULL ? text : "");
    }
    for (size_t i = 0; (problem = cni_problem(c, i)) != NULL; i++)
        buf_addf(&b, "%s\n", problem);
    return b.failed ? NULL : buf_detach(&b);
}

/* The lists' programs as they are on disk now. */
static char *programs(const struct cni *c)
{
    buf_auto b = BUF_INIT(PICTURE_MAX);

    for (size_t i = 0; i < c->networks.n; i++) {
        const struct cni_list *list = &c->networks.lists[i];

        for (size_t k = 0; k < cni_list_size(list); k++) {
            const char *type = cni_plugin_type(cni_list_plugin(list, k));
            str_auto path = NULL;
            struct err e = { 0 };
            struct stat st;

            if (presence_is_unknown(cni_plugin_find(strs_list(&c->bin_dirs), type, &path, &e)))
                return NULL; /* they may have changed */
            if (path != NULL && stat(path, &st) == 0)
                buf_addf(&b, "%s %llu %lld %lld.%09ld\n", path, (unsigned long long)st.st_ino,
                         (long long)st.st_size, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        }
    }
    return b.failed ? NULL : buf_detach(&b);
}

/* Whether the programs differ from the last time. */
static bool programs_changed(struct cni *c)
{
    str_auto before = c->programs;

    c->programs = programs(c);
    return before == NULL || c->programs == NULL || strcmp(before, c->programs) != 0;
}

/* Nothing is reported if nothing changed: a plugin that writes to the folders when called would trigger
 * endless calls. */
static void report_if_changed(struct cni *c, const char *before)
{
    str_auto after = picture(c);
    bool changed = programs_changed(c) || before == NULL || after == NULL || strcmp(before, after) != 0;

    if (c->changed != NULL && changed)
        c->changed(c->changed_arg);
}

void cni_load_again(struct cni *c)
{
    str_auto before = picture(c);

    cni_load(c);
    cni_ask_versions(c); /* a program was replaced in the meantime */
    if (!cni_ask_holds(c))
        cni_status_ask(c);
    report_if_changed(c, before);
}

static void cni_on_folder_event(void *arg)
{
    struct cni *c = arg;
    str_auto before = picture(c);

    cni_reload(c);
    report_if_changed(c, before);
}

const char *cni_default_network(const struct cni *c, const char **ret_why)
{
    if (c->networks.n > 0 && cni_status_problem(c) == NULL)
        return c->networks.lists[0].name;
    if (c->networks.n > 0 && ret_why != NULL)
        *ret_why = cni_status_problem(c);
    else if (ret_why != NULL) /* without `why` even the first load failed */
        *ret_why = c->networks.why != NULL ? c->networks.why : c->load_problem.text;
    return NULL;
}

const struct cni_list *cni_network(const struct cni *c, const char *name)
{
    for (size_t i = 0; i < c->networks.n; i++)
        if (strcmp(c->networks.lists[i].name, name) == 0)
            return &c->networks.lists[i];
    return NULL;
}

bool cni_has_network(const struct cni *c, const char *name)
{
    return cni_network(c, name) != NULL;
}

bool cni_has_no_list(const struct cni *c)
{
    return c->networks.n == 0 && c->networks.problems.n == 0 && c->networks.why != NULL;
}

const char *const *cni_missing_plugins(const struct cni *c)
{
    return strs_list(&c->networks.missing);
}

const char *cni_problem(const struct cni *c, size_t i)
{
    const struct err *more[] = { &c->load_problem, &c->watch_problem };

    if (i < c->networks.problems.n)
        return c->networks.problems.v[i];
    i -= c->networks.problems.n;
    for (size_t k = 0; k < ARRAY_LEN(more); k++) {
        if (more[k]->code != ERR_OK && i-- == 0)
            return more[k]->text;
    }
    return NULL;
}

void cni_on_change(struct cni *c, void (*fn)(void *arg), void *arg)
{
    c->changed = fn;
    c->changed_arg = arg;
}

/* ---- life ---- */

static bool cni_copy(char **to, const char *from)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static enum err_code cni_fill(struct cni *c, const struct cni_options *o, struct err *e)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    c->loop = o->loop;
    c->cgroup_fd = o->ops_cgroup_fd;
    cni_width_init(&c->width, processors > 2 ? 2 * (size_t)processors : 4);
    if (o->conf_dir == NULL || o->conf_dir[0] != '/')
        return err_set(e, ERR_INVALID, "CNI configuration folder is not an absolute path");
    if (!cni_copy(&c->conf_dir, o->conf_dir) || !cni_copy(&c->cache_dir, o->cache_dir) ||
        !cni_copy(&c->data_dir, o->data_dir) || !cni_copy(&c->cgroup_procs, o->ops_cgroup_procs))
        return err_nomem(e);
    for (size_t i = 0; o->bin_dirs[i] != NULL; i++) {
        if (o->bin_dirs[i][0] != '/' || strchr(o->bin_dirs[i], ':') != NULL)
            return err_set(e, ERR_INVALID, "CNI plugin folder \"%s\": not an absolute path without \":\"",
                           o->bin_dirs[i]);
        if (!strs_add(&c->bin_dirs, o->bin_dirs[i]))
            return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code cni_open(struct cni **ret, const struct cni_options *o, struct err *e)
{
    scoped(cni_close) struct cni *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->gcs);
    TAILQ_INIT(&c->asks);
    cni_versions_init(&c->versions);
    c->cache_fd = -1;
    if (id_boot(c->boot_id, e) != ERR_OK || cni_fill(c, o, e) != ERR_OK || cni_status_open(c, e) != ERR_OK)
        return e->code;
    c->cache_fd = cni_cache_open(c->cache_dir, e);
    if (c->cache_fd < 0 || cni_watch_open(&c->watch, c->loop, cni_on_folder_event, c, e) != ERR_OK)
        return e->code;
    cni_reload(c);
    c->programs = programs(c);
    *ret = take_ptr(&c);
    return ERR_OK;
}

const struct cni_times *cni_times(const struct cni *c)
{
    return &c->times;
}

void cni_close(struct cni *c)
{
    if (c == NULL)
        return;
    cni_watch_close(c->watch);
    cni_ask_close(c);
    cni_status_close(c);
    cni_versions_done(&c->versions);
    if (c->cache_fd >= 0)
        close(c->cache_fd);
    cni_networks_done(&c->networks);
    strs_done(&c->bin_dirs);
    strs_done(&c->used_bridges);
    strs_done(&c->checked);
    strs_done(&c->used_networks);
    free(c->programs);
    free(c->conf_dir);
    free(c->cache_dir);
    free(c->data_dir);
    free(c->cgroup_procs);
    free(c);
}

/* ---- removing leftovers of plugins ---- */

struct remove {
    struct strs bridges, networks;
    bool ok;
};

static void remove_add(struct remove *r, const struct cni_list *list)
{
    r->ok = r->ok && strs_add_once(&r->networks, list->name);
    for (size_t i = 0; i < cni_list_size(list); i++) {
        const char *bridge = cni_plugin_bridge(cni_list_plugin(list, i));

        r->ok = r->ok && (bridge == NULL || strs_add_once(&r->bridges, bridge));
    }
}

static bool add_cached(const struct cni_entry *entry, void *arg)
{
    struct remove *r = arg;

    remove_add(r, &entry->list);
    return r->ok;
}

void cni_remove_bridges(struct cni *c)
{
    struct remove r = { .ok = true };
    fd_auto data = c->data_dir != NULL ? open(c->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct err e = { 0 };

    for (size_t i = 0; i < c->networks.n; i++)
        remove_add(&r, &c->networks.lists[i]);
    for (size_t i = 0; i < c->used_networks.n; i++)
        r.ok = r.ok && strs_add_once(&r.networks, c->used_networks.v[i]);
    for (size_t i = 0; i < c->used_bridges.n; i++)
        r.ok = r.ok && strs_add_once(&r.bridges, c->used_bridges.v[i]);
    for (size_t i = 0; i < c->networks.bridges.n; i++)
        r.ok = r.ok && strs_add_once(&r.bridges, c->networks.bridges.v[i]);
    if (!r.ok || cni_cache_each(c->cache_fd, add_cached, &r, &e) != ERR_OK)
        log_debug("not all CNI bridges are known", F_ERR(&e));

    for (size_t i = 0; i < r.bridges.n; i++) {
        e = (struct err){ 0 };
        /* Without these checks a list could name any link for us to delete. */
        if (nl_link_is(r.bridges.v[i], "bridge") && !cni_undo_link_existed(c, r.bridges.v[i]) &&
            nl_link_delete(r.bridges.v[i], &e) != ERR_OK)
            log_debug("CNI bridge not removed", F_STR("link", r.bridges.v[i]), F_ERR(&e));
    }
    for (size_t i = 0; i < r.networks.n && data >= 0; i++) {
        e = (struct err){ 0 };
        if (fs_remove_tree(data, r.networks.v[i], &e) != ERR_OK)
            log_debug("CNI plugin state not removed", F_STR("network", r.networks.v[i]), F_ERR(&e));
    }
    strs_done(&r.bridges);
    strs_done(&r.networks);
}

/* ---- the cache ---- */

enum err_code cni_find(const struct cni *c, const char *container_id, const char *ifname,
                       struct cni_entry *ret, struct err *e)
{
    for (size_t i = 0; i < c->networks.n; i++) {
        struct err not_there = { 0 };

        if (cni_cache_find_in(c->cache_fd, c->networks.lists[i].name, container_id, ifname, ret,
                              &not_there) == ERR_OK)
            return ERR_OK;
    }
    return cni_cache_find(c->cache_fd, container_id, ifname, ret, e);
}

struct presence cni_cached_result(struct cni *c, const char *container_id, const char *ifname,
                                  struct cni_result *ret, struct err *e)
{
    struct cni_entry entry;
    enum err_code code = ERR_OK;
    bool complete;

    if (cni_find(c, container_id, ifname, &entry, e) != ERR_OK) {
        if (e->code != ERR_NOT_FOUND || e->sys != 0)
            return presence_unknown(e);
        *e = (struct err){ 0 };
        return presence_absent();
    }
    complete = entry.complete; /* otherwise its ADD did not finish */
    if (complete)
        code = cni_result_addresses(ret, entry.result, entry.list.version, ifname, e);
    cni_entry_done(&entry);
    if (code != ERR_OK && err_is_shortage(e))
        return presence_unknown(e);
    *e = (struct err){ 0 };
    return complete && code == ERR_OK ? presence_present() : presence_absent();
}

enum err_code cni_cached_network(struct cni *c, const char *container_id, const char *ifname, char **ret,
                                 struct err *e)
{
    struct cni_entry entry;

    if (cni_find(c, container_id, ifname, &entry, e) != ERR_OK)
        return e->code;
    *ret = strdup(entry.list.name);
    cni_entry_done(&entry);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

struct ids {
    struct strs list;
    bool ok;
};

static bool cni_add_id(const struct cni_entry *entry, void *arg)
{
    struct ids *ids = arg;

    ids->ok = strs_add(&ids->list, entry->container_id);
    return ids->ok;
}

enum err_code cni_cached_ids(struct cni *c, struct strs *ret, struct err *e)
{
    struct ids ids = { .ok = true };

    enum err_code code = cni_cache_each(c->cache_fd, cni_add_id, &ids, e);

    if (code == ERR_OK && !ids.ok)
        code = err_nomem(e);
    if (code == ERR_OK) {
        strs_unique(&ids.list);
        *ret = ids.list;
    } else {
        strs_done(&ids.list);
    }
    return code;
}
