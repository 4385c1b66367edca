/* SPDX-License-Identifier: Apache-2.0 */
/* The table of projects of an earlier agent. What is accepted has each id and each path once, and is read
 * again as it was written. */
#include "tests/fuzz/scratch.h"
#include "volumes/quota/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_project(const struct project *x, void *arg)
{
    assert(x->id >= 1 && x->id <= PROJECT_ID_MAX);
    assert(x->path == NULL || (x->path[0] == '/' && projects_find(arg, x->path) == x));
    assert(projects_by_id(arg, 0, x->id) == x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int folder = -1;
    char file[100];
    struct projects p = { .state_file = file, .projects_file = file, .projid_file = file }, again = p;
    struct err e = { 0 };
    char *text = NULL;
    size_t n = 0;

    if (folder < 0)
        folder = scratch_open();
    snprintf(file, sizeof(file), "%s/projects.json", scratch_path);
    if (projects_parse(&p, (const char *)data, size, &e) == ERR_OK) {
        projects_each(&p, on_project, &p);
        assert(projects_save(&p, &e) == ERR_OK);
        assert(fs_read_at(AT_FDCWD, file, 1 << 26, &text, &n, &e) == ERR_OK);
        assert(projects_parse(&again, text, n, &e) == ERR_OK);
        assert(HASH_COUNT(again.ids) == HASH_COUNT(p.ids) &&
               HASH_CNT(by_path, again.paths) == HASH_CNT(by_path, p.paths));
        free(text);
    }
    projects_clear(&p);
    projects_clear(&again);
    return 0;
}
