/* SPDX-License-Identifier: Apache-2.0 */
/* stream - streams to and from a pod without a process in it: the standard streams of a container's main
 * process (attach), a port of the pod (forward), files (archive). */
#ifndef AGENT_RUNTIME_STREAM_H
#define AGENT_RUNTIME_STREAM_H
#include "agent/runtime/container.h"
#include "base/process/process.h"

/* Attach: conmon's socket, SOCK_SEQPACKET. Written packets of at most RT_ATTACH_PACKET bytes are the
 * process's standard input; shutdown(SHUT_WR) is its end, if the container's input ends with a client. The
 * first byte of read packets is the stream. It ends with the container. */
enum { RT_ATTACH_PACKET = 8192 };
struct rt_attach {
    int stream;  /* non-blocking */
    int control; /* for rt_attach_resize(); -1: none */
};
/* The caller owns both descriptors. Does not block. ERR_PRECONDITION: the container is not running. */
enum err_code rt_attach(struct rt *rt, const char *id, struct rt_attach *ret, struct err *e) MUST_CHECK;
void rt_attach_resize(int control, unsigned short rows, unsigned short columns);

/* Forward: one connection to a port of the pod's own loopback interface, opened by a child in its network
 * namespace (`coracle-exec`, exec_forward.c). Result: ERR_OK when both directions have ended; otherwise the
 * child's error. */
struct rt_forward_spec {
    const char *netns; /* path; NULL: the host's */
    uint16_t port;
    int in, out; /* borrowed pipes: to and from the port */
};
void rt_forward_start(struct proc *p, struct rt *rt, const struct rt_forward_spec *spec, op_done_fn done,
                      void *owner);

/* Archive: a file or folder of a container as a tar stream, or one unpacked there
 * (base/process/copy_helper.h), by a child whose root folder is the container's, so that no link of the
 * container leads out of it. */
struct rt_archive_spec {
    const char *id, *path;
    int in, out;  /* borrowed pipes; in -1: from the container, otherwise to it */
    int messages; /* gets one line for each omitted entry */
};
/* ERR_PRECONDITION: the container is not running; `done` is not called then. */
enum err_code rt_archive_start(struct proc *p, struct rt *rt, const struct rt_archive_spec *spec,
                               op_done_fn done, void *owner, struct err *e) MUST_CHECK;
#endif
