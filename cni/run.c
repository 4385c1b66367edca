/*
 * run - ADD, DEL and CHECK of one attachment: the queue, the list of plugins, the cache entry around them.
 *
 *     ADD   entry (incomplete) -> plugin 0 -> entry with its result -> plugin 1 -> ... -> entry (complete)
 *     DEL   entry found -> plugin n-1 -> ... -> plugin 0 -> entry removed -> is there another entry? -> ...
 *     CHECK entry found -> plugin 0 -> ... -> plugin n-1, each with the final result
 *
 * An entry is marked incomplete before DEL begins: where ADD or DEL was cut off, the DEL that succeeds in the
 * end is followed by what the plugins cannot find any more (masq.h).
 */
#include "cni/internal.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/netlink.h"
#include "base/scope.h"
#include "cni/attachment.h"
#include "cni/links.h"
#include "cni/masq.h"
#include "cni/names.h"
#include "cni/plugin.h"
#include "cni/result.h"

#include <string.h>

enum run_state { RUN_WAITING, RUN_PLUGIN, RUN_MASQ, RUN_OVER };

struct cni_run {
    struct cni_op *o;
    struct cni *c;
    enum cni_verb verb;
    TAILQ_ENTRY(cni_run) link; /* in c->waiting while RUN_WAITING */

    char *container_id, *netns, *ifname, *args;
    json_t *capability_args;
    char *found; /* CHECK: by the caller; NULL: nothing */
    bool fresh;

    struct cni_entry entry; /* what is being added or deleted; entry.list holds a reference */
    bool cached;            /* DEL: entry was read from disk */
    bool cut_off;           /* DEL: an ADD or DEL before it did not end well, or the namespace is gone */
    bool counted;           /* in c->n_running */
    bool live;              /* in c->n_live */
    size_t done;            /* plugins that succeeded */
    size_t deleted;         /* DEL: entries dealt with */
    uint64_t deadline_at_ms;
    struct cni_plugin plugin;
    struct cni_masq masq;
};

static void start_plugin(struct cni_run *r);

/* ---- the end ---------------------------------------------------------------------------------- */

static void drop_entry(struct cni_run *r)
{
    if (!r->cached) {
        json_decref(r->entry.result); /* ADD: ours; otherwise inside the document */
    }
    cni_entry_done(&r->entry);
    r->cached = false;
}

static void run_free(struct cni_run *r)
{
    if (r == NULL)
        return;
    drop_entry(r);
    json_decref(r->capability_args);
    free(r->container_id);
    free(r->netns);
    free(r->ifname);
    free(r->args);
    free(r->found);
    free(r);
}

static void give_place_back(struct cni_run *r)
{
    if (r->counted)
        r->c->n_running--;
    r->counted = false;
}

static void on_slow(uv_timer_t *timer)
{
    struct cni_run *r = timer->data;
    struct cni *c = r->c;

    give_place_back(r);
    cni_run_next(c);
}

/* The operation had a place and gives it back. */
static void finish(struct cni_run *r, const struct err *e)
{
    struct cni *c = r->c;
    struct cni_op *o = r->o;

    give_place_back(r);
    if (r->live)
        c->n_live--;
    op_close_handle(&o->op, (uv_handle_t *)&o->slow);
    o->op.state = RUN_OVER;
    o->run = NULL;
    run_free(r);
    op_finish(&o->op, e->code != ERR_OK ? e : NULL);
    if (c->n_live == 0 && c->idle != NULL)
        c->idle(c);
    cni_run_next(c);
}

static void abort_run(struct op *op)
{
    struct cni_op *o = container_of(op, struct cni_op, op);
    struct cni_run *r = o->run;

    switch ((enum run_state)op->state) {
    case RUN_WAITING:
        if (r == NULL) /* it failed before it could wait */
            return;
        TAILQ_REMOVE(&r->c->waiting, r, link);
        op->state = RUN_OVER;
        o->run = NULL;
        run_free(r);
        op_finish(op, NULL); /* why it ended is known to the operation */
        return;
    case RUN_PLUGIN:
        op_cancel(&r->plugin.op);
        return;
    case RUN_MASQ:
        op_cancel(&r->masq.op);
        return;
    case RUN_OVER:
        return;
    }
}

