/* SPDX-License-Identifier: Apache-2.0 */
/* thread - starts a thread of our own with all signals blocked: signals to the process are for the loop. Any
 * thread may start one. A thread uses memory only between work_job_begins() and work_job_ends() (work.h). */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* detached: the thread is not joined, and *ret is meaningless once it may have ended. 0 or an errno. */
int thread_start(pthread_t *ret, size_t stack_bytes, bool detached, void *(*fn)(void *arg), void *arg);
#endif
