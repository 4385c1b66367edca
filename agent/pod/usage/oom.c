/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/usage/oom.h"

#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/usage/internal.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "cgroups/oom_log.h"
#include "cgroups/oom_watch.h"

#include <inttypes.h>
#include <string.h>

#define KMSG "/dev/kmsg"
/* of the log, until a counter's change requires them: more than a single kill writes \ */
#define KILLS_KEPT 64
/* a kernel that logs a lot (firewalls, links) does not wake the agent for each line */
#define LOG_PAUSE_MS 1000
#define RECORDS_AT_ONCE 512 /* per step of the loop: a flood of records must not block it */
#define UNSEEN_MAX_MS 10000
#define TELL_MAX 8 /* events for one container at a time; a group kill may have thousands */

struct suspect {       /* a watched container, or one with unreported kills */
    UT_hash_handle hh; /* by path */
    char pod_uid[132], name[64];
    uint64_t untold;
    uint64_t since_ms; /* clock_mono_ms() when they were searched in the log in vain; 0: not yet */
    bool over;         /* no longer watched: freed when everything is reported */
    char path[];
};

struct oom {
    struct node *node;
    struct cg_oom_watch *watch;
    struct cg_oom_log *log;
    char no_watch[504], no_log[504]; /* why not; "" */
    uv_poll_t watch_poll, log_poll;
    uv_timer_t timer;     /* active while something must be checked again */
    uv_timer_t log_timer; /* runs for LOG_PAUSE_MS after the log had records */
    uint64_t unseen_ms;   /* until unreadable counters are read again; 0: none */
    int handles;
    struct suspect *suspects;
    struct cg_oom_kill kills[KILLS_KEPT]; /* the newest, as a ring */
    size_t n_kills, next_kill;
};

/* ---- reporting ---- */

