/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod records are brought to the disk: written by rename on the loop, where the page cache holds them against
 * a kill of the agent, and made durable against a power cut right after, together, on the pool.
 *
 *     <uid>.json          the newest, maybe still on its way to the disk
 *     <uid>.json.synced   a hard link to the newest one that fdatasync() has confirmed
 *
 * Some file systems (XFS, btrfs) leave an empty file where a rename was not preceded by a sync and the power
 * goes; then the second name has what was known before (record_load_all()).  A batch costs one fdatasync() a
 * record and one fsync() of the folder; what is saved meanwhile makes the next batch.  A container is started
 * only once some record of its pod is durable: that is when its uid becomes visible, and what it writes to
 * its volumes is found by it.  So a pod's first record goes at once; a later one, of which a start saves
 * three, LATER_MS after it.  All that a power cut may take by then is that the pod is a moment younger than
 * it was, and the facts (nothing runs after a power cut) decide.
 */
#include "agent/pod/core/pod.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/record/internal.h"
#include "agent/pod/record/record.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct record_batch { /* owned by the pool while it runs */
    struct work work;
    struct node *node;
    char *dir;
    size_t n;
    char uids[][132];
};

#define LATER_MS 1000

static void record_sync_start(struct node *n, bool all);

/* Gives an open, synced record its second name; false: it is outdated, and the newer one follows. */
static enum err_code record_sync_keep(int dir, int fd, const char *name, struct err *e)
{
    str_auto from = str_printf("/proc/self/fd/%d", fd);
    str_auto tmp = str_printf(".%s.synced", name);
    str_auto to = str_printf("%s.synced", name);

    if (from == NULL || tmp == NULL || to == NULL)
        return err_nomem(e);
    if (unlinkat(dir, tmp, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "remove %s", tmp);
    if (linkat(AT_FDCWD, from, dir, tmp, AT_SYMLINK_FOLLOW) != 0)
        return errno == ENOENT ? ERR_OK /* replaced meanwhile */ : err_sys(e, errno, "link %s", to);
    if (renameat(dir, tmp, dir, to) != 0) {
        err_sys(e, errno, "rename %s", to);
        fs_remove_quietly(dir, tmp); /* the pod may go before its next record comes */
        return e->code;
    }
    /* Both names belonged to one file: rename() did nothing. */
    return unlinkat(dir, tmp, 0) == 0 || errno == ENOENT ? ERR_OK : err_sys(e, errno, "remove %s", tmp);
}

static enum err_code sync_batch(void *arg, struct err *e)
{
    const struct record_batch *b = arg;
    fd_auto dir = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys(e, errno, "open %s", b->dir);
    for (size_t i = 0; i < b->n; i++) {
        str_auto name = str_printf("%s.json", b->uids[i]);
        fd_auto fd = name == NULL ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (name == NULL)
            return err_nomem(e);
        if (fd < 0 && errno == ENOENT)
            continue; /* its pod is gone */
        if (fd < 0 || fdatasync(fd) != 0)
            return err_sys(e, errno, "sync %s", name);
        if (record_sync_keep(dir, fd, name, e) != ERR_OK)
            return e->code;
    }
    return fsync(dir) == 0 ? ERR_OK : err_sys(e, errno, "sync %s", b->dir);
}

/* For a pod deleted meanwhile; its record was removed first. */
static void remove_synced(struct node *n, const char *uid)
{
    str_auto path = str_printf("%s/pods/%s.json.synced", n->o.state_dir, uid);

    if (path != NULL && unlink(path) != 0 && errno != ENOENT && !n->closing)
        sweep_record(n, uid);
}

static void on_synced(struct op *op, const struct err *result)
{
    struct record_batch *b = op->owner;
    struct node *n = b->node;
    struct record_node *part = record_node(n);

    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        log_warn("cannot sync pod records; a power failure may lose them", F_ERR(result));
    for (size_t i = 0; i < b->n; i++) {
        struct pod *p = pods_by_uid(n, b->uids[i]);

        if (p == NULL) {
            remove_synced(n, b->uids[i]);
            continue;
        }
        if (!p->record_durable) { /* a failed sync must not prevent containers from starting */
            p->record_durable = true;
            pod_wake(p, "record is on the disk");
        }
    }
    part->syncing = false;
    free(b->dir);
    free(b);
    record_sync_start(n, part->due);
}

/* The first records of pods, or all that wait. */
static void record_sync_start(struct node *n, bool all)
{
    struct record_node *part = record_node(n);
    struct record_batch *b;
    struct pod_record *r, *next;
    size_t count = 0;

    if (part->syncing)
        return;
    TAILQ_FOREACH (r, &part->unsynced, link)
        count += all || !r->pod->record_durable;
    if (count == 0)
        return;
    b = calloc(1, sizeof(*b) + count * sizeof(b->uids[0]));
    if (b != NULL)
        b->dir = str_printf("%s/pods", n->o.state_dir);
    for (r = TAILQ_FIRST(&part->unsynced); r != NULL; r = next) {
        struct pod *p = r->pod;

        next = TAILQ_NEXT(r, link);
        if (!all && p->record_durable)
            continue;
        if (b != NULL)
            memcpy(b->uids[b->n++], p->uid, sizeof(p->uid));
        record_sync_forget(p);
        if (b == NULL || b->dir == NULL) { /* out of memory: do not wait */
            p->record_durable = true;
            pod_wake(p, "record is on the disk");
        }
    }
    if (TAILQ_EMPTY(&part->unsynced)) {
        part->due = false;
        uv_timer_stop(&part->timer);
    }
    if (b == NULL || b->dir == NULL) {
        free(b);
        return;
    }
    b->node = n;
    part->syncing = true;
    work_start(&b->work, "pod records", "", sync_batch, b, n->o.loop, on_synced, b);
}

static void record_sync_on_later(uv_timer_t *timer)
{
    struct node *n = timer->data;

    record_node(n)->due = true; /* a batch may be in progress */
    record_sync_start(n, true);
}

void record_sync(struct pod *p)
{
    struct pod_record *r = record_of(p);
    struct node *n = p->node;
    struct record_node *part = record_node(n);

    if (!r->unsynced)
        TAILQ_INSERT_TAIL(&part->unsynced, r, link);
    r->unsynced = true;
    if (!p->record_durable)
        record_sync_start(n, false);
    if (!TAILQ_EMPTY(&part->unsynced) && !uv_is_active((uv_handle_t *)&part->timer))
        uv_timer_start(&part->timer, record_sync_on_later, LATER_MS, 0);
}

void record_sync_forget(struct pod *p)
{
    struct pod_record *r = record_of(p);

    if (r->unsynced)
        TAILQ_REMOVE(&record_node(p->node)->unsynced, r, link);
    r->unsynced = false;
}
