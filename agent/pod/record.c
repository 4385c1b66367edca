/*
 * The pod's record: what cannot be read back from the kernel or the runtime after the agent was killed.
 *
 *     <state>/pods/<uid>.json   {"version":1, "uid", "bootID", "manifest":{...}, "state", "startTime", ...
 *                                "sandboxID", "containers":{name:{...}}}
 *
 * Written by atomic rename whenever something of it changed, then synced (record_sync.c).  A damaged one, or
 * one of a newer version than this program knows, is set aside and reported; where the power was cut while it
 * was on its way to the disk, what <uid>.json.synced says takes its place.  Without that its remains are
 * left-overs of nobody, which node_sources_ready() clears away.  No Secret ever stands in it: environments
 * are not kept.
 *
 * A version is counted up only when an older program would misread the record; what is merely added has
 * defaults.
 */
#include "agent/pod/env_age.h"
#include "agent/pod/pod.h"
#include "agent/pod/probes.h"
#include "base/aside.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define RECORD_VERSION 1
#define TIME_MAX_NS (INT64_MAX / 2)             /* the year 2116: a grace on top of it still fits */
#define CLOCK_NOISE_NS (500 * INT64_C(1000000)) /* two readings of two clocks, adjtime() */
#define RECORD_MAX (12 * 1024 * 1024)

static void put_sizes(json_t *o, const struct sizes *s)
{
    if (s->known)
        json_object_set_new(o, "sizes",
                            json_pack("[I,I,I,I]", (json_int_t)s->cpu_request, (json_int_t)s->cpu_limit,
                                      (json_int_t)s->memory_request, (json_int_t)s->memory_limit));
}

static void read_sizes(const json_t *o, struct sizes *s)
{
    json_int_t v[4];

    if (json_unpack(json_object_get(o, "sizes"), "[I,I,I,I]", &v[0], &v[1], &v[2], &v[3]) == 0)
        *s = (struct sizes){ true, v[0], v[1], v[2], v[3] };
}

static json_t *instance_json(const struct instance *i)
{
    json_t *o = json_object();

    json_put_str(o, "id", i->id);
    json_object_set_new(o, "attempt", json_integer(i->attempt));
    json_object_set_new(o, "created", json_integer(i->created_ns));
    json_object_set_new(o, "started", json_integer(i->started_ns));
    json_put_str(o, "imageID", i->image_id);
    json_put_str(o, "messageFile", i->message_file);
    put_sizes(o, &i->sizes);
    if (i->env_sources != NULL)
        json_object_set(o, "envSources", i->env_sources);
    if (i->env_told != NULL)
        json_object_set(o, "envTold", i->env_told);
    if (i->ended) {
        json_object_set_new(o, "finished", json_integer(i->finished_ns));
        json_object_set_new(o, "exitCode", json_integer(i->exit_code));
        json_put_str(o, "reason", i->reason);
        json_put_str(o, "message", i->message);
    }
    return o;
}

