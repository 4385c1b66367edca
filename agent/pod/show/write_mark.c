/* SPDX-License-Identifier: Apache-2.0 */
/* write_mark - the mark by which write.h distinguishes versions of an object, and the version that clients
 * see. */
#include "agent/pod/show/write_node.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

void write_mark_of(const json_t *object, char ret[WRITE_MARK_SIZE])
{
    static const char *const not_in_it[] = { "resourceVersion", "deletionTimestamp",
                                             "deletionGracePeriodSeconds" };
    json_auto_t *copy = json_copy((json_t *)(uintptr_t)object);
    json_auto_t *meta = json_copy(json_object_get(object, "metadata")), *annotations = NULL;
    mem_auto char *text = NULL;

    ret[0] = '\0';
    /* That an object with a file is being deleted is in the file; of a Pod it may be the node's word. */
    for (size_t i = 0; i < (str_eq(json_str(object, "kind"), "Pod") ? ARRAY_LEN(not_in_it) : 1); i++)
        json_object_del(meta, not_in_it[i]);
    annotations = json_copy(json_object_get(meta, "annotations"));
    json_object_del(annotations, "deployment.kubernetes.io/revision"); /* the node counts them */
    if (json_object_size(annotations) > 0)
        json_object_set(meta, "annotations", annotations);
    else
        json_object_del(meta, "annotations");
    json_object_del(copy, "status");
    if (meta == NULL || json_object_set(copy, "metadata", meta) != 0)
        return;
    text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL)
        return;
    snprintf(ret, WRITE_MARK_SIZE, "%016llx", (unsigned long long)siphash_part(0, text, strlen(text)));
    explicit_bzero(text, strlen(text));
}

json_t *write_versioned(struct node *n, enum status_kind kind, json_t *object /* stolen */)
{
    json_t *ret = object;

    if (object != NULL && n->server != NULL) {
        ret = status_server_versioned(n->server, kind, object);
        json_decref(object);
    }
    return ret;
}
