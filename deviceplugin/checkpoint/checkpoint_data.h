/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_data - the contents of a checkpoint, in the form of kubelet's structs: between its text
 * (checkpoint_text.c, checkpoint_parse.c), its checksum (checkpoint_sum.c) and the holdings (checkpoint.c).
 *
 * In Go a slice or a map is empty or nil. The two differ in the text ([], null) and in the checksum, so these
 * structs keep the difference.
 */
#ifndef DEVICEPLUGIN_CHECKPOINT_CHECKPOINT_DATA_H
#define DEVICEPLUGIN_CHECKPOINT_CHECKPOINT_DATA_H
#include "deviceplugin/checkpoint/checkpoint.h"

#include "base/buf.h"

struct dp_ck_range { /* of ids, or of nodes */
    bool nil;
    size_t first, n;
};
struct dp_ck_node {
    int64_t numa; /* -1: no topology */
    struct dp_ck_range ids;
};
struct dp_ck_entry { /* checkpoint.PodDevicesEntry */
    const char *pod_uid, *container, *resource;
    struct dp_ck_range nodes; /* checkpoint.DevicesPerNUMA; ascending */
    const uint8_t *answer;    /* NULL: nil */
    size_t n_answer;
};
struct dp_ck_resource {
    const char *name;
    struct dp_ck_range ids;
};

struct dp_ck_data { /* checkpoint.checkpointData; { 0 } has both members empty */
    bool nil_entries, nil_resources;
    struct dp_ck_entry *entries;      /* owned, as all arrays; in the order of the text */
    struct dp_ck_resource *resources; /* by name */
    struct dp_ck_node *nodes;
    const char **ids; /* borrowed: from `text`, or from holdings */
    size_t n_entries, n_resources, n_nodes, n_ids;
    char *text; /* owned: the strings of parsed data */
};

void dp_ck_done(struct dp_ck_data *d);

/* Each appends to its array; false: out of memory. */
bool dp_ck_add_id(struct dp_ck_data *d, const char *id);
bool dp_ck_add_node(struct dp_ck_data *d, const struct dp_ck_node *x);
bool dp_ck_add_entry(struct dp_ck_data *d, const struct dp_ck_entry *x);
bool dp_ck_add_resource(struct dp_ck_data *d, const struct dp_ck_resource *x);

/* *ret_sum is the text's checksum, not verified. ERR_DATA_LOSS: the error's text has the place. dp_ck_done()
 * in any case. */
enum err_code dp_ck_parse(const char *text, size_t n, struct dp_ck_data *ret, uint64_t *ret_sum,
                          struct err *e) MUST_CHECK;
uint32_t dp_ck_sum(const struct dp_ck_data *d);
/* The text with its checksum, as Go's encoding/json writes it; b's limit is the file's. */
void dp_ck_text(const struct dp_ck_data *d, struct buf *b);
#endif
