/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of memory_manager_state. The form was derived from recorded files:
 *
 *   {"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":10,
 *    "systemReserved":1,"allocatable":9,"reserved":5,"free":4}},"cells":[0]}},"entries":{"uid":{"c":[
 *    {"numaAffinity":[0],"type":"memory","size":5}]}},"checksum":2790336920}
 *
 * in one line. Types are in the order of their names.
 */
#include "agent/placement/cpu_state.h"
#include "agent/placement/memory_state.h"
#include "agent/placement/state_text.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- order ---- */

static int by_type(const void *a, const void *b)
{
    return strcmp((*(const struct pl_table *const *)a)->type, (*(const struct pl_table *const *)b)->type);
}

static size_t sorted_tables(const struct pl_cell *c, const struct pl_table *ret[PL_TYPES_MAX])
{
    for (size_t i = 0; i < c->n; i++)
        ret[i] = &c->v[i];
    if (c->n > 1)
        qsort(ret, c->n, sizeof(*ret), by_type);
    return c->n;
}

static int by_text(const void *a, const void *b)
{
    char x[16], y[16];

    snprintf(x, sizeof(x), "%u", (*(const struct pl_cell *const *)a)->id);
    snprintf(y, sizeof(y), "%u", (*(const struct pl_cell *const *)b)->id);
    return strcmp(x, y);
}

/* ---- checksum ---- */

static void add_nodes(struct buf *b, uint64_t nodes)
{
    buf_addc(b, '[');
    for (uint64_t left = nodes; left != 0; left &= left - 1)
        buf_addf(b, "%s%d", left != nodes ? " " : "", __builtin_ctzll(left));
    buf_addc(b, ']');
}

static void add_cell(struct buf *b, const struct pl_cell *c)
{
    const struct pl_table *v[PL_TYPES_MAX];
    size_t n = sorted_tables(c, v);

    buf_addf(b, "%u:<*>{NumberOfAssignments:(int)%lld ", c->id, (long long)c->assignments);
    buf_adds(b, "MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[");
    for (size_t i = 0; i < n; i++)
        buf_addf(b,
                 "%s%s:<*>{TotalMemSize:(uint64)%llu SystemReserved:(uint64)%llu Allocatable:(uint64)%llu "
                 "Reserved:(uint64)%llu Free:(uint64)%llu}",
                 i > 0 ? " " : "", v[i]->type, (unsigned long long)v[i]->total,
                 (unsigned long long)v[i]->system_reserved, (unsigned long long)v[i]->allocatable,
                 (unsigned long long)v[i]->reserved, (unsigned long long)v[i]->free);
    buf_adds(b, "] Cells:([]int)");
    add_nodes(b, c->group);
    buf_addc(b, '}');
}

static void add_entry(struct buf *b, const struct pl_memory_entry *x)
{
    buf_addf(b, "%s:[", x->owner.container);
    for (size_t i = 0; i < x->n; i++) {
        buf_addf(b, "%s{NUMAAffinity:([]int)", i > 0 ? " " : "");
        add_nodes(b, x->v[i].nodes);
        buf_addf(b, " Type:(v1.ResourceName)%s Size:(uint64)%llu}", x->v[i].type,
                 (unsigned long long)x->v[i].size);
    }
    buf_addc(b, ']');
}

static enum err_code add_hashed(struct buf *b, const struct pl_memory_state *s, const char *policy,
                                struct err *e)
{
    buf_addf(b, "(*state.MemoryManagerCheckpoint){PolicyName:(string)%s ", policy);
    buf_adds(b, "MachineState:(state.NUMANodeMap)map[");
    for (size_t i = 0; i < s->n_cells; i++) {
        buf_adds(b, i > 0 ? " " : "");
        add_cell(b, &s->cell[i]);
    }
    buf_adds(b, "] Entries:(state.ContainerMemoryAssignments)map[");
    for (size_t i = 0; i < s->n; i++) {
        bool first = i == 0 || strcmp(s->v[i].owner.pod, s->v[i - 1].owner.pod) != 0;

        if (first)
            buf_addf(b, "%s%s:map[", i > 0 ? "] " : "", s->v[i].owner.pod);
        else
            buf_addc(b, ' ');
        add_entry(b, &s->v[i]);
    }
    buf_adds(b, s->n > 0 ? "]] " : "] ");
    buf_adds(b, "Checksum:(checksum.Checksum)0}");
    return buf_check(b, e);
}

/* ---- writing ---- */

static void write_nodes(struct buf *b, uint64_t nodes)
{
    buf_addc(b, '[');
    for (uint64_t left = nodes; left != 0; left &= left - 1)
        buf_addf(b, "%s%d", left != nodes ? "," : "", __builtin_ctzll(left));
    buf_addc(b, ']');
}