static bool is_at_or_below(const char *path, const char *root)
{
    size_t n = strlen(root);

    return n > 0 && strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Which limit was reached, from the container's point of view. */
static const char *whose_limit(const char *limited, const char *ctr_cgroup)
{
    const char *slash = strrchr(ctr_cgroup, '/');
    size_t n = slash != NULL ? (size_t)(slash - ctr_cgroup) : 0;

    if (limited[0] == '\0' || is_at_or_below(limited, ctr_cgroup))
        return "";
    if (strlen(limited) == n && strncmp(limited, ctr_cgroup, n) == 0)
        return "; it was the limit of the pod";
    return "; it was the limit of all pods together, or of their class";
}

void oom_describe(const struct cg_oom_kill *kill, const char *ctr_cgroup, char *ret, size_t size)
{
    snprintf(ret, size,
             "%s: Killed process %d (%s), anon-rss:%" PRIu64 "kB, file-rss:%" PRIu64 "kB, shmem-rss:%" PRIu64
             "kB%s",
             kill->system ? "Out of memory" : "Memory cgroup out of memory", (int)kill->pid, kill->name,
             kill->anon_kib, kill->file_kib, kill->shmem_kib, whose_limit(kill->limited, ctr_cgroup));
}

static struct ctr *ctr_of(struct node *n, const struct suspect *s, struct pod **ret_pod)
{
    struct pod *p = pods_by_uid(n, s->pod_uid);

    *ret_pod = p;
    for (size_t i = 0; p != NULL && i < p->n_ctrs; i++)
        if (strcmp(p->ctrs[i]->spec->name, s->name) == 0)
            return p->ctrs[i];
    return NULL;
}

/* The run may have ended meanwhile, and the next one begun. */
static void note_killed(struct ctr *c, const struct suspect *s, const char *text)
{
    const char *slash = strrchr(s->path, '/');
    struct instance *runs[] = { &c->cur, &c->last };

    for (size_t i = 0; i < ARRAY_LEN(runs) && slash != NULL; i++)
        if (strcmp(runs[i]->id, slash + 1) == 0)
            instance_add_why(runs[i], "%s", text);
    c->pod->record_dirty = true;
}

/* Reports the log's records for this container; removes them from the ring. */
static void tell_known(struct oom *o, struct suspect *s)
{
    struct pod *p;
    struct ctr *c = ctr_of(o->node, s, &p);
    unsigned told = 0;

    for (size_t i = 0; i < o->n_kills && s->untold > 0; i++) {
        struct cg_oom_kill *kill =
            &o->kills[(o->next_kill + KILLS_KEPT - o->n_kills + i) % KILLS_KEPT]; /* oldest first */
        char text[400];

        if (kill->pid == 0 || !is_at_or_below(kill->cgroup, s->path))
            continue;
        oom_describe(kill, s->path, text, sizeof(text));
        s->untold--;
        if (c != NULL && told++ < TELL_MAX) {
            pod_event(p, c, true, "OOMKilling", "%s", text);
            note_killed(c, s, text);
        }
        if (told == 1)
            log_warn("process killed because of a memory limit",
                     F_STR("pod", p != NULL ? p->key : s->pod_uid), F_STR("containerName", s->name),
                     F_I64("pid", kill->pid), F_STR("process", kill->name));
        kill->pid = 0;
    }
}

static void tell_unknown(struct oom *o, struct suspect *s)
{
    struct pod *p;
    const struct ctr *c = ctr_of(o->node, s, &p);

    if (c != NULL && s->untold > 0)
        pod_event(p, c, true, "OOMKilling",
                  "Memory cgroup out of memory: %" PRIu64 " %s killed; unknown which: %s", s->untold,
                  s->untold == 1 ? "process was" : "processes were",
                  o->log == NULL ? o->no_log : "the kernel log does not name it");
    s->untold = 0;
}

/* ---- the log ---- */

/* Like kubelet's oom watcher: the whole machine, or a process outside all cgroups. */
static void tell_system(struct node *n, const struct cg_oom_kill *kill)
{
    char text[160];

    if (!kill->system && strcmp(kill->cgroup, "/") != 0)
        return;
    snprintf(text, sizeof(text), "System OOM encountered, victim process: %s, pid: %d", kill->name,
             (int)kill->pid);
    node_event(n, true, "SystemOOM", text);
    log_warn("process killed because the machine is out of memory", F_I64("pid", kill->pid),
             F_STR("process", kill->name), F_STR("cgroup", kill->cgroup));
}

/* True: there may be more. */
static bool read_log(struct oom *o)
{
    bool more = false;

    for (unsigned i = 0; o->log != NULL && i < KILLS_KEPT; i++) {
        struct cg_oom_kill *place = &o->kills[o->next_kill];

        if (!cg_oom_log_next(o->log, RECORDS_AT_ONCE, place, &more))
            return more;
        tell_system(o->node, place);
        o->next_kill = (o->next_kill + 1) % KILLS_KEPT;
        o->n_kills += o->n_kills < KILLS_KEPT;
    }
    return more;
}

static void on_log_timer(uv_timer_t *timer);

/* The log is read a moment later, with the records that follow; immediately only when a counter requires
 * it. */
static void on_log(uv_poll_t *poll, int status, int events)
{
    struct oom *o = poll->data;

    (void)events;
    uv_poll_stop(poll);
    if (status == 0)
        uv_timer_start(&o->log_timer, on_log_timer, LOG_PAUSE_MS, 0);
}

static void on_log_timer(uv_timer_t *timer)
{
    struct oom *o = timer->data;

    read_log(o); /* the rest makes it readable again */
    uv_poll_start(&o->log_poll, UV_READABLE, on_log);
}

/* ---- the counters ---- */

static void oom_drop(struct oom *o, struct suspect *s)
{
    HASH_DEL(o->suspects, s);
    free(s);
}

static void on_kills(const char *path, uint64_t kills, void *arg)
{
    struct oom *o = arg;
    struct suspect *s;

    HASH_FIND(hh, o->suspects, path, strlen(path), s);
    if (s != NULL)
        s->untold += kills;
}

/* The kernel writes its log right after the signal: missing records appear a moment later. */
static bool oom_tell_all(struct oom *o)
{
    uint64_t now = clock_mono_ms();
    struct suspect *s, *tmp;
    bool waits = false;

    HASH_ITER (hh, o->suspects, s, tmp) {
        if (s->untold > 0)
            tell_known(o, s);
        if (s->untold > 0 && s->since_ms != 0 && now - s->since_ms >= CG_OOM_LOOK_AGAIN_MS)
            tell_unknown(o, s);
        if (s->untold > 0) {
            s->since_ms = s->since_ms != 0 ? s->since_ms : now;
            waits = true;
            continue;
        }
        s->since_ms = 0;
        if (s->over)
            oom_drop(o, s);
    }
    return waits;
}

static void oom_on_timer(uv_timer_t *timer);
static void on_count(uv_poll_t *poll, int status, int events);

static void oom_look(struct oom *o, bool again)
{
    size_t found = 0;
    bool complete = cg_oom_watch_read(o->watch, again, on_kills, o, &found), pause;

    read_log(o);
    o->unseen_ms = complete ? 0 : backoff_next_ms(o->unseen_ms, CG_OOM_LOOK_AGAIN_MS, UNSEEN_MAX_MS);
    pause = oom_tell_all(o) || (found == 0 && !again);
    /* Events without a kill may occur a hundred times a second: then wait for the timer. */
    if (pause)
        uv_poll_stop(&o->watch_poll);
    if (pause || !complete)
        uv_timer_start(&o->timer, oom_on_timer, pause ? CG_OOM_LOOK_AGAIN_MS : o->unseen_ms, 0);
}

static void oom_on_timer(uv_timer_t *timer)
{
    struct oom *o = timer->data;

    uv_poll_start(&o->watch_poll, UV_READABLE, on_count);
    oom_look(o, true);
}

static void on_count(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status < 0)
        uv_poll_stop(poll);
    else
        oom_look(poll->data, false);
}

