/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness - a status server with a made-up provider on a socket in a scratch folder, and clients on the same
 * loop: to_see() runs both until a text has come, or fails after ten seconds.
 */
#ifndef TESTS_AGENT_STATUS_HARNESS_H
#define TESTS_AGENT_STATUS_HARNESS_H
#include "agent/status/server.h"

#include "base/clock.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000 };

struct fixture {
    uv_loop_t loop;
    char dir[64], path[128], log[128];
    struct status_provider provider;
    struct status_server *server;
    json_t *pods, *events;
    bool ready, running;
    struct status_reply *reply;
    char source[200], name[200], removed[200];
    const char *step; /* of the image that is being brought; NULL: not known */
    int bytes;
    unsigned looks; /* at it */
    unsigned made;  /* pods, for lists and watches */
};

struct client {
    int fd;
    struct buf got;
    bool closed;
};

static inline json_t *fake_pod(const char *namespace_, const char *name, const char *app)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind", "Pod",
                     "metadata", "namespace", namespace_, "name", name, "labels", "app", app, "status",
                     "phase", "Running");
}

/* Events are called by their number, the only object of another kind "here". */
static inline json_t *fake_keys(void *arg, enum status_kind kind, struct err *e)
{
    struct fixture *f = arg;
    json_t *keys = json_array(), *pod;
    size_t i;

    if (kind == KIND_EVENT)
        json_array_foreach (f->events, i, pod)
            json_array_append_new(keys, json_sprintf("%s/%zu",
                                                     json_string_value(json_object_get(
                                                         json_object_get(pod, "metadata"), "namespace")),
                                                     i));
    else if (kind != KIND_POD)
        json_array_append_new(keys, json_string("default/here"));
    if (kind != KIND_POD)
        return keys;
    if (f->pods == NULL) {
        json_decref(keys);
        err_set(e, ERR_UNAVAILABLE, "not started yet");
        return NULL;
    }
    json_array_foreach (f->pods, i, pod) {
        const json_t *meta = json_object_get(pod, "metadata");
        const char *namespace_ = json_string_value(json_object_get(meta, "namespace"));
        const char *name = json_string_value(json_object_get(meta, "name"));

        if (json_array_append_new(keys, json_sprintf("%s/%s", namespace_, name)) != 0) {
            json_decref(keys);
            err_nomem(e);
            return NULL;
        }
    }
    return keys;
}

static inline json_t *fake_one(void *arg, const char *namespace_, const char *name, struct err *e)
{
    struct fixture *f = arg;
    json_t *pod, *meta;
    size_t i;

    json_array_foreach (f->pods, i, pod) {
        meta = json_object_get(pod, "metadata");
        if (strcmp(json_string_value(json_object_get(meta, "namespace")), namespace_) == 0 &&
            strcmp(json_string_value(json_object_get(meta, "name")), name) == 0)
            return json_incref(pod);
    }
    err_set(e, ERR_NOT_FOUND, "no such pod");
    return NULL;
}

static inline json_t *fake_explain(void *arg, const char *namespace_, const char *name, struct err *e)
{
    json_t *pod = fake_one(arg, namespace_, name, e);

    json_decref(pod);
    return pod == NULL ? NULL : json_pack("{s:s, s:[]}", "pod", name, "steps");
}

static inline json_t *fake_config(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return json_pack("{s:{s:i}}", "kubeletconfig", "maxPods", 110);
}

static inline json_t *fake_manifests(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return json_pack("[{s:s}]", "name", "web.yaml");
}

/* One of each, called "here", in namespace "default". */
static inline json_t *fake_objects(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                                   struct err *e)
{
    json_t *one = kind == KIND_IMAGE
                      ? json_pack("{s:s}", "id", "sha256:1")
                      : json_pack("{s:{s:s, s:s}}", "metadata", "name", "here", "namespace", "default");

    (void)arg;
    if (namespace_ != NULL && strcmp(namespace_, "default") != 0) {
        json_decref(one);
        one = NULL;
    }
    if (name == NULL)
        return one != NULL ? json_pack("[o]", one) : json_array();
    if (one != NULL && strcmp(name, "here") == 0)
        return one;
    json_decref(one);
    err_set(e, ERR_NOT_FOUND, "none");
    return NULL;
}

