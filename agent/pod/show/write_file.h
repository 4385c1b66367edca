/* SPDX-License-Identifier: Apache-2.0 */
/* write_file - one file of the manifest folder, written or removed, on the pool. */
#ifndef AGENT_POD_SHOW_WRITE_FILE_H
#define AGENT_POD_SHOW_WRITE_FILE_H
#include "agent/source/rewrite.h"

#include <jansson.h>

struct write_file {
    char *dir, *name;      /* name: of a new file the wanted name, then the actual one */
    struct src_key key;    /* borrowed */
    char *text;            /* of the object, wiped and freed; NULL: it is removed */
    struct api_object was; /* the object in force from the file; of a new one .pod is NULL */
    bool create, dry, secret;
    bool alone;     /* the file has no other object */
    json_t *causes; /* ERR_RANGE: [{"field", "message"}] */
};

/* A work_fn. ERR_ABORTED: the file differs from the content in force. ERR_PERMISSION: it cannot be rewritten.
 * ERR_RANGE: the object is not valid. ERR_EXHAUSTED: the disk is full. Nothing has changed then. */
enum err_code write_file_run(void *arg, struct err *e);
void write_file_done(struct write_file *f);
/* "pod-default-web.yaml"; of a long name, or `again`, with a hash. NULL: out of memory. */
char *write_file_name(const struct src_key *key, bool again);
#endif