static json_t *to_json(const struct pod *p)
{
    json_t *o = json_object(), *ctrs = json_object(), *ips = json_array(), *conditions = json_array();

    json_object_set_new(o, "version", json_integer(RECORD_VERSION));
    json_put_str(o, "uid", p->uid);
    json_put_str(o, "bootID", p->node->boot_id);
    json_put_str(o, "manifestFile", p->manifest_file);
    json_put_str(o, "state", pod_state_name(p->state));
    json_object_set_new(o, "stateSince", json_integer(p->state_since_ns));
    json_object_set_new(o, "clockOffset", json_integer(p->node->clock_offset_ns));
    json_object_set_new(o, "endingShift", json_integer(p->ending_shift_ns));
    json_object_set_new(o, "created", json_integer(p->created_ns));
    json_object_set_new(o, "startTime", json_integer(p->start_time_ns));
    json_object_set_new(o, "admitted", json_boolean(p->admitted));
    json_object_set_new(o, "rejected", json_boolean(p->rejected));
    json_object_set_new(o, "finishing", json_boolean(p->finishing));
    json_object_set_new(o, "initialized", json_boolean(p->initialized));
    json_put_str(o, "phase", p->phase);
    json_put_str(o, "reason", p->reason);
    json_put_str(o, "message", p->message);
    json_object_set_new(o, "deletion", json_integer(p->deletion_ns));
    json_object_set_new(o, "graceSeconds", json_integer(p->grace_seconds));
    if (p->shutdown_ns != 0)
        json_object_set_new(o, "shutdown", json_integer(p->shutdown_ns));
    if (p->preempting)
        json_object_set_new(o, "preempting", json_true());
    if (p->preempted_ns != 0)
        json_object_set_new(o, "preempted", json_integer(p->preempted_ns));
    json_put_str(o, "sandboxID", p->sandbox_id);
    put_sizes(o, &p->sizes);
    if (p->net_undo)
        json_object_set_new(o, "networkUndo", json_true());
    if (p->first_id != 0)
        json_object_set_new(o, "firstID", json_integer(p->first_id));
    for (size_t i = 0; i < p->net_result.n_ips; i++)
        json_array_append_new(ips, json_string(p->net_result.ips[i]));
    json_object_set_new(o, "podIPs", ips);
    json_object_set_new(o, "priority", json_integer(p->priority));
    for (size_t i = 0; i < ARRAY_LEN(p->conditions); i++) {
        json_t *c = json_object();
        json_put_str(c, "status", p->conditions[i].status);
        json_object_set_new(c, "since", json_integer(p->conditions[i].since_ns));
        json_array_append_new(conditions, c);
    }
    json_object_set_new(o, "conditions", conditions);
    for (size_t i = 0; i < p->n_ctrs; i++) {
        const struct ctr *c = &p->ctrs[i];
        json_t *j = json_object();
        json_object_set_new(j, "restarts", json_integer(c->restarts));
        json_object_set_new(j, "backoffMs", json_integer((json_int_t)c->backoff_ms));
        json_object_set_new(j, "backoffAt", json_integer(c->backoff_at_ns));
        json_object_set_new(j, "endedShift", json_integer(c->ended_shift_ns));
        if (c->replace)
            json_object_set_new(j, "replace", json_true());
        if (c->again)
            json_object_set_new(j, "again", json_true());
        if (c->asked)
            json_object_set_new(j, "asked", json_true());
        if (probes_result(c, PROBE_READINESS) == RESULT_SUCCESS)
            json_object_set_new(j, "ready", json_true());
        if (probes_result(c, PROBE_STARTUP) == RESULT_SUCCESS)
            json_object_set_new(j, "started", json_true());
        if (c->post != POST_NONE) /* cut off, it runs again; failed, too: it fails again */
            json_object_set_new(j, "postStart", json_true());
        if (c->cur.id[0] != '\0')
            json_object_set_new(j, "current", instance_json(&c->cur));
        if (c->last.id[0] != '\0')
            json_object_set_new(j, "last", instance_json(&c->last));
        json_object_set_new(ctrs, c->spec->name, j);
    }
    json_object_set_new(o, "containers", ctrs);
    return o;
}

/* The file that the pod comes from, as known now; kept when the folder is closed already. */
static void note_file(struct pod *p)
{
    const char *file =
        p->node->folder != NULL
            ? src_folder_file_of_pod(p->node->folder, p->api->meta.namespace, p->api->meta.name)
            : NULL;

    if (file != NULL)
        snprintf(p->manifest_file, sizeof(p->manifest_file), "%s", file);
}

enum err_code record_save(struct pod *p, struct err *e)
{
    note_file(p);
    json_auto_t *o = to_json(p);
    str_auto head = o != NULL ? json_text(o) : NULL;
    buf_auto text = BUF_INIT(RECORD_MAX);
    char path[512];

    if (head == NULL)
        return err_nomem(e);
    /* The manifest is kept as text already: spliced in, not parsed again. */
    buf_add(&text, head, strlen(head) - 1);
    buf_adds(&text, ",\"manifest\":");
    buf_adds(&text, p->api->json);
    buf_addc(&text, '}');
    snprintf(path, sizeof(path), "%s/pods/%s.json", p->node->o.state_dir, p->uid);
    if (buf_check(&text, e) != ERR_OK)
        return e->code;
    return fs_replace_at(AT_FDCWD, path, text.p, text.n, 0600, false, e);
}

void record_remove(struct pod *p)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/pods/%s.json.synced", p->node->o.state_dir, p->uid);
    fs_remove_quietly(AT_FDCWD, path);
    snprintf(path, sizeof(path), "%s/pods/%s.json", p->node->o.state_dir, p->uid);
    fs_remove_quietly(AT_FDCWD, path);
}

/* ---- reading back -------------------------------------------------------------------------------------- */

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from != NULL ? from : "");
}

