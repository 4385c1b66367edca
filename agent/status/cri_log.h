/* SPDX-License-Identifier: Apache-2.0 */
/* cri_log - container logs in CRI format: "2026-01-02T03:04:05.123456789Z stdout F text\n"; tag P marks a
 * part of a longer line. Bytes in, lines out; no I/O except cri_log_tail(). The content is chosen by the
 * container and hostile. */
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
/* Parses one line (without "\n"); false if invalid. Borrowed from `line`. */
bool cri_log_parse(struct str line, struct cri_log_line *ret);

/* Longest line for a reader; longer lines are skipped. conmon writes at most 8 KiB of text in one line. */
/* File offset of the last `lines` complete lines of the log; 0 if it has fewer. Blocking, reads backwards. A
 * complete line is its parts (P) and its end (F); an unfinished one counts as well. If parts of both streams
 * are mixed, the first parts of the oldest line may be missing. */
#define CRI_LOG_LINE_MAX (64 * 1024)
enum err_code cri_log_tail_offset(int fd, uint64_t lines, uint64_t *ret, struct err *e) MUST_CHECK;
/* The same across files, newest first: start with the number of lines and continue until `enough`. */
struct cri_log_tail {
    uint64_t lines;
    bool enough; /* the lines begin in the last file read */
    /* private */
    uint64_t found;
    bool seen[2];
};
enum err_code cri_log_tail_find(int fd, struct cri_log_tail *t, uint64_t *ret, struct err *e) MUST_CHECK;
/* Text of the last `lines` lines without timestamps, at most the last `max` bytes (termination message
 * fallback: 80, 2048). malloc'ed. */
enum err_code cri_log_tail(const char *path, unsigned lines, size_t max, char **ret,
                           struct err *e) MUST_CHECK;

enum cri_log_streams { CRI_LOG_BOTH, CRI_LOG_STDOUT, CRI_LOG_STDERR };

/* reader - the text of a log as shown to users: takes the file's bytes in pieces of any size and returns the
 * text with parts joined. Set the options after cri_log_reader_init(). */
struct cri_log_reader {
    bool timestamps;      /* prefix each line with its time, nine digits of fraction, UTC */
    int64_t since_ns;     /* wall clock; skip earlier lines */
    uint64_t limit_bytes; /* of text; 0: no limit */
    enum cri_log_streams streams;
    /* private */
    struct buf rest; /* the beginning of an incomplete line */
    uint64_t given;
    bool skipping; /* inside a line that is too long */
    bool in_line;  /* a part was returned, but not its end */
};
void cri_log_reader_init(struct cri_log_reader *r);
void cri_log_reader_done(struct cri_log_reader *r);
/* Appends to `out`; false when the limit is reached and no text will follow. Check `out` for its own limit.
 */
bool cri_log_reader_feed(struct cri_log_reader *r, const void *data, size_t n, struct buf *out);
/* End of file: returns a last line without newline (after a crash of the node) if it is valid. */
void cri_log_reader_finish(struct cri_log_reader *r, struct buf *out);
#endif
