/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_pod/script_parts.h"

struct script script;

/* ---- operations ---- */

static void script_on_abort(struct op *op)
{
    if (!script.hang)
        op_finish(op, NULL);
}

void script_begin(struct op *op, uv_loop_t *loop, const char *name, op_done_fn done, void *owner)
{
    op_init(op, loop, name, 0, script_on_abort, done, owner);
}

struct script_search {
    const char *name;
    struct op *found;
};

static void script_look(const struct op *op, void *arg)
{
    struct script_search *s = arg;

    if (s->found == NULL && !op->finished && (s->name == NULL || strcmp(op->name, s->name) == 0))
        s->found = (struct op *)(uintptr_t)op;
}

struct op *script_op(const char *name)
{
    struct script_search s = { .name = name };

    op_each(script_look, &s);
    return s.found;
}

/* ---- the runtime ---- */

struct script_ctr *script_ctr(const char *id)
{
    for (size_t i = 0; i < script.n_ctrs; i++)
        if (strcmp(script.ctrs[i].id, id) == 0)
            return &script.ctrs[i];
    return NULL;
}

struct script_ctr *script_ctr_new(const char *id)
{
    struct script_ctr *c = &script.ctrs[script.n_ctrs++];

    assert_true(script.n_ctrs < ARRAY_LEN(script.ctrs));
    *c = (struct script_ctr){ .s = { .phase = RT_PARTIAL } };
    snprintf(c->id, sizeof(c->id), "%s", id);
    return c;
}

enum err_code rt_state(struct rt *rt, const char *id, struct rt_state *ret, struct err *e)
{
    const struct script_ctr *c = script_ctr(id);

    (void)rt;
    if (script.unseen.code != ERR_OK) {
        *e = script.unseen;
        return e->code;
    }
    *ret = c != NULL ? c->s : (struct rt_state){ .phase = RT_ABSENT };
    return ERR_OK;
}

void rt_create_start(struct rt_create *c, struct rt *rt, const struct rt_config *config, op_done_fn done,
                     void *owner)
{
    struct ctr *ctr = owner;

    (void)rt;
    script_ctr_new(config->id);
    script_begin(&c->op, ctr->pod->node->o.loop, "create", done, owner);
}

void rt_start_start(struct rt_action *a, struct rt *rt, const char *id, op_done_fn done, void *owner)
{
    struct ctr *ctr = owner;

    (void)rt;
    (void)id;
    script_begin(&a->op, ctr->pod->node->o.loop, "start", done, owner);
}

void rt_delete_start(struct rt_action *a, struct rt *rt, const char *id, const char *cgroup_path,
                     op_done_fn done, void *owner)
{
    struct script_ctr *c = script_ctr(id);
    struct reap *r = owner;

    (void)rt;
    (void)cgroup_path;
    if (c != NULL)
        c->s = (struct rt_state){ .phase = RT_ABSENT };
    script_begin(&a->op, r->pod->node->o.loop, "delete", done, owner);
}

enum err_code rt_adopt(struct rt *rt, const char *id, struct err *e)
{
    (void)rt;
    (void)id;
    (void)e;
    return ERR_OK;
}

enum err_code rt_watch_conmon(struct rt *rt, const char *id, struct err *e)
{
    (void)rt;
    (void)id;
    (void)e;
    return ERR_OK;
}

struct presence rt_identity(const struct rt *rt, const char *id, struct rt_identity *ret, struct err *e)
{
    (void)rt;
    (void)e;
    snprintf(ret->cgroup_path, sizeof(ret->cgroup_path), "/%s", id);
    return script_ctr(id) != NULL ? presence_present() : presence_absent();
}

enum err_code rt_signal(struct rt *rt, const char *id, int signo, struct err *e)
{
    struct script_ctr *c = script_ctr(id);

    (void)rt;
    (void)e;
    assert_non_null(c);
    c->signals++;
    c->last_signal = signo;
    return ERR_OK;
}

void rt_kill_supervisor(struct rt *rt, const char *id)
{
    (void)rt;
    (void)id;
}

int rt_signal_number(const char *name)
{
    return strcmp(name, "SIGUSR1") == 0 ? SIGUSR1 : 0;
}

const struct rt_features *rt_features(const struct rt *rt)
{
    static const struct rt_features all = { .recursive_read_only = true, .user_namespaces = true };

    (void)rt;
    return &all;
}

