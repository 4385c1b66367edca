/* SPDX-License-Identifier: Apache-2.0 */
/* sample - parses the counters in cgroup files. Pure. */
#include "cgroups/meter.h"

#include "cgroups/internal.h"

#include <stddef.h>
#include <string.h>

/* A number at the beginning of [*p, end), saturated at a limit; false if there is none. */
static bool take_number(const char **p, const char *end, uint64_t *ret)
{
    uint64_t value = 0;
    const char *at = *p;

    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == *p)
        return false;
    *p = at;
    *ret = value;
    return true;
}

/* The next whole line of [*p, end): a line without a line break was truncated. */
static bool next_line(const char **p, const char *end, const char **ret_line, const char **ret_end)
{
    const char *stop = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;

    if (stop == NULL)
        return false;
    *ret_line = *p;
    *ret_end = stop;
    *p = stop + 1;
    return true;
}

bool cg_take_u64(const char *text, size_t n, uint64_t *ret)
{
    const char *p = text, *end = text + n;
    uint64_t value;

    if (!take_number(&p, end, &value) || (p != end && *p != '\n'))
        return false;
    *ret = value;
    return true;
}

/* "max", "-1", or more than any machine has: no limit. */
bool cg_take_limit(const char *text, size_t n, uint64_t *ret)
{
    uint64_t value;

    if ((n >= 3 && memcmp(text, "max", 3) == 0) || (n >= 2 && memcmp(text, "-1", 2) == 0))
        *ret = CG_NO_LIMIT;
    else if (cg_take_u64(text, n, &value))
        *ret = value > UINT64_C(1) << 62 ? CG_NO_LIMIT : value;
    else
        return false;
    return true;
}

/* ---- flat keyed files ---- */

struct key {
    const char *name;
    uint16_t n, offset; /* offset: in struct cg_sample */
    unsigned scale;
};
#define KEY(name, member, scale)                                                                             \
    {                                                                                                        \
        name, sizeof(name) - 1, offsetof(struct cg_sample, member), scale                                    \
    }

static void take_keys(const char *text, size_t n, const struct key *keys, size_t n_keys,
                      struct cg_sample *ret)
{
    const char *p = text, *line, *end;

    while (next_line(&p, text + n, &line, &end)) {
        const char *blank = memchr(line, ' ', (size_t)(end - line));
        uint64_t value;

        for (size_t i = 0; blank != NULL && i < n_keys; i++) {
            if (keys[i].n != (size_t)(blank - line) || memcmp(line, keys[i].name, keys[i].n) != 0)
                continue;
            blank++;
            if (!take_number(&blank, end, &value) || blank != end ||
                __builtin_mul_overflow(value, (uint64_t)keys[i].scale, &value))
                break;
            memcpy((char *)ret + keys[i].offset, &value, sizeof(value));
            break;
        }
    }
}

void cg_take_cpu_stat(const char *text, size_t n, struct cg_sample *ret)
{
    static const struct key keys[] = {
        KEY("usage_usec", cpu.usage_ns, 1000),         KEY("user_usec", cpu.user_ns, 1000),
        KEY("system_usec", cpu.system_ns, 1000),       KEY("nr_periods", cpu.periods, 1),
        KEY("nr_throttled", cpu.throttled_periods, 1), KEY("throttled_usec", cpu.throttled_ns, 1000),
        KEY("throttled_time", cpu.throttled_ns, 1), /* v1 */
    };

    take_keys(text, n, keys, ARRAY_LEN(keys), ret);
}

void cg_take_memory_stat(const char *text, size_t n, struct cg_sample *ret)
{
    static const struct key keys[] = {
        KEY("anon", memory.rss, 1),
        KEY("file", memory.file, 1),
        KEY("kernel", memory.kernel, 1),
        KEY("file_mapped", memory.mapped_file, 1),
        KEY("inactive_file", memory.inactive_file, 1),
        KEY("pgfault", memory.page_faults, 1),
        KEY("pgmajfault", memory.major_page_faults, 1),
    };

    take_keys(text, n, keys, ARRAY_LEN(keys), ret);
}

/* Like kubelet, takes hierarchical values, except for page faults. */
void cg_take_memory_stat_v1(const char *text, size_t n, struct cg_sample *ret)
{
    static const struct key keys[] = {
        KEY("total_rss", memory.rss, 1),
        KEY("total_cache", memory.file, 1),
        KEY("total_mapped_file", memory.mapped_file, 1),
        KEY("total_inactive_file", memory.inactive_file, 1),
        KEY("total_swap", memory.swap, 1),
        KEY("pgfault", memory.page_faults, 1),
        KEY("pgmajfault", memory.major_page_faults, 1),
    };

    take_keys(text, n, keys, ARRAY_LEN(keys), ret);
}

