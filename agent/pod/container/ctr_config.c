/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a container: everything an rt_config borrows, from the pod, the store and the node. */
#include "agent/cdi/cdi.h"
#include "agent/pod/container/container.h"
#include "agent/pod/container/env_age.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/env/env.h"
#include "agent/pod/image/images.h"
#include "agent/pod/limits/ctr_limits.h"
#include "agent/pod/limits/hugepages.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/placement/placement.h"
#include "agent/pod/project/project.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/pod/volume/volumes.h"
#include "agent/runtime/mount/image_mount.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 1024
#define INVALID_TARGET "invalid target container"

struct sub_bind { /* a volumeMount with a subPath: bound by a child before the container is created */
    struct vol_sub_path request;
    const char *reference; /* of an image volume; otherwise NULL */
    char target[PATH_SIZE];
};

struct image_volume { /* mounted by the same child, before */
    const char *name, *path;
    struct img_image *image;
};

struct ctr_run {
    struct api_pod *api; /* the config borrows from it: an edit may replace the pod's meanwhile */
    const char *image_name;
    struct arena arena;
    struct rt_config config;
    struct env env;
    struct cdi_resolved cdi;
    struct env names; /* env, and the variables of devices: for $(NAME) */
    struct dp_answer devices;
    json_t *env_sources;
    struct vol_node *volumes;
    struct image_volume *image_volumes;
    size_t n_image_volumes;
    struct sub_bind *binds;
    size_t n_binds;
    char message_file[128];
    char *message_path; /* the same, absolute; NULL: not ours to remove (any more) */
    struct img_image *image;
    int target; /* the PID namespace that an ephemeral container joins; -1: none */
};

const struct rt_config *ctr_run_config(const struct ctr_run *r)
{
    return &r->config;
}

const char *ctr_run_take_message_file(struct ctr_run *r)
{
    free(take_ptr(&r->message_path));
    return r->message_file;
}

json_t *ctr_run_take_env_sources(struct ctr_run *r)
{
    return take_ptr(&r->env_sources);
}

const char *ctr_run_image(const struct ctr_run *r)
{
    return r->image_name;
}

void ctr_run_redact(struct ctr_run *r, struct err *e)
{
    env_redact(&r->env, e->text);
}

void ctr_run_free(struct ctr_run *r)
{
    if (r == NULL)
        return;
    env_wipe(&r->env);
    for (const char *const *v = r->config.env; v != NULL && *v != NULL; v++)
        explicit_bzero((char *)*v, strlen(*v));
    if (r->message_path != NULL)
        fs_remove_quietly(AT_FDCWD, r->message_path);
    free(r->message_path);
    img_unref(r->image);
    if (r->target >= 0)
        close(r->target);
    for (size_t i = 0; i < r->n_image_volumes; i++)
        img_unref(r->image_volumes[i].image);
    json_decref(r->env_sources);
    cdi_resolved_done(&r->cdi);
    arena_done(&r->arena);
    api_pod_unref(r->api);
    free(r);
}

/* ---- mounts ---- */

static const char *propagation(const char *mode)
{
    if (str_eq(mode, "HostToContainer"))
        return "rslave";
    if (str_eq(mode, "Bidirectional"))
        return "rshared";
    return "rprivate";
}

static enum err_code add_sub_path(struct ctr_run *r, const struct ctr *c, size_t index,
                                  const char *volume_path, const char *sub, const char **ret_source,
                                  struct err *e)
{
    const struct pod *p = c->pod;
    struct sub_bind *b = &r->binds[r->n_binds];
    int n = snprintf(b->target, sizeof(b->target), "%s/pods/%s/volume-subpaths/%s/%s/%zu",
                     p->node->o.root_dir, p->uid, c->spec->mounts[index].name, c->spec->name, index);

