/* SPDX-License-Identifier: Apache-2.0 */
/* The arrays of the data, and their text, which equals the output of Go's encoding/json byte for byte. */
#include "deviceplugin/checkpoint/checkpoint_data.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/codec/base64.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dp_ck_done(struct dp_ck_data *d)
{
    free(d->entries);
    free(d->resources);
    free(d->nodes);
    free(d->ids);
    free(d->text);
    *d = (struct dp_ck_data){ 0 };
}

bool dp_ck_add_id(struct dp_ck_data *d, const char *id)
{
    if (!array_room(d->ids, d->n_ids))
        return false;
    d->ids[d->n_ids++] = id;
    return true;
}

bool dp_ck_add_node(struct dp_ck_data *d, const struct dp_ck_node *x)
{
    if (!array_room(d->nodes, d->n_nodes))
        return false;
    d->nodes[d->n_nodes++] = *x;
    return true;
}

bool dp_ck_add_entry(struct dp_ck_data *d, const struct dp_ck_entry *x)
{
    if (!array_room(d->entries, d->n_entries))
        return false;
    d->entries[d->n_entries++] = *x;
    return true;
}

bool dp_ck_add_resource(struct dp_ck_data *d, const struct dp_ck_resource *x)
{
    if (!array_room(d->resources, d->n_resources))
        return false;
    d->resources[d->n_resources++] = *x;
    return true;
}

/* ---- text ---- */

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && strchr("\"\\<>&", c) == NULL;
}

/* Go escapes characters with a meaning in HTML and JavaScript: < > & and U+2028, U+2029. */
static void add_string(struct buf *b, const char *text)
{
    static const char short_ones[] = "\"\\\b\f\n\r\t";
    uint32_t c = 0;

    buf_addc(b, '"');
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        const char *named;

        for (n = 0; n < left && is_plain(text[n]);)
            n++;
        if (n > 0) {
            buf_add(b, text, n);
            continue;
        }
        n = utf8_decode(text, left, &c);
        if (n == 0) { /* not UTF-8: neither holdings nor inventory have such a name */
            n = 1;
            buf_adds(b, "\\ufffd");
        } else if (c < 0x80 && (named = strchr(short_ones, (int)c)) != NULL) {
            buf_addc(b, '\\');
            buf_addc(b, "\"\\bfnrt"[named - short_ones]);
        } else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029) {
            buf_addf(b, "\\u%04x", (unsigned)c);
        } else {
            buf_add(b, text, n);
        }
    }
    buf_addc(b, '"');
}

static void add_ids(struct buf *b, const struct dp_ck_data *d, const struct dp_ck_range *ids)
{
    buf_adds(b, ids->nil ? "null" : "[");
    for (size_t i = 0; i < ids->n; i++) {
        buf_adds(b, i > 0 ? "," : "");
        add_string(b, d->ids[ids->first + i]);
    }
    buf_adds(b, ids->nil ? "" : "]");
}

struct keyed_node {
    char key[24];
    const struct dp_ck_node *node;
};

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct keyed_node *)a)->key, ((const struct keyed_node *)b)->key);
}

/* Go sorts the numbers as the texts that become keys: "10" is before "2". */
static void add_nodes(struct buf *b, const struct dp_ck_data *d, const struct dp_ck_range *nodes)
{
    struct keyed_node *keyed = malloc((nodes->n + 1) * sizeof(*keyed));

    if (keyed == NULL) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < nodes->n; i++) {
        keyed[i].node = &d->nodes[nodes->first + i];
        snprintf(keyed[i].key, sizeof(keyed[i].key), "%lld", (long long)keyed[i].node->numa);
    }
    qsort(keyed, nodes->n, sizeof(*keyed), compare_keys);
    buf_adds(b, nodes->nil ? "null" : "{");
    for (size_t i = 0; i < nodes->n; i++) {
        buf_addf(b, "%s\"%s\":", i > 0 ? "," : "", keyed[i].key);
        add_ids(b, d, &keyed[i].node->ids);
    }
    buf_adds(b, nodes->nil ? "" : "}");
    free(keyed);
}

static void add_entry(struct buf *b, const struct dp_ck_data *d, const struct dp_ck_entry *x)
{
    buf_adds(b, "{\"PodUID\":");
    add_string(b, x->pod_uid);
    buf_adds(b, ",\"ContainerName\":");
    add_string(b, x->container);
    buf_adds(b, ",\"ResourceName\":");
    add_string(b, x->resource);
    buf_adds(b, ",\"DeviceIDs\":");
    add_nodes(b, d, &x->nodes);
    buf_adds(b, ",\"AllocResp\":");
    if (x->answer == NULL) {
        buf_adds(b, "null}");
        return;
    }
    buf_addc(b, '"');
    base64_add(b, x->answer, x->n_answer);
    buf_adds(b, "\"}");
}

void dp_ck_text(const struct dp_ck_data *d, struct buf *b)
{
    buf_adds(b, "{\"Data\":{\"PodDeviceEntries\":");
    buf_adds(b, d->nil_entries ? "null" : "[");
    for (size_t i = 0; i < d->n_entries; i++) {
        buf_adds(b, i > 0 ? "," : "");
        add_entry(b, d, &d->entries[i]);
    }
    buf_adds(b, d->nil_entries ? "" : "]");
    buf_adds(b, ",\"RegisteredDevices\":");
    buf_adds(b, d->nil_resources ? "null" : "{");
    for (size_t i = 0; i < d->n_resources; i++) {
        buf_adds(b, i > 0 ? "," : "");
        add_string(b, d->resources[i].name);
        buf_addc(b, ':');
        add_ids(b, d, &d->resources[i].ids);
    }
    buf_adds(b, d->nil_resources ? "" : "}");
    buf_addf(b, "},\"Checksum\":%lu}", (unsigned long)dp_ck_sum(d));
}
