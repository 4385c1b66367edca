/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri_log - container logs in CRI format:  "2026-01-02T03:04:05.123456789Z stdout F text\n"; tag P marks a
 * part of a longer line.  Bytes in, lines out; no I/O but cri_log_tail().  Hostile: the container decides
 * what stands in it.
 */
#ifndef AGENT_STATUS_CRI_LOG_H
#define AGENT_STATUS_CRI_LOG_H
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct cri_log_line {
    struct str timestamp; /* as written */
    bool is_stderr;
    bool partial;
    struct str text; /* without the newline */
};
/* One line (without "\n"); false when it is not a CRI line. Borrowed from `line`. */
bool cri_log_parse(struct str line, struct cri_log_line *ret);

/* Longest line that a reader takes; conmon writes at most 8 KiB of text in one. Longer ones are left out. */
#define CRI_LOG_LINE_MAX (64 * 1024)

/*
 * File offset at which the last `lines` full lines of the log begin; 0 when it has fewer. Blocking, reads
 * backwards. A full line is its parts (P) and its end (F); what has no end yet counts as one, too.  Where
 * parts of both streams mix, the first parts of the oldest line may be left out.
 */
enum err_code cri_log_tail_offset(int fd, uint64_t lines, uint64_t *ret, struct err *e) MUST_CHECK;
/* The same from file to file, the newest first: begin with the number of lines, go on until enough. */
struct cri_log_tail {
    uint64_t lines;
    bool enough; /* they begin in the file that was looked at last */
    /* private */
    uint64_t found;
    bool seen[2];
};
enum err_code cri_log_tail_find(int fd, struct cri_log_tail *t, uint64_t *ret, struct err *e) MUST_CHECK;
/* Text of the last `lines` lines without timestamps, at most `max` last bytes (termination message fall-back:
 * 80, 2048). malloc'ed. */
enum err_code cri_log_tail(const char *path, unsigned lines, size_t max, char **ret,
                           struct err *e) MUST_CHECK;

/*
 * reader - what people get to see of a log: bytes of the file are fed in pieces of any size, text comes out,
 * parts joined. Set the options after cri_log_reader_init().
 */
struct cri_log_reader {
    bool timestamps;      /* begin each line with its time, nine digits of fraction, UTC */
    int64_t since_ns;     /* wall clock; leave out what was written before */
    uint64_t limit_bytes; /* of text; 0: no limit */
    /* private */
    struct buf rest; /* the beginning of a line whose end was not fed yet */
    uint64_t given;
    bool skipping; /* inside a line that is too long */
    bool in_line;  /* a part was given, its end was not */
};
void cri_log_reader_init(struct cri_log_reader *r);
void cri_log_reader_done(struct cri_log_reader *r);
/* Appends to `out`; false when the limit is reached: nothing more will come. Check `out` for its own limit.
 */
bool cri_log_reader_feed(struct cri_log_reader *r, const void *data, size_t n, struct buf *out);
/* The file ends here: a last line without newline (a crash of the node) is given if it is one. */
void cri_log_reader_finish(struct cri_log_reader *r, struct buf *out);
#endif