/* ---- ADD -------------------------------------------------------------------------------------- */

bool cni_note_used(struct cni *c, const struct cni_list *list)
{
    bool ok = strs_add_once(&c->used_networks, list->name);

    for (size_t i = 0; i < cni_list_size(list); i++) {
        const char *bridge = cni_plugin_bridge(cni_list_plugin(list, i));

        ok = ok && (bridge == NULL || strs_add_once(&c->used_bridges, bridge));
    }
    return ok;
}

static enum err_code add_begin(struct cni_run *r, struct err *e)
{
    struct cni_entry old;
    const char *why = "";
    json_t *declared;

    if (cni_default_network(r->c, &why) == NULL)
        return err_set(e, ERR_UNAVAILABLE, "%s", why);
    if (cni_cache_find(r->c->cache_fd, r->container_id, r->ifname, &old, e) == ERR_OK) {
        err_set(e, ERR_PRECONDITION, "container %s has %s already, or half of it: DEL must come first",
                r->container_id, r->ifname);
        cni_entry_done(&old);
        return e->code;
    }
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };

    declared = cni_list_declared(&r->c->networks.lists[0], r->capability_args); /* the rest is nobody's */
    if (declared == NULL)
        return err_nomem(e);
    json_decref(r->capability_args);
    r->capability_args = declared;
    r->entry = (struct cni_entry){
        .list = r->c->networks.lists[0],
        .container_id = r->container_id,
        .ifname = r->ifname,
        .netns = r->netns,
        .args = r->args,
        .capability_args = r->capability_args,
        .boot_id = r->c->boot_id,
    };
    json_incref(r->entry.list.conf);
    if (!cni_note_used(r->c, &r->entry.list))
        return err_nomem(e);
    return cni_cache_write(r->c->cache_fd, &r->entry, e);
}

/* The plugin's result becomes the next one's prevResult and is kept for a DEL. */
static enum err_code add_proceed(struct cni_run *r, json_t *result, struct err *e)
{
    struct cni_result addresses = { 0 };
    int version = r->entry.list.version;
    json_t *converted;

    if (cni_result_convert(&converted, result, version, version, e) != ERR_OK)
        return e->code;
    json_decref(r->entry.result);
    r->entry.result = converted;
    r->entry.complete = r->done + 1 == cni_list_size(&r->entry.list);
    if (r->entry.complete && cni_result_addresses(&addresses, converted, version, r->ifname, e) != ERR_OK)
        return e->code;
    if (cni_cache_write(r->c->cache_fd, &r->entry, e) != ERR_OK)
        return e->code;
    r->done++;
    r->o->result = addresses;
    return ERR_OK;
}

/* ---- DEL -------------------------------------------------------------------------------------- */

/*
 * Not without its interface either: a namespace that was made anew after a reboot, or an interface that
 * somebody removed.  Plugins find less then: bridge leaves its masquerading behind.
 */
static bool interface_is_gone(const struct cni_run *r)
{
    struct cni_links *links = r->netns[0] != '\0' ? calloc(1, sizeof(*links)) : NULL;
    struct err ignored = { 0 };
    bool there = links != NULL && cni_links_read(r->netns, links, &ignored) == ERR_OK &&
                 cni_links_find(links, r->ifname) != NULL;

    free(links);
    return !there;
}

/* Finds what to delete next; *ret_more false: nothing (more). */
static enum err_code del_begin(struct cni_run *r, bool *ret_more, struct err *e)
{
    struct cni *c = r->c;
    bool no_netns = interface_is_gone(r);