void rt_exec_start(struct rt_exec *x, struct rt *rt, const struct rt_exec_spec *spec, op_done_fn done,
                   void *owner)
{
    (void)rt;
    (void)spec;
    fail_msg("no test executes anything in a container");
    (void)x;
    (void)done;
    (void)owner;
}

/* ---- the network ---- */

void netns_create_start(struct proc_call *c, const struct netns_spec *spec, int fd, const char *procs,
                        uv_loop_t *loop, op_done_fn done, void *owner)
{
    (void)spec;
    (void)fd;
    (void)procs;
    script_begin(&c->op, loop, "namespaces", done, owner);
}

void netns_interface_sysctls_start(struct proc_call *c, const struct netns_spec *spec, uv_loop_t *loop,
                                   op_done_fn done, void *owner)
{
    (void)spec;
    script_begin(&c->op, loop, "sysctls", done, owner);
}

bool netns_has_interface_sysctls(const struct netns_spec *spec)
{
    (void)spec;
    return false;
}

enum err_code netns_remove(const char *dir, struct err *e)
{
    (void)dir;
    (void)e;
    script.pinned = false;
    return ERR_OK;
}

struct presence netns_look_pinned(const char *dir, const char *which, struct err *e)
{
    (void)dir;
    (void)which;
    if (script.pins_unseen.code != ERR_OK) {
        *e = script.pins_unseen;
        return presence_unknown(e);
    }
    return script.pinned ? presence_present() : presence_absent();
}

void cni_add_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    struct pod *p = owner;

    (void)c;
    (void)a;
    script.n_adds++;
    script_begin(&o->op, p->node->o.loop, "add", done, owner);
}

void cni_del_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    struct pod *p = owner;

    (void)c;
    (void)a;
    script.n_dels++;
    script_begin(&o->op, p->node->o.loop, "del", done, owner);
}

void cni_check_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, const char *found,
                     bool fresh, op_done_fn done, void *owner)
{
    struct pod *p = owner;

    (void)c;
    (void)a;
    (void)found;
    (void)fresh;
    script_begin(&o->op, p->node->o.loop, "check network", done, owner);
}

enum err_code cni_links_read(const char *netns_path, struct cni_links *ret, struct err *e)
{
    (void)netns_path;
    (void)ret;
    (void)e;
    return ERR_OK;
}

enum err_code cni_links_check(const struct cni_links *l, const char *ifname,
                              const struct cni_result *expected, struct err *e)
{
    (void)l;
    (void)ifname;
    (void)expected;
    (void)e;
    return ERR_OK;
}

const char *cni_default_network(const struct cni *c, const char **ret_why)
{
    (void)c;
    *ret_why = script.no_network ? "there is none" : NULL;
    return script.no_network ? NULL : "net";
}

struct presence cni_cached_result(struct cni *c, const char *id, const char *ifname, struct cni_result *ret,
                                  struct err *e)
{
    (void)c;
    (void)id;
    (void)ifname;
    (void)e;
    if (!script.attached)
        return presence_absent();
    snprintf(ret->ips[0], sizeof(ret->ips[0]), "10.0.0.1");
    ret->n_ips = 1;
    return presence_present();
}

/* ---- cgroups ---- */

enum err_code cg_pod_path(const struct cg_tree *t, enum cg_class class_, const char *uid, char *ret,
                          size_t size, struct err *e)
{
    (void)t;
    (void)class_;
    (void)e;
    snprintf(ret, size, "/pod%s", uid);
    return ERR_OK;
}

enum err_code cg_pod_apply(struct cg_tree *t, enum cg_class class_, const char *uid,
                           const struct cg_limits *l, struct err *e)
{
    (void)t;
    (void)class_;
    (void)uid;
    (void)l;
    *e = script.cgroup_error;
    return e->code;
}

enum err_code cg_qos_apply(struct cg_tree *t, enum cg_class class_, const struct cg_limits *l, struct err *e)
{
    (void)t;
    (void)class_;
    (void)l;
    (void)e;
    return ERR_OK;
}

/* A container's cgroup: what lives in it is dead at once, and conmon says so. */
enum err_code cg_kill(struct cg_tree *t, const char *path, struct err *e)
{
    struct script_ctr *c = script_ctr(path + 1);

    (void)t;
    if (c != NULL)
        c->kills++;
    if (script.at_kill != NULL)
        script.at_kill();
    *e = script.kill_error;
    return e->code;
}

