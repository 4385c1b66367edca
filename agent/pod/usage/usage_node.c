/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the machine from /proc that no cgroup has. */
#include "agent/pod/usage/usage.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/parse.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

/* "SwapTotal:       2097148 kB" in bytes; 0 when there is no such line. */
static uint64_t meminfo(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ':')
            return strtoull(line + n + 1, NULL, 10) * 1024;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return 0;
}

static uint64_t number_in(const char *path)
{
    str_auto text = NULL;
    struct err e = { 0 };
    uint64_t value = 0;

    if (fs_read_at(AT_FDCWD, path, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return parse_u64(text, 0, UINT64_MAX, &value, path, &e) == ERR_OK ? value : 0;
}

/* "0.00 0.01 0.05 2/310 4711": kubelet uses the 310. */
static uint64_t tasks(void)
{
    str_auto text = NULL;
    struct err e = { 0 };
    const char *slash;

    if (fs_read_at(AT_FDCWD, "/proc/loadavg", FS_SMALL_MAX, &text, NULL, &e) != ERR_OK)
        return 0;
    slash = strchr(text, '/');
    return slash != NULL ? strtoull(slash + 1, NULL, 10) : 0;
}

void usage_machine_read(struct usage_machine *ret)
{
    struct usage_machine m = { 0 };
    uint64_t threads_max = number_in("/proc/sys/kernel/threads-max");
    str_auto text = NULL;
    struct err e = { 0 };
    struct timespec up;

    if (fs_read_at(AT_FDCWD, "/proc/meminfo", FS_SMALL_MAX, &text, NULL, &e) == ERR_OK) {
        m.memory_bytes = meminfo(text, "MemTotal");
        m.memory_available_bytes = meminfo(text, "MemAvailable");
        m.swap_bytes = meminfo(text, "SwapTotal");
        m.swap_free_bytes = meminfo(text, "SwapFree");
    }
    m.pid_max = number_in("/proc/sys/kernel/pid_max");
    if (threads_max != 0 && threads_max < m.pid_max)
        m.pid_max = threads_max;
    m.processes = tasks();
    if (clock_gettime(CLOCK_BOOTTIME, &up) == 0)
        m.boot_ns = clock_wall_ns() - ((int64_t)up.tv_sec * 1000000000 + up.tv_nsec);
    *ret = m;
}
