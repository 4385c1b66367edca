/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coracle-seal - seals and opens the agent's kept objects: one batch from standard input, its answer on
 * standard output (agent/kept/batch.h). It ends after the batch, so an idle node maps no cryptography. It has
 * only its user's rights, opens no file, and its memory is not dumped. Exit 1: the error is on standard
 * error.
 */
#include "agent/kept/batch.h"
#include "agent/seal/seal.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

_Static_assert(BATCH_KEY_SIZE == SEAL_KEY_SIZE, "the key's size");
_Static_assert(BATCH_SEALED_MORE == SEAL_NONCE_SIZE + SEAL_TAG_SIZE, "what sealing adds");

static int seal_fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return EXIT_FAILURE;
}

static bool seal_read(struct buf *b)
{
    char *at;
    ssize_t n;

    while ((at = buf_room(b, 65536)) != NULL && (n = read(STDIN_FILENO, at, 65536)) > 0)
        b->n += (size_t)n;
    return at != NULL && n == 0;
}

/* Handles one item; a failure is part of the answer. */
static void seal_item(const unsigned char *key, const struct batch_item *item, struct buf *out)
{
    buf_auto made = BUF_INIT(BATCH_MAX);
    struct err e = { 0 };
    bool ok = item->what == BATCH_SEAL ? seal_text(key, item->head, item->data, &made, &e) == ERR_OK
                                       : seal_open(key, item->head, item->data, &made, &e) == ERR_OK;

    batch_answer_add(out, ok ? (struct str){ made.p, made.n } : (struct str){ NULL, 0 });
    explicit_bzero(made.p, made.n);
}

int main(void)
{
    struct buf in = BUF_INIT(BATCH_MAX + 65536), out = BUF_INIT(BATCH_MAX);
    struct batch_item item;
    struct err e = { 0 };
    size_t at = BATCH_KEY_SIZE;
    int sys = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    if (!seal_read(&in) || in.n < BATCH_KEY_SIZE)
        return seal_fail("the batch cannot be read");
    if (buf_room(&out, in.n) ==
        NULL) /* reserved at once, because a growing buffer would leave copies behind */
        return seal_fail("out of memory");
    while (batch_next(in.p, in.n, &at, &item, &e) == ERR_OK)
        seal_item((const unsigned char *)in.p, &item, &out);
    if (e.code != ERR_NOT_FOUND)
        return seal_fail(e.text);
    if (buf_check(&out, &e) != ERR_OK)
        return seal_fail(e.text);
    sys = fs_write_all(STDOUT_FILENO, out.p, out.n);
    buf_wipe(&in);
    buf_wipe(&out);
    return sys == 0 ? EXIT_SUCCESS : seal_fail(strerror(sys));
}