/* A whole number that is at most `max`, else 0: what follows from it must fit its type. */
static int64_t number(const json_t *o, const char *key, int64_t max)
{
    json_int_t v = json_int(o, key, 0);

    return v > 0 && v <= max ? v : 0;
}

static int64_t time_of(const json_t *o, const char *key)
{
    return number(o, key, TIME_MAX_NS);
}

/* How far the clock was set: either way, at most as far as times go. */
static int64_t shift_of(const json_t *o, const char *key)
{
    json_int_t v = json_int(o, key, 0);

    return v > -TIME_MAX_NS / 4 && v < TIME_MAX_NS / 4 ? v : 0;
}

static bool id_is_sane(const char *id) /* becomes part of paths */
{
    return id == NULL || (strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64);
}

static bool instance_read(const json_t *o, struct instance *i)
{
    const char *id = json_str(o, "id"), *message = json_str(o, "message"), *image = json_str(o, "imageID");
    const char *file = json_str(o, "messageFile");

    if (o == NULL || id == NULL)
        return true;
    if (!id_is_sane(id) || (file != NULL && !fs_path_is_safe(file)))
        return false;
    copy(i->id, sizeof(i->id), id);
    i->attempt = (unsigned)number(o, "attempt", INT32_MAX);
    i->created_ns = time_of(o, "created");
    i->started_ns = time_of(o, "started");
    i->image_id = image != NULL ? strdup(image) : NULL;
    copy(i->message_file, sizeof(i->message_file), file);
    read_sizes(o, &i->sizes);
    if (env_age_is_sane(json_object_get(o, "envSources")))
        i->env_sources = json_incref(json_object_get(o, "envSources"));
    if (i->env_sources != NULL && env_age_is_sane(json_object_get(o, "envTold")))
        i->env_told = json_incref(json_object_get(o, "envTold"));
    if (json_object_get(o, "finished") != NULL) {
        i->ended = true;
        i->finished_ns = time_of(o, "finished");
        i->exit_code = (int)number(o, "exitCode", 255);
        copy(i->reason, sizeof(i->reason), json_str(o, "reason"));
        i->message = message != NULL ? strdup(message) : NULL;
    }
    return true;
}

static enum pod_state state_of(const char *name)
{
    for (int s = POD_PENDING; s <= POD_TERMINATED; s++)
        if (str_eq(pod_state_name((enum pod_state)s), name))
            return (enum pod_state)s;
    return POD_PENDING;
}

/* `name`: "<uid>.json", the text's own or that of the file that stands for it. */
static enum err_code read_one(struct node *n, const char *name, const char *text, size_t size, bool durable,
                              struct err *e)
{
    json_auto_t *o = NULL;
    struct api_problems problems = { 0 };
    scoped(api_pod_unref) struct api_pod *api = NULL;
    const char *uid, *sandbox;
    const json_t *ctrs;
    struct pod *p;

