/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - measures a pod without an agent: runs its parts one after the other, and nothing else.
 *
 *     floor PARTS add|del PARALLEL ID...
 *
 * add: network namespace, the list's CNI plugins, overlay, bundle, conmon (which runs the OCI runtime's
 * create), start.  del: the runtime's delete, the plugins' DEL in reverse order, mounts and folders.  Each
 * pod in a process of its own, PARALLEL at a time; on standard output a line of JSON for each: when it began
 * (CLOCK_MONOTONIC, ns) and how long each step took (ns).  Exit code 1 when a step of any pod failed;
 * standard error names it.
 *
 * PARTS is a JSON file that bench.py writes from a pod the agent made: every string may hold @ID@.
 *
 *     netns, bundle, layer, rootfs, overlay (mount options), config (text of config.json), conmon, env,
 * start, delete (argv), folders, plugins [{name, path, conf}], pluginEnv
 *
 * All memory lives as long as the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 64, STEPS_MAX = 16, OUTPUT_MAX = 64 * 1024, SYNC_PIPE = 4 };

static const json_t *parts;
static const char *id;

static struct step {
    const char *name;
    long long ns;
} steps[STEPS_MAX];
static int n_steps;
static long long step_began;

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "floor: %s: ", id != NULL ? id : "-");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void step_over(const char *name)
{
    long long now = now_ns();

    steps[n_steps++] = (struct step){ name, now - step_began };
    step_began = now;
}

/* ---- the parts ------------------------------------------------------------------------------- */

