/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions - what plugins said when they were asked which versions of the specification they speak.
 *
 * An answer belongs to one program file (path, inode, size and times), so it is asked for once and again when
 * the file was replaced.  Pure bookkeeping: ask.c runs the plugins.  Loop thread only.
 */
#ifndef CNI_VERSIONS_H
#define CNI_VERSIONS_H
#include "base/error.h"
#include "base/list.h"
#include "cni/conf.h"

#include <stdint.h>

#define CNI_SPEAKERS_MAX 256 /* programs that are remembered; real nodes have some twenty */

enum cni_speaker_state {
    SPEAKER_UNASKED, /* not asked, or it could not be run for now: may speak anything */
    SPEAKER_KNOWN,
    SPEAKER_SILENT, /* did not answer in time, or could not be run: may speak anything, its ADD will say */
    SPEAKER_BROKEN, /* its answer is none: `why` */
};

struct cni_speaker {
    char *path;
    uint64_t dev, ino, size;
    int64_t changed_ns, modified_ns;
    enum cni_speaker_state state;
    bool asking;                    /* ask.c: under way */
    bool again;                     /* asked before, and worth another try after a change in the folders */
    int versions[CNI_VERSIONS_MAX]; /* those that we speak, too; in the order of the answer */
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
/* What is known of a program; made when new.  NULL: it cannot be read, or no memory: it may speak anything.
 */
struct cni_speaker *cni_versions_of(struct cni_versions *v, const char *path);
/* After a change in the folders: those that did not answer well are worth another try. */
void cni_versions_try_again(struct cni_versions *v);

bool cni_speaker_may_speak(const struct cni_speaker *s, int version); /* NULL: true */
/* "0.4.0, 1.0.0", cut at `size`. */
void cni_speaker_text(const struct cni_speaker *s, char *ret, size_t size);

/*
 * A plugin's answer, {"cniVersion": ..., "supportedVersions": [...]}; versions that we do not speak are left
 * out.  ERR_INVALID: no such answer.
 */
enum err_code cni_versions_parse(const json_t *answer, int ret[CNI_VERSIONS_MAX], size_t *ret_n,
                                 struct err *e) MUST_CHECK;
#endif