    *ret_more = true;
    r->done = 0;
    if (cni_cache_find(c->cache_fd, r->container_id, r->ifname, &r->entry, e) == ERR_OK) {
        r->cached = true;
        r->cut_off = !r->entry.complete || no_netns;
        if (r->entry.complete) {
            r->entry.complete = false;
            if (cni_cache_write(c->cache_fd, &r->entry, e) != ERR_OK) {
                /* A full disk must not keep what goes from going: only a DEL cut off from here on would not
                 * be told from a whole one. */
                log_debug("attachment cannot be marked as being deleted; going on",
                          F_STR("containerID", r->container_id), F_ERR(e));
                *e = (struct err){ 0 };
            }
        }
        return cni_note_used(c, &r->entry.list) ? ERR_OK : err_nomem(e);
    }
    if (e->code != ERR_NOT_FOUND)
        return e->code;
    *e = (struct err){ 0 };
    if (r->deleted > 0 || c->networks.n == 0) {
        *ret_more = false;
        return ERR_OK;
    }
    /* Nothing known: today's plugins get the chance to clean up; what they do not know is a success. */
    r->entry = (struct cni_entry){
        .list = c->networks.lists[0],
        .container_id = r->container_id,
        .ifname = r->ifname,
        .args = r->args,
        .capability_args = r->capability_args,
    };
    json_incref(r->entry.list.conf);
    r->cut_off = no_netns;
    return ERR_OK;
}

/* ---- CHECK ------------------------------------------------------------------------------------ */

/* What was found, an error or none, against what the first CHECK found: *e becomes the result. */
static void check_judge(struct cni_run *r, struct err *e)
{
    const char *text = e->code != ERR_OK ? e->text : "";
    struct err failed = { 0 };

    if (e->code != ERR_OK &&
        (r->entry.check != NULL ? strcmp(r->entry.check, text) != 0 : r->found != NULL && !r->fresh))
        return;
    if (r->entry.check == NULL || strcmp(r->entry.check, text) != 0) {
        r->entry.check = text;
        if (cni_cache_write(r->c->cache_fd, &r->entry, &failed) != ERR_OK)
            log_debug("what CHECK found cannot be kept", F_STR("containerID", r->container_id),
                      F_ERR(&failed));
    }
    *e = (struct err){ 0 };
}