static char *with_id(const char *text)
{
    char *out = malloc(strlen(text) * (strlen(id) + 1) + 1), *to = out;

    if (out == NULL)
        die("no memory");
    while (*text != '\0') {
        if (strncmp(text, "@ID@", 4) == 0) {
            to = stpcpy(to, id);
            text += 4;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
    return out;
}

static char *part(const json_t *in, const char *key)
{
    const char *text = json_string_value(json_object_get(in, key));

    return text != NULL ? with_id(text) : (die("no \"%s\" in the parts", key), NULL);
}

static char **list(const char *key)
{
    const json_t *in = json_object_get(parts, key);
    char **out = calloc(json_array_size(in) + 1, sizeof(*out));

    for (size_t i = 0; i < json_array_size(in); i++)
        out[i] = with_id(json_string_value(json_array_get(in, i)));
    return out;
}

/* ---- processes ------------------------------------------------------------------------------- */

/*
 * Runs a program with `input` on its standard input, if any; returns its standard output (OUTPUT_MAX at
 * most).
 */
static char *run(char *const argv[], char *const env[], const char *input)
{
    static char output[OUTPUT_MAX];
    posix_spawn_file_actions_t actions;
    int in[2], out[2], status;
    size_t length = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        die("pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    errno = posix_spawn(&pid, argv[0], &actions, NULL, argv, env);
    if (errno != 0)
        die("%s: %s", argv[0], strerror(errno));
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    if (input != NULL &&
        write(in[1], input, strlen(input)) != (ssize_t)strlen(input)) /* far below a pipe's size */
        die("%s does not read its input", argv[0]);
    close(in[1]);
    while (length < sizeof(output) - 1 &&
           (n = read(out[0], output + length, sizeof(output) - 1 - length)) > 0)
        length += (size_t)n;
    output[length] = '\0';
    close(out[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("%s failed: %s", argv[0], output);
    return output;
}

/* conmon forks.  The runtime's create has ended when conmon reports it on the sync pipe: {"data": PID}. */
static void run_conmon(char **argv, char **env, const char *bundle)
{
    char answer[8192];
    int sync[2], status;
    size_t length = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(sync, O_CLOEXEC) != 0)
        die("pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        setsid();
        dup2(null, 0);
        dup2(null, 1);
        if (chdir(bundle) != 0 ||
            (sync[1] == SYNC_PIPE ? fcntl(SYNC_PIPE, F_SETFD, 0) : dup2(sync[1], SYNC_PIPE)) < 0)
            _exit(126);
        execve(argv[0], argv, env);
        _exit(127);
    }
    close(sync[1]);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("conmon failed");
    while (length < sizeof(answer) - 1 &&
           (n = read(sync[0], answer + length, sizeof(answer) - 1 - length)) > 0) {
        length += (size_t)n;
        if (memchr(answer, '\n', length) != NULL)
            break;
    }
    answer[length] = '\0';
    close(sync[0]);
    json_t *told = json_loads(answer, 0, NULL);
    if (json_integer_value(json_object_get(told, "data")) <= 0)
        die("conmon says: %s", answer);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void make_netns(const char *path)
{
    int status, fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t pid;

    if (fd < 0)
        die("%s: %s", path, strerror(errno));
    close(fd);
    pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0 ||
              mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL) != 0);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("cannot make a network namespace");
}

static char *plugin_input(const json_t *plugin, const char *previous)
{
    char *conf = part(plugin, "conf"), *text;

    if (previous[0] == '\0')
        return conf;
    conf[strlen(conf) - 1] = '\0'; /* its closing brace */
    if (asprintf(&text, "%s,\"prevResult\":%s}", conf, previous) < 0)
        die("no memory");
    return text;
}

static char *run_plugin(const json_t *plugin, const char *command, const char *previous)
{
    char **env = list("pluginEnv"), *verb, *path = part(plugin, "path");
    char *argv[] = { path, NULL };
    size_t n = 0;

    while (env[n] != NULL)
        n++;
    env = reallocarray(env, n + 2, sizeof(*env));
    if (env == NULL || asprintf(&verb, "CNI_COMMAND=%s", command) < 0)
        die("no memory");
    env[n] = verb;
    env[n + 1] = NULL;
    return strdup(run(argv, env, plugin_input(plugin, previous)));
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
        die("%s: %s", path, strerror(errno));
}

static char *result_file(void)
{
    char *path;

    return asprintf(&path, "%s/result.json", part(parts, "bundle")) >= 0 ? path : (die("no memory"), NULL);
}

static void add(void)
{
    const json_t *plugins = json_object_get(parts, "plugins");
    char *bundle = part(parts, "bundle"), *config, *result = strdup("");
    char **folders = list("folders");

    make_netns(part(parts, "netns"));
    step_over("namespace");
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        const json_t *plugin = json_array_get(plugins, i);

        result = run_plugin(plugin, "ADD", result);
        step_over(json_string_value(json_object_get(plugin, "name")));
    }
    for (size_t i = 0; folders[i] != NULL; i++)
        if (mkdir(folders[i], 0755) != 0)
            die("%s: %s", folders[i], strerror(errno));
    if (mount("overlay", part(parts, "rootfs"), "overlay", 0, part(parts, "overlay")) != 0)
        die("overlay: %s", strerror(errno));
    if (asprintf(&config, "%s/config.json", bundle) < 0)
        die("no memory");
    write_file(config, part(parts, "config"));
    write_file(result_file(), result);
    step_over("bundle");
    run_conmon(list("conmon"), list("env"), bundle);
    step_over("create");
    run(list("start"), list("env"), NULL);
    step_over("start");
}

static void del(void)
{
    const json_t *plugins = json_object_get(parts, "plugins");
    char *path = result_file();
    json_error_t e;
    char *result = json_dumps(json_load_file(path, 0, &e), JSON_COMPACT);
    char rm[] = "/bin/rm", rf[] = "-rf";
    char *remove[] = { rm, rf, part(parts, "bundle"), part(parts, "layer"), NULL };

    run(list("delete"), list("env"), NULL);
    step_over("delete");
    for (size_t i = json_array_size(plugins); i-- > 0;) {
        const json_t *plugin = json_array_get(plugins, i);

        run_plugin(plugin, "DEL", result != NULL ? result : "");
        step_over(json_string_value(json_object_get(plugin, "name")));
    }
    if (umount2(part(parts, "netns"), MNT_DETACH) != 0 || unlink(part(parts, "netns")) != 0 ||
        umount2(part(parts, "rootfs"), MNT_DETACH) != 0)
        die("unmount: %s", strerror(errno));
    run(remove, list("env"), NULL);
    step_over("files");
}

/* Runs in a separate process. */
static void one_pod(bool adds)
{
    long long began = now_ns();
    char line[2048];
    int n;

    step_began = began;
    if (adds)
        add();
    else
        del();
    n = snprintf(line, sizeof(line), "{\"id\":\"%s\",\"began\":%lld,\"steps\":{", id, began);
    for (int i = 0; i < n_steps; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "%s\"%s\":%lld", i > 0 ? "," : "", steps[i].name,
                      steps[i].ns);
    n += snprintf(line + n, sizeof(line) - (size_t)n, "}}\n");
    if (write(1, line, (size_t)n) != n) /* one write: lines of several processes do not mix */
        die("write: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    int running = 0, status, parallel = argc > 3 ? atoi(argv[3]) : 0;
    bool failed = false;
    json_error_t e;

    if (argc < 5 || parallel < 1 || (strcmp(argv[2], "add") != 0 && strcmp(argv[2], "del") != 0))
        die("usage: floor PARTS add|del PARALLEL ID...");
    parts = json_load_file(argv[1], 0, &e);
    if (parts == NULL)
        die("%s: %s", argv[1], e.text);
    for (int i = 4; i < argc || running > 0;) {
        if (i < argc && running < parallel) {
            pid_t pid = fork();

            if (pid < 0)
                die("fork: %s", strerror(errno));
            if (pid == 0) {
                id = argv[i];
                one_pod(strcmp(argv[2], "add") == 0);
                exit(0);
            }
            running++;
            i++;
        } else if (wait(&status) > 0) {
            running--;
            failed |= status != 0;
        }
    }
    return failed;
}