struct presence cg_has_processes(struct cg_tree *t, const char *path, struct err *e)
{
    (void)t;
    (void)e;
    return script_ctr(path + 1) != NULL ? presence_present() : presence_absent();
}

enum err_code cg_remove(struct cg_tree *t, const char *path, struct err *e)
{
    (void)t;
    (void)path;
    *e = script.cgroup_error;
    return e->code;
}

int cg_leaf_fd(struct cg_tree *t, enum cg_leaf leaf)
{
    (void)t;
    (void)leaf;
    return -1;
}

const char *cg_leaf_procs(struct cg_tree *t, enum cg_leaf leaf)
{
    (void)t;
    (void)leaf;
    return NULL;
}

bool cg_has_hugetlb(const struct cg_tree *t)
{
    (void)t;
    return false;
}

/* ---- volumes, and all that runs in a forked child ---- */

enum err_code vol_shm_setup(struct vol_node *n, const char *uid, uint64_t bytes, char *ret, size_t size,
                            struct err *e)
{
    (void)n;
    (void)uid;
    (void)bytes;
    (void)e;
    snprintf(ret, size, "/shm");
    return ERR_OK;
}

enum err_code vol_empty_dir_setup(struct vol_node *n, const struct vol_empty_dir *v, char *ret, size_t size,
                                  struct err *e)
{
    (void)n;
    snprintf(ret, size, "/%s", v->name);
    *e = script.volumes_error;
    return e->code;
}

void proc_call_start(struct proc_call *c, const struct proc_call_spec *spec, uv_loop_t *loop, op_done_fn done,
                     void *owner)
{
    c->out = (struct buf)BUF_INIT(1024);
    script.n_host_checks += strcmp(spec->name, "check host paths") == 0;
    script.n_removals += strcmp(spec->name, "remove volumes") == 0;
    script_begin(&c->op, loop, spec->name, done, owner);
}

/* ---- the disk ---- */

void record_sync(struct pod *p)
{
    p->record_durable = true;
    pod_wake(p, "test");
}

/* ---- probes ---- */

/* A check of a server. */
void probe_tcp_start(struct probe_check *c, const struct probe_world *w, const char *host, unsigned port,
                     const char *subject, uint64_t timeout_ms, op_done_fn done, void *owner)
{
    (void)host;
    (void)port;
    (void)subject;
    (void)timeout_ms;
    *c = (struct probe_check){ .outcome = script.probes };
    buf_init(&c->text, 16);
    script.n_checks++;
    script.checked_at = clock_boot();
    script_begin(&c->op, w->loop, "check", done, owner);
    op_finish(&c->op, NULL);
}

/* ---- images ---- */

static char script_image_id[] = "sha256:1";
static struct img_image script_image = { .id = script_image_id, .digest = script_image_id };

struct img_image *img_ref(struct img_image *i)
{
    i->refs++;
    return i;
}

void img_unref(struct img_image *i)
{
    if (i != NULL)
        i->refs--;
}

bool img_candidate(struct img_store *s, const char *reference, size_t k, char ret[IMG_NAME_MAX])
{
    (void)s;
    snprintf(ret, IMG_NAME_MAX, "%s", reference);
    return k == 0;
}

struct img_image *img_lookup(struct img_store *s, const char *reference)
{
    (void)s;
    (void)reference;
    return script.images_absent ? NULL : img_ref(&script_image);
}

char *img_repo_digest(struct img_store *s, const char *id, const char *reference)
{
    (void)s;
    (void)id;
    (void)reference;
    return NULL;
}

enum img_access img_access(struct img_store *s, const struct img_image *image, const char *name)
{
    (void)s;
    (void)image;
    (void)name;
    return IMG_ACCESS_GRANTED;
}

bool img_is_unsure(const struct img_store *s, struct err *why)
{
    (void)s;
    (void)why;
    return false;
}

void img_bring_start_auth(struct img_bring *b, struct img_store *s, const char *source, const char *name,
                          const char *auth, op_done_fn done, void *owner)
{
    struct pod_image *i = owner;

    (void)s;
    (void)source;
    (void)name;
    (void)auth;
    b->image = img_ref(&script_image);
    script_begin(&b->op, i->pod->node->o.loop, "pull", done, owner);
}

/* ---- turns ---- */

void script_turn(struct world *w)
{
    for (int i = 0; i < 20; i++) {
        boot_timers_count_anew(w->node.timers);
        uv_run(&w->loop, UV_RUN_NOWAIT);
    }
}