    if (n < 0 || (size_t)n >= sizeof(b->target))
        return err_set(e, ERR_INVALID, "failed to prepare subPath for volumeMount \"%s\" of container \"%s\"",
                       c->spec->mounts[index].name, c->spec->name);
    b->reference = api_volume_find(&p->api->spec, c->spec->mounts[index].name)->image_reference;
    b->request = (struct vol_sub_path){
        .uid = p->uid,
        .volume = c->spec->mounts[index].name,
        .container = c->spec->name,
        .index = (unsigned)index,
        .volume_path = volume_path,
        .sub = sub,
        .shared = str_eq(c->spec->mounts[index].mount_propagation, "Bidirectional"),
    };
    r->n_binds++;
    *ret_source = b->target;
    return ERR_OK;
}

/* Once per image, however often the container mounts it. */
static enum err_code add_image_volume(struct ctr_run *r, const struct pod *p, const struct api_volume *v,
                                      const char *path, struct err *e)
{
    const struct pod_image *image = images_find(p, v->image_reference);

    for (size_t i = 0; i < r->n_image_volumes; i++)
        if (strcmp(r->image_volumes[i].name, v->name) == 0)
            return ERR_OK;
    if (image == NULL || image->image == NULL)
        return err_set(e, ERR_INTERNAL, "image of volume \"%s\" is not present", v->name);
    r->image_volumes[r->n_image_volumes++] =
        (struct image_volume){ .name = v->name, .path = path, .image = img_ref(image->image) };
    return ERR_OK;
}

static enum err_code volume_mount(struct ctr_run *r, const struct ctr *c, size_t index, struct rt_mount *ret,
                                  struct err *e)
{
    const struct pod *p = c->pod;
    const struct api_volume_mount *vm = &c->spec->mounts[index];
    const struct api_volume *v = api_volume_find(&p->api->spec, vm->name);
    const struct rt_features *runtime = sandbox_runtime_features(p);
    bool can_recurse = runtime != NULL && runtime->recursive_read_only;
    const char *source, *sub, *missing = NULL;
    char path[PATH_SIZE];

    if (v == NULL)
        return err_set(e, ERR_INVALID, "volume \"%s\" of container \"%s\" does not exist", vm->name,
                       c->spec->name);
    if (volumes_host_path(p, v, path, sizeof(path), e) != ERR_OK)
        return e->code;
    source = arena_strdup(&r->arena, path);
    sub = env_sub_path(vm, &r->names, &r->arena, &missing);
    if (missing != NULL)
        return err_set(e, ERR_PRECONDITION,
                       "failed to expand subPath for volumeMount \"%s\" of container \"%s\": missing "
                       "value for \"%s\"",
                       vm->name, c->spec->name, missing);
    if (source == NULL || sub == NULL)
        return err_nomem(e);
    if (v->kind == API_VOL_IMAGE && add_image_volume(r, p, v, source, e) != ERR_OK)
        return e->code;
    if (sub[0] != '\0' && add_sub_path(r, c, index, source, sub, &source, e) != ERR_OK)
        return e->code;
    if (str_eq(vm->recursive_read_only, "Enabled") && !can_recurse)
        return err_set(e, ERR_PRECONDITION,
                       "volumeMount \"%s\": the runtime does not support recursive read-only mounts",
                       vm->name);
    *ret = (struct rt_mount){
        .volume = vm->name,
        .source = source,
        .destination =
            vm->mount_path[0] == '/' ? vm->mount_path : arena_printf(&r->arena, "/%s", vm->mount_path),
        .read_only =
            vm->read_only || v->claim_readonly || v->kind == API_VOL_PAYLOAD || v->kind == API_VOL_IMAGE,
        .image = v->kind == API_VOL_IMAGE,
        .recursive_read_only = str_eq(vm->recursive_read_only, "Enabled") ||
                               (str_eq(vm->recursive_read_only, "IfPossible") && can_recurse),
        .propagation = propagation(vm->mount_propagation),
    };
    return ret->destination != NULL ? ERR_OK : err_nomem(e);
}

