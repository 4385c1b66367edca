/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hog - takes memory as fast as the machine gives it, and writes down when: `hog anon|shared FILE MIB
 * [RATE]`. Shared memory need not be cleared at once, which is faster, above all in an emulated machine. RATE
 * is the most that it takes, in MiB per second.
 *
 * Waits until FILE.go is there, then takes MIB one by one. FILE is an array of 64-bit
 * numbers in memory shared with it, so it outlives a SIGKILL: the first is the time of the last tick of a
 * thread that takes nothing (which the kernel does not slow down), the second how many MiB were taken, the
 * next ones when each was complete. Times are nanoseconds of CLOCK_MONOTONIC. SIGTERM is ignored.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 1000000
#define MIB ((size_t)1 << 20)

static volatile uint64_t *file;

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *tick(void *arg)
{
    const struct timespec ms = { 0, TICK_NS };

    (void)arg;
    for (;;) {
        file[0] = now();
        nanosleep(&ms, NULL);
    }
    return NULL;
}

static void wait_for(const char *path)
{
    const struct timespec ms = { 0, 10 * TICK_NS };
    char go[4096];

    snprintf(go, sizeof(go), "%s.go", path);
    while (access(go, F_OK) != 0)
        nanosleep(&ms, NULL);
}

static void take_anon(size_t i)
{
    static char *memory;

    if (memory == NULL)
        memory = mmap(NULL, (size_t)1 << 40, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (i == 0)
        madvise(memory, (size_t)1 << 40, MADV_HUGEPAGE); /* faster, where the kernel has them */
    for (size_t k = 0; k < MIB; k += 4096)
        ((volatile char *)memory)[i * MIB + k] = 1;
}

static void take_shared(size_t i)
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("hog", MFD_CLOEXEC);
    if (fallocate(fd, 0, (off_t)(i * MIB), MIB) != 0)
        _exit(5);
}

/* What another process kept it from taking is not made up for, except for a few MiB. */
static void keep_to_rate(uint64_t rate)
{
    static uint64_t due;
    const uint64_t at = now(), interval = 1000000000 / rate;
    struct timespec t;

    if (due + 4 * interval < at)
        due = at - 4 * interval;
    due += interval;
    t = (struct timespec){ (time_t)(due / 1000000000), (long)(due % 1000000000) };
    if (due > at)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv)
{
    size_t n = argc >= 4 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    uint64_t rate = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    bool shared = argc >= 4 && strcmp(argv[1], "shared") == 0;
    pthread_t thread;
    int fd;

    signal(SIGTERM, SIG_IGN);
    if (n == 0 || (fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0 ||
        ftruncate(fd, (off_t)((n + 2) * sizeof(*file))) != 0)
        return 2;
    file = mmap(NULL, (n + 2) * sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (file == MAP_FAILED)
        return 3;
    wait_for(argv[2]);
    if (pthread_create(&thread, NULL, tick, NULL) != 0)
        return 4;
    for (size_t i = 0; i < n; i++) {
        (shared ? take_shared : take_anon)(i);
        file[2 + i] = now();
        file[1] = i + 1;
        if (rate != 0)
            keep_to_rate(rate);
    }
    for (;;)
        pause();
}
