/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's record of an earlier agent: it is set aside, or taken, and what is taken can be written and read
 * again. */
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"
#include "tests/fuzz/scratch.h"
#include "tests/unit/agent_pod/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UID "0a4f7c1e-0000-4000-8000-000000000001"

static struct world *world;
static int scratch = -1;

static void prepare(void)
{
    void *state = NULL;

    scratch = scratch_open();
    if (world_setup(&state) != 0)
        abort();
    world = state;
    if (rmdir(world->dir) != 0)
        abort();
    log_init((enum log_level)(LOG_LVL_ERROR - 1),
             LOG_FMT_TEXT); /* a damaged record is an error, and most are */
    snprintf(world->dir, sizeof(world->dir), "%s", scratch_path);
}

static struct pod *load(void)
{
    struct err e = { 0 };
    struct pod *p, *tmp, *found = NULL;

    assert(record_load_all(&world->node, &e) == ERR_OK);
    HASH_ITER (hh, world->node.pods, p, tmp) {
        assert(found == NULL && strcmp(p->uid, UID) == 0);
        found = p;
    }
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct pod *p;

    if (scratch < 0)
        prepare();
    scratch_mkdir(scratch, "pods");
    scratch_write(scratch, "pods/" UID ".json", (struct str){ (const char *)data, size });
    p = load();
    if (p != NULL) {
        assert(p->state >= POD_PENDING && p->state <= POD_TERMINATED && p->grace_seconds >= 0);
        assert(p->sandbox_id[0] == '\0' || strlen(p->sandbox_id) == 64);
        assert(record_save(p, &(bool){ false }, &e) == ERR_OK);
        world_forget(world);
        assert(load() != NULL);
        world_forget(world);
    }
    scratch_clear(scratch, "pods");
    return 0;
}