static bool mounts_at(const struct api_container *c, const char *path)
{
    for (size_t i = 0; i < c->n_mounts; i++)
        if (strcmp(c->mounts[i].mount_path, path) == 0)
            return true;
    return false;
}

/* The pod's own hosts, resolv.conf and hostname, unless the container mounts its own. */
static enum err_code add_files(struct ctr_run *r, const struct ctr *c, struct rt_mount *m, size_t *n,
                               struct err *e)
{
    static const struct {
        const char *name, *destination;
        bool may_be_read_only; /* together with the root file system */
    } files[] = { { FILES_HOSTS, "/etc/hosts", false },
                  { "resolv.conf", "/etc/resolv.conf", true },
                  { "hostname", "/etc/hostname", true } };
    char path[PATH_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (mounts_at(c->spec, files[i].destination))
            continue;
        if (files_path(c->pod, files[i].name, path, sizeof(path), e) != ERR_OK)
            return e->code;
        m[(*n)++] = (struct rt_mount){
            .source = arena_strdup(&r->arena, path),
            .destination = files[i].destination,
            .read_only = files[i].may_be_read_only && c->spec->security.has_read_only_root_filesystem &&
                         c->spec->security.read_only_root_filesystem,
            .propagation = "rprivate",
        };
    }
    return ERR_OK;
}

static enum err_code ctr_config_add_mounts(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    const struct pod *p = c->pod;
    const struct api_container *s = c->spec;
    struct rt_mount *m = arena_alloc(&r->arena, (r->devices.n_mounts + s->n_mounts + 4) * sizeof(*m));
    size_t n;

    r->binds = arena_alloc(&r->arena, (s->n_mounts + 1) * sizeof(*r->binds));
    r->image_volumes = arena_alloc(&r->arena, (s->n_mounts + 1) * sizeof(*r->image_volumes));
    if (m == NULL || r->binds == NULL || r->image_volumes == NULL)
        return err_nomem(e);
    n = ctr_devices_mounts(&r->devices, m);
    for (size_t i = 0; i < s->n_mounts; i++)
        if (volume_mount(r, c, i, &m[n++], e) != ERR_OK)
            return e->code;
    if (add_files(r, c, m, &n, e) != ERR_OK)
        return e->code;
    m[n++] = (struct rt_mount){
        .source = arena_printf(&r->arena, "%s/pods/%s/%s", p->node->o.root_dir, p->uid, r->message_file),
        .destination = s->termination_message_path,
        .propagation = "rprivate",
    };
    for (size_t i = 0; i < n; i++)
        if (m[i].source == NULL)
            return err_nomem(e);
    r->config.shm_path = p->api->spec.host_ipc || mounts_at(s, "/dev/shm") ? NULL : volumes_shm_path(p);
    r->config.mounts = m;
    r->config.n_mounts = n;
    return ERR_OK;
}

/* Makes the file for terminationMessagePath: new for each run, writable by any user of the container. */
static enum err_code make_message_file(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    const struct pod *p = c->pod;
    char dir[PATH_SIZE], random[9];
    int n =
        snprintf(dir, sizeof(dir), "%s/pods/%s/containers/%s", p->node->o.root_dir, p->uid, c->spec->name);

    if (n < 0 || (size_t)n >= sizeof(dir))
        return err_set(e, ERR_INVALID, "path of the termination message is too long");
    if (fs_mkdirs(dir, 0750, e) != ERR_OK)
        return e->code;
    id_random_hex(random, 8);
    snprintf(r->message_file, sizeof(r->message_file), "containers/%s/%s", c->spec->name, random);
    {
        fd_auto root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_auto fd = root >= 0 ? openat(root, random, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        if (fd < 0)
            return err_sys(e, errno, "create termination message file in %s", dir);
        r->message_path = str_printf("%s/%s", dir, random);
        if (r->message_path == NULL)
            return err_nomem(e);
        if (fchmod(fd, 0666) != 0)
            return err_sys(e, errno, "chmod %s", r->message_path);
        if (c->last.message_file[0] != '\0') /* of the run before the last: not needed any more */
            fs_remove_quietly(root, strrchr(c->last.message_file, '/') + 1);
    }
    return ERR_OK;
}

/* ---- environment, command ---- */

static enum err_code add_environment(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    const char **v;

    if (env_build(c->pod, c->spec, &r->arena, &r->env, e) != ERR_OK)
        return e->code;
    r->env_sources = env_age_sources(c->pod, c->spec);
    v = arena_alloc(&r->arena, (r->env.n + 1) * sizeof(*v));
    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < r->env.n; i++) {
        v[i] = arena_printf(&r->arena, "%s=%s", r->env.v[i].name, r->env.v[i].value);
        if (v[i] == NULL) {
            return err_nomem(e);
        }
    }
    r->config.env = v;
    return ctr_devices_env(&r->devices, &r->env, &r->arena, &r->names, e);
}

