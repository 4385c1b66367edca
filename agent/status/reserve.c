/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/reserve.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Since Linux 6.2 the number is the folder's size; before, its entries are counted. 0: unknown. */
static unsigned long long used(void)
{
    unsigned long long n = 0;
    struct stat st;
    DIR *d;

    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
        return (unsigned long long)st.st_size;
    d = opendir("/proc/self/fd");
    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

unsigned long long reserve_lack(bool root)
{
    unsigned long long kept, open_now = used();
    struct rlimit l;

    if (open_now == 0 || getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
        return 0;
    kept = l.rlim_cur / 4 < RESERVE_MAX ? l.rlim_cur / 4 : RESERVE_MAX;
    open_now += root ? kept / 2 : kept;
    return open_now > l.rlim_cur ? open_now - l.rlim_cur : 0;
}
