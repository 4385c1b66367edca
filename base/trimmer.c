/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trimmer.h"

#include "base/clock.h"

#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/* The unchanged pages of a segment are in its file. A segment that can be written, and relocated constants
 * within it, have pages that are in no file. */
static int drop_segments(struct dl_phdr_info *object, size_t size, void *arg)
{
    const size_t page = *(const size_t *)arg;

    (void)size;
    if (object->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) /* the vDSO is in no file */
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *s = &object->dlpi_phdr[i];
        uintptr_t from = (object->dlpi_addr + s->p_vaddr + page - 1) / page * page;
        uintptr_t to = (object->dlpi_addr + s->p_vaddr + s->p_memsz) / page * page;

        if (s->p_type == PT_LOAD && (s->p_flags & PF_W) == 0 && from < to)
            madvise((void *)from, to - from, MADV_DONTNEED); /* a failure leaves the pages mapped */
    }
    return 0;
}

void trimmer_run(void)
{
    size_t page = getauxval(AT_PAGESZ);

    malloc_trim(0);
    dl_iterate_phdr(drop_segments, &page);
}

static void trimmer_on_timer(uv_timer_t *timer)
{
    struct trimmer *t = timer->data;
    uint64_t now = clock_mono_ms(), due = t->work_ms + TRIMMER_DELAY_MS;

    if (t->run_ms != 0 && due < t->run_ms + TRIMMER_INTERVAL_MS)
        due = t->run_ms + TRIMMER_INTERVAL_MS;
    if (now < due) {
        uv_timer_start(timer, trimmer_on_timer, due - now, 0);
        return;
    }
    t->run_ms = now;
    trimmer_run();
}

void trimmer_open(struct trimmer *t, uv_loop_t *loop)
{
    *t = (struct trimmer){ .open = true };
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
}

void trimmer_later(struct trimmer *t)
{
    if (t == NULL || !t->open)
        return;
    t->work_ms = clock_mono_ms();
    if (!uv_is_active((uv_handle_t *)&t->timer))
        uv_timer_start(&t->timer, trimmer_on_timer, TRIMMER_DELAY_MS, 0);
}

void trimmer_close(struct trimmer *t)
{
    if (!t->open)
        return;
    t->open = false;
    uv_close((uv_handle_t *)&t->timer, NULL);
}