static const struct api_strs *expand(struct ctr_run *r, const struct api_strs *in, struct err *e)
{
    struct api_strs *out = arena_alloc(&r->arena, sizeof(*out));

    if (out == NULL || (out->v = arena_alloc(&r->arena, (in->n + 1) * sizeof(*out->v))) == NULL) {
        err_nomem(e);
        return NULL;
    }
    for (; out->n < in->n; out->n++)
        if ((out->v[out->n] = env_expand(in->v[out->n], &r->names, &r->arena, NULL)) == NULL) {
            env_expand_error(e);
            return NULL;
        }
    return out;
}

static enum err_code add_hugepages(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    struct rt_hugepages *list;

    if (!cg_has_hugetlb(c->pod->node->o.cgroups))
        return ERR_OK;
    list = arena_alloc(&r->arena, HUGEPAGES_SIZES_MAX * sizeof(*list));
    if (list == NULL)
        return err_nomem(e);
    r->config.n_hugepages = hugepages_ctr_limits(c->pod, c->spec, list);
    r->config.hugepages = list;
    return ERR_OK;
}

static void add_resources(struct ctr_run *r, const struct ctr *c)
{
    struct ctr_limits l;

    ctr_limits_of(c, &l);
    r->config.cpu_shares = l.cpu_shares;
    r->config.cpu_period_us = l.cpu_period_us;
    r->config.cpu_quota_us = l.cpu_quota_us;
    r->config.memory_limit = l.memory_max;
    r->config.memory_min = l.memory_min;
    r->config.memory_low = l.memory_low;
    r->config.memory_high = l.memory_high;
    r->config.swap_max = l.swap_max;
    r->config.oom_group = l.oom_group;
    r->config.oom_score_adj = resources_oom_score(c->pod, c);
}

static enum err_code add_cpuset(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    char cpus[CPUS_TEXT_SIZE], mems[256];

    placement_lists(c, cpus, mems);
    if (cpus[0] != '\0' && (r->config.cpus = arena_strdup(&r->arena, cpus)) == NULL)
        return err_nomem(e);
    if (mems[0] != '\0' && (r->config.mems = arena_strdup(&r->arena, mems)) == NULL)
        return err_nomem(e);
    return ERR_OK;
}

static enum err_code add_log(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    const struct pod *p = c->pod;
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/%s_%s_%s/%s", p->node->o.pod_logs_dir, p->api->meta.namespace,
                     p->api->meta.name, p->uid, c->spec->name);

    if (n < 0 || (size_t)n + 16 >= sizeof(path))
        return err_set(e, ERR_INVALID, "path of the log is too long");
    if (fs_mkdirs(path, 0755, e) != ERR_OK)
        return e->code;
    if (r->config.attempt >= 2) /* only the previous run is readable (logs -p): remove earlier ones */
        ctr_log_remove(c, r->config.attempt - 2);
    r->config.log_max_bytes = p->node->o.log_max_bytes;
    r->config.log_path = arena_printf(&r->arena, "%s/%u.log", path, r->config.attempt);
    return r->config.log_path != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code add_edits(struct ctr_run *r, struct ctr *c, struct err *e)
{
    if (ctr_cdi_add(c, &r->devices, &r->cdi, e) != ERR_OK)
        return e->code;
    r->config.edits = r->cdi.content != NULL ? &r->cdi.edits : NULL;
    return ERR_OK;
}

