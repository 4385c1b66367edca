/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/workload/zones.h"

#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL "/etc/localtime"

static bool is_utc(const char *name)
{
    return strcmp(name, "UTC") == 0 || strcmp(name, "Etc/UTC") == 0 || strcmp(name, "GMT") == 0;
}

/* Absent: *ret is unchanged. */
static struct presence read_zone(struct zone **ret, const char *path, struct err *e)
{
    str_auto data = NULL;
    size_t n = 0;
    struct presence found = fs_read_if_there(AT_FDCWD, path, ZONE_FILE_MAX, &data, &n, e);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    if (zone_parse(ret, data, n, e) == ERR_OK)
        return found;
    ERR_IGNORE(err_wrap(e, "%s", path));
    return presence_unknown(e);
}

static enum err_code named(struct zone **ret, const char *name, struct err *e)
{
    str_auto path = str_printf(ZONE_FOLDER "/%s", name);
    struct presence found;

    if (path == NULL)
        return err_nomem(e);
    if (is_utc(name))
        return ERR_OK;
    found = zone_name_is_valid(name) ? read_zone(ret, path, e) : presence_absent();
    if (presence_is_absent(found))
        return err_set(e, ERR_NOT_FOUND,
                       "the time zone %.100s is not known here: " ZONE_FOLDER " has no such file", name);
    return presence_is_unknown(found) ? e->code : ERR_OK;
}

enum err_code zones_get(struct zone **ret, const char *name, struct err *e)
{
    const char *tz = getenv("TZ");

    *ret = NULL;
    if (name != NULL)
        return named(ret, name, e);
    if (tz != NULL && tz[0] == ':')
        tz++;
    if (tz != NULL && tz[0] != '\0') /* a name, or a rule */
        return zone_parse_rule(ret, tz, ERR_IGNORED) == ERR_OK ? ERR_OK : named(ret, tz, e);
    return presence_is_unknown(read_zone(ret, LOCAL, e)) ? e->code : ERR_OK;
}
