/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_space - images and the space that the node keeps free. An archive that would certainly use some of it
 * is refused before it is unpacked, unless the removal of unused images frees enough; other writers are
 * stopped when the node runs short of disk (img_stop_writers()), before a pod is evicted.
 */
#include "agent/image/image_internal.h"

#include "base/log.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

void img_keep_free(struct img_store *s, uint64_t bytes)
{
    s->keep_free = bytes;
}

void img_on_short(struct img_store *s, void (*fn)(uint64_t wanted, void *arg), void *arg)
{
    s->make_room = fn;
    s->make_room_arg = arg;
}

void img_on_writing(struct img_store *s, void (*fn)(void *arg), void *arg)
{
    s->on_writing = fn;
    s->on_writing_arg = arg;
}

void img_space_writing(const struct img_store *s)
{
    if (s->on_writing != NULL)
        s->on_writing(s->on_writing_arg);
}

uint64_t img_space_reserve(const struct img_store *s)
{
    return s->keep_free > IMG_RESERVE_BYTES ? s->keep_free : IMG_RESERVE_BYTES;
}

/* The minimum space for an import: a copy of the layers, whose digests are checked before they are unpacked,
 * and the unpacked layers. 0: unknown. */
static uint64_t size_of(const struct img_job *j)
{
    struct stat st;

    return !j->is_registry && stat(j->source, &st) == 0 && S_ISREG(st.st_mode) ? 2 * (uint64_t)st.st_size : 0;
}

enum img_space img_space_for(struct img_job *j, struct err *e)
{
    struct img_store *s = j->store;
    const uint64_t needs = size_of(j);
    uint64_t available;
    struct statvfs fs;

    if (s->keep_free == 0 || needs == 0 || fstatvfs(s->tmp_fd, &fs) != 0)
        return IMG_SPACE_ENOUGH;
    available = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (available >= s->keep_free && available - s->keep_free >= needs)
        return IMG_SPACE_ENOUGH;
    if (!j->space_asked && s->make_room != NULL) {
        j->space_asked = true;
        s->running--; /* layers are only removed while no running job relies on them, and this job does not
                         yet */
        s->make_room(s->keep_free + needs - available, s->make_room_arg);
        s->running++;
    }
    if (img_is_clearing(s))
        return IMG_SPACE_LATER;
    err_set(e, ERR_EXHAUSTED,
            "import %.200s: no space left for it: it takes %llu MiB, %llu MiB are available, and %llu MiB "
            "of these are kept free (evictionHard)",
            j->source, (unsigned long long)(needs >> 20), (unsigned long long)(available >> 20),
            (unsigned long long)(s->keep_free >> 20));
    return IMG_SPACE_NONE;
}

/* A job that continues may end and start other jobs, so the list is read again after each. */
void img_space_wake(struct img_store *s)
{
    struct img_job *j;

    do {
        TAILQ_FOREACH (j, &s->jobs, more)
            if (j->state == JOB_SPACE)
                break;
        if (j == NULL)
            return;
        s->running++;
        img_job_unpack(j);
    } while (!img_is_clearing(s));
}

static bool writes(const struct img_job *j)
{
    return (j->state == JOB_COPY || j->state == JOB_UNPACK) && !j->cancelled && !j->over_limit;
}

unsigned img_stop_writers(struct img_store *s, const struct err *why)
{
    struct img_job *j, *next;
    unsigned n = 0;

    TAILQ_FOREACH_SAFE (j, &s->jobs, more, next) {
        if (!writes(j))
            continue;
        log_warn("an image is not pulled or imported: the node is short of disk", F_STR("image", j->key),
                 F_ERR(why));
        img_job_stop(j, why);
        n++;
    }
    return n;
}

bool img_is_writing(const struct img_store *s)
{
    const struct img_job *j;

    TAILQ_FOREACH (j, &s->jobs, more)
        if (j->state == JOB_COPY || j->state == JOB_UNPACK)
            return true;
    return false;
}
