/* SPDX-License-Identifier: Apache-2.0 */
/* The mountinfo parser: the text comes from the kernel, but mount points, sources and options are any bytes
 * that whoever mounts likes. */
#include "base/files/fs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    const char *prefix;
    size_t bytes, limit;
};

static bool on_mount(const struct fs_mount *m, void *arg)
{
    struct seen *s = arg;
    size_t n = s->prefix == NULL ? 0 : strlen(s->prefix);

    assert(m->point != NULL && m->point[0] != '\0');
    assert(n == 0 || (strncmp(m->point, s->prefix, n) == 0 && (m->point[n] == '\0' || m->point[n] == '/')));
    s->bytes += strlen(m->point) + strlen(m->fstype) + strlen(m->source) + strlen(m->root) +
                strlen(m->options) + strlen(m->super_options);
    assert(s->bytes <= s->limit); /* the fields are disjoint pieces of the text */
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const prefixes[] = { NULL, "/var/lib/kubelet", "/" };
    size_t i;

    for (i = 0; i < ARRAY_LEN(prefixes); i++) {
        struct seen s = { .prefix = i == 1 ? prefixes[i] : NULL, .limit = size };
        char *text = malloc(size + 1);

        if (text == NULL)
            return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        assert(fs_parse_mountinfo(text, prefixes[i], on_mount, &s));
        free(text);
    }
    return 0;
}
