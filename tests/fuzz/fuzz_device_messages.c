/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a device plugin. The first byte chooses which; an answer that was read must be read equally
 * from the bytes that are stored of it, and from what is packed again.
 */
#include "deviceplugin/message/messages.h"

#include "base/scope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const char *a, const char *b)
{
    assert(strcmp(a, b) == 0);
}

static void same_answers(const struct dp_answer *a, const struct dp_answer *b)
{
    assert(a->n_envs == b->n_envs && a->n_annotations == b->n_annotations && a->n_mounts == b->n_mounts &&
           a->n_nodes == b->n_nodes && a->n_cdi == b->n_cdi);
    for (size_t i = 0; i < a->n_envs; i++) {
        same(a->envs[i].name, b->envs[i].name);
        same(a->envs[i].value, b->envs[i].value);
    }
    for (size_t i = 0; i < a->n_annotations; i++) {
        same(a->annotations[i].name, b->annotations[i].name);
        same(a->annotations[i].value, b->annotations[i].value);
    }
    for (size_t i = 0; i < a->n_mounts; i++) {
        same(a->mounts[i].container_path, b->mounts[i].container_path);
        same(a->mounts[i].host_path, b->mounts[i].host_path);
        assert(a->mounts[i].read_only == b->mounts[i].read_only);
    }
    for (size_t i = 0; i < a->n_nodes; i++) {
        same(a->nodes[i].container_path, b->nodes[i].container_path);
        same(a->nodes[i].host_path, b->nodes[i].host_path);
        same(a->nodes[i].permissions, b->nodes[i].permissions);
    }
    for (size_t i = 0; i < a->n_cdi; i++)
        same(a->cdi[i], b->cdi[i]);
}

static void read_allocated(const uint8_t *p, size_t n)
{
    mem_auto struct dp_answer *first = NULL;
    mem_auto struct dp_answer *stored = NULL;
    mem_auto struct dp_answer *again = NULL;
    mem_auto uint8_t *raw = NULL;
    mem_auto uint8_t *packed = NULL;
    struct err e = { 0 };

    if (dp_allocated_unpack(&first, &raw, &n, p, n, &e) != ERR_OK)
        return;
    if (dp_answer_unpack(&stored, raw, n, &e) != ERR_OK)
        abort();
    same_answers(first, stored);
    if (dp_answer_pack(stored, &packed, &n, &e) != ERR_OK ||
        dp_answer_unpack(&again, packed, n, &e) != ERR_OK)
        abort();
    same_answers(first, again);
}

static void read_list(const uint8_t *p, size_t n)
{
    struct dp_list l = { 0 };
    struct err e = { 0 };

    if (dp_list_unpack(&l, p, n, &e) == ERR_OK) {
        assert(l.n <= DP_DEVICES_MAX);
        for (size_t i = 0; i < l.n; i++)
            assert(dp_id_ok(l.v[i].id) && l.v[i].n_numa <= DP_NUMA_OF_DEVICE_MAX);
    }
    dp_list_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dp_registration r = { 0 };
    struct dp_info i = { 0 };
    struct dp_options o;
    struct err e = { 0 };
    mem_auto char **preferred = NULL;

    if (size == 0)
        return 0;
    switch (data[0] % 6) {
    case 0:
        ERR_IGNORE(dp_registration_unpack(&r, data + 1, size - 1, &e));
        dp_registration_done(&r);
        break;
    case 1:
        ERR_IGNORE(dp_options_unpack(&o, data + 1, size - 1, &e));
        break;
    case 2:
        read_list(data + 1, size - 1);
        break;
    case 3:
        read_allocated(data + 1, size - 1);
        break;
    case 4:
        ERR_IGNORE(dp_preferred_unpack(&preferred, data + 1, size - 1, &e));
        break;
    default:
        ERR_IGNORE(dp_info_unpack(&i, data + 1, size - 1, &e));
        dp_info_done(&i);
        break;
    }
    return 0;
}