/* ---- containers ---- */

static bool oom_path_of(const struct ctr *c, char *ret, size_t size)
{
    struct err e = { 0 };
    char above[400];

    return c->cur.id[0] != '\0' && resources_cgroup_path(c->pod, above, sizeof(above), &e) == ERR_OK &&
           (size_t)snprintf(ret, size, "%s/%s", above, c->cur.id) < size;
}

static struct suspect *suspect_of(struct oom *o, const struct ctr *c, const char *path)
{
    size_t n = strlen(path);
    struct suspect *s;

    HASH_FIND(hh, o->suspects, path, n, s);
    if (s != NULL)
        return s;
    s = calloc(1, sizeof(*s) + n + 1);
    if (s == NULL)
        return NULL;
    memcpy(s->path, path, n + 1);
    snprintf(s->pod_uid, sizeof(s->pod_uid), "%s", c->pod->uid);
    snprintf(s->name, sizeof(s->name), "%s", c->spec->name);
    HASH_ADD(hh, o->suspects, path[0], n, s);
    if (s->hh.tbl == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

enum err_code oom_watch(struct ctr *c, struct err *e)
{
    struct oom *o = usage_node(c->pod->node)->oom;
    uint64_t counted = 0;
    struct presence found = presence_present();
    struct err unwatched = { 0 };
    struct suspect *s;
    char path[512];

    if (o == NULL || !oom_path_of(c, path, sizeof(path)))
        return ERR_OK;
    HASH_FIND(hh, o->suspects, path, strlen(path), s);
    if (s != NULL)
        return ERR_OK;
    /* Kills during an earlier run of the agent were reported by that one, or are old. */
    if (clock_boot_is_before(c->cur.started_at, c->pod->node->opened_at))
        found = cg_read_oom_kills(c->pod->node->o.cgroups, path, true, &counted, e);
    if (presence_is_unknown(found))
        return e->code;
    if (presence_is_absent(found) || (s = suspect_of(o, c, path)) == NULL)
        return ERR_OK;
    if (cg_oom_watch_add(o->watch, path, counted, &unwatched) != ERR_OK) {
        /* The counter is still read when it ends. */
        log_debug("cannot watch for out-of-memory kills", F_STR("pod", c->pod->key),
                  F_STR("containerName", c->spec->name), F_ERR(&unwatched));
        if (unwatched.code == ERR_EXHAUSTED)
            snprintf(o->no_watch, sizeof(o->no_watch), "%s", unwatched.text);
    }
    return ERR_OK;
}

enum err_code oom_ended(struct ctr *c, struct err *e)
{
    struct oom *o = usage_node(c->pod->node)->oom;
    struct suspect *s;
    uint64_t kills = 0;
    char path[512];

    if (o == NULL || !oom_path_of(c, path, sizeof(path)))
        return ERR_OK;
    if (oom_watch(c, e) != ERR_OK) /* it may have been too fast */
        return e->code;
    HASH_FIND(hh, o->suspects, path, strlen(path), s);
    if (s == NULL)
        return ERR_OK;
    if (cg_oom_watch_take(o->watch, path, &kills, e) != ERR_OK)
        return e->code;
    s->untold += kills;
    cg_oom_watch_remove(o->watch, path);
    s->over = true;
    if (s->untold > 0)
        read_log(o);
    if (oom_tell_all(o))
        uv_timer_start(&o->timer, oom_on_timer, CG_OOM_LOOK_AGAIN_MS, 0);
    return ERR_OK;
}

void oom_forget(struct node *n, const char *cgroup_path)
{
    struct oom *o = usage_node(n)->oom;
    struct suspect *s;

    if (o == NULL)
        return;
    HASH_FIND(hh, o->suspects, cgroup_path, strlen(cgroup_path), s);
    if (s == NULL)
        return;
    cg_oom_watch_remove(o->watch, cgroup_path);
    s->over = true;
    if (oom_tell_all(o))
        uv_timer_start(&o->timer, oom_on_timer, CG_OOM_LOOK_AGAIN_MS, 0);
}

/* ---- opening, closing ---- */

static enum err_code oom_watch_begin(struct oom *o, struct err *e)
{
    const struct node_options *with = &o->node->o;
    int status;

    if (cg_oom_watch_open(&o->watch, with->cgroups, with->loop, e) != ERR_OK)
        return e->code;
    status = uv_poll_init(with->loop, &o->watch_poll, cg_oom_watch_fd(o->watch));
    return status == 0 ? ERR_OK : err_sys(e, -status, "wait for the events of cgroups");
}

void oom_open(struct node *n)
{
    struct oom *o = calloc(1, sizeof(*o));
    struct err e = { 0 };

    if (o == NULL)
        return;
    o->node = n;
    if (oom_watch_begin(o, &e) != ERR_OK) {
        log_warn("OOM kills will be detected only when a container ends", F_ERR(&e));
        cg_oom_watch_close(o->watch);
        free(o);
        return;
    }
    if (cg_oom_log_open(&o->log, KMSG, &e) != ERR_OK) {
        snprintf(o->no_log, sizeof(o->no_log), "%s", e.text);
        log_info("cannot read the kernel log; processes killed out of memory will not be named", F_ERR(&e));
    }
    usage_node(n)->oom = o;
    uv_timer_init(n->o.loop, &o->timer);
    uv_timer_init(n->o.loop, &o->log_timer);
    o->timer.data = o->log_timer.data = o->watch_poll.data = o;
    o->handles = 3;
    uv_poll_start(&o->watch_poll, UV_READABLE, on_count);
    if (o->log == NULL)
        return;
    if (uv_poll_init(n->o.loop, &o->log_poll, cg_oom_log_fd(o->log)) != 0) {
        snprintf(o->no_log, sizeof(o->no_log), "cannot wait for %s", KMSG);
        cg_oom_log_close(o->log);
        o->log = NULL;
        return;
    }
    o->log_poll.data = o;
    o->handles = 4;
    uv_poll_start(&o->log_poll, UV_READABLE, on_log);
}

static void oom_on_closed(uv_handle_t *handle)
{
    struct oom *o = handle->data;

    if (--o->handles > 0)
        return;
    cg_oom_watch_close(o->watch);
    cg_oom_log_close(o->log);
    free(o);
}

void oom_close(struct node *n)
{
    struct usage_node *part = usage_node(n);
    struct oom *o = part->oom;
    struct suspect *s, *tmp;

    if (o == NULL)
        return;
    part->oom = NULL;
    HASH_ITER (hh, o->suspects, s, tmp)
        oom_drop(o, s);
    uv_close((uv_handle_t *)&o->timer, oom_on_closed);
    uv_close((uv_handle_t *)&o->log_timer, oom_on_closed);
    uv_close((uv_handle_t *)&o->watch_poll, oom_on_closed);
    if (o->log != NULL)
        uv_close((uv_handle_t *)&o->log_poll, oom_on_closed);
}

void oom_explain(const struct node *n, json_t *steps)
{
    const struct usage_node *part = usage_node(n);

    if (part->oom == NULL || (part->oom->no_log[0] == '\0' && part->oom->no_watch[0] == '\0'))
        return;
    if (part->oom->no_log[0] != '\0')
        explain_step(steps, "killed processes", "failed", 0, part->oom->no_log, 0);
    if (part->oom->no_watch[0] != '\0')
        explain_step(steps, "killed processes", "failed", 0, part->oom->no_watch, 0);
}
