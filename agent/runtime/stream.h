/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream - bytes into and out of a pod without a process of its own in it: the standard streams of a
 * container's first process (attach), a port of the pod (forward).
 */
#ifndef AGENT_RUNTIME_STREAM_H
#define AGENT_RUNTIME_STREAM_H
#include "agent/runtime/container.h"
#include "base/process.h"

/*
 * Attach: conmon's socket, SOCK_SEQPACKET.  What is written to it is the process's standard input, in packets
 * of at most RT_ATTACH_PACKET bytes; shutdown(SHUT_WR) is its end, if the container's is to end with a
 * client. What is read comes in packets whose first byte says which stream it is of.  Its end: the
 * container's.
 */
enum { RT_ATTACH_PACKET = 8192 };
struct rt_attach {
    int stream;  /* non-blocking */
    int control; /* for rt_attach_resize(); -1: there is none */
};
/* Both descriptors are the caller's.  Does not block.  ERR_PRECONDITION: the container does not run. */
enum err_code rt_attach(struct rt *rt, const char *id, struct rt_attach *ret, struct err *e) MUST_CHECK;
void rt_attach_resize(int control, unsigned short rows, unsigned short columns);

/*
 * Forward: one connection to a port of the pod's own loopback interface, made and kept by a child in its
 * network namespace (`coracle-exec`, exec_forward.c).  Result: ERR_OK when both sides are done; else what the
 * child says.
 */
struct rt_forward_spec {
    const char *netns; /* path; NULL: the host's */
    uint16_t port;
    int in, out; /* borrowed pipes: to the port, from it */
};
void rt_forward_start(struct proc *p, struct rt *rt, const struct rt_forward_spec *spec, op_done_fn done,
                      void *owner);

/*
 * Archive: a file or folder of a container as a tar stream, or one unpacked there (base/copy_helper.h), by
 * a child that sees paths below its root folder only: no link that the container has made leads out of it.
 */
struct rt_archive_spec {
    const char *id, *path;
    int in, out;  /* borrowed pipes; in -1: from the container, else into it */
    int messages; /* gets what is left out, a line each */
};
/* ERR_PRECONDITION: the container does not run; then `done` is not called. */
enum err_code rt_archive_start(struct proc *p, struct rt *rt, const struct rt_archive_spec *spec,
                               op_done_fn done, void *owner, struct err *e) MUST_CHECK;
#endif
