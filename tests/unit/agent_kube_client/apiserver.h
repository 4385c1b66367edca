/* SPDX-License-Identifier: Apache-2.0 */
/* apiserver - runs tests/host/apiserver.py for a test, and lets it say what happens. */
#ifndef TESTS_UNIT_AGENT_KUBE_CLIENT_APISERVER_H
#define TESTS_UNIT_AGENT_KUBE_CLIENT_APISERVER_H
#include "tests/unit/base/helper.h"

#include "agent/kube/client/client.h"
#include "base/codec/json.h"

#include <signal.h>

struct apiserver {
    char *folder;
    pid_t pid;
    FILE *in, *out;
    json_t *first; /* url, kubeconfig, credentials */
};

static inline json_t *apiserver_line(struct apiserver *s)
{
    static char line[1 << 20];

    assert_non_null(fgets(line, sizeof(line), s->out));
    return json_loads(line, 0, NULL);
}

/* A call of a method, {"do": "fault", ...}; new reference to its result. */
static inline json_t *apiserver_do(struct apiserver *s, const char *call)
{
    json_t *answer, *result;

    fprintf(s->in, "%s\n", call);
    fflush(s->in);
    answer = apiserver_line(s);
    if (json_str(answer, "error") != NULL)
        fail_msg("%s: %s", call, json_str(answer, "error"));
    result = json_incref(json_object_get(answer, "result"));
    json_decref(answer);
    return result;
}

static inline void apiserver_say(struct apiserver *s, const char *call)
{
    json_decref(apiserver_do(s, call));
}

static inline void apiserver_start(struct apiserver *s, const char *option)
{
    int in[2], out[2];

    *s = (struct apiserver){ 0 };
    assert_int_equal(scratch_make((void **)&s->folder), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    s->pid = fork();
    if (s->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl("/usr/bin/python3", "/usr/bin/python3", "tests/host/apiserver.py", "--folder", s->folder,
              option, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s->in = fdopen(in[1], "w");
    s->out = fdopen(out[0], "r");
    s->first = apiserver_line(s);
    assert_non_null(s->first);
}

static inline void apiserver_end(struct apiserver *s)
{
    fclose(s->in); /* it ends with its input */
    fclose(s->out);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    json_decref(s->first);
    scratch_remove((void **)&s->folder);
}

static inline void on_turn(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until *fulfilled, ten seconds at most. What fulfils it may be the callback of a timer: after
 * that UV_RUN_ONCE goes on to wait for a file, so a turn is never longer than a tick. */
static inline bool run_until(uv_loop_t *loop, bool (*fulfilled)(void *arg), void *arg)
{
    const uint64_t end_ns = uv_hrtime() + UINT64_C(10000000000);
    uv_timer_t tick;
    bool is;

    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, on_turn, 10, 10);
    while (!(is = fulfilled(arg)) && uv_hrtime() < end_ns)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return is;
}
#endif