void script_pass(struct world *w, int64_t ns)
{
    while (ns > 0) {
        int64_t part = ns < SCRIPT_SECOND ? ns : SCRIPT_SECOND;
        script_clock_pass(part);
        script_turn(w);
        ns -= part;
    }
}

/* What the operation is about has happened as far as it says. */
static void script_happened(struct op *op)
{
    struct cni_op *add = container_of(op, struct cni_op, op);
    const struct ctr *c = op->owner;

    if (strcmp(op->name, "create") == 0) {
        script.ctrs[script.n_ctrs - 1].s.phase = RT_CREATED;
    } else if (strcmp(op->name, "start") == 0) {
        struct script_ctr *s = script_ctr(c->cur.id);
        s->s.pid = 1000;
        s->s.started_ns = clock_wall_ns();
        if (s->s.phase == RT_CREATED) /* else it has ended since */
            s->s.phase = RT_RUNNING;
    } else if (strcmp(op->name, "namespaces") == 0) {
        script.pinned = true;
    } else if (strcmp(op->name, "add") == 0) {
        script.attached = true;
        snprintf(add->result.ips[0], sizeof(add->result.ips[0]), "10.0.0.1");
        add->result.n_ips = 1;
    } else if (strcmp(op->name, "del") == 0) {
        script.attached = false;
    }
}

void script_answer_with(struct world *w, const char *name, const struct err *e)
{
    struct op *op = script_op(name);

    if (op == NULL)
        fail_msg("no operation \"%s\" is under way", name);
    if (e->code == ERR_OK)
        script_happened(op);
    op_finish(op, e);
    script_turn(w);
}

void script_answer(struct world *w, const char *name, enum err_code code)
{
    struct err e = { 0 };

    if (code != ERR_OK)
        err_set(&e, code, "%s: scripted", name);
    script_answer_with(w, name, &e);
}

void script_answer_all(struct world *w, const char *but)
{
    static const char *const names[] = { "namespaces",    "add",           "create",
                                         "start",         "delete",        "del",
                                         "sysctls",       "pull",          "remove volumes",
                                         "mount volumes", "check network", "check host paths" };
    bool any = true;

    script_turn(w);
    while (any) {
        any = false;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if ((but == NULL || strcmp(names[i], but) != 0) && script_op(names[i]) != NULL) {
                script_answer(w, names[i], ERR_OK);
                any = true;
            }
    }
}

void script_exit(struct world *w, struct ctr *c, int exit_code)
{
    struct script_ctr *s = script_ctr(c->cur.id);

    assert_non_null(s);
    s->s.phase = RT_EXITED;
    s->s.exit_code = exit_code;
    s->s.finished_ns = clock_wall_ns();
    pod_wake(c->pod, "test");
    script_turn(w);
}

/* ---- the world ---- */

int script_setup(void **state)
{
    struct world *w;
    char path[128];
    struct err e = { 0 };

    memset(&script, 0, sizeof(script));
    script_clock_reset();
    if (world_setup(state) != 0)
        return -1;
    w = *state;
    container_node(&w->node)->create_max = 4;
    w->node.sources_ready = true;
    w->node.o.container_logs_dir = w->node.o.pod_logs_dir = w->dir;
    w->node.o.cluster_domain = w->node.o.resolv_conf = "";
    w->node.o.log_max_files = 1;
    uv_timer_init(&w->loop, &w->node.idle_timer);
    snprintf(path, sizeof(path), "%s/pods", w->dir);
    return fs_mkdirs(path, 0700, &e) == ERR_OK ? 0 : -1;
}

int script_teardown(void **state)
{
    struct world *w = *state;

    w->node.closing = true;
    while (op_count() > 0) {
        struct op *op = script_op(NULL);
        if (op != NULL && op->abort == script_on_abort)
            op_finish(op, NULL);
        else if (op != NULL)
            op_cancel(op);
        uv_run(&w->loop, UV_RUN_NOWAIT);
    }
    uv_close((uv_handle_t *)&w->node.idle_timer, NULL);
    return world_teardown(state);
}

struct pod *script_pod(struct world *w, const char *name, const char *spec)
{
    struct pod *p = world_pod(w, name, spec);

    p->record_dirty = true;
    pod_wake(p, "test");
    return p;
}

struct pod *script_running(struct world *w, const char *name, const char *spec)
{
    struct pod *p = script_pod(w, name, spec);

    script_answer_all(w, NULL);
    assert_int_equal(p->state, POD_RUNNING);
    return p;
}
