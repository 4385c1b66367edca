/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_quota - project quotas that are the test's: one file system with all folders, a table of ids in
 * memory, usage and errors as the test says. The functions below stand in for those of volumes/quota
 * (tests/module.mk). Included by one file of a test program.
 */
#ifndef TESTS_UNIT_AGENT_POD_SCRIPT_QUOTA_H
#define TESTS_UNIT_AGENT_POD_SCRIPT_QUOTA_H
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/project/internal.h"
#include "volumes/internal.h"

#include <sys/stat.h>

struct quota_fs {
    dev_t device;
};

struct script_project {
    char path[512], owner[140]; /* path "": released */
    uint32_t id;
    struct quota_usage u;
    bool assigned, reserved;
};

static struct {
    bool absent, no_warnings, counts_only, off;
    struct err take_error, assign_error, get_error;
    struct script_project v[1024];
    size_t n;
    unsigned n_takes, n_sets, n_sweeps; /* calls */
    unsigned n_names, n_unreserved;
    size_t waiting; /* released ids that are in use */
    void (*warned)(const struct quota_warning *w, void *arg);
    void *warned_arg;
} quota;

static struct script_project *script_project(const char *end_of_path)
{
    for (size_t i = 0; i < quota.n; i++)
        if (quota.v[i].path[0] != '\0' && str_ends(quota.v[i].path, end_of_path))
            return &quota.v[i];
    return NULL;
}

static inline size_t script_trees(void)
{
    size_t n = 0;

    for (size_t i = 0; i < quota.n; i++)
        n += quota.v[i].path[0] != '\0';
    return n;
}

static inline struct script_project *script_project_of(uint32_t id)
{
    for (size_t i = 0; i < quota.n; i++)
        if (quota.v[i].id == id)
            return &quota.v[i];
    return NULL;
}

/* ---- quota.h ---- */

enum err_code quota_fs_open(struct quota_fs **ret, const char *path, struct err *e)
{
    struct stat st;

    if (quota.absent)
        return err_set(e, ERR_PRECONDITION, "%s: ext4 without project quotas", path);
    if (stat(path, &st) != 0 || (*ret = calloc(1, sizeof(**ret))) == NULL)
        return err_set(e, ERR_INTERNAL, "%s", path);
    (*ret)->device = st.st_dev;
    return ERR_OK;
}

void quota_fs_close(struct quota_fs *f)
{
    free(f);
}

dev_t quota_fs_device(const struct quota_fs *f)
{
    return f->device;
}

const char *quota_fs_type(const struct quota_fs *f)
{
    (void)f;
    return "xfs";
}

const char *quota_fs_identity(const struct quota_fs *f)
{
    (void)f;
    return "xfs-1";
}

bool quota_fs_enforces(const struct quota_fs *f)
{
    (void)f;
    return !quota.counts_only;
}

bool quota_fs_warns(const struct quota_fs *f)
{
    (void)f;
    return !quota.no_warnings;
}

enum err_code quota_get(const struct quota_fs *f, uint32_t project, struct quota_usage *ret, struct err *e)
{
    const struct script_project *x = script_project_of(project);

    (void)f;
    if (quota.off)
        return err_set(e, ERR_PRECONDITION, "quotas are off");
    *ret = x != NULL ? x->u : (struct quota_usage){ 0 };
    return ERR_OK;
}

enum err_code quota_set(const struct quota_fs *f, uint32_t project, const struct quota_limits *l,
                        struct err *e)
{
    struct script_project *x = script_project_of(project);

    (void)f;
    (void)e;
    assert_non_null(x); /* an id that is free gets no limits */
    quota.n_sets++;
    x->u.soft_bytes = l->soft_bytes;
    x->u.hard_bytes = l->hard_bytes;
    return ERR_OK;
}

struct presence quota_project_of(const char *dir, uint32_t *ret_project, struct err *e)
{
    (void)dir;
    (void)e;
    *ret_project = 0;
    return presence_present();
}

