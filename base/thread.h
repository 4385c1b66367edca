/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread - a thread of our own.  It begins with every signal blocked: what is sent to the process is for the
 * loop.  Any thread may start one; what it does with memory goes between work_job_begins() and
 * work_job_ends() (work.h).
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* detached: nobody joins it, and *ret says nothing once it may have ended.  0, or an errno. */
int thread_start(pthread_t *ret, size_t stack_bytes, bool detached, void *(*fn)(void *arg), void *arg);
#endif
