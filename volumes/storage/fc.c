/* SPDX-License-Identifier: Apache-2.0 */
/* fc - disks of a Fibre Channel network, found below /dev/disk as udev names them. */
#include "base/files/fs.h"
#include "volumes/storage/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOUND_MAX 64
#define WAIT_MS 10000
#define MULTIPATH_MS 5000

struct search {
    const char *ends; /* "-fc-0x500a0982991b8dc5-lun-2" */
    char found[600];
};

static bool note(const char *name, void *arg)
{
    struct search *s = arg;
    size_t n = strlen(name), k = strlen(s->ends);

    if (n < k || strcasecmp(name + n - k, s->ends) != 0)
        return true;
    snprintf(s->found, sizeof(s->found), "/dev/disk/by-path/%.253s", name);
    return false;
}

static bool is_plain(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr(".:_-", *c) == NULL)
            return false;
    return name[0] != '\0' && strlen(name) < 200;
}

static bool note_host(const char *name, void *arg)
{
    char path[300];
    fd_auto fd = -1;

    (void)arg;
    snprintf(path, sizeof(path), "/sys/class/scsi_host/%.200s/scan", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "- - -", 5) < 0)
        errno = 0; /* a host without a scan is none of ours */
    return true;
}

static bool look_once(const struct storage_spec *s, char *ret, size_t size)
{
    char ends[300], path[400];

    for (size_t i = 0; i < s->n_portals; i++) {
        struct search search = { .ends = ends };

        snprintf(ends, sizeof(ends), "-fc-0x%s-lun-%d", s->portals[i], s->lun);
        if (!presence_is_unknown(fs_list(AT_FDCWD, "/dev/disk/by-path", note, &search, ERR_IGNORED)) &&
            search.found[0] != '\0' &&
            storage_wait_for((const char *const[]){ search.found }, 1, 0, ret, size, ERR_IGNORED) == ERR_OK)
            return true;
    }
    for (size_t i = 0; i < s->n_wwids; i++) {
        snprintf(path, sizeof(path), "/dev/disk/by-id/scsi-%s", s->wwids[i]);
        if (storage_wait_for((const char *const[]){ path }, 1, 0, ret, size, ERR_IGNORED) == ERR_OK)
            return true;
    }
    return false;
}

static enum err_code find(const struct storage_spec *s, char *ret, size_t size, struct err *e)
{
    for (size_t i = 0; i < s->n_portals; i++)
        if (!is_plain(s->portals[i]))
            return err_set(e, ERR_INVALID, "\"%.100s\" is not a WWN", s->portals[i]);
    for (size_t i = 0; i < s->n_wwids; i++)
        if (!is_plain(s->wwids[i]))
            return err_set(e, ERR_INVALID, "\"%.100s\" is not a WWID", s->wwids[i]);
    if (look_once(s, ret, size))
        return ERR_OK;
    if (presence_is_unknown(fs_list(AT_FDCWD, "/sys/class/scsi_host", note_host, NULL, e)))
        return e->code;
    for (unsigned waited = 0; waited < WAIT_MS; waited += 500) {
        usleep(500 * 1000);
        if (look_once(s, ret, size))
            return ERR_OK;
    }
    return err_set(e, ERR_UNAVAILABLE, "no fc disk found");
}

static enum err_code attach(const struct storage_spec *s, const void *arg, char *ret_device, size_t size,
                            struct err *e)
{
    char disk[300];

    (void)arg;
    if (find(s, disk, sizeof(disk), e) == ERR_OK)
        storage_multipath(disk, s->n_portals > 1 ? MULTIPATH_MS : 0, ret_device, size);
    return e->code;
}

enum err_code storage_fc_disk(const struct storage_spec *s, struct storage_disk *ret, struct err *e)
{
    const char *id = s->n_portals > 0 ? s->portals[0] : s->n_wwids > 0 ? s->wwids[0] : NULL;
    char name[300];

    if (id == NULL || !is_plain(id))
        return err_set(e, ERR_INVALID, "\"%.100s\" is not a WWN", id != NULL ? id : "");
    if (s->n_portals > 0)
        snprintf(name, sizeof(name), "%s-lun-%d", id, s->lun);
    else
        snprintf(name, sizeof(name), "%s", id);
    return storage_disk_make(ret, s->root, STORAGE_FC, s->block, "", name, e);
}

enum err_code storage_fc_mount(const struct storage_spec *s, struct err *e)
{
    struct storage_disk disk;

    return storage_fc_disk(s, &disk, e) == ERR_OK ? storage_disk_mount(s, &disk, attach, NULL, e) : e->code;
}