/* *ret_more false: this list is not to be checked, or its version has no CHECK; that is a success. */
static enum err_code check_begin(struct cni_run *r, bool *ret_more, struct err *e)
{
    if (cni_cache_find(r->c->cache_fd, r->container_id, r->ifname, &r->entry, e) != ERR_OK)
        return e->code;
    r->cached = true;
    if (!r->entry.complete)
        return err_set(e, ERR_PRECONDITION, "container %s: its ADD or DEL for %s did not finish",
                       r->container_id, r->ifname);
    if (r->found != NULL) {
        *ret_more = false;
        err_set(e, ERR_UNKNOWN, "%s", r->found);
        check_judge(r, e);
        return e->code;
    }
    *ret_more = r->entry.list.version >= CNI_V(0, 4, 0) && !r->entry.list.disable_check;
    return ERR_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* This entry is dealt with. */
static void del_next(struct cni_run *r)
{
    struct err e = { 0 };
    bool more = true;

    /* Else it would be found again, and again: a read-only disk. */
    if (r->cached && cni_cache_remove(r->c->cache_fd, &r->entry, &e) != ERR_OK) {
        if (e.code == ERR_NOT_FOUND)
            e.code = ERR_UNAVAILABLE;
        finish(r, &e);
        return;
    }
    drop_entry(r);
    r->deleted++;
    r->cut_off = false;
    if (del_begin(r, &more, &e) != ERR_OK || !more)
        finish(r, &e);
    else
        start_plugin(r);
}

static void on_masq_done(struct op *op, const struct err *result)
{
    struct cni_run *r = op->owner;

    if (result->code != ERR_OK || r->o->op.why.code != ERR_OK)
        finish(r, result);
    else
        del_next(r);
}

/* The next plugin, or the next entry, or the end. */
static void step(struct cni_run *r)
{
    struct err e = { 0 };

    if (r->done < cni_list_size(&r->entry.list)) {
        start_plugin(r);
    } else if (r->verb != CNI_DEL) {
        if (r->verb == CNI_CHECK)
            check_judge(r, &e);
        finish(r, &e);
    } else if (r->cut_off && cni_masq_wanted(&r->entry.list)) {
        r->o->op.state = RUN_MASQ;
        cni_masq_start(&r->masq, r->c->loop, r->entry.list.name, r->container_id, r->c->cgroup_fd,
                       r->c->cgroup_procs, on_masq_done, r);
    } else {
        del_next(r);
    }
}

/*
 * A list that was wrong from the start: its first plugin never gave a result, and it cannot DEL either.  Once
 * it was mended the old text must not hold the pod for ever: today's list gets the chance to clean up.
 */
static bool del_by_todays_list(struct cni_run *r)
{
    struct cni *c = r->c;
    struct err e = { 0 };
    bool more = true;

    if (!r->cached || r->entry.result != NULL || r->entry.complete || r->deleted > 0 || c->networks.n == 0 ||
        json_equal(r->entry.list.conf, c->networks.lists[0].conf))
        return false;
    if (cni_cache_remove(c->cache_fd, &r->entry, &e) != ERR_OK)
        return false;
    drop_entry(r);
    r->cut_off = true;
    return del_begin(r, &more, &e) == ERR_OK && more;
}

static void on_plugin_done(struct op *op, const struct err *result)
{
    struct cni_run *r = op->owner;
    struct err e = *result;
    json_auto_t *answer = take_ptr(&r->plugin.result);

    if (r->verb == CNI_ADD) {
        if (e.code == ERR_OK)
            add_proceed(r, answer, &e);
    } else if (r->verb == CNI_CHECK) {
        if (e.code == ERR_UNKNOWN && r->plugin.cni_code == 0) {
            log_debug("CNI plugin fails in CHECK without saying why", F_STR("plugin", r->plugin.call.type),
                      F_STR("containerID", r->container_id));
            e = (struct err){ 0 };
        }
        if (e.code == ERR_OK)
            r->done++;
        else if (r->plugin.cni_code > 0 && r->o->op.why.code == ERR_OK) {
            check_judge(r, &e);
            finish(r, &e);
            return;
        }
    } else {
        if (r->plugin.cni_code == CNI_CODE_UNKNOWN_CONTAINER)
            e = (struct err){ 0 }; /* "no clean-up needed", says the specification */
        if (e.code == ERR_OK)
            r->done++;
        else if (r->o->op.why.code == ERR_OK && del_by_todays_list(r)) {
            start_plugin(r);
            return;
        }
    }
    if (e.code != ERR_OK || r->o->op.why.code != ERR_OK)
        finish(r, &e);
    else
        step(r);
}

static void start_plugin(struct cni_run *r)
{
    const struct cni_list *l = &r->entry.list;
    size_t n = cni_list_size(l), i = r->verb == CNI_DEL ? n - 1 - r->done : r->done;
    bool with_prev = r->verb == CNI_ADD || l->version >= CNI_V(0, 4, 0);
    json_auto_t *input = cni_plugin_stdin(l, i, r->entry.capability_args, with_prev ? r->entry.result : NULL);
    struct cni_plugin_call call = {
        .verb = r->verb,
        .type = cni_plugin_type(cni_list_plugin(l, i)),
        .container_id = r->container_id,
        .netns = r->netns,
        .ifname = r->ifname,
        .args = r->entry.args,
        .bin_dirs = strs_list(&r->c->bin_dirs),
        .input = input,
        .config_version = l->version,
        .cgroup_fd = r->c->cgroup_fd,
        .cgroup_procs = r->c->cgroup_procs,
        .deadline_at_ms = r->deadline_at_ms,
    };
    struct err e = { 0 };

    if (input == NULL) {
        err_nomem(&e);
        finish(r, &e);
        return;
    }
    r->o->op.state = RUN_PLUGIN;
    cni_plugin_start(&r->plugin, &call, r->c->loop, on_plugin_done, r);
}

static void begin(struct cni_run *r)
{
    struct err e = { 0 };
    bool more = true;

    r->deadline_at_ms = clock_mono_ms() + (r->verb == CNI_ADD ? CNI_ADD_DEADLINE_MS : CNI_DEL_DEADLINE_MS);
    r->c->n_live++;
    r->live = true;
    switch (r->verb) {
    case CNI_ADD:
        add_begin(r, &e);
        break;
    case CNI_CHECK:
        check_begin(r, &more, &e);
        break;
    default:
        del_begin(r, &more, &e);
        break;
    }
    if (e.code != ERR_OK || !more)
        finish(r, &e);
    else
        start_plugin(r);
}

/*
 * The bridge plugin (1.1) fails when two of them make the same bridge at once ("could not set bridge's mac:
 * invalid argument"). As long as a bridge of today's list is missing, operations run one at a time.
 */
static bool may_run_together(struct cni *c)
{
    if (c->n_running == 0)
        c->bridges_made = true;
    for (size_t i = 0; c->n_running == 0 && c->networks.n > 0 && i < cni_list_size(&c->networks.lists[0]);
         i++) {
        const char *bridge = cni_plugin_bridge(cni_list_plugin(&c->networks.lists[0], i));
        if (bridge != NULL && !nl_link_exists(bridge))
            c->bridges_made = false;
    }
    return c->bridges_made || c->n_running == 0;
}

void cni_run_next(struct cni *c)
{
    struct cni_run *r;

    if (c->starting) /* called from inside begin() */
        return;
    if (c->n_asking > 0 || c->alone) /* plugins are being asked for their versions; a GC runs */
        return;
    c->starting = true;
    while (c->n_running < c->max_running && may_run_together(c) && (r = TAILQ_FIRST(&c->waiting)) != NULL) {
        TAILQ_REMOVE(&c->waiting, r, link);
        c->n_running++;
        r->counted = true;
        uv_timer_init(c->loop, &r->o->slow);
        r->o->slow.data = r;
        uv_timer_start(&r->o->slow, on_slow, CNI_PLACE_MS, 0);
        begin(r);
    }
    c->starting = false;
    if (c->n_live == 0 && c->idle != NULL)
        c->idle(c);
}

static void start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, enum cni_verb verb,
                  const char *found, bool fresh, op_done_fn done, void *owner)
{
    struct cni_run *r = calloc(1, sizeof(*r));
    struct err e = { 0 };

    *o = (struct cni_op){ 0 };
    op_init(&o->op, c->loop,
            verb == CNI_ADD     ? "cni add"
            : verb == CNI_CHECK ? "cni check"
                                : "cni del",
            0, abort_run, done, owner);
    o->op.state = RUN_WAITING;
    if (a->pod_name != NULL && a->pod_namespace != NULL) {
        str_auto subject = str_printf("%s/%s", a->pod_namespace, a->pod_name);

        op_set_subject(&o->op, subject != NULL ? subject : "");
    } else {
        op_set_subject(&o->op, a->container_id != NULL ? a->container_id : "");
    }

    if (r == NULL) {
        err_nomem(&e);
    } else if (cni_attachment_check(a, verb != CNI_DEL, &e) == ERR_OK) {
        r->o = o;
        r->c = c;
        r->verb = verb;
        r->container_id = strdup(a->container_id);
        r->netns = strdup(a->netns != NULL ? a->netns : "");
        r->ifname = strdup(a->ifname);
        r->args = cni_attachment_args(a);
        r->capability_args = cni_attachment_capability_args(a);
        if (r->container_id == NULL || r->netns == NULL || r->ifname == NULL || r->args == NULL ||
            r->capability_args == NULL || (found != NULL && (r->found = strdup(found)) == NULL))
            err_nomem(&e);
        r->fresh = fresh;
    }
    if (e.code != ERR_OK) {
        run_free(r);
        op_finish(&o->op, &e);
        return;
    }
    o->run = r;
    TAILQ_INSERT_TAIL(&c->waiting, r, link);
    cni_run_next(c);
}

void cni_add_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    start(o, c, a, CNI_ADD, NULL, false, done, owner);
}

void cni_del_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner)
{
    start(o, c, a, CNI_DEL, NULL, false, done, owner);
}

void cni_check_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, const char *found,
                     bool fresh, op_done_fn done, void *owner)
{
    start(o, c, a, CNI_CHECK, found, fresh, done, owner);
}