static bool script_has_entry(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

enum err_code quota_assign(int dir_fd, uint32_t project, struct err *e)
{
    struct script_project *x = script_project_of(project);
    str_auto path = str_printf("/proc/self/fd/%d", dir_fd);
    bool some = false;

    if (quota.assign_error.code != ERR_OK) {
        *e = quota.assign_error;
        return e->code;
    }
    assert_non_null(x); /* its id was taken before */
    assert_false(presence_is_unknown(fs_list(AT_FDCWD, path, script_has_entry, &some, e)));
    assert_false(some); /* nothing was written before */
    x->assigned = true;
    return ERR_OK;
}

/* ---- projects.h ---- */

enum err_code projects_open(struct projects **ret, const struct projects_options *o, struct err *e)
{
    (void)o;
    (void)e;
    *ret = (struct projects *)&quota;
    return ERR_OK;
}

void projects_close(struct projects *p)
{
    (void)p;
}

enum err_code projects_take_all(struct projects *p, struct projects_wish *w, size_t n, struct err *e)
{
    (void)p;
    quota.n_takes++;
    if (quota.take_error.code != ERR_OK) {
        *e = quota.take_error;
        return e->code;
    }
    for (size_t i = 0; i < n; i++) {
        struct script_project *x = script_project(w[i].path);

        if (x == NULL) {
            x = &quota.v[quota.n];
            *x = (struct script_project){ .id = QUOTA_FIRST_ID + (uint32_t)quota.n++ };
            snprintf(x->path, sizeof(x->path), "%s", w[i].path);
            snprintf(x->owner, sizeof(x->owner), "%s", w[i].owner);
        }
        w[i].id = x->id;
    }
    return ERR_OK;
}

enum err_code projects_reserve(struct projects *p, const struct quota_fs *f, uint32_t *ret_ids, size_t n,
                               struct err *e)
{
    (void)p;
    (void)f;
    if (quota.take_error.code != ERR_OK) {
        *e = quota.take_error;
        return e->code;
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(quota.n < ARRAY_LEN(quota.v));
        ret_ids[i] = QUOTA_FIRST_ID + (uint32_t)quota.n;
        quota.v[quota.n++] = (struct script_project){ .id = ret_ids[i], .reserved = true };
    }
    return ERR_OK;
}

enum err_code projects_name_all(struct projects *p, const struct projects_wish *w, size_t n, struct err *e)
{
    (void)p;
    (void)e;
    quota.n_names++;
    for (size_t i = 0; i < n; i++) {
        struct script_project *x = script_project_of(w[i].id);

        assert_true(x != NULL && x->reserved);
        x->reserved = false;
        snprintf(x->path, sizeof(x->path), "%s", w[i].path);
        snprintf(x->owner, sizeof(x->owner), "%s", w[i].owner);
    }
    return ERR_OK;
}

void projects_unreserve(struct projects *p)
{
    (void)p;
    quota.n_unreserved++;
}

enum err_code projects_release(struct projects *p, const struct quota_fs *f, const char *path, struct err *e)
{
    struct script_project *x = script_project(path);

    (void)p;
    (void)f;
    (void)e;
    if (x != NULL)
        x->path[0] = '\0';
    return ERR_OK;
}

enum err_code projects_release_all(struct projects *p, const struct projects_wish *w, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        ERR_IGNORE(projects_release(p, w[i].fs, w[i].path, e));
    return ERR_OK;
}

enum err_code projects_sweep(struct projects *p, const struct quota_fs *f, size_t *ret_waiting, struct err *e)
{
    (void)p;
    (void)f;
    (void)e;
    quota.n_sweeps++;
    *ret_waiting = quota.waiting;
    return ERR_OK;
}

const struct project *projects_find(const struct projects *p, const char *path)
{
    static struct project found;

    (void)p;
    return script_project(path) != NULL ? &found : NULL;
}

void projects_each(const struct projects *p, void (*fn)(const struct project *x, void *arg), void *arg)
{
    (void)p;
    for (size_t i = 0; i < quota.n; i++) {
        struct project x = { .id = quota.v[i].id, .path = quota.v[i].path, .fs = "xfs-1" };

        snprintf(x.owner, sizeof(x.owner), "%s", quota.v[i].owner);
        if (x.path[0] != '\0')
            fn(&x, arg);
    }
}

/* ---- quota_warn.h ---- */

enum err_code quota_warn_open(struct quota_warn **ret, uv_loop_t *loop,
                              void (*fn)(const struct quota_warning *w, void *arg), void *arg, struct err *e)
{
    (void)loop;
    if (quota.no_warnings)
        return err_set(e, ERR_PRECONDITION, "no such family");
    quota.warned = fn;
    quota.warned_arg = arg;
    *ret = (struct quota_warn *)&quota;
    return ERR_OK;
}

void quota_warn_close(struct quota_warn *w, void (*closed)(void *arg), void *arg)
{
    (void)w;
    (void)closed;
    (void)arg;
}

/* ---- for tests ---- */

/* The tree grows to this, and the kernel warns if its soft limit is passed or its hard one reached. */
static inline void script_use(struct world *w, const char *end_of_path, uint64_t bytes)
{
    struct script_project *x = script_project(end_of_path);
    struct quota_warning warning = { 0 };
    struct stat st;

    assert_non_null(x);
    assert_int_equal(stat(w->dir, &st), 0);
    warning.device = st.st_dev;
    warning.project = x->id;
    x->u.bytes = bytes;
    warning.type = x->u.hard_bytes != 0 && bytes >= x->u.hard_bytes  ? 4 /* QUOTA_NL_BHARDWARN */
                   : x->u.soft_bytes != 0 && bytes > x->u.soft_bytes ? 6 /* QUOTA_NL_BSOFTWARN */
                                                                     : 0;
    if (warning.type != 0 && quota.warned != NULL)
        quota.warned(&warning, quota.warned_arg);
}

static inline void script_settle(struct world *w)
{
    do
        uv_run(&w->loop, UV_RUN_ONCE);
    while (project_node(&w->node)->busy);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static inline int script_quota_setup(void **state)
{
    static struct vol_node volumes;
    struct err e = { 0 };
    struct world *w;

    memset(&quota, 0, sizeof(quota));
    if (world_setup(state) != 0)
        return -1;
    w = *state;
    str_auto pods = str_printf("%s/pods", w->dir);
    str_auto logs = str_printf("%s/logs", w->dir);
    if (fs_mkdirs(pods, 0755, &e) != ERR_OK || fs_mkdirs(logs, 0755, &e) != ERR_OK)
        return -1;
    w->node.o.pod_logs_dir = strdup(logs);
    volumes = (struct vol_node){ .tmpfs_fd = -1, .pods = strdup(pods) };
    volumes.pods_fd = open(pods, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->node.o.volumes = &volumes;
    worker_node(&w->node)->runner_active = true; /* nobody reconciles here */
    return 0;
}

static inline int script_quota_teardown(void **state)
{
    struct world *w = *state;
    const char *logs = w->node.o.pod_logs_dir;

    world_forget(w);
    close(w->node.o.volumes->pods_fd);
    free(w->node.o.volumes->pods);
    free((void *)(uintptr_t)logs);
    return world_teardown(state);
}

#define QUOTA_TEST(name) cmocka_unit_test_setup_teardown(name, script_quota_setup, script_quota_teardown)
#endif