    if (json_parse(text, size, RECORD_MAX, &o, "pod record", e) != ERR_OK)
        return e->code;
    uid = json_str(o, "uid");
    sandbox = json_str(o, "sandboxID");
    if (json_int(o, "version", 0) != RECORD_VERSION)
        return err_set(e, ERR_INVALID, "version %lld is not %d", (long long)json_int(o, "version", 0),
                       RECORD_VERSION);
    if (uid == NULL || strlen(uid) + 5 != strlen(name) || strncmp(name, uid, strlen(uid)) != 0 ||
        !id_is_sane(sandbox))
        return err_set(e, ERR_INVALID, "uid or sandbox id is not sane");
    if (api_decode_pod(json_object_get(o, "manifest"), &api, &problems, e) != ERR_OK || api == NULL) {
        if (e->code == ERR_OK)
            err_set(e, ERR_INVALID, "manifest: %s: %s", problems.n > 0 ? problems.v[0].where : "?",
                    problems.n > 0 ? problems.v[0].what : "?");
        api_problems_done(&problems);
        return e->code;
    }
    api_problems_done(&problems);
    if (pods_find(n, api->meta.namespace, api->meta.name) != NULL)
        return err_set(e, ERR_EXISTS, "another record names the same pod %s/%s", api->meta.namespace,
                       api->meta.name);
    p = pods_new(n, api, uid);
    if (p == NULL)
        return err_nomem(e);
    copy(p->manifest_file, sizeof(p->manifest_file), json_str(o, "manifestFile"));
    p->recovered = true;
    p->record_durable = durable;
    p->record_dirty = !durable;
    p->wanted = true; /* until the sources have spoken */
    p->state = state_of(json_str(o, "state"));
    p->rebooted = json_str(o, "bootID") != NULL && n->boot_id[0] != '\0' &&
                  strcmp(json_str(o, "bootID"), n->boot_id) != 0;
    p->state_since_ns = time_of(o, "stateSince");
    p->ending_shift_ns = shift_of(o, "endingShift");
    p->created_ns = time_of(o, "created") != 0 ? time_of(o, "created") : p->created_ns;
    p->start_time_ns = time_of(o, "startTime");
    p->start_times = (struct start_times){ 0 };
    p->priority = (int32_t)number(o, "priority", INT32_MAX);
    p->admitted = json_flag(o, "admitted");
    p->rejected = json_flag(o, "rejected");
    p->finishing = json_flag(o, "finishing");
    p->initialized = json_flag(o, "initialized");
    copy(p->phase, sizeof(p->phase), json_str(o, "phase"));
    copy(p->reason, sizeof(p->reason), json_str(o, "reason"));
    p->message = json_str(o, "message") != NULL ? strdup(json_str(o, "message")) : NULL;
    p->deletion_ns = time_of(o, "deletion");
    p->shutdown_ns = time_of(o, "shutdown");
    p->preempted_ns = time_of(o, "preempted");
    p->preempting = json_flag(o, "preempting");
    p->grace_seconds = number(o, "graceSeconds", GRACE_MAX_SECONDS);
    copy(p->sandbox_id, sizeof(p->sandbox_id), sandbox);
    read_sizes(o, &p->sizes);
    p->net_undo = json_flag(o, "networkUndo");
    p->first_id = (uint32_t)number(o, "firstID", UINT32_MAX);
    for (size_t i = 0;
         p->state == POD_TERMINATED && i < json_array_size(json_object_get(o, "podIPs")) && i < CNI_IPS_MAX;
         i++) {
        const char *ip = json_string_value(
            json_array_get(json_object_get(o, "podIPs"), i)); /* of a pod that is over: only shown */
        copy(p->net_result.ips[p->net_result.n_ips++], sizeof(p->net_result.ips[0]), ip);
    }
    for (size_t i = 0; i < ARRAY_LEN(p->conditions); i++) {
        const json_t *c = json_array_get(json_object_get(o, "conditions"), i);
        copy(p->conditions[i].status, sizeof(p->conditions[i].status), json_str(c, "status"));
        p->conditions[i].since_ns = time_of(c, "since");
    }
    ctrs = json_object_get(o, "containers");
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = &p->ctrs[i];
        const json_t *j = json_object_get(ctrs, c->spec->name);
        c->restarts = (unsigned)number(j, "restarts", INT32_MAX);
        c->backoff_ms = (uint64_t)number(j, "backoffMs", BACKOFF_MAX_MS);
        c->backoff_at_ns = time_of(j, "backoffAt");
        c->ended_shift_ns = shift_of(j, "endedShift");
        c->replace = json_flag(j, "replace");
        c->again = json_flag(j, "again");
        c->asked = json_flag(j, "asked");
        c->was_ready = json_flag(j, "ready");
        c->was_started = json_flag(j, "started");
        c->post = json_flag(j, "postStart") ? POST_RUNNING : POST_NONE;
        if (!instance_read(json_object_get(j, "current"), &c->cur) ||
            !instance_read(json_object_get(j, "last"), &c->last))
            log_warn("pod record: an instance is not sane and was left out", F_STR("record", name),
                     F_STR("containerName", c->spec->name));
        /* Until the runtime was asked (pods_recover): alive as far as the record knows. */
        if (c->cur.id[0] != '\0' && !c->cur.ended)
            c->state = c->cur.started_ns != 0 ? CTR_RUNNING : CTR_CREATED;
        c->recovered = c->state == CTR_RUNNING;
        if (!c->recovered)
            c->post = POST_NONE;
        c->state_since_ns = c->cur.started_ns;
    }
    if (!p->rebooted && time_of(o, "clockOffset") != 0) { /* the clock may have been set while no agent ran */
        int64_t by_ns = n->clock_offset_ns - time_of(o, "clockOffset");
        if (by_ns > CLOCK_NOISE_NS || by_ns < -CLOCK_NOISE_NS)
            clock_jump_pod(p, by_ns);
    }
    return ERR_OK;
}

