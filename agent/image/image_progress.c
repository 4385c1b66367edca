/* SPDX-License-Identifier: Apache-2.0 */
/* A job's progress, computed on request, from data that exist anyway. */
#include "agent/image/image_internal.h"
#include "agent/image/unpack_progress.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Otherwise the writer could truncate the page, and a read would end the agent with SIGBUS. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int make_page(void)
{
    int fd = memfd_create("progress", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0) /* before Linux 6.3 */
        fd = memfd_create("progress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 &&
        (ftruncate(fd, sizeof(struct unpack_progress)) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void img_meter_open(struct img_job *j)
{
    void *page;

    j->meter_fd = make_page();
    if (j->meter_fd < 0)
        return;
    page = mmap(NULL, sizeof(struct unpack_progress), PROT_READ, MAP_SHARED, j->meter_fd, 0);
    if (page == MAP_FAILED)
        img_meter_close(j);
    else
        j->meter = page;
}

void img_meter_close(struct img_job *j)
{
    if (j->meter != NULL)
        munmap(j->meter, sizeof(*j->meter));
    if (j->meter_fd >= 0)
        close(j->meter_fd);
    j->meter = NULL;
    j->meter_fd = -1;
}

/* Another job may be doing the work. */
static const struct img_job *worker_of(const struct img_job *j)
{
    const struct img_job *other;

    if (j->state == JOB_TWIN)
        TAILQ_FOREACH (other, &j->store->jobs, more)
            if (other->state >= JOB_COPY && str_eq(other->digest, j->digest))
                return other;
    return j;
}

static const char *step_of(const struct img_job *j)
{
    switch (j->state) {
    case JOB_WAIT:
    case JOB_SPACE:
    case JOB_TWIN:
        return "waiting";
    case JOB_AUTH:
    case JOB_ASK:
        return "asking";
    case JOB_COPY:
        return "pulling";
    case JOB_UNPACK:
        return "unpacking";
    case JOB_NAME:
    case JOB_COMMIT:
        break;
    }
    return "storing";
}

void img_bring_progress(const struct img_bring *b, struct img_progress *ret)
{
    const struct img_job *j = b->run != NULL ? b->run->job : NULL;

    *ret = (struct img_progress){ .step = "storing" };
    if (j == NULL) /* the job is over, and the answer follows */
        return;
    j = worker_of(j);
    ret->step = step_of(j);
    if (j->state == JOB_COPY)
        ret->bytes = j->fetched;
    if (j->state != JOB_UNPACK || j->meter == NULL)
        return;
    ret->bytes = atomic_load_explicit(&j->meter->bytes, memory_order_relaxed);
    ret->layers = atomic_load_explicit(&j->meter->layers, memory_order_relaxed);
    ret->of_layers = atomic_load_explicit(&j->meter->of_layers, memory_order_relaxed);
}
