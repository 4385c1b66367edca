/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preflight.h"
#include "base/files/file_lock.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"
#include "base/process/process.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#define SEARCH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define RUN_TMPFS "size=512m,mode=0711" /* bundles and small files; volumes have their own tmpfs */

bool preflight_find(const char *name, char ret[PREFLIGHT_PATH_SIZE])
{
    const char *env = getenv("PATH");
    str_auto path = strdup(env != NULL && env[0] != '\0' ? env : SEARCH);
    char *rest = path, *dir;

    while (path != NULL && (dir = strsep(&rest, ":")) != NULL)
        if (dir[0] == '/' && snprintf(ret, PREFLIGHT_PATH_SIZE, "%s/%s", dir, name) < PREFLIGHT_PATH_SIZE &&
            access(ret, X_OK) == 0)
            return true;
    ret[0] = '\0';
    return false;
}

static bool preflight_given(const char *path, const char *flag, char ret[PREFLIGHT_PATH_SIZE])
{
    snprintf(ret, PREFLIGHT_PATH_SIZE, "%s", path);
    if (path[0] == '/' && strlen(path) < PREFLIGHT_PATH_SIZE && access(path, X_OK) == 0)
        return true;
    log_error("program is missing", F_STR("program", path), F_STR("flag", flag),
              F_STR("err", "not an executable file"));
    return false;
}

static bool find_own(const struct agent_config *c, const char *name, char ret[PREFLIGHT_PATH_SIZE])
{
    return proc_find_own(c->libexec_dir, name, ret, PREFLIGHT_PATH_SIZE);
}

/* Beside the installed program, or in the tree in which it was built. */
static void find_sample_network(char ret[PREFLIGHT_PATH_SIZE])
{
    static const char *const places[] = { NULL, "/share/doc/coracle/examples/cni", "/examples/cni" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char *end = strrchr(self, '/');

        if (end == NULL)
            break;
        *end = '\0';
        if (places[i] != NULL &&
            snprintf(ret, PREFLIGHT_PATH_SIZE, "%s%s/10-coracle.conflist", self, places[i]) <
                PREFLIGHT_PATH_SIZE &&
            access(ret, R_OK) == 0)
            return;
    }
    ret[0] = '\0';
}

enum err_code preflight_programs(struct preflight *p, const struct agent_config *c, struct err *e)
{
    bool ok = true;

    if (c->runtime[0] != '\0') {
        ok = preflight_given(c->runtime, "--runtime", p->runtime);
    } else if (!preflight_find("crun", p->runtime) && !preflight_find("runc", p->runtime)) {
        log_error("no OCI runtime in PATH: install Debian's package crun", F_STR("program", "crun"),
                  F_STR("package", "crun"));
        ok = false;
    }
    if (c->conmon[0] != '\0') {
        ok = preflight_given(c->conmon, "--conmon", p->conmon) && ok;
    } else if (!preflight_find("conmon", p->conmon)) {
        log_error("no container supervisor in PATH: install Debian's package conmon",
                  F_STR("program", "conmon"), F_STR("package", "conmon"));
        ok = false;
    }
    if (!find_own(c, "coracle-unpack", p->unpack)) {
        log_error("coracle-unpack is missing: images cannot be unpacked", F_STR("program", p->unpack),
                  F_STR("package", "coracle"));
        ok = false;
    }
    if (!find_own(c, "coracle-probe", p->probe))
        log_warn("coracle-probe is missing: HTTPS probes and probes with a host name will fail",
                 F_STR("program", p->probe), F_STR("package", "coracle"));
    if ((c->kube.kubeconfig[0] != '\0' || c->local_api[0] != '\0') && !find_own(c, "coracle-kube", p->kube)) {
        log_error("coracle-kube is missing: the node cannot join its cluster", F_STR("program", p->kube),
                  F_STR("package", "coracle"));
        ok = false;
    }
    if (!find_own(c, "coracle-seal", p->seal) && c->kube.kubeconfig[0] != '\0')
        log_warn("coracle-seal is missing: Secrets will not be available after a start without the apiserver",
                 F_STR("program", p->seal), F_STR("package", "coracle"));
    if (!find_own(c, "coracle-shutdown", p->shutdown) &&
        (c->shutdown_grace_ms > 0 || c->n_shutdown_priorities > 0))
        log_warn("coracle-shutdown is missing: shutdowns of the machine will not wait for pods",
                 F_STR("program", p->shutdown), F_STR("package", "coracle"));
    if (!find_own(c, "coracle-exec", p->exec)) {
        log_error("coracle-exec is missing: no commands can be run in containers", F_STR("program", p->exec),
                  F_STR("package", "coracle"));
        ok = false;
    }
    if (!find_own(c, "coracle-pause", p->pause))
        log_warn("coracle-pause is missing: pods with shareProcessNamespace will not start",
                 F_STR("program", p->pause), F_STR("package", "coracle"));
    if (!preflight_find("skopeo", p->skopeo))
        log_warn("skopeo is missing: images cannot be pulled; install Debian's package skopeo",
                 F_STR("program", "skopeo"), F_STR("package", "skopeo"));
    if (!preflight_find("iptables", (char[PREFLIGHT_PATH_SIZE]){ 0 }))
        log_warn("iptables is missing: network plugins that map ports or masquerade will fail; install "
                 "Debian's package iptables",
                 F_STR("program", "iptables"), F_STR("package", "iptables"));
    find_sample_network(p->sample_network);
    snprintf(p->seccomp_profile, sizeof(p->seccomp_profile), "/usr/share/containers/seccomp.json");
    return ok ? ERR_OK : err_set(e, ERR_PRECONDITION, "programs are missing (named above)");
}