static inline json_t *fake_listed(void *arg, enum status_kind kind, const char *namespace_, const char *name,
                                  struct err *e)
{
    ((struct fixture *)arg)->made += kind == KIND_POD;
    if (kind == KIND_POD)
        return fake_one(arg, namespace_, name, e);
    if (kind == KIND_EVENT)
        return json_incref(json_array_get(((struct fixture *)arg)->events, (size_t)atoi(name)));
    return fake_objects(arg, kind, namespace_, name, e);
}

static inline json_t *fake_ready(void *arg, bool *ret_ready)
{
    *ret_ready = ((struct fixture *)arg)->ready;
    return json_pack("{s:[]}", "checks");
}

static inline enum err_code fake_log_path(void *arg, const char *namespace_, const char *name,
                                          const char *container, bool previous, char *ret, size_t size,
                                          bool *ret_running, struct err *e)
{
    struct fixture *f = arg;

    (void)namespace_;
    if (strcmp(name, "web") != 0)
        return err_set(e, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    if (container != NULL && strcmp(container, "c") != 0)
        return err_set(e, ERR_INVALID, "container %s is not valid for pod %s", container, name);
    if (previous)
        return err_set(e, ERR_PRECONDITION, "previous terminated container \"c\" in pod \"web\" not found");
    snprintf(ret, size, "%s", f->log);
    *ret_running = f->running;
    return ERR_OK;
}

static inline void fake_image_add(void *arg, const char *source, const char *name, struct status_reply *r)
{
    struct fixture *f = arg;

    snprintf(f->source, sizeof(f->source), "%s", source);
    snprintf(f->name, sizeof(f->name), "%s", name != NULL ? name : "(none)");
    f->reply = r;
}

static inline json_t *fake_image_progress(void *arg, const struct status_reply *r)
{
    struct fixture *f = arg;

    f->looks++;
    return f->step == NULL || r != f->reply ? NULL
                                            : json_pack("{s:s, s:i}", "step", f->step, "bytes", f->bytes);
}

static inline enum err_code fake_image_remove(void *arg, const char *name, struct err *e)
{
    struct fixture *f = arg;

    if (strcmp(name, "used") == 0)
        return err_set(e, ERR_PRECONDITION, "image used is in use by pod default/web");
    if (strcmp(name, "absent") == 0)
        return err_set(e, ERR_NOT_FOUND, "image absent not found");
    snprintf(f->removed, sizeof(f->removed), "%s", name);
    return ERR_OK;
}

static inline void fake_metrics(void *arg, enum status_metrics which, struct buf *own, struct status_reply *r)
{
    (void)arg;
    buf_adds(own, which == METRICS_ALL        ? "fake_metric 1\n"
                  : which == METRICS_CADVISOR ? "fake_cadvisor 2\n"
                  : which == METRICS_PROBES   ? "fake_probes 4\n"
                                              : "fake_resource 3\n");
    status_reply_text(r, own);
}

static inline void fake_stats(void *arg, bool basic, struct status_reply *r)
{
    (void)arg;
    status_reply_json(r, 200, json_pack("{s:{s:b}}", "node", "basic", basic));
}

static inline enum err_code open_server(struct fixture *f, struct status_server **ret, struct err *e)
{
    struct status_options o = { .loop = &f->loop, .path = f->path, .provider = &f->provider };

    return status_server_open(ret, &o, e);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err e = { 0 };

    strcpy(f->dir, "/tmp/test-status.XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
    snprintf(f->log, sizeof(f->log), "%s/0.log", f->dir);
    uv_loop_init(&f->loop);
    f->pods = json_pack("[o, o, o]", fake_pod("default", "web", "web"), fake_pod("default", "db", "db"),
                        fake_pod("other", "web", "web"));
    f->events = json_pack("[{s:{s:s}, s:{s:s}, s:s}, {s:{s:s}, s:{s:s}, s:s}]", "metadata", "namespace",
                          "default", "involvedObject", "name", "web", "reason", "Started", "metadata",
                          "namespace", "other", "involvedObject", "name", "web", "reason", "Killing");
    f->provider = (struct status_provider){
        .arg = f,
        .keys = fake_keys,
        .listed = fake_listed,
        .pod = fake_one,
        .explain = fake_explain,
        .manifests = fake_manifests,
        .config = fake_config,
        .objects = fake_objects,
        .ready = fake_ready,
        .log_path = fake_log_path,
        .image_add = fake_image_add,
        .image_progress = fake_image_progress,
        .image_remove = fake_image_remove,
        .metrics = fake_metrics,
        .stats = fake_stats,
    };
    *state = f;
    return open_server(f, &f->server, &e) == ERR_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    int left;

    status_server_close(f->server);
    do
        left = uv_run(&f->loop, UV_RUN_NOWAIT);
    while (left != 0 && clock_mono_ms() < until);
    if (left != 0 || uv_loop_close(&f->loop) != 0 || op_count() != 0) {
        print_error("handles or operations are left\n");
        return -1;
    }
    json_decref(f->pods);
    json_decref(f->events);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        return -1;
    free(f);
    return 0;
}

/* ---- clients --------------------------------------------------------------------------------- */

static inline struct client dial(struct fixture *f)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct client c = { .got = BUF_INIT(64 << 20) };

    strcpy(address.sun_path, f->path);
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c.fd >= 0);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return c;
}

