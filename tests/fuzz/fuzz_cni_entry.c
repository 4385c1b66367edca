/* SPDX-License-Identifier: Apache-2.0 */
/* A cached attachment of an earlier agent: it is set aside, or taken, and what is taken can be written and
 * read again. */
#include "base/log.h"
#include "cni/cache.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int scratch = -1;

static bool count(const struct cni_entry *entry, void *arg)
{
    assert(entry->container_id != NULL && entry->ifname != NULL && entry->netns != NULL &&
           entry->args != NULL);
    assert(cni_list_size(&entry->list) >= 1);
    ++*(unsigned *)arg;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cni_entry entry = { 0 };
    struct err e = { 0 };
    unsigned n = 0;
    int dir;

    if (scratch < 0) {
        scratch = scratch_open();
        log_init((enum log_level)(LOG_LVL_ERROR - 1), LOG_FMT_TEXT);
    }
    scratch_mkdir(scratch, "cache");
    dir = scratch_open_folder(scratch, "cache");
    scratch_write(dir, "net-c1-eth0.json", (struct str){ (const char *)data, size });
    if (cni_cache_find(dir, "c1", "eth0", &entry, &e) == ERR_OK) {
        assert(strcmp(entry.container_id, "c1") == 0 && strcmp(entry.ifname, "eth0") == 0);
        assert(cni_cache_write(dir, &entry, &e) == ERR_OK);
        cni_entry_done(&entry);
        assert(cni_cache_each(dir, count, &n, &e) == ERR_OK && n == 1);
    } else {
        assert(e.text[0] != '\0');
    }
    close(dir);
    scratch_clear(scratch, "cache");
    return 0;
}
