/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_helper - how `coracle cp` starts the program that packs and unpacks (agent/unpack/copy_main.c):
 *
 *     coracle-unpack --copy pack|unpack PATH   a path here; the stream is standard output or input
 *     coracle-unpack --copy from|into PATH     a path in a container; the descriptors below
 */
#ifndef BASE_PROCESS_COPY_HELPER_H
#define BASE_PROCESS_COPY_HELPER_H

#define COPY_OPTION "--copy"
enum { COPY_PIDFD = 3 /* a process of the container */, COPY_STREAM = 4, COPY_MESSAGES = 5 };
#endif
