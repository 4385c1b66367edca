/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/provider/image_glob.h"

#include "base/buf.h"

#include <fnmatch.h>
#include <string.h>

/* Matches one part of a host name ("*" does not match a dot), or the rest after the last one. */
static bool glob_part_matches(struct str glob, struct str part)
{
    char pattern[256], text[256];

    if (glob.n == part.n &&
        memcmp(glob.p, part.p, part.n) == 0) /* also for "[::1]", which would be a set in a glob */
        return true;
    if (glob.n >= sizeof(pattern) || part.n >= sizeof(text))
        return false;
    memcpy(pattern, glob.p, glob.n);
    memcpy(text, part.p, part.n);
    pattern[glob.n] = text[part.n] = '\0';
    return fnmatch(pattern, text, 0) == 0;
}

static struct str glob_next_part(struct str *host)
{
    const char *dot = memchr(host->p, '.', host->n);
    const struct str part = { host->p, dot == NULL ? host->n : (size_t)(dot - host->p) };
    const size_t taken = part.n + (dot != NULL);

    host->p += taken;
    host->n -= taken;
    return part;
}

static bool glob_host_matches(struct str glob, struct str host)
{
    while (glob.n > 0 && host.n > 0)
        if (!glob_part_matches(glob_next_part(&glob), glob_next_part(&host)))
            return false;
    return glob.n == 0 && host.n == 0;
}

/* Host without its port; *ret_port with the colon. */
static struct str glob_split_host(const char *repository, struct str *ret_port, const char **ret_path)
{
    const size_t n = strcspn(repository, "/");
    const char *colon = memrchr(repository, ':', n), *bracket = memrchr(repository, ']', n);

    if (colon != NULL && bracket != NULL && colon < bracket) /* the colon is inside an IPv6 address */
        colon = NULL;
    *ret_path = repository + n;
    *ret_port =
        colon == NULL ? (struct str){ "", 0 } : (struct str){ colon, n - (size_t)(colon - repository) };
    return (struct str){ repository, n - ret_port->n };
}

bool image_glob_matches(const char *glob, const char *repository)
{
    struct str glob_port, port;
    const char *glob_path, *path;
    const struct str glob_host = glob_split_host(glob, &glob_port, &glob_path);
    const struct str host = glob_split_host(repository, &port, &path);

    return glob_port.n == port.n && memcmp(glob_port.p, port.p, port.n) == 0 &&
           glob_host_matches(glob_host, host) && str_starts(path, glob_path);
}