/* Examines the run folder: mounting a tmpfs over the one used by running pods would hide it. */
static enum err_code examine_run_dir(const char *path, bool *ret_tmpfs, bool *ret_mounted, struct err *e)
{
    struct presence mounted = fs_look_mountpoint(path, e);
    struct statfs s;

    if (presence_is_unknown(mounted))
        return e->code;
    if (statfs(path, &s) != 0)
        return err_sys(e, errno, "stat %s", path);
    *ret_tmpfs = s.f_type == TMPFS_MAGIC;
    *ret_mounted = !presence_is_absent(mounted);
    return ERR_OK;
}

static enum err_code mount_run_dir(struct preflight *p, const char *path, struct err *e)
{
    struct patience patience = { 0 };
    bool tmpfs = false, mounted = false;

    do
        *e = (struct err){ 0 };
    while (examine_run_dir(path, &tmpfs, &mounted, e) != ERR_OK && patience_wait(&patience));
    if (e->code != ERR_OK)
        return err_wrap(e, "run folder");
    if (!tmpfs && mount("coracle", path, "tmpfs", MS_NOSUID | MS_NODEV, RUN_TMPFS) != 0)
        return err_sys(e, errno, "mount a tmpfs on %s", path);
    p->run_mounted_now = !tmpfs;
    p->run_mounted = !tmpfs || mounted; /* mounted now, or by an earlier run */
    return ERR_OK;
}

/* Some of these folders are mount points (ns, cgroup, volumes), whose mounts have their own mode. */
static enum err_code preflight_make_folder(struct preflight *p, const char *path, mode_t mode, struct err *e)
{
    struct patience patience = { 0 };
    struct presence mounted;

    if (made_mkdirs(&p->made, path, mode, e) != ERR_OK)
        return e->code;
    do {
        *e = (struct err){ 0 };
        mounted = fs_look_mountpoint(path, e);
    } while (presence_is_unknown(mounted) && patience_wait(&patience));
    if (presence_is_unknown(mounted))
        return e->code;
    if (presence_is_absent(mounted) && chmod(path, mode) != 0)
        return err_sys(e, errno, "chmod %s", path);
    return ERR_OK;
}

static int open_lock(const char *path, const char *folder, const char *what)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EROFS) { /* running pods can still be supervised */
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            log_error("a folder is read-only: running pods continue, but none can be started or removed",
                      F_STR("folder", what), F_STR("path", folder));
    }
    return fd;
}

/* Another agent that starts or ends at this moment may have removed it or mounted something over it. */
static enum err_code examine_lock(int fd, const char *path, bool *ret_there, struct err *e)
{
    struct stat ours, there;

    *ret_there = false;
    if (fstat(fd, &ours) != 0)
        return err_sys(e, errno, "stat %s", path);
    if (stat(path, &there) != 0) {
        err_sys(e, errno, "stat %s", path);
        return presence_is_unknown(presence_from_err(e)) ? e->code : ERR_OK;
    }
    *ret_there = ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    return ERR_OK;
}

static enum err_code try_lock(const char *folder, const char *what, int *ret_fd, struct err *e)
{
    str_auto path = str_printf("%s/lock", folder);
    struct patience patience = { 0 };
    bool there = false;
    pid_t holder;

    if (path == NULL)
        return err_nomem(e);
    do {
        scope_close_p(ret_fd);
        *ret_fd = open_lock(path, folder, what);
        if (*ret_fd < 0)
            return err_sys(e, errno, "open %s", path);
        if (file_lock(*ret_fd, &holder, e) == ERR_EXISTS)
            return err_set(e, ERR_EXISTS, "another coracle (process %d) runs on the %s folder %s",
                           (int)holder, what, folder);
        if (e->code != ERR_OK)
            return err_wrap(e, "%s", path);
        if (examine_lock(*ret_fd, path, &there, e) != ERR_OK) {
            if (!patience_wait(&patience))
                return e->code;
            *e = (struct err){ 0 };
        }
    } while (!there);
    return ERR_OK;
}

static void unlock(int *fd)
{
    if (*fd >= 0)
        close(take_fd(fd));
}

static enum err_code take_lock(const char *folder, const char *what, int *ret_fd, struct err *e)
{
    if (try_lock(folder, what, ret_fd, e) != ERR_OK)
        unlock(ret_fd);
    return e->code;
}

