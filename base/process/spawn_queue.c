/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn_queue - threads that start children. A child of clone3 that borrows our memory blocks its creator
 * until it execs, and its program may be on a file system that hangs. So children are created by threads,
 * started on demand, and the loop is never blocked. THREADS_MAX threads suffice while none hangs. Once they
 * are all busy, one more is on standby for a job that waits longer than WAIT_MS: it takes that job and
 * becomes a regular thread. A thread, and so its children, has the namespaces that the loop had when the
 * thread was created.
 */
#include "base/process/internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/thread.h"
#include "base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
    THREADS_MAX = 4,
    THREADS_HUNG_MAX = 32, /* while other threads hang */
    WAIT_MS = 200,
    STACK_BYTES = 256 * 1024,
};

enum job_state { JOB_QUEUED, JOB_STARTING, JOB_OVER };

struct spawn_job {
    TAILQ_ENTRY(spawn_job) next;
    struct spawn_plan plan; /* points only to memory of the job */
    struct proc_fd fds[SPAWN_FDS_MAX];
    enum job_state state;
    bool abandoned;
    uint64_t queued_ms;
    pid_t pid;
    int pidfd;
    struct err e;
    size_t size; /* of the job and the pointers and texts after it */
    const char *pointers[];
};

TAILQ_HEAD(job_list, spawn_job);

static struct { /* the lock protects everything here and the jobs' state */
    pthread_mutex_t lock;
    pthread_cond_t work, late; /* for idle threads, and for the one on standby */
    struct job_list queue;
    size_t queued, threads, idle, abandoned; /* threads: without the one on standby */
    bool stands_by, sleeps;                  /* a standby thread exists; it sleeps until `late` */
} makers = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .late = PTHREAD_COND_INITIALIZER,
    .queue = TAILQ_HEAD_INITIALIZER(makers.queue),
};

/* ---- a job ---- */

static void close_all(struct spawn_job *j)
{
    for (size_t i = 0; i < ARRAY_LEN(j->plan.std); i++)
        scope_close_p(&j->plan.std[i]);
    for (size_t i = 0; i < j->plan.n_fds; i++)
        scope_close_p(&j->fds[i].parent_fd);
    scope_close_p(&j->plan.cgroup_fd);
    scope_close_p(&j->plan.report_fd);
}

static void free_job(struct spawn_job *j)
{
    explicit_bzero(j, j->size); /* an environment may hold secrets */
    free(j);
}

static size_t spawn_queue_count(const char *const *list, size_t *bytes)
{
    size_t n = 0;

    for (; list != NULL && list[n] != NULL; n++)
        *bytes += strlen(list[n]) + 1;
    return n;
}

static const char *const *spawn_queue_copy_list(const char ***pointers, char **at, const char *const *list,
                                                size_t n)
{
    const char **copy = *pointers;

    for (size_t i = 0; i < n; i++)
        copy[i] = str_pack(at, list[i]);
    copy[n] = NULL;
    *pointers += n + 1;
    return copy;
}

/* Does not copy descriptors yet. */
static struct spawn_job *copy_plan(const struct spawn_plan *plan)
{
    size_t bytes = strlen(plan->cwd) + 1 + (plan->cgroup_procs != NULL ? strlen(plan->cgroup_procs) + 1 : 0);
    size_t args = spawn_queue_count(plan->argv, &bytes), env = spawn_queue_count(plan->env, &bytes),
           joins = spawn_queue_count(plan->join_procs, &bytes),
           reads = spawn_queue_count(plan->read_paths, &bytes),
           writes = spawn_queue_count(plan->write_paths, &bytes);
    size_t pointers = args + env + joins + reads + writes + 5,
           size = sizeof(struct spawn_job) + pointers * sizeof(char *) + bytes;
    struct spawn_job *j = calloc(1, size);

    if (j == NULL)
        return NULL;
    const char **next = j->pointers;
    char *text = (char *)(j->pointers + pointers);