static bool same_file(int dir, const char *a, const char *b)
{
    struct stat one, other;

    return fstatat(dir, a, &one, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(dir, b, &other, AT_SYMLINK_NOFOLLOW) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

/* Out of the way.  Of an empty file, as a power cut leaves what was just written, there is nothing to look
 * at. */
static void put_away(int dir, const char *name, bool empty, const struct err *why)
{
    char away[ASIDE_NAME_SIZE];
    struct err failed = { 0 };

    if (empty) {
        log_info("pod record that a power cut left empty: removed", F_STR("record", name));
        fs_remove_quietly(dir, name);
        return;
    }
    log_error("pod record is damaged: set aside", F_STR("record", name), F_ERR(why));
    if (aside_put(dir, name, away, &failed) != ERR_OK)
        log_error("damaged record cannot be set aside", F_STR("record", name), F_ERR(&failed));
}

/* For a record that cannot be used, what was on the disk before it, where there is such. */
static enum err_code stand_in(struct node *n, int dir, const char *name, const char *synced, bool same,
                              struct err *e)
{
    str_auto text = NULL;
    size_t size = 0;
    bool taken;

    taken = !same && fs_read_at(dir, synced, RECORD_MAX, &text, &size, e) == ERR_OK &&
            read_one(n, name, text, size, false, e) == ERR_OK;
    if (err_is_shortage(e))
        return err_wrap(e, "pod record %s", synced);
    *e = (struct err){ 0 };
    if (taken) {
        if (linkat(dir, synced, dir, name, 0) != 0) /* until it is saved, with all that follows */
            log_warn("pod record cannot be restored", F_STR("record", name),
                     F_STR("err", strerrordesc_np(errno)));
        log_warn("pod record: what was on the disk before it is used", F_STR("record", name));
        return ERR_OK;
    }
    fs_remove_quietly(dir, synced);
    log_warn("pod record: none; its pod starts anew if its manifest is there", F_STR("record", name));
    return ERR_OK;
}

static enum err_code load_one(struct node *n, int dir, const char *name, struct err *e)
{
    str_auto text = NULL;
    str_auto synced = str_printf("%s.synced", name);
    struct err why = { 0 };
    size_t size = 0;
    bool same;

    if (synced == NULL)
        return err_nomem(e);
    same = same_file(dir, name, synced);
    if (fs_read_at(dir, name, RECORD_MAX, &text, &size, &why) == ERR_OK &&
        read_one(n, name, text, size, same, &why) == ERR_OK)
        return ERR_OK;
    if (err_is_shortage(&why)) { /* it is not the record's fault: the next start reads it */
        *e = why;
        return err_wrap(e, "pod record %s", name);
    }
    put_away(dir, name, text != NULL && size == 0, &why);
    return stand_in(n, dir, name, synced, same, e);
}

/* A write that was cut off, or the second name of a record that is gone. */
static bool is_rubbish(int dir, const char *name)
{
    char first[256];

    if (name[0] == '.')
        return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    if (!str_ends(name, ".json.synced") || strlen(name) >= sizeof(first))
        return false;
    snprintf(first, sizeof(first), "%.*s", (int)(strlen(name) - strlen(".synced")), name);
    return faccessat(dir, first, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

/* The list is read first: what is set aside or made meanwhile is not looked at. */
static enum err_code list(const char *path, int *ret_dir, struct buf *names, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (d == NULL) {
        err_sys(e, errno, "open %s", path);
        if (fd >= 0)
            close(fd);
        return e->code;
    }
    while ((entry = readdir(d)) != NULL)
        buf_add(names, entry->d_name, strlen(entry->d_name) + 1);
    *ret_dir = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    closedir(d);
    if (*ret_dir < 0)
        return err_sys(e, errno, "open %s", path);
    return buf_check(names, e);
}

enum err_code record_load_all(struct node *n, struct err *e)
{
    str_auto path = str_printf("%s/pods", n->o.state_dir);
    buf_auto names = BUF_INIT(64u << 20);
    fd_auto dir = -1;

    if (path == NULL)
        return err_nomem(e);
    if (fs_mkdirs(path, 0700, e) != ERR_OK || list(path, &dir, &names, e) != ERR_OK)
        return e->code;
    for (const char *name = names.p; name < names.p + names.n; name += strlen(name) + 1) {
        if (is_rubbish(dir, name))
            unlinkat(dir, name, 0);
        else if (str_ends(name, ".json") && load_one(n, dir, name, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}