void cg_take_oom_kills(const char *text, size_t n, struct cg_sample *ret)
{
    static const struct key keys[] = { KEY("oom_kill", oom_kills, 1) };

    take_keys(text, n, keys, ARRAY_LEN(keys), ret);
}

/* ---- nested keyed files ---- */

/* The value of "key=" in a line; false if there is none. */
static bool cg_sample_value_of(const char *line, const char *end, const char *key, uint64_t *ret,
                               const char **ret_rest)
{
    size_t n = strlen(key);

    for (const char *p = line; p + n < end; p++) {
        if ((p != line && p[-1] != ' ') || memcmp(p, key, n) != 0)
            continue;
        p += n;
        if (!take_number(&p, end, ret))
            return false;
        *ret_rest = p;
        return true;
    }
    return false;
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6", a line per device */
void cg_take_io_stat(const char *text, size_t n, struct cg_sample *ret)
{
    const char *p = text, *line, *end, *rest;

    while (next_line(&p, text + n, &line, &end)) {
        const struct {
            const char *key;
            uint64_t *to;
        } sums[] = { { "rbytes=", &ret->io.read_bytes },
                     { "wbytes=", &ret->io.write_bytes },
                     { "rios=", &ret->io.reads },
                     { "wios=", &ret->io.writes } };
        for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
            uint64_t value = 0;
            if (cg_sample_value_of(line, end, sums[i].key, &value, &rest))
                *sums[i].to += value; /* unsigned: a kernel's counters never overflow it */
        }
    }
}

/* v1's blkio.throttle.io_service_bytes_recursive and io_serviced_recursive: "8:0 Read 4096". */
void cg_take_blkio(const char *text, size_t n, uint64_t *ret_read, uint64_t *ret_write)
{
    const char *p = text, *line, *end;

    while (next_line(&p, text + n, &line, &end)) {
        const char *word = memchr(line, ' ', (size_t)(end - line));
        static const char *const words[] = { " Read ", " Write " };
        for (size_t i = 0; word != NULL && i < ARRAY_LEN(words); i++) {
            size_t k = strlen(words[i]);
            uint64_t value = 0;
            const char *at = word + k;
            if ((size_t)(end - word) > k && memcmp(word, words[i], k) == 0 && take_number(&at, end, &value))
                *(i == 0 ? ret_read : ret_write) += value;
        }
    }
}

/* "12.34", two digits after the point */
static bool take_hundredths(const char *line, const char *end, const char *key, unsigned *ret)
{
    uint64_t whole, part;
    const char *p, *from;

    if (!cg_sample_value_of(line, end, key, &whole, &p) || whole > 100 || end - p < 3 || *p != '.')
        return false;
    from = ++p;
    if (!take_number(&p, from + 2, &part) || p != from + 2)
        return false;
    *ret = (unsigned)(whole * 100 + part);
    return true;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" and "full ..." */
void cg_take_pressure(const char *text, size_t n, struct cg_psi *ret)
{
    const char *p = text, *line, *end, *rest;

    while (next_line(&p, text + n, &line, &end)) {
        bool some = end - line > 5 && memcmp(line, "some ", 5) == 0;
        bool full = end - line > 5 && memcmp(line, "full ", 5) == 0;
        struct cg_psi_line l = { 0 };

        if ((!some && !full) || !take_hundredths(line, end, "avg10=", &l.avg10) ||
            !take_hundredths(line, end, "avg60=", &l.avg60) ||
            !take_hundredths(line, end, "avg300=", &l.avg300) ||
            !cg_sample_value_of(line, end, "total=", &l.total_us, &rest))
            continue;
        *(some ? &ret->some : &ret->full) = l;
        ret->known = true;
    }
}

/* Lines of cgroup.procs. */
uint64_t cg_count_lines(const char *text, size_t n)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* ---- rate ---- */

bool cg_rate_update(struct cg_rate *r, uint64_t mono_ns, uint64_t cpu_ns)
{
    uint64_t apart = mono_ns - r->base_mono_ns;

    if (r->base_mono_ns == 0 || mono_ns < r->base_mono_ns || apart > CG_RATE_MAX_NS ||
        cpu_ns < r->base_cpu_ns)
        *r = (struct cg_rate){ .base_mono_ns = mono_ns, .base_cpu_ns = cpu_ns };
    else if (apart >= CG_RATE_MIN_NS)
        *r = (struct cg_rate){
            .base_mono_ns = mono_ns,
            .base_cpu_ns = cpu_ns,
            .nano_cores = (uint64_t)((unsigned __int128)(cpu_ns - r->base_cpu_ns) * 1000000000 / apart),
            .known = true,
        };
    return r->known;
}
