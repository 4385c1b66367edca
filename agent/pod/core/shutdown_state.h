/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown_state - how far a shutdown of the machine is; shutdown.h is the part that moves it. */
#ifndef AGENT_POD_CORE_SHUTDOWN_STATE_H
#define AGENT_POD_CORE_SHUTDOWN_STATE_H
#include "agent/pod/core/node_options.h"

struct shutdown {
    enum {
        SHUTDOWN_UNKNOWN, /* not told yet; the feature is on */
        SHUTDOWN_NO,
        SHUTDOWN_ENDING, /* pods of `group` are waited for */
        SHUTDOWN_DONE,   /* all are over, or had their time */
    } state;
    size_t group;
    uint64_t until_ms; /* clock_mono_ms() at which the group has had its time */
    int64_t started_ns;
    unsigned n_ended, n_late; /* pods; late: those that outlived their group's time */
    uv_timer_t timer;
    void (*done)(void *arg);
    void *done_arg;
    char inhibitor[256]; /* what is known of the lock, for people; "": nothing yet */
    bool inhibitor_failed;
    /* the last one, from its file; 0: there was none */
    int64_t last_started_ns, last_ended_ns;
    unsigned last_ended, last_late;
    bool last_is_of_this_boot;
    char last_unread[504]; /* why that file could not be read; "": it was */
};
#endif