static enum err_code make_run_dir(struct preflight *p, const struct agent_config *c, struct err *e)
{
    /* A runtime in a pod's user namespace accesses the hierarchies mounted in "cgroup". */
    static const struct {
        const char *name;
        mode_t mode;
    } folders[] = { { "containers", 0700 }, { "exits", 0700 }, { "oci", 0700 },
                    { "ns", 0700 },         { "pods", 0700 },  { "volumes", 0700 },
                    { "cgroup", 0711 },     { "auth", 0700 },  { "records", 0700 } };

    if (made_mkdirs(&p->made, c->run_dir, 0711, e) != ERR_OK)
        return e->code;
    if (mount_run_dir(p, c->run_dir, e) != ERR_OK)
        return e->code;
    if (take_lock(c->run_dir, "run", &p->run_lock, e) != ERR_OK)
        return e->code;
    if (p->run_mounted && mount(NULL, c->run_dir, NULL, MS_SHARED, NULL) != 0)
        return err_sys(e, errno, "make %s a shared mount", c->run_dir);
    if (chmod(c->run_dir, 0711) != 0)
        return err_sys(e, errno, "chmod %s", c->run_dir);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        str_auto path = str_printf("%s/%s", c->run_dir, folders[i].name);
        if (path == NULL)
            return err_nomem(e);
        if (preflight_make_folder(p, path, folders[i].mode, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

static enum err_code read_capacity(struct preflight *p, struct err *e)
{
    str_auto text = NULL;
    const char *at;
    unsigned long long kib;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (fs_read_at(AT_FDCWD, "/proc/meminfo", FS_SMALL_MAX, &text, NULL, e) != ERR_OK)
        return e->code;
    at = strstr(text, "MemTotal:");
    if (at == NULL || sscanf(at, "MemTotal: %llu kB", &kib) != 1)
        return err_set(e, ERR_INTERNAL, "/proc/meminfo has no MemTotal");
    p->memory_bytes = kib * 1024;
    at = strstr(text, "SwapTotal:");
    if (at != NULL && sscanf(at, "SwapTotal: %llu kB", &kib) == 1)
        p->swap_bytes = kib * 1024;
    p->cpu_milli = (unsigned long)(cpus > 0 ? cpus : 1) * 1000;
    return ERR_OK;
}

static bool is_private(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & 077) == 0;
}

enum err_code preflight_folders(struct preflight *p, const struct agent_config *c, struct err *e)
{
    if (made_mkdirs(&p->made, c->state_dir, 0700, e) != ERR_OK)
        return e->code;
    if (chmod(c->state_dir, 0700) != 0 && !(errno == EROFS && is_private(c->state_dir)))
        return err_sys(e, errno, "chmod %s", c->state_dir);
    fs_spread_below(c->state_dir); /* records, attachments and images have their own folders */
    if (take_lock(c->state_dir, "state", &p->state_lock, e) != ERR_OK || make_run_dir(p, c, e) != ERR_OK ||
        read_capacity(p, e) != ERR_OK)
        return e->code;
    if (made_mkdirs(&p->made, c->root_dir, 0755, e) != ERR_OK ||
        made_mkdirs(&p->made, c->pod_logs_dir, 0755, e) != ERR_OK ||
        made_mkdirs(&p->made, c->container_logs_dir, 0755, e) != ERR_OK)
        return e->code;
    return ERR_OK;
}

void preflight_undo(struct preflight *p, const struct agent_config *c)
{
    struct err e = { 0 };

    if (fs_unmount_below(c->run_dir, &e) != ERR_OK)
        log_warn("cannot unmount the run folder", F_STR("path", c->run_dir), F_ERR(&e));
    if (fs_remove_tree(AT_FDCWD, c->run_dir, &e) != ERR_OK)
        log_warn("cannot remove the run folder", F_STR("path", c->run_dir), F_ERR(&e));
    p->run_mounted = false;
}

/* Removes a held lock and the folder that was created for it. Another start that waits for the lock creates
 * its own. */
static void remove_lock(struct preflight *p, const char *folder, int *fd)
{
    str_auto path = str_printf("%s/lock", folder);

    if (*fd >= 0 && path != NULL && made_has(&p->made, folder))
        unlink(path);
    unlock(fd);
}

void preflight_take_back(struct preflight *p, const struct agent_config *c)
{
    bool ours = p->run_mounted_now || (p->run_lock >= 0 && made_has(&p->made, c->run_dir));
    struct err e = { 0 };

    remove_lock(p, c->run_dir, &p->run_lock);
    if (ours && fs_unmount_below(c->run_dir, &e) != ERR_OK)
        log_warn("cannot unmount the run folder", F_STR("path", c->run_dir), F_ERR(&e));
    remove_lock(p, c->state_dir, &p->state_lock);
    made_remove(&p->made);
}

void preflight_done(struct preflight *p)
{
    unlock(&p->run_lock);
    unlock(&p->state_lock);
    made_done(&p->made);
}
