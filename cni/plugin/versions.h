/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions - the versions of the specification that plugins support, according to their answers.
 *
 * An answer belongs to a program file (path, inode, size and times), so it is requested once, and again when
 * the file was replaced. Bookkeeping only: ask.c runs the plugins. Loop thread only.
 */
#ifndef CNI_PLUGIN_VERSIONS_H
#define CNI_PLUGIN_VERSIONS_H
#include "base/error.h"
#include "base/list.h"
#include "cni/plugin/conf.h"

#include <stdint.h>

#define CNI_SPEAKERS_MAX 256 /* remembered programs; real nodes have about twenty */

enum cni_speaker_state {
    SPEAKER_UNASKED, /* not asked, or it could not be run for the moment: may support any version */
    SPEAKER_KNOWN,
    SPEAKER_SILENT, /* no answer in time, or it could not be run: may support any version; its ADD will show
                     */
    SPEAKER_BROKEN, /* invalid answer: `why` */
};

struct cni_speaker {
    char *path;
    uint64_t dev, ino, size;
    int64_t changed_ns, modified_ns;
    enum cni_speaker_state state;
    bool asking;                    /* ask.c: in progress */
    bool again;                     /* was queried; retried after a change in the folders */
    int versions[CNI_VERSIONS_MAX]; /* those we support, too, in the order of the answer */
    size_t n;
    struct err why;
    TAILQ_ENTRY(cni_speaker) link;
};

struct cni_versions {
    TAILQ_HEAD(, cni_speaker) list;
    size_t n;
};

void cni_versions_init(struct cni_versions *v);
void cni_versions_done(struct cni_versions *v);
/* The entry of a program, created if needed. NULL: unreadable or out of memory, so the program may support
 * any version. */
struct cni_speaker *cni_versions_of(struct cni_versions *v, const char *path);
/* After a change in the folders: retries programs without a valid answer. */
void cni_versions_try_again(struct cni_versions *v);

bool cni_speaker_may_speak(const struct cni_speaker *s, int version); /* NULL: true */
/* "0.4.0, 1.0.0", truncated at `size`. */
void cni_speaker_text(const struct cni_speaker *s, char *ret, size_t size);

/* Parses a plugin's answer, {"cniVersion": ..., "supportedVersions": [...]}, leaving out versions we do not
 * support. ERR_INVALID: not an answer. */
enum err_code cni_versions_parse(const json_t *answer, int ret[CNI_VERSIONS_MAX], size_t *ret_n,
                                 struct err *e) MUST_CHECK;
#endif