bool ctr_target_failed(const struct err *e)
{
    return str_starts(e->text, INVALID_TARGET);
}

/* The texts are kubelet's and containerd's. The runtime opens the namespace through this process' descriptor:
 * if the target ends meanwhile, its process id may soon be another one's. */
static enum err_code join_target(struct ctr_run *r, const struct ctr *c, struct err *e)
{
    const struct pod *p = c->pod;
    const struct ctr *target = NULL;

    if (c->spec->target == NULL)
        return ERR_OK;
    for (size_t i = 0; i < p->n_ctrs; i++)
        if (p->ctrs[i]->kind != CTR_EPHEMERAL && strcmp(p->ctrs[i]->spec->name, c->spec->target) == 0)
            target = p->ctrs[i];
    if (target == NULL || target->cur.id[0] == '\0')
        return err_set(e, ERR_PRECONDITION, "unable to find target container %s", c->spec->target);
    if (p->api->spec.share_process_namespace || p->api->spec.host_pid)
        return ERR_OK; /* it is the target's */
    if (rt_pidns_open(p->node->rt, target->cur.id, &r->target, e) == ERR_NOT_FOUND)
        return err_set(e, ERR_PRECONDITION, INVALID_TARGET ": container \"%s\" is not running - in state %s",
                       target->cur.id, target->cur.ended ? "CONTAINER_EXITED" : "CONTAINER_CREATED");
    if (e->code != ERR_OK)
        return err_wrap(e, INVALID_TARGET);
    r->config.pidns = arena_printf(&r->arena, "/proc/%d/fd/%d", (int)getpid(), r->target);
    return r->config.pidns != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code ctr_config_fill(struct ctr_run *r, struct ctr *c, struct err *e)
{
    struct pod *p = c->pod;
    const struct api_pod_spec *s = &p->api->spec;
    struct pod_image *image = images_find(p, c->spec->image);
    char id[65], cgroup[512];

    id_random_hex(id, 64);
    if (project_layer_id(c)[0] != '\0')
        snprintf(id, sizeof(id), "%s", project_layer_id(c));
    r->api = api_pod_ref(p->api);
    r->image_name = c->spec->image;
    r->image = img_ref(image->image);
    r->config = (struct rt_config){
        .id = arena_strdup(&r->arena, id),
        .runtime_handler = sandbox_runtime_handler(p),
        .pod_uid = p->uid,
        .pod_namespace = p->api->meta.namespace,
        .pod_name = p->api->meta.name,
        .container_name = c->spec->name,
        .attempt = c->cur.id[0] == '\0' ? 0
                   : c->cur.ended       ? c->cur.attempt + 1
                                        : c->cur.attempt,
        .image = r->image,
        .working_dir = c->spec->working_dir,
        .security = &c->spec->security,
        .pod_security = &s->security,
        .seccomp_default = p->node->o.seccomp_default,
        .keep_projects = project_counts(p->node),
        .hostname = sandbox_hostname(p),
        .netns = s->host_network ? NULL : arena_printf(&r->arena, "%s/net", sandbox_pins(p)),
        .userns = userns_wanted(p) ? arena_printf(&r->arena, "%s/user", sandbox_pins(p)) : NULL,
        .first_id = sandbox_first_id(p),
        .n_ids = USERNS_IDS,
        .pidns = s->share_process_namespace ? arena_printf(&r->arena, "%s/pid", sandbox_pins(p)) : NULL,
        .utsns = s->host_network ? NULL : arena_printf(&r->arena, "%s/uts", sandbox_pins(p)),
        .ipcns = s->host_ipc ? NULL : arena_printf(&r->arena, "%s/ipc", sandbox_pins(p)),
        .host_pid = s->host_pid,
        .tty = c->spec->tty,
        .stdin_open = c->spec->stdin_open,
        .stdin_once = c->spec->stdin_once,
    };
    if (join_target(r, c, e) != ERR_OK ||
        ctr_devices_add(c, &r->arena, &r->config, &r->devices, e) != ERR_OK ||
        add_environment(r, c, e) != ERR_OK || resources_cgroup_path(p, cgroup, sizeof(cgroup), e) != ERR_OK ||
        make_message_file(r, c, e) != ERR_OK || ctr_config_add_mounts(r, c, e) != ERR_OK ||
        add_log(r, c, e) != ERR_OK || add_hugepages(r, c, e) != ERR_OK)
        return e->code;
    add_resources(r, c);
    if (add_cpuset(r, c, e) != ERR_OK)
        return e->code;
    r->config.cgroup_path = arena_printf(&r->arena, "%s/%s", cgroup, id);
    if ((r->config.command = expand(r, &c->spec->command, e)) == NULL ||
        (r->config.args = expand(r, &c->spec->args, e)) == NULL)
        return e->code;
    if (userns_wanted(p) && r->config.userns == NULL)
        return err_nomem(e);
    if (r->config.id == NULL || r->config.cgroup_path == NULL)
        return err_nomem(e);
    return add_edits(r, c, e); /* last: in kubelet it follows its own checks */
}

enum err_code ctr_run_build(struct ctr *c, struct ctr_run **ret, struct err *e)
{
    struct ctr_run *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return err_nomem(e);
    r->target = -1;
    r->volumes = c->pod->node->o.volumes;
    if (ctr_config_fill(r, c, e) != ERR_OK) {
        ctr_run_free(r);
        return e->code;
    }
    *ret = r;
    return ERR_OK;
}

/* ---- image volumes and sub paths, in a child: a volume may be a hostPath that hangs ---- */

static enum err_code bind_one(const struct ctr_run *r, const struct sub_bind *b, struct err *e)
{
    char target[PATH_SIZE];

