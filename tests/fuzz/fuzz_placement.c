/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of processors, and the state files of processors and memory: a file is damaged, or what was read is
 * written as a text that is read as the same again, and a manager accepts it or says why not. A wrong
 * checksum is replaced by the right one, which random bytes do not hit.
 */
#include "agent/placement/memory_manager.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text with the checksum that the error names; NULL: it failed for another reason. */
static char *with_sum(const uint8_t *data, size_t size, const struct err *e)
{
    const char *at = strstr(e->text, "that of the content is ");
    json_t *file = at != NULL ? json_loadb((const char *)data, size, 0, NULL) : NULL;
    char *text = NULL;

    if (file != NULL && json_is_object(file)) {
        assert(json_object_set_new(file, "checksum", json_integer(strtoll(at + 23, NULL, 10))) == 0);
        text = json_dumps(file, JSON_COMPACT);
    }
    json_decref(file);
    return text;
}

static struct pl_machine *machine(void)
{
    static struct pl_machine m;

    if (m.n_nodes == 0) {
        for (unsigned i = 0; i < 8; i++) {
            cpus_add(&m.cpus, i);
            m.cpu[i].in[PL_NODE] = m.cpu[i].in[PL_SOCKET] = m.cpu[i].in[PL_UNCORE] = (int32_t)i / 4;
            m.cpu[i].in[PL_CORE] = (int32_t)i / 2;
        }
        m.n_nodes = 2;
        m.node[0] = (struct pl_node){ .id = 0, .memory = 1 << 20 };
        m.node[1] = (struct pl_node){ .id = 1, .memory = 1 << 20 };
        pl_machine_count(&m);
    }
    return &m;
}

static void list(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), printed[CPUS_TEXT_SIZE];
    struct cpus s, again;
    struct err e = { 0 };

    assert(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (cpus_parse(&s, text, "list", &e) == ERR_OK) {
        cpus_print(&s, printed);
        assert(cpus_parse(&again, printed, "list", &e) == ERR_OK && cpus_equal(&s, &again));
    }
    free(text);
}

static void cpus(const char *text, size_t n)
{
    struct pl_cpu_options o = { 0 };
    struct cpus reserved = { 0 };
    struct pl_cpu_manager c;
    struct pl_cpu_state s, again;
    struct err e = { 0 };
    char *policy, *first, *second;
    size_t n_first, n_second;

    if (pl_cpu_state_read(text, n, &s, &policy, &e) != ERR_OK)
        return;
    assert(pl_cpu_state_write(&s, policy, &first, &n_first, &e) == ERR_OK);
    free(policy);
    assert(pl_cpu_state_read(first, n_first, &again, &policy, &e) == ERR_OK);
    assert(pl_cpu_state_write(&again, policy, &second, &n_second, &e) == ERR_OK);
    assert(strcmp(first, second) == 0);
    assert(pl_cpu_manager_init(&c, machine(), &o, 1, &reserved, &e) == ERR_OK);
    (void)!pl_cpu_manager_start(&c, &s, &e);
    pl_cpu_manager_done(&c);
    pl_cpu_state_done(&s);
    pl_cpu_state_done(&again);
    free(policy);
    free(first);
    free(second);
}

static void memory(const char *text, size_t n)
{
    static struct pl_memory_manager g;
    static struct pl_memory_state s, again;
    struct pl_reserved reserved = { .type = "memory", .bytes = 1024 };
    struct err e = { 0 };
    char *policy, *first, *second;
    size_t n_first, n_second;

    if (pl_memory_state_read(text, n, &s, &policy, &e) != ERR_OK)
        return;
    assert(pl_memory_state_write(&s, policy, &first, &n_first, &e) == ERR_OK);
    free(policy);
    assert(pl_memory_state_read(first, n_first, &again, &policy, &e) == ERR_OK);
    assert(pl_memory_state_write(&again, policy, &second, &n_second, &e) == ERR_OK);
    assert(strcmp(first, second) == 0);
    assert(pl_memory_manager_init(&g, machine(), &reserved, 1, &e) == ERR_OK);
    (void)!pl_memory_manager_start(&g, &s, &e);
    pl_memory_manager_done(&g);
    pl_memory_state_done(&s);
    pl_memory_state_done(&again);
    free(policy);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pl_memory_state m;
    struct pl_cpu_state c;
    struct err e = { 0 }, f = { 0 };
    char *policy = NULL, *text;

    list(data, size);
    if (pl_cpu_state_read((const char *)data, size, &c, &policy, &e) == ERR_OK) {
        pl_cpu_state_done(&c);
        cpus((const char *)data, size);
    } else if ((text = with_sum(data, size, &e)) != NULL) {
        cpus(text, strlen(text));
        free(text);
    }
    free(policy);
    policy = NULL;
    if (pl_memory_state_read((const char *)data, size, &m, &policy, &f) == ERR_OK) {
        pl_memory_state_done(&m);
        memory((const char *)data, size);
    } else if ((text = with_sum(data, size, &f)) != NULL) {
        memory(text, strlen(text));
        free(text);
    }
    free(policy);
    return 0;
}
