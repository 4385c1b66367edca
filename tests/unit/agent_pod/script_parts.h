/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_parts - a node whose time, runtime, network, cgroups, volumes and images are the test's.
 *
 * The functions of script_parts.c stand in for those of the same name in the libraries, in test programs that
 * include this header (tests/module.mk). Nothing happens by itself: time stands still (script_clock.h), an
 * operation waits until the test answers it (script_answer()), a container lives until the test ends it.
 * `script` records what was requested, and says which looks fail.
 */
#ifndef TESTS_UNIT_AGENT_POD_SCRIPT_PARTS_H
#define TESTS_UNIT_AGENT_POD_SCRIPT_PARTS_H
#include "tests/unit/agent_pod/world.h"
#include "tests/unit/script_clock.h"

#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/image/images.h"
#include "agent/pod/record/record.h"
#include "agent/probe/probe.h"
#include "agent/runtime/exec.h"
#include "cni/host/netns.h"
#include "cni/links.h"

#include <signal.h>

struct script_ctr {
    char id[65];
    struct rt_state s;
    int signals, last_signal;
    unsigned kills;
};

extern struct script {
    struct script_ctr ctrs[64];
    void (*at_kill)(void); /* may be NULL */
    size_t n_ctrs;
    bool pinned, attached, images_absent;
    bool no_network;          /* there is no default network */
    struct err pins_unseen;   /* not ERR_OK: looks at namespaces fail so */
    struct err volumes_error; /* not ERR_OK: no volume can be set up */
    bool hang;                /* a cancelled operation does not end by itself */
    bool stubborn;            /* containers end only when they are killed */
    struct err unseen;        /* not ERR_OK: looks at containers fail so */
    struct err kill_error, cgroup_error;
    enum probe_outcome probes;                                    /* the verdict of every check of a server */
    unsigned n_checks, n_adds, n_dels, n_host_checks, n_removals; /* that were begun */
    struct boot_time checked_at;
} script;

int script_setup(void **state);
int script_teardown(void **state);
#define SCRIPT_TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)

/* A pod of the manifests that was just seen. */
struct pod *script_pod(struct world *w, const char *name, const char *spec);
/* ... and whose containers run. */
struct pod *script_running(struct world *w, const char *name, const char *spec);
struct script_ctr *script_ctr(const char *id); /* NULL: there is none */
struct script_ctr *script_ctr_new(const char *id);
/* The container's newest run ends by itself. */
void script_exit(struct world *w, struct ctr *c, int exit_code);

/* ---- operations ---- */

/* The oldest one of this name (NULL: of any) that was not answered; NULL: there is none. */
struct op *script_op(const char *name);
/* An operation that waits for the test's answer. */
void script_begin(struct op *op, uv_loop_t *loop, const char *name, op_done_fn done, void *owner);
/* Answers the oldest operation of this name; ERR_OK: it did what it was to do. */
void script_answer(struct world *w, const char *name, enum err_code code);
void script_answer_with(struct world *w, const char *name, const struct err *e);
/* All that is under way succeeds, and what follows from that, until nothing is under way but for `but`. */
void script_answer_all(struct world *w, const char *but);

/* ---- time ---- */

/* All that is due, and what follows from it. */
void script_turn(struct world *w);
/* Time passes, in steps of at most a second, so that what becomes due on the way is done then. */
void script_pass(struct world *w, int64_t ns);
#endif
