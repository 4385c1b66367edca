/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle - a CNI plugin that writes down exactly how it was called and answers as it was told.
 *
 * The test program is the plugin: oracle_put() makes <place>/bin/<type> a link to it, and main() begins with
 *     if (oracle_is_called()) return oracle_main(argc, argv);
 * Each call becomes a file <place>/calls/<number>-<VERB>-<type>: the arguments, the environment and the
 * standard input, byte for byte.  What it answers stands in <place>/told/<type>.<VERB>, a command a line:
 *     out TEXT     to standard output, err TEXT  to standard error, each with a line end
 *     flood BYTES  of "x" to standard output, spill BYTES  to standard error
 *     file NAME    <place>/NAME to standard output
 *     fds          the numbers of its open descriptors to <place>/fds
 *     child        leaves a child behind that holds the output and sleeps; its pid: <place>/child
 *     hang         sleeps for ever (a child of its own, too: <place>/child)
 *     exit N       default 0;  kill N: ends itself by a signal
 * Told nothing it succeeds: VERSION speaks 0.4.0 to 1.1.0, ADD gives 10.0.0.9.
 */
#ifndef TESTS_UNIT_CNI_ORACLE_H
#define TESTS_UNIT_CNI_ORACLE_H
#include "helper.h"

#include <signal.h>

static inline bool oracle_is_called(void)
{
    return getenv("CNI_COMMAND") != NULL;
}

static inline void oracle_put(const struct place *p, const char *type)
{
    char self[256], path[128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct err e = { 0 };

    assert_true(n > 0);
    self[n] = '\0';
    assert_int_equal(fs_mkdirs_beneath(p->fd, "bin", 0755, &e), ERR_OK);
    assert_int_equal(fs_mkdirs_beneath(p->fd, "calls", 0755, &e), ERR_OK);
    snprintf(path, sizeof(path), "bin/%s", type);
    assert_int_equal(symlinkat(self, p->fd, path), 0);
}

static inline void oracle_tell(const struct place *p, const char *type, const char *verb,
                               const char *commands)
{
    char path[128];

    snprintf(path, sizeof(path), "told/%s.%s", type, verb);
    put(p, path, commands);
}

/* ---- the plugin's side: no test, nothing asserted --------------------------------------------------- */

static inline FILE *oracle_record(const char *dir, const char *verb, const char *type)
{
    char path[512];

    for (int i = 1; i < 10000; i++) {
        snprintf(path, sizeof(path), "%s/calls/%04d-%s-%s", dir, i, verb, type);
        /* Numbers are unique over all calls: the number alone is taken first. */
        char number[512];
        snprintf(number, sizeof(number), "%s/calls/.%04d", dir, i);
        int fd = open(number, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0)
            continue;
        close(fd);
        return fopen(path, "w");
    }
    return NULL;
}

static inline void oracle_leave_child(const char *dir)
{
    pid_t pid = fork();
    char path[512];
    FILE *f;

    if (pid == 0) {
        execl("/bin/sleep", "sleep", "1000", NULL);
        _exit(1);
    }
    snprintf(path, sizeof(path), "%s/child", dir);
    f = fopen(path, "w");
    if (f != NULL) {
        fprintf(f, "%d", (int)pid);
        fclose(f);
    }
}

static inline void oracle_copy(const char *dir, const char *name)
{
    char path[512], chunk[4096];
    size_t n;
    FILE *f;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
        return;
    f = fopen(path, "r");
    while (f != NULL && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        fwrite(chunk, 1, n, stdout);
    if (f != NULL)
        fclose(f);
}

static inline void oracle_note_fds(const char *dir, int told)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/fds", dir);
    f = fopen(path, "w");
    for (int fd = 0; f != NULL && fd < 1024; fd++)
        if (fd != told && fd != fileno(f) && fcntl(fd, F_GETFD) >= 0)
            fprintf(f, "%d ", fd);
    if (f != NULL)
        fclose(f);
}

static inline int oracle_obey(const char *dir, FILE *told)
{
    char line[8192];
    int status = 0;

    while (fgets(line, sizeof(line), told) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "out ", 4) == 0)
            printf("%s\n", line + 4);
        else if (strncmp(line, "err ", 4) == 0)
            fprintf(stderr, "%s\n", line + 4);
        else if (strncmp(line, "flood ", 6) == 0)
            for (long n = atol(line + 6); n > 0; n--)
                putchar('x');
        else if (strncmp(line, "spill ", 6) == 0)
            for (long n = atol(line + 6); n > 0; n--)
                putc('x', stderr);
        else if (strncmp(line, "file ", 5) == 0)
            oracle_copy(dir, line + 5);
        else if (strcmp(line, "fds") == 0)
            oracle_note_fds(dir, fileno(told));
        else if (strcmp(line, "child") == 0)
            oracle_leave_child(dir);
        else if (strncmp(line, "exit ", 5) == 0)
            status = atoi(line + 5);
        fflush(stdout);
        if (strcmp(line, "hang") == 0) {
            oracle_leave_child(dir);
            for (;;)
                pause();
        }
        if (strncmp(line, "kill ", 5) == 0)
            raise(atoi(line + 5));
    }
    return status;
}

static inline int oracle_main(int argc, char **argv)
{
    const char *verb = getenv("CNI_COMMAND"), *type = strrchr(argv[0], '/');
    char dir[256], path[512], chunk[4096];
    FILE *f, *told;
    size_t n;

    if (type == NULL || strlen(argv[0]) >= sizeof(dir))
        return 99;
    type++;
    strcpy(dir, argv[0]);
    *strrchr(dir, '/') = '\0';
    *strrchr(dir, '/') = '\0'; /* above bin */
    f = oracle_record(dir, verb, type);
    if (f == NULL)
        return 98;
    for (int i = 0; i < argc; i++)
        fprintf(f, "arg %s\n", argv[i]);
    for (char **e = environ; *e != NULL; e++)
        fprintf(f, "env %s\n", *e);
    fprintf(f, "stdin ");
    while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        fwrite(chunk, 1, n, f);
    fclose(f);
    snprintf(path, sizeof(path), "%s/told/%s.%s", dir, type, verb);
    told = fopen(path, "r");
    if (told != NULL)
        return oracle_obey(dir, told);
    if (strcmp(verb, "VERSION") == 0)
        puts("{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.4.0\",\"1.0.0\",\"1.1.0\"]}");
    if (strcmp(verb, "ADD") == 0)
        puts("{\"ips\":[{\"address\":\"10.0.0.9/24\"}]}");
    return 0;
}
#endif
