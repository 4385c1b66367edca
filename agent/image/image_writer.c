/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image_internal.h"

void img_writer_start(struct img_store *s, struct img_writer *w, void (*begin)(struct img_writer *w))
{
    const bool alone = TAILQ_EMPTY(&s->writers);

    w->begin = begin;
    TAILQ_INSERT_TAIL(&s->writers, w, more);
    if (alone)
        begin(w);
}

void img_writer_end(struct img_store *s, struct img_writer *w)
{
    const bool first = w == TAILQ_FIRST(&s->writers);
    struct img_writer *next;

    TAILQ_REMOVE(&s->writers, w, more);
    next = TAILQ_FIRST(&s->writers);
    if (first && next != NULL)
        next->begin(next);
}