    j->size = size;
    j->plan = *plan;
    j->plan.argv = spawn_queue_copy_list(&next, &text, plan->argv, args);
    j->plan.env = spawn_queue_copy_list(&next, &text, plan->env, env);
    j->plan.join_procs = spawn_queue_copy_list(&next, &text, plan->join_procs, joins);
    j->plan.read_paths = spawn_queue_copy_list(&next, &text, plan->read_paths, reads);
    j->plan.write_paths = spawn_queue_copy_list(&next, &text, plan->write_paths, writes);
    j->plan.cwd = str_pack(&text, plan->cwd);
    j->plan.cgroup_procs = str_pack(&text, plan->cgroup_procs);
    j->plan.fds = j->fds;
    j->plan.n_fds = 0;
    j->plan.cgroup_fd = -1;
    j->plan.report_fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(j->plan.std); i++)
        j->plan.std[i] = -1;
    j->pidfd = -1;
    return j;
}

static enum err_code copy_fd(int *to, int from, struct err *e)
{
    *to = from >= 0 ? fcntl(from, F_DUPFD_CLOEXEC, 3) : -1;
    return from < 0 || *to >= 0 ? ERR_OK : err_sys(e, errno, "arrange descriptors");
}

static enum err_code copy_fds(struct spawn_job *j, const struct spawn_plan *plan, struct err *e)
{
    for (size_t i = 0; i < plan->n_fds; i++) {
        j->fds[i] = plan->fds[i];
        if (copy_fd(&j->fds[i].parent_fd, plan->fds[i].parent_fd, e) != ERR_OK)
            return e->code;
        j->plan.n_fds = i + 1;
    }
    return copy_fd(&j->plan.cgroup_fd, plan->cgroup_fd, e);
}

/* ---- a thread ---- */

static void spawn_queue_make(struct spawn_job *j)
{
    if (spawn_child(&j->plan, &j->pid, &j->pidfd, &j->e) != ERR_OK)
        j->pidfd = -1;
}

/* Notifies the loop. Closing the pipe is not enough, because children created at this moment hold it, too. */
static void spawn_queue_is_over(struct spawn_job *j)
{
    const struct spawn_report none = { 0 };

    j->state = JOB_OVER;
    if (write(j->plan.report_fd, &none, sizeof(none)) != sizeof(none))
        log_debug("cannot report the end of a start", F_STR("program", j->plan.argv[0]));
    close_all(j);
}

/* An abandoned job. */
static void end_abandoned(struct spawn_job *j)
{
    if (j->pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, j->pidfd, SIGKILL, NULL, 0);
        waitid(P_PIDFD, (id_t)j->pidfd, &(siginfo_t){ 0 }, WEXITED);
        close(j->pidfd);
    }
    work_job_begins();
    free_job(j);
    work_job_ends();
}

/* The following functions need the lock. */

static struct spawn_job *spawn_queue_take(void)
{
    struct spawn_job *j = TAILQ_FIRST(&makers.queue);

    TAILQ_REMOVE(&makers.queue, j, next);
    makers.queued--;
    j->state = JOB_STARTING;
    return j;
}

static struct spawn_job *next_job(void)
{
    while (TAILQ_EMPTY(&makers.queue)) {
        makers.idle++;
        pthread_cond_wait(&makers.work, &makers.lock);
        makers.idle--;
    }
    return spawn_queue_take();
}

static void *spawn_queue_run(void *arg);

static void stand_by(void)
{
    pthread_t thread;

    makers.stands_by = makers.threads < THREADS_HUNG_MAX &&
                       thread_start(&thread, STACK_BYTES, true, spawn_queue_run, &makers.late) == 0;
}

static struct spawn_job *late_job(void)
{
    const struct spawn_job *first;

    while ((first = TAILQ_FIRST(&makers.queue)) == NULL || clock_mono_ms() < first->queued_ms + WAIT_MS) {
        uint64_t at = first != NULL ? first->queued_ms + WAIT_MS : 0;
        struct timespec until = { .tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000) * 1000000 };

        makers.sleeps = first == NULL;
        if (first == NULL)
            pthread_cond_wait(&makers.late, &makers.lock);
        else
            pthread_cond_clockwait(&makers.late, &makers.lock, CLOCK_MONOTONIC, &until);
    }
    makers.stands_by = makers.sleeps = false;
    makers.threads++;
    struct spawn_job *j = spawn_queue_take();

    if (!TAILQ_EMPTY(&makers.queue))
        stand_by();
    return j;
}

