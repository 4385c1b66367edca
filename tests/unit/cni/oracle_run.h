/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_run - a network whose plugins are the oracle: running operations, what was recorded. */
#ifndef TESTS_UNIT_CNI_ORACLE_RUN_H
#define TESTS_UNIT_CNI_ORACLE_RUN_H
#include "oracle.h"

#define ID "0123abcd"

/* For tests in which one attachment is as good as another. */
static const struct cni_attachment web = { .container_id = ID, .netns = "/run/ns", .ifname = "eth0" };

static const char *const nobody[] = { NULL }; /* the living, for cni_gc_start() */

typedef void (*start_fn)(struct cni_op *, struct cni *, const struct cni_attachment *, op_done_fn, void *);

static inline struct err run_one(struct place *p, struct cni *c, start_fn start,
                                 const struct cni_attachment *a)
{
    struct ended d = { 0 };
    struct cni_op o;

    start(&o, c, a, on_ended, &d);
    run_until_ended(p, &d);
    return d.result;
}

static inline struct err run(struct place *p, struct cni *c, start_fn start)
{
    return run_one(p, c, start, &web);
}

static inline void run_well(struct place *p, struct cni *c, start_fn start)
{
    struct err e = run(p, c, start);

    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
}

static inline void check(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                         void *owner)
{
    cni_check_start(o, c, a, NULL, false, done, owner);
}

static inline void gc(struct place *p, struct cni *c, struct cni_gc *g)
{
    struct ended d = { 0 };

    cni_gc_start(g, c, nobody, "eth0", on_ended, &d);
    run_until_ended(p, &d);
    if (d.result.code != ERR_OK)
        fail_msg("%s", d.result.text);
}

static inline void one_plugin(struct place *p, const char *version, const char *more)
{
    str_auto list = str_printf("{\"cniVersion\":\"%s\",\"name\":\"net\",%s\"plugins\":[{\"type\":\"main\"}]}",
                               version, more);

    put(p, "net.d/10.conflist", list);
    if (!exists(p, "bin/main"))
        oracle_put(p, "main");
}

/* How often a plugin was called with a verb; the last call's text (the caller frees) and number. */
static inline int calls(const struct place *p, const char *verb, const char *type, char **ret_text,
                        int *ret_number)
{
    char end[64], path[300], last[64] = "";
    uv_fs_t req;
    uv_dirent_t d;
    int n = 0;

    snprintf(end, sizeof(end), "-%s-%s", verb, type);
    assert_true(uv_fs_scandir(NULL, &req, in_place(p, "calls"), 0, NULL) >= 0);
    while (uv_fs_scandir_next(&req, &d) != UV_EOF) {
        if (d.name[0] == '.' || !str_ends(d.name, end))
            continue;
        n++;
        if (strcmp(d.name, last) > 0)
            snprintf(last, sizeof(last), "%s", d.name);
    }
    uv_fs_req_cleanup(&req);
    snprintf(path, sizeof(path), "calls/%s", last);
    if (ret_text != NULL)
        *ret_text = n > 0 ? get(p, path) : strdup("");
    if (ret_number != NULL)
        *ret_number = n > 0 ? atoi(last) : 0;
    return n;
}

static inline void forget_calls(const struct place *p)
{
    struct err e = { 0 };

    assert_int_equal(fs_remove_tree(p->fd, "calls", &e), ERR_OK);
    assert_int_equal(fs_mkdirs_beneath(p->fd, "calls", 0755, &e), ERR_OK);
}

static inline bool has_child(void *arg)
{
    str_auto text = get(arg, "child");

    return text[0] != '\0';
}

static inline pid_t child_of(const struct place *p)
{
    str_auto text = get(p, "child");

    unlinkat(p->fd, "child", 0);
    return (pid_t)atoi(text);
}

static inline bool is_gone(void *arg)
{
    pid_t pid = *(pid_t *)arg;
    char path[64], text[512] = "";
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    return n <= 0 || strstr(text, ") Z ") != NULL; /* nobody reaps orphans everywhere */
}

#endif
