/* SPDX-License-Identifier: Apache-2.0 */
/* paths - a disk that is reached by several paths: the device-mapper disk over them (multipath-tools). */
#include "base/array.h"
#include "base/files/fs.h"
#include "base/scope.h"
#include "volumes/storage/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATHS_MAX 32 /* of one disk */

struct holder {
    char name[64]; /* "dm-0" */
};

static bool note_holder(const char *name, void *arg)
{
    struct holder *h = arg;

    if (strncmp(name, "dm-", 3) != 0)
        return true;
    snprintf(h->name, sizeof(h->name), "%.60s", name);
    return false;
}

static bool find_holder(const char *device, char *ret, size_t size)
{
    const char *name = strrchr(device, '/');
    struct holder h = { "" };
    char path[300];

    snprintf(path, sizeof(path), "/sys/block/%.200s/holders", name != NULL ? name + 1 : device);
    if (presence_is_unknown(fs_list(AT_FDCWD, path, note_holder, &h, ERR_IGNORED)) || h.name[0] == '\0')
        return false;
    snprintf(ret, size, "/dev/%s", h.name);
    return true;
}

void storage_multipath(const char *device, unsigned ms, char *ret, size_t size)
{
    for (unsigned waited = 0; !find_holder(device, ret, size); waited += 200) {
        if (waited >= ms) {
            snprintf(ret, size, "%s", device);
            return;
        }
        usleep(200 * 1000);
    }
}

struct paths {
    char names[PATHS_MAX][64]; /* "sdb" */
    size_t n;
};

static bool note_path(const char *name, void *arg)
{
    struct paths *p = arg;

    if (p->n < PATHS_MAX)
        snprintf(p->names[p->n++], sizeof(p->names[0]), "%.60s", name);
    return true;
}

static void delete_disk(const char *name)
{
    char path[300];
    fd_auto fd = -1;

    snprintf(path, sizeof(path), "/sys/block/%.200s/device/delete", name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "1", 1) < 0)
        errno = 0; /* a disk that stays is found again by the next mount */
}

void storage_device_release(const char *device, bool deletes)
{
    char *real = realpath(device, NULL);
    const char *name = real != NULL ? strrchr(real, '/') : NULL;
    struct paths p = { .n = 0 };
    char slaves[300];

    if (name != NULL && strncmp(name, "/dm-", 4) == 0) {
        const char *const args[] = { "-f", real, NULL };

        snprintf(slaves, sizeof(slaves), "/sys/block/%.200s/slaves", name + 1);
        if (presence_is_unknown(fs_list(AT_FDCWD, slaves, note_path, &p, ERR_IGNORED)))
            p.n = 0;
        ERR_IGNORE(storage_run(
            &(struct storage_run){ .program = "multipath", .package = "multipath-tools", .args = args },
            ERR_IGNORED)); /* one that stays in use is flushed by multipathd */
    } else if (name != NULL) {
        note_path(name + 1, &p);
    }
    for (size_t i = 0; deletes && i < p.n; i++)
        delete_disk(p.names[i]);
    free(real);
}
