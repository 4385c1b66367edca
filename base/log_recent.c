/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the newest warnings and errors for later diagnosis. */
#include "base/internal.h"

#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RECENT_MAX = 48, RECENT_TEXT = 480 }; /* 25 KiB, touched only as they fill */

/* One per process, like the level: warnings come from every layer and thread. */
static struct recent {
    pthread_mutex_t lock;
    size_t n, next;
    struct {
        int64_t at_ns;
        unsigned times;
        enum log_level level;
        char text[RECENT_TEXT];
    } line[RECENT_MAX];
} recent = { .lock = PTHREAD_MUTEX_INITIALIZER };

void log_recent_add(enum log_level level, int64_t at_ns, const char *text)
{
    size_t i;

    /* Do not wait: a child forked while another thread holds the lock would wait forever. */
    if (pthread_mutex_trylock(&recent.lock) != 0)
        return;
    for (i = 0; i < recent.n; i++)
        if (strncmp(recent.line[i].text, text, RECENT_TEXT - 1) == 0)
            break;
    if (i == recent.n) {
        i = recent.next;
        recent.next = (recent.next + 1) % RECENT_MAX;
        if (recent.n < RECENT_MAX)
            recent.n++;
        recent.line[i].times = 0;
        snprintf(recent.line[i].text, RECENT_TEXT, "%s", text);
    }
    recent.line[i].level = level;
    recent.line[i].at_ns = at_ns;
    recent.line[i].times++;
    pthread_mutex_unlock(&recent.lock);
}

void log_recent_each(void (*fn)(const struct log_recent *line, void *arg), void *arg)
{
    for (size_t i = 0; i < RECENT_MAX; i++) {
        char text[RECENT_TEXT];
        struct log_recent line = { .text = text };
        bool there;

        pthread_mutex_lock(&recent.lock);
        there = i < recent.n;
        if (there) {
            size_t k = recent.n < RECENT_MAX ? i : (recent.next + i) % RECENT_MAX;
            line.level = recent.line[k].level;
            line.at_ns = recent.line[k].at_ns;
            line.times = recent.line[k].times;
            memcpy(text, recent.line[k].text, sizeof(text));
        }
        pthread_mutex_unlock(&recent.lock);
        if (!there)
            return;
        fn(&line, arg);
    }
}