    if (vol_sub_path_bind(r->volumes, &b->request, target, sizeof(target), e) == ERR_OK)
        return ERR_OK;
    if (b->reference == NULL)
        return err_wrap(e, "failed to prepare subPath for volumeMount \"%s\" of container \"%s\"",
                        b->request.volume, b->request.container);
    if (e->sys == EROFS || e->sys == ENOENT) /* nothing can be made in it: use the runtimes' message */
        return err_set(e, ERR_NOT_FOUND,
                       IMAGE_VOLUME_FAILED ": sub path \"%.200s\" does not exist in image volume \"%.200s\"",
                       b->request.sub, b->reference);
    return err_wrap(e, IMAGE_VOLUME_FAILED ": volume \"%s\"", b->request.volume);
}

static enum err_code ctr_config_mount_all(const struct ctr_run *r, struct err *e)
{
    for (size_t i = 0; i < r->n_image_volumes; i++) {
        const struct image_volume *v = &r->image_volumes[i];
        if (img_mount(v->image, r->config.userns, v->path, e) != ERR_OK)
            return err_wrap(e, IMAGE_VOLUME_FAILED ": volume \"%s\"", v->name);
    }
    for (size_t i = 0; i < r->n_binds; i++)
        if (bind_one(r, &r->binds[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code mount_volumes(const void *arg, struct buf *out, struct err *e)
{
    if (ctr_config_mount_all(arg, e) != ERR_OK)
        buf_adds(out, e->text); /* without a prefix: it becomes an event */
    return e->code;
}

bool ctr_run_subpaths(struct ctr_run *r, struct proc_call_spec *call)
{
    call->fn = mount_volumes;
    call->arg = r;
    call->out_max = sizeof(((struct err *)NULL)->text);
    return r->n_binds + r->n_image_volumes > 0;
}
