/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coracle-kube - connects the node to a cluster: an unprivileged process, the only one that speaks TLS and
 * HTTP. The daemon starts it with the link (agent/kube/link) on descriptor 3 and without arguments.
 */
#include "agent/kube/internal.h"
#include "agent/kube/kube.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_FD 3

static void on_end(const struct err *why, void *arg)
{
    uv_loop_t *loop = arg;

    if (why->code != ERR_OK)
        log_info("coracle-kube ends", F_ERR(why));
    uv_stop(loop);
}

int main(int argc, char **argv)
{
    struct kube *k = NULL;
    struct err e = { 0 };
    uv_loop_t loop;
    int code = EXIT_SUCCESS, landlock;

    (void)argv;
    if (argc != 1 || fcntl(LINK_FD, F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "coracle-kube is started by the daemon, with a socket as descriptor %d\n", LINK_FD);
        return 2;
    }
    log_init(LOG_LVL_INFO, LOG_FMT_TEXT);
    signal(SIGPIPE, SIG_IGN);
    json_wipe_freed();
    if (kube_confine(&landlock, &e) != ERR_OK) {
        log_error("coracle-kube cannot be confined", F_ERR(&e));
        return EXIT_FAILURE;
    }
    if (uv_loop_init(&loop) != 0) {
        fprintf(stderr, "coracle-kube: cannot make an event loop\n");
        return EXIT_FAILURE;
    }
    if (kube_open(&k, &loop, LINK_FD, on_end, &loop, &e) == ERR_OK) {
        log_debug("coracle-kube begins", F_I64("landlock", landlock));
        uv_run(&loop, UV_RUN_DEFAULT);
    } else {
        log_error("coracle-kube cannot start", F_ERR(&e));
        code = EXIT_FAILURE;
    }
    kube_close(k);
    uv_run(&loop, UV_RUN_DEFAULT);
    kube_free(k);
    uv_loop_close(&loop);
    return code;
}