/* arg: not NULL for the standby thread. */
static void *spawn_queue_run(void *arg)
{
    bool waits = arg != NULL;

    pthread_mutex_lock(&makers.lock);
    for (;;) {
        struct spawn_job *j = waits ? late_job() : next_job();

        waits = false;
        pthread_mutex_unlock(&makers.lock);
        spawn_queue_make(j);
        pthread_mutex_lock(&makers.lock);
        if (!j->abandoned) {
            spawn_queue_is_over(j); /* it may be freed as soon as the lock is released */
            continue;
        }
        pthread_mutex_unlock(&makers.lock);
        close_all(j);
        end_abandoned(j);
        pthread_mutex_lock(&makers.lock);
        makers.abandoned--;
    }
    return NULL;
}

/* Needs the lock. False: there is no thread and none can be created. */
static bool have_thread(void)
{
    pthread_t thread;

    if (makers.idle > makers.queued)
        return true;
    if (makers.threads < THREADS_MAX && thread_start(&thread, STACK_BYTES, true, spawn_queue_run, NULL) == 0)
        makers.threads++;
    else if (makers.threads > 0 && !makers.stands_by)
        stand_by();
    else if (makers.sleeps)
        pthread_cond_signal(&makers.late);
    return makers.threads > 0;
}

/* ---- called by the loop ---- */

enum err_code spawn_begin(struct spawn_job **ret, const struct spawn_plan *plan, struct err *e)
{
    struct spawn_job *j = copy_plan(plan);

    if (j == NULL)
        return err_nomem(e);
    if (copy_fds(j, plan, e) != ERR_OK) {
        close_all(j);
        free_job(j);
        return e->code;
    }
    memcpy(j->plan.std, plan->std, sizeof(plan->std));
    j->plan.report_fd = plan->report_fd;
    pthread_mutex_lock(&makers.lock);
    if (have_thread()) {
        j->queued_ms = clock_mono_ms();
        TAILQ_INSERT_TAIL(&makers.queue, j, next);
        makers.queued++;
        pthread_cond_signal(&makers.work);
        pthread_mutex_unlock(&makers.lock);
    } else { /* no thread can be created: the loop does the work */
        pthread_mutex_unlock(&makers.lock);
        spawn_queue_make(j);
        spawn_queue_is_over(j);
    }
    *ret = j;
    return ERR_OK;
}

bool spawn_is_over(struct spawn_job *j)
{
    bool over;

    pthread_mutex_lock(&makers.lock);
    over = j->state == JOB_OVER;
    pthread_mutex_unlock(&makers.lock);
    return over;
}

enum err_code spawn_end(struct spawn_job *j, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
    enum err_code code;

    pthread_mutex_lock(&makers.lock); /* waits until its thread is past close_all() */
    pthread_mutex_unlock(&makers.lock);
    code = j->e.code;
    *ret_pid = j->pid;
    *ret_pidfd = j->pidfd;
    if (code != ERR_OK)
        *e = j->e;
    free_job(j);
    return code;
}

bool spawn_cancel(struct spawn_job *j)
{
    bool queued;

    pthread_mutex_lock(&makers.lock);
    queued = j->state == JOB_QUEUED;
    if (queued) {
        TAILQ_REMOVE(&makers.queue, j, next);
        makers.queued--;
    }
    pthread_mutex_unlock(&makers.lock);
    if (queued) {
        close_all(j);
        free_job(j);
    }
    return queued;
}

bool spawn_abandon(struct spawn_job *j)
{
    bool starting;
    int pidfd;

    pthread_mutex_lock(&makers.lock);
    starting = j->state == JOB_STARTING;
    j->abandoned = starting;
    makers.abandoned += starting;
    pidfd = __atomic_load_n(&j->pidfd, __ATOMIC_ACQUIRE); /* set by the kernel before the child runs */
    if (starting && pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    pthread_mutex_unlock(&makers.lock);
    return starting;
}

size_t spawn_abandoned(void)
{
    size_t n;

    pthread_mutex_lock(&makers.lock);
    n = makers.abandoned;
    pthread_mutex_unlock(&makers.lock);
    return n;
}
