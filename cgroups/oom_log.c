/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/oom_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A piece of text, not necessarily NUL-terminated. */
struct piece {
    const char *p, *end;
};

static bool oom_log_skip(struct piece *s, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
        return false;
    s->p += n;
    return true;
}

static const char *oom_log_find(struct piece s, const char *text)
{
    return s.p < s.end ? memmem(s.p, (size_t)(s.end - s.p), text, strlen(text)) : NULL;
}

static const char *find_last(struct piece s, const char *text)
{
    const char *found = NULL;

    for (const char *at = oom_log_find(s, text); at != NULL; at = oom_log_find(s, text)) {
        found = at;
        s.p = at + 1;
    }
    return found;
}

static bool oom_log_number(struct piece *s, uint64_t max, uint64_t *ret)
{
    const char *from = s->p;
    uint64_t value = 0;

    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        value = value * 10 + (uint64_t)(*s->p - '0');
        if (value > max)
            return false;
    }
    *ret = value;
    return s->p > from;
}

static void oom_log_copy(char *ret, size_t size, const char *from, const char *to)
{
    size_t n = to > from ? (size_t)(to - from) : 0;

    if (n >= size)
        n = size - 1;
    for (size_t i = 0; i < n; i++)
        ret[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?'; /* the kernel escapes them already */
    ret[n] = '\0';
}

/* "6,1234,567890,-;text\n KEY=value\n": accepts only the kernel's own records, and only the text. */
static bool body_of(const char *record, size_t n, struct piece *ret)
{
    struct piece s = { record, record + n };
    const char *semicolon, *end;
    uint64_t priority;

    if (!oom_log_number(&s, 1u << 16, &priority) || priority >> 3 != 0 || !oom_log_skip(&s, ","))
        return false;
    semicolon = memchr(s.p, ';', (size_t)(s.end - s.p));
    if (semicolon == NULL)
        return false;
    end = memchr(semicolon, '\n', (size_t)(s.end - semicolon));
    *ret = (struct piece){ semicolon + 1, end != NULL ? end : s.end };
    return true;
}

/* ",oom_memcg=<path>,task_memcg=<path>,task=<name>,pid=..": after our part, paths contain cgroup names chosen
 * by the container. The first separator ends a path; the rest of a longer one does not matter. */
static void take_paths(struct cg_oom_text *t, struct piece s)
{
    static const char limited_key[] = ",oom_memcg=", victim_key[] = ",task_memcg=";
    const char *limited = oom_log_find(s, limited_key), *victim = oom_log_find(s, victim_key), *comma;

    *t = (struct cg_oom_text){ 0 };
    if (victim == NULL)
        return;
    if (limited != NULL && limited < victim)
        oom_log_copy(t->limited, sizeof(t->limited), limited + sizeof(limited_key) - 1, victim);
    victim += sizeof(victim_key) - 1;
    comma = memchr(victim, ',', (size_t)(s.end - victim));
    oom_log_copy(t->cgroup, sizeof(t->cgroup), victim, comma != NULL ? comma : s.end);
}

static uint64_t kib_after(struct piece s, const char *key)
{
    struct piece rest = { oom_log_find(s, key), s.end };
    uint64_t value;

    if (rest.p == NULL)
        return 0;
    rest.p += strlen(key);
    return oom_log_number(&rest, UINT64_MAX / 20, &value) && oom_log_skip(&rest, "kB") ? value : 0;
}

/* "412 (tail) total-vm:900kB, anon-rss:...": the name ends before the last ") total-vm:". */
static bool take_victim(struct piece s, struct cg_oom_kill *ret)
{
    const char *end = find_last(s, ") total-vm:");
    struct piece sizes;
    uint64_t pid;

    if (!oom_log_number(&s, INT32_MAX, &pid) || pid == 0 || !oom_log_skip(&s, " (") || end == NULL ||
        end < s.p)
        return false;
    ret->pid = (pid_t)pid;
    oom_log_copy(ret->name, sizeof(ret->name), s.p, end);
    sizes = (struct piece){ end, s.end };
    ret->anon_kib = kib_after(sizes, ", anon-rss:");
    ret->file_kib = kib_after(sizes, ", file-rss:");
    ret->shmem_kib = kib_after(sizes, ", shmem-rss:");
    return true;
}

bool cg_oom_text_feed(struct cg_oom_text *t, const char *record, size_t n, struct cg_oom_kill *ret)
{
    struct cg_oom_kill kill = { 0 };
    struct piece s;

    if (!body_of(record, n, &s))
        return false;
    if (oom_log_skip(&s, "oom-kill:constraint=")) {
        take_paths(t, s);
        return false;
    }
    if (!oom_log_skip(&s, "Memory cgroup out of memory")) {
        if (!oom_log_skip(&s, "Out of memory"))
            return false;
        kill.system = true;
        if (oom_log_skip(&s, " (")) { /* "Out of memory (oom_kill_allocating_task): ..." */
            const char *close = memchr(s.p, ')', (size_t)(s.end - s.p));
            if (close == NULL)
                return false;
            s.p = close + 1;
        }
    }
    if (!oom_log_skip(&s, ": Killed process ") || !take_victim(s, &kill))
        return false;
    memcpy(kill.cgroup, t->cgroup, sizeof(kill.cgroup));
    if (!kill.system)
        memcpy(kill.limited, t->limited, sizeof(kill.limited));
    *ret = kill;
    return true;
}

/* ---- the log ---- */

struct cg_oom_log {
    int fd;
    struct cg_oom_text text;
};

enum err_code cg_oom_log_open(struct cg_oom_log **ret, const char *path, struct err *e)
{
    fd_auto fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct cg_oom_log *l;

    if (fd < 0)
        return err_sys(e, errno, "open %s", path);
    if (lseek(fd, 0, SEEK_END) < 0)
        return err_sys(e, errno, "seek to the end of %s", path);
    l = calloc(1, sizeof(*l));
    if (l == NULL)
        return err_nomem(e);
    l->fd = take_fd(&fd);
    *ret = l;
    return ERR_OK;
}

void cg_oom_log_close(struct cg_oom_log *l)
{
    if (l == NULL)
        return;
    close(l->fd);
    free(l);
}

int cg_oom_log_fd(const struct cg_oom_log *l)
{
    return l->fd;
}

bool cg_oom_log_next(struct cg_oom_log *l, unsigned max, struct cg_oom_kill *ret, bool *ret_more)
{
    char record[CG_OOM_RECORD_MAX];

    *ret_more = true;
    for (unsigned i = 0; i < max; i++) {
        ssize_t n = read(l->fd, record, sizeof(record)); /* one record per read */

        if (n > 0 && cg_oom_text_feed(&l->text, record, (size_t)n, ret))
            return true;
        /* EPIPE: records were overwritten before they were read; EINVAL: one is longer than expected. */
        if (n == 0 || (n < 0 && errno != EPIPE && errno != EINTR && errno != EINVAL)) {
            *ret_more = false;
            return false;
        }
    }
    return false;
}