static void write_cell(struct buf *b, const struct pl_cell *c)
{
    const struct pl_table *v[PL_TYPES_MAX];
    size_t n = sorted_tables(c, v);

    buf_addf(b, "\"%u\":{\"numberOfAssignments\":%lld,\"memoryMap\":{", c->id, (long long)c->assignments);
    for (size_t i = 0; i < n; i++)
        buf_addf(b,
                 "%s\"%s\":{\"total\":%llu,\"systemReserved\":%llu,\"allocatable\":%llu,\"reserved\":%llu,"
                 "\"free\":%llu}",
                 i > 0 ? "," : "", v[i]->type, (unsigned long long)v[i]->total,
                 (unsigned long long)v[i]->system_reserved, (unsigned long long)v[i]->allocatable,
                 (unsigned long long)v[i]->reserved, (unsigned long long)v[i]->free);
    buf_adds(b, "},\"cells\":");
    write_nodes(b, c->group);
    buf_addc(b, '}');
}

static void write_name(struct buf *b, const char *name)
{
    json_auto_t *v = json_string_of(name);
    str_auto text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

    if (text != NULL)
        buf_addf(b, "%s:", text);
    else
        b->failed = true;
}

static void write_entries(struct buf *b, const struct pl_memory_state *s)
{
    buf_adds(b, ",\"entries\":{");
    for (size_t i = 0; i < s->n; i++) {
        const struct pl_memory_entry *x = &s->v[i];

        if (i == 0 || strcmp(x->owner.pod, s->v[i - 1].owner.pod) != 0) {
            buf_adds(b, i > 0 ? "}," : "");
            write_name(b, x->owner.pod);
            buf_addc(b, '{');
        } else {
            buf_addc(b, ',');
        }
        write_name(b, x->owner.container);
        for (size_t k = 0; k < x->n; k++) {
            buf_adds(b, k > 0 ? ",{\"numaAffinity\":" : "[{\"numaAffinity\":");
            write_nodes(b, x->v[k].nodes);
            buf_addf(b, ",\"type\":\"%s\",\"size\":%llu}", x->v[k].type, (unsigned long long)x->v[k].size);
        }
        buf_adds(b, x->n > 0 ? "]" : "[]");
    }
    buf_adds(b, "}}");
}

