/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage of mounted volumes: each is measured in a separate child process, which may hang with its server.
 * Then the last figures stay, with their time, and the next measurement starts later.
 */
#include "agent/pod/core/storage_place.h"
#include "agent/pod/volume/storage_vol.h"
#include "agent/pod/volume/volumes.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>

#define FIRST_MS 500
#define USAGE_MS 60000  /* kubelet's volumeStatsAggPeriod, which jitter makes up to twice as long */
#define ANSWER_MS 10000 /* after that the child is killed */
#define SLOW_MAX_MS 3600000

static enum err_code ask(const void *arg, struct buf *out, struct err *e)
{
    const char *path = arg;
    struct volume_space space = { 0 };
    struct statvfs v;

    if (statvfs(path, &v) != 0)
        return err_sys(e, errno, "statvfs %s", path);
    space.capacity_bytes = (uint64_t)v.f_blocks * v.f_frsize;
    space.available_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    space.used_bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    space.inodes = v.f_files;
    space.inodes_free = v.f_ffree;
    buf_add(out, &space, sizeof(space));
    return ERR_OK;
}

static void plan(struct storage_space *s, bool answered)
{
    uint32_t chance = 0;

    if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
        chance = 0;
    s->backoff_ms = answered ? 0 : backoff_next_ms(s->backoff_ms, 2 * USAGE_MS, SLOW_MAX_MS);
    s->next_at = clock_boot_in_ms((answered ? USAGE_MS : s->backoff_ms) + chance % USAGE_MS);
}

static void on_asked(struct op *op, const struct err *result)
{
    struct storage_vol *v = op->owner;
    struct storage_space *s = &v->space;
    bool answered = result->code == ERR_OK && s->call.out.n == sizeof(s->last);

    if (answered) {
        memcpy(&s->last, s->call.out.p, sizeof(s->last));
        s->last.at_ns = clock_wall_ns();
        s->known = true;
    } else if (result->code != ERR_CANCELLED) {
        log_debug("a volume does not say how full it is", F_STR("pod", v->pod->key), F_STR("volume", v->name),
                  F_ERR(result));
    }
    plan(s, answered);
    pod_wake(v->pod, "a volume was asked how full it is");
}

void storage_usage_step(struct storage_vol *v, const struct storage_source *source)
{
    struct pod *p = v->pod;
    struct storage_space *s = &v->space;
    char path[1024];
    const struct proc_call_spec call = {
        .name = "ask how full a volume is",
        .subject = p->key,
        .fn = ask,
        .arg = path,
        .out_max = sizeof(struct volume_space),
        .deadline_ms = ANSWER_MS,
        CG_OPS(p->node->o.cgroups),
        .moves_late = true,
    };

    if (!v->measured || op_live(&s->call.op))
        return;
    if (!clock_boot_is_set(s->next_at))
        s->next_at = clock_boot_in_ms(FIRST_MS);
    if (!clock_boot_is_due(s->next_at)) {
        pod_wake_at(p, s->next_at, "the usage of a volume");
        return;
    }
    if (storage_place(p, source->storage, source->name, path, sizeof(path), ERR_IGNORED) == ERR_OK)
        proc_call_start(&s->call, &call, p->node->o.loop, on_asked, v);
    else
        plan(s, false);
}

bool volumes_space(const struct pod *p, const char *volume, struct volume_space *ret)
{
    const struct pod_storage *s = storage_of(p);

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, volume) == 0 && s->v[i].space.known) {
            *ret = s->v[i].space.last;
            return true;
        }
    return false;
}
