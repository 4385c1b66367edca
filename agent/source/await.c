/* SPDX-License-Identifier: Apache-2.0 */
/* await - writers of the folder that wait until the present content of a file applies, or its objects are
 * removed. */
#include "agent/source/internal.h"

#include "base/clock.h"

#include <string.h>

void src_folder_await(struct src_folder *f, struct src_await *a, const char *name, bool gone,
                      uint64_t timeout_ms, src_await_fn fn, void *arg)
{
    struct file *file = gone ? file_find(f, name) : file_find_or_add(f, name);

    *a = (struct src_await){ .gone = gone, .fn = fn, .arg = arg, .due_ms = clock_mono_ms() + timeout_ms };
    snprintf(a->name, sizeof(a->name), "%s", name);
    TAILQ_INSERT_TAIL(&f->awaits, a, all);
    if (gone) {
        folder_missing(f, name, SRC_FOLDER_UNLINK_MS);
    } else if (file != NULL) {
        a->read = file->reads_begun + 1; /* the next read that begins */
        reads_queue(file);
        reads_start(f);
    }
    folder_settle_soon(f);
}

void src_await_cancel(struct src_folder *f, struct src_await *a)
{
    TAILQ_REMOVE(&f->awaits, a, all);
}

static void await_end(struct src_folder *f, struct src_await *a, enum src_awaited how,
                      const struct file *file)
{
    struct src_file seen = { 0 };

    TAILQ_REMOVE(&f->awaits, a, all);
    if (file != NULL)
        seen = src_file_describe(file);
    a->fn(how, file != NULL ? &seen : NULL, a->arg);
}

/* Whether the wait is over; *ret is the outcome. */
static bool await_is_over(const struct src_folder *f, struct src_await *a, const struct file *file,
                          uint64_t done, enum src_awaited *ret)
{
    if (file == NULL && a->gone) {
        if (a->seq == 0)
            a->seq = f->last_seq + 1;
        *ret = SRC_AWAITED_GONE; /* and files that were read at the same time have been applied */
        return done >= a->seq;
    }
    *ret = SRC_AWAITED_READ;
    if (file == NULL) {
        *ret = SRC_AWAITED_GONE;
        return a->read != 0 && f->state == WATCH_FOLDER;
    }
    if (a->gone) /* the file exists again */
        return file->gone_ms == 0 && !file->reading && !file->queued && file->retry_ms == 0 &&
               a->due_ms <= clock_mono_ms();
    return file->reads_applied >= a->read && file->retry_ms == 0;
}

uint64_t awaits_settle(struct src_folder *f, uint64_t done)
{
    uint64_t now = clock_mono_ms(), next = UINT64_MAX;
    struct src_await *a, *tmp;

    TAILQ_FOREACH_SAFE (a, &f->awaits, all, tmp) {
        struct file *file = file_find(f, a->name);
        enum src_awaited how;

        if (await_is_over(f, a, file, done, &how))
            await_end(f, a, how, file);
        else if (a->due_ms <= now)
            await_end(f, a, SRC_AWAITED_LATE, file);
        else
            next = a->due_ms < next ? a->due_ms : next;
    }
    return next;
}

void awaits_close(struct src_folder *f)
{
    struct src_await *a;

    while ((a = TAILQ_FIRST(&f->awaits)) != NULL)
        await_end(f, a, SRC_AWAITED_LATE, NULL);
}
