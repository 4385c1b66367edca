/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hog - uses up what its words say, in their order, and then stays until it is terminated. The only program
 * of the image localhost/hog:1, which the recorded evictions use:
 *
 *     sleep S          waits; SIGUSR1 ends the wait
 *     mem MIB          memory, each page of it written
 *     file PATH MIB    appends to a file
 *     files DIR N      empty files
 *     procs N          child processes
 *     log MIB          lines of 1 KiB on standard output
 *     exit CODE        ends here
 *     ignore           SIGTERM has no effect from here on
 *     clean            SIGTERM ends it with 0 instead of 143
 *     term S           SIGTERM ends it S seconds later
 *
 * A test reads its progress in /proc/PID/comm: "N busy", "N sleep" or "N done", N being the number of words
 * that have begun.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BAD_WORD 64 /* EX_USAGE of sysexits.h */

struct args {
    char **next;
};

static volatile sig_atomic_t exit_code = 128 + SIGTERM;
static volatile sig_atomic_t exit_delay_s;
static unsigned n_words;
static char block[MIB];

static char *take(struct args *a)
{
    if (*a->next == NULL)
        errx(BAD_WORD, "a word is missing");
    return *a->next++;
}

static size_t take_number(struct args *a)
{
    const char *text = take(a);
    char *end = NULL;
    unsigned long n = strtoul(text, &end, 10);

    if (end == text || *end != '\0')
        errx(BAD_WORD, "\"%s\" is no number", text);
    return n;
}

static void show_progress(const char *state)
{
    char name[16]; /* TASK_COMM_LEN */

    snprintf(name, sizeof(name), "%u %s", n_words, state);
    prctl(PR_SET_NAME, name);
}

static void on_term(int signo)
{
    (void)signo;
    sleep((unsigned)exit_delay_s);
    _exit(exit_code);
}

static void write_all(int fd, size_t bytes, size_t unit)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, block, unit);

        if (n <= 0)
            return; /* the file system is full: that is what it was started for */
        done += (size_t)n;
    }
}

/* ---- the words ---- */

static void do_sleep(struct args *a)
{
    struct timespec time = { .tv_sec = (time_t)take_number(a) };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    show_progress("sleep");
    sigtimedwait(&set, NULL, &time);
}

static void do_mem(struct args *a)
{
    size_t bytes = take_number(a) * MIB;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        err(1, "mmap");
    memset(p, 'm', bytes);
}

static void do_file(struct args *a)
{
    const char *path = take(a);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0)
        err(1, "%s", path);
    memset(block, 'f', sizeof(block));
    write_all(fd, take_number(a) * MIB, sizeof(block));
    fsync(fd); /* file systems allocate late; from here on it is counted */
    close(fd);
}

static void do_files(struct args *a)
{
    const char *folder = take(a);
    size_t n = take_number(a);

    for (size_t i = 0; i < n; i++) {
        char path[4096];
        int fd;

        snprintf(path, sizeof(path), "%s/%u.%zu", folder, n_words, i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0)
            close(fd);
    }
}

static void do_procs(struct args *a)
{
    size_t n = take_number(a);

    for (size_t i = 0; i < n; i++)
        if (fork() == 0) {
            signal(SIGTERM, SIG_DFL);
            for (;;)
                pause();
        }
}

static void do_log(struct args *a)
{
    const size_t line = 1024;

    memset(block, 'l', line);
    block[line - 1] = '\n';
    write_all(STDOUT_FILENO, take_number(a) * MIB, line);
}

static void do_exit(struct args *a)
{
    exit((int)take_number(a));
}

static void do_ignore(struct args *a)
{
    (void)a;
    signal(SIGTERM, SIG_IGN);
}

static void do_clean(struct args *a)
{
    (void)a;
    exit_code = 0;
}

static void do_term(struct args *a)
{
    exit_delay_s = (sig_atomic_t)take_number(a);
}

static const struct {
    const char *name;
    void (*run)(struct args *a);
} words[] = {
    { "sleep", do_sleep }, { "mem", do_mem },   { "file", do_file }, { "files", do_files },
    { "procs", do_procs }, { "log", do_log },   { "exit", do_exit }, { "ignore", do_ignore },
    { "clean", do_clean }, { "term", do_term },
};

static void run_word(struct args *a)
{
    const char *name = take(a);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(name, words[i].name) == 0) {
            n_words++;
            show_progress("busy");
            words[i].run(a);
            return;
        }
    errx(BAD_WORD, "unknown word \"%s\"", name);
}

int main(int argc, char **argv)
{
    struct args a = { .next = argv + (argc > 0) };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL); /* kept until a wait begins */
    signal(SIGTERM, on_term);
    while (*a.next != NULL)
        run_word(&a);
    show_progress("done");
    for (;;)
        pause();
}