enum err_code pl_memory_state_write(const struct pl_memory_state *s, const char *policy, char **ret,
                                    size_t *ret_n, struct err *e)
{
    buf_auto hashed = BUF_INIT(PL_STATE_MAX), b = BUF_INIT(PL_STATE_MAX);
    const struct pl_cell *cells[PL_NODES_MAX];
    size_t n;

    if (add_hashed(&hashed, s, policy, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < s->n_cells; i++)
        cells[i] = &s->cell[i];
    qsort(cells, s->n_cells, sizeof(*cells), by_text);
    buf_addf(&b, "{\"policyName\":\"%s\",\"machineState\":{", policy);
    for (size_t i = 0; i < s->n_cells; i++) {
        buf_adds(&b, i > 0 ? "," : "");
        write_cell(&b, cells[i]);
    }
    buf_addc(&b, '}');
    if (s->n > 0)
        write_entries(&b, s);
    buf_addf(&b, ",\"checksum\":%lu}", (unsigned long)pl_sum(hashed.p, hashed.n));
    if (buf_check(&b, e) != ERR_OK)
        return e->code;
    n = b.n;
    *ret = buf_detach(&b);
    *ret_n = n;
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* ---- reading ---- */

static enum err_code wrong(struct err *e, const char *what)
{
    return err_set(e, ERR_DATA_LOSS, "%s is missing or invalid", what);
}

static bool read_number(const json_t *object, const char *key, uint64_t *ret)
{
    json_int_t n = json_int(object, key, -1);

    *ret = (uint64_t)n;
    return n >= 0;
}

static bool read_nodes(const json_t *list, uint64_t *ret)
{
    size_t i;
    json_t *x;

    *ret = 0;
    if (!json_is_array(list) || json_array_size(list) > PL_NODE_ID_MAX + 1)
        return false;
    json_array_foreach (list, i, x) {
        json_int_t id = json_integer_value(x);

        if (!json_is_integer(x) || id < 0 || id > PL_NODE_ID_MAX)
            return false;
        *ret |= 1ull << id;
    }
    return true;
}

static bool read_type(char ret[PL_TYPE_NAME_MAX], const char *type)
{
    size_t n = type != NULL ? strspn(type, "abcdefghijklmnopqrstuvwxyzKMGTPEi0123456789-.") : 0;

    if (n == 0 || type[n] != '\0' || n >= PL_TYPE_NAME_MAX)
        return false;
    memcpy(ret, type, n + 1);
    return true;
}

static enum err_code read_cell(struct pl_cell *ret, const char *id, json_t *cell, struct err *e)
{
    json_t *tables = json_object_get(cell, "memoryMap"), *table;
    size_t digits = strspn(id, "0123456789");
    uint64_t assignments;
    const char *type;

    if (digits == 0 || digits > 2 || id[digits] != '\0' || strtoul(id, NULL, 10) > PL_NODE_ID_MAX)
        return wrong(e, "machineState: the number of a node");
    *ret = (struct pl_cell){ .id = (unsigned)strtoul(id, NULL, 10) };
    if (!read_number(cell, "numberOfAssignments", &assignments) || assignments > INT32_MAX ||
        !read_nodes(json_object_get(cell, "cells"), &ret->group))
        return wrong(e, "machineState: numberOfAssignments or cells");
    ret->assignments = (int64_t)assignments;
    if (!json_is_object(tables) || json_object_size(tables) > PL_TYPES_MAX)
        return wrong(e, "machineState: memoryMap");
    json_object_foreach (tables, type, table) {
        struct pl_table *t = &ret->v[ret->n++];

        if (!read_type(t->type, type) || !read_number(table, "total", &t->total) ||
            !read_number(table, "systemReserved", &t->system_reserved) ||
            !read_number(table, "allocatable", &t->allocatable) ||
            !read_number(table, "reserved", &t->reserved) || !read_number(table, "free", &t->free))
            return wrong(e, "machineState: a value of memoryMap");
    }
    return ERR_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct pl_cell *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static enum err_code read_cells(struct pl_memory_state *s, json_t *cells, struct err *e)
{
    const char *id;
    json_t *cell;

    if (!json_is_object(cells) || json_object_size(cells) > PL_NODES_MAX)
        return wrong(e, "machineState");
    json_object_foreach (cells, id, cell) {
        if (read_cell(&s->cell[s->n_cells], id, cell, e) != ERR_OK)
            return e->code;
        s->n_cells++;
    }
    qsort(s->cell, s->n_cells, sizeof(*s->cell), by_id);
    for (size_t i = 1; i < s->n_cells; i++)
        if (s->cell[i].id == s->cell[i - 1].id)
            return wrong(e, "machineState: the number of a node");
    return ERR_OK;
}

static enum err_code read_entry(struct pl_memory_state *s, const char *pod, const char *container,
                                json_t *blocks, struct err *e)
{
    struct pl_block v[PL_TYPES_MAX];
    size_t i;
    json_t *x;

    if (!pl_name_is_ok(pod) || !pl_name_is_ok(container) || s->n >= PL_ENTRIES_MAX ||
        !json_is_array(blocks) || json_array_size(blocks) > PL_TYPES_MAX)
        return wrong(e, "entries: a name, or the number of blocks");
    json_array_foreach (blocks, i, x) {
        if (!read_type(v[i].type, json_str(x, "type")) || !read_number(x, "size", &v[i].size) ||
            !read_nodes(json_object_get(x, "numaAffinity"), &v[i].nodes))
            return wrong(e, "entries: a value of a block");
    }
    return pl_memory_state_put(s, pod, container, v, json_array_size(blocks), e);
}

static enum err_code read_entries(struct pl_memory_state *s, json_t *entries, struct err *e)
{
    const char *pod, *container;
    json_t *containers, *blocks;

    if (entries == NULL || json_is_null(entries))
        return ERR_OK;
    if (!json_is_object(entries))
        return wrong(e, "entries");
    json_object_foreach (entries, pod, containers) {
        if (!json_is_object(containers))
            return wrong(e, "entries: a pod");
        json_object_foreach (containers, container, blocks) {
            if (read_entry(s, pod, container, blocks, e) != ERR_OK)
                return e->code;
        }
    }
    return ERR_OK;
}

static enum err_code read_file(json_t *file, struct pl_memory_state *s, char **ret_policy, struct err *e)
{
    const char *policy = pl_member_text(file, "policyName", PL_NAME_MAX, e);
    buf_auto b = BUF_INIT(PL_STATE_MAX);

    if (policy == NULL || read_cells(s, json_object_get(file, "machineState"), e) != ERR_OK ||
        read_entries(s, json_object_get(file, "entries"), e) != ERR_OK ||
        add_hashed(&b, s, policy, e) != ERR_OK || pl_check_sum(file, &b, "V1", e) != ERR_OK)
        return e->code;
    *ret_policy = strdup(policy);
    return *ret_policy != NULL ? ERR_OK : err_nomem(e);
}

enum err_code pl_memory_state_read(const char *text, size_t n, struct pl_memory_state *ret, char **ret_policy,
                                   struct err *e)
{
    struct pl_memory_state s = { 0 };
    json_auto_t *file = NULL;

    if (json_parse(text, n, PL_STATE_MAX, &file, "the state of memory", e) != ERR_OK) {
        e->code = e->code == ERR_INVALID ? ERR_DATA_LOSS : e->code;
        return e->code;
    }
    if (!json_is_object(file))
        return err_set(e, ERR_DATA_LOSS, "the state of memory is not an object");
    if (read_file(file, &s, ret_policy, e) != ERR_OK) {
        pl_memory_state_done(&s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}
