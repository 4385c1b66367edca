/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an earlier agent, conmon and the OCI runtime left of a container: meta.json, the numbers in pid,
 * conmon.pid, started and the exit file, the runtime's log, config.json.  Parts in this order; an empty part
 * is a file that is not there.
 */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec.h"
#include "base/log.h"
#include "cgroups/internal.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/text.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int scratch = -1;

static void check_state(struct rt *rt)
{
    struct rt_identity identity;
    struct err e = { 0 };
    struct rt_state s;

    if (rt_state(rt, ID, &s, &e) == ERR_OK)
        assert(s.phase != RT_EXITED || (s.exit_code >= 0 && s.exit_code <= 255));
    assert(s.pid >= 0 && s.conmon_pid >= 0 && s.started_ns >= 0);
    if (presence_of(rt_identity(rt, ID, &identity, &e)) == PRESENCE_PRESENT) /* best effort: a test */
        assert(memchr(identity.pod_uid, '\0', sizeof(identity.pod_uid)) != NULL &&
               memchr(identity.cgroup_path, '\0', sizeof(identity.cgroup_path)) != NULL);
}

/* The process that `coracle-exec` hands to the runtime: ours but for environment and user, which are the
 * container's. */
static void check_exec(struct str config)
{
    static const char *const argv[] = { "sh", "-c", "x", NULL };
    const struct rt_exec_spec spec = { .argv = argv };
    json_t *process, *args;
    struct err e = { 0 };
    char *text = NULL, oom_score[RT_OOM_SCORE_SIZE];

    if (rt_exec_process_build(config.p, config.n, &spec, &text, oom_score, &e) != ERR_OK) {
        assert(text == NULL && e.text[0] != '\0');
        return;
    }
    process = json_loads(text, 0, NULL);
    args = json_object_get(process, "args");
    assert(json_array_size(args) == 3 && strcmp(json_string_value(json_array_get(args, 0)), "sh") == 0);
    json_decref(process);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {
        "containers/" ID "/meta.json",
        "containers/" ID "/pid",
        "containers/" ID "/conmon.pid",
        "containers/" ID "/started",
        "exits/" ID,
        "containers/" ID "/log",
        "containers/" ID "/config.json",
    };
    struct cg_tree cgroups = { 0 };
    struct rt rt = { .run_dir = scratch_path, .state_dir = scratch_path, .cgroups = &cgroups };
    struct str parts[ARRAY_LEN(names)] = { 0 };
    size_t n = scratch_parts(data, size, parts, ARRAY_LEN(names));
    struct err e = { 0 };
    int exit_code;
    char *words;

    if (scratch < 0) {
        scratch = scratch_open();
        log_init((enum log_level)(LOG_LVL_ERROR - 1), LOG_FMT_TEXT);
    }
    scratch_mkdir(scratch, "containers");
    scratch_mkdir(scratch, "containers/" ID);
    scratch_mkdir(scratch, "exits");
    for (size_t i = 0; i < n; i++)
        if (parts[i].n > 0)
            scratch_write(scratch, names[i], parts[i]);

    check_state(&rt);
    words = rt_runtime_words(&rt, ID);
    free(words);
    words = text_of(parts[5].p, parts[5].n);
    if (rt_exec_failure(words, &exit_code, &e))
        assert(e.code != ERR_OK && (exit_code == 0 || exit_code == 126 || exit_code == 127));
    free(words);
    check_exec(n > 6 ? parts[6] : (struct str){ "", 0 });
    scratch_clear(scratch, "containers");
    scratch_clear(scratch, "exits");
    return 0;
}