static inline void hang_up(struct client *c)
{
    close(c->fd);
    buf_done(&c->got);
}

static inline void send_text(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline void take(struct client *c)
{
    char piece[65536];
    ssize_t n;

    while (!c->closed && (n = recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT)) != 0) {
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            break;
        buf_add(&c->got, piece, (size_t)n);
    }
    c->closed = true;
}

static inline void turn(struct fixture *f, struct client *c)
{
    struct pollfd fds[2] = { { uv_backend_fd(&f->loop), POLLIN, 0 }, { c->closed ? -1 : c->fd, POLLIN, 0 } };
    int timeout = uv_backend_timeout(&f->loop);

    if (timeout < 0 || timeout > 100)
        timeout = 100;
    poll(fds, 2, timeout);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    take(c);
}

/* Until `text` was received (NULL: until the server closed). */
static inline void to_see(struct fixture *f, struct client *c, const char *text)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;

    while (text != NULL ? strstr(c->got.p, text) == NULL : !c->closed) {
        if (clock_mono_ms() > until || (text != NULL && c->closed))
            fail_msg("waited for \"%s\", got: %s", text != NULL ? text : "(the end)", c->got.p);
        turn(f, c);
    }
}

/* Lets the server work for a while: for what must not happen. */
static inline void settle_for(struct fixture *f, struct client *c, uint64_t ms)
{
    uint64_t until = clock_mono_ms() + ms;

    while (clock_mono_ms() < until)
        turn(f, c);
}

static inline void forget(struct client *c)
{
    buf_reset(&c->got);
}

/* One request on a connection of its own; the whole answer, to free(). */
static inline char *ask(struct fixture *f, const char *line)
{
    struct client c = dial(f);
    char request[4096];
    char *answer;

    snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line);
    send_text(&c, request);
    to_see(f, &c, NULL);
    close(c.fd);
    answer = buf_detach(&c.got);
    assert_non_null(answer);
    return answer;
}

static inline void expect(struct fixture *f, const char *line, const char *status, const char *text)
{
    char *answer = ask(f, line);

    if (strncmp(answer + strlen("HTTP/1.1 "), status, strlen(status)) != 0 || strstr(answer, text) == NULL)
        fail_msg("%s: want %s and %s, got: %s", line, status, text, answer);
    free(answer);
}
#endif
