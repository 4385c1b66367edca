/* SPDX-License-Identifier: Apache-2.0 */
/* image login and logout: this node's credentials for registries, the file of registryAuthFile. skopeo checks
 * them with the registry; its output replaces the file by rename. */
#include "agent/cli/image/internal.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PASSWORD_MAX = 64 * 1024, AUTH_FILE_MAX = 4 << 20 };

/* ---- the file ---- */

struct auth_file {
    char *path;       /* owned */
    char *registries; /* registries.conf; owned, NULL: the system's */
    json_t *config;   /* a Docker config.json; owned */
};

static void auth_file_done(struct auth_file *f)
{
    free(f->path);
    free(f->registries);
    json_decref(f->config);
}

static int auth_file_open(struct cli *cli, struct auth_file *f, const char *path)
{
    json_auto_t *settings = NULL;
    str_auto text = NULL;
    struct err e = { 0 };
    int code = EXIT_OK;
    size_t n = 0;

    settings = cli_get(cli, "/configz", &code);
    if (settings == NULL && path == NULL)
        return code;
    f->path = strdup(path != NULL ? path : cli_text(settings, "coracleconfig.registryAuthFile"));
    if (cli_text(settings, "coracleconfig.registriesConf")[0] != '\0')
        f->registries = strdup(cli_text(settings, "coracleconfig.registriesConf"));
    if (f->path == NULL || f->path[0] == '\0') {
        cli_error(cli, f->path == NULL ? "out of memory"
                                       : "the daemon has no registryAuthFile: give one with --authfile");
        return EXIT_ERROR;
    }
    switch (presence_of(fs_read_if_there(AT_FDCWD, f->path, AUTH_FILE_MAX, &text, &n, &e))) {
    case PRESENCE_ABSENT:
        f->config = json_object();
        return f->config != NULL ? EXIT_OK : cli_error(cli, "out of memory");
    case PRESENCE_UNKNOWN:
        return cli_failed(cli, &e);
    case PRESENCE_PRESENT:
        break;
    }
    if (json_parse(text, n, AUTH_FILE_MAX, &f->config, f->path, &e) != ERR_OK || !json_is_object(f->config))
        code = cli_error(cli, "%s is not a Docker config.json%s%s: mend or remove it", f->path,
                         e.code != ERR_OK ? ": " : "", e.text);
    explicit_bzero(text, n);
    return code;
}

/* By rename, for root only. */
static int auth_file_write(struct cli *cli, const struct auth_file *f)
{
    mem_auto char *text = json_dumps(f->config, JSON_INDENT(2));
    struct err e = { 0 };
    int code = EXIT_OK;

    if (text == NULL)
        return cli_error(cli, "out of memory");
    if (fs_replace_at(AT_FDCWD, f->path, text, strlen(text), 0600, true, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    explicit_bzero(text, strlen(text));
    return code;
}

/* ---- the password ---- */

static size_t read_line(int fd, char *line, size_t size)
{
    size_t n = 0;

    while (n + 1 < size) {
        ssize_t got = read(fd, line + n, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || line[n] == '\n')
            break;
        n++;
    }
    while (n > 0 && line[n - 1] == '\r')
        n--;
    line[n] = '\0';
    return n;
}

static struct termios shown; /* the terminal as it was; restored on a signal, too */
static int shown_on = -1;

static void show_again(void)
{
    if (shown_on >= 0)
        tcsetattr(shown_on, TCSAFLUSH, &shown);
    shown_on = -1;
}

static void on_signal(int signo)
{
    show_again();
    raise(signo); /* with the default action: SA_RESETHAND */
}

static void show_nothing(int fd)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    struct termios silent;

    if (tcgetattr(fd, &shown) != 0)
        return;
    shown_on = fd;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        sigaction(ends[i], &action, NULL);
    silent = shown;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(fd, TCSAFLUSH, &silent);
}

/* From the terminal, without showing it if `secret`. False: the error was printed. */
static bool ask(struct cli *cli, const char *what, bool secret, char *ret, size_t size)
{
    fd_auto fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

    if (fd < 0 || !isatty(STDIN_FILENO)) {
        cli_error(cli, "no terminal to ask for the %s: %s", secret ? "password" : "user",
                  secret ? "give it with --password-stdin" : "give it with --username");
        return false;
    }
    if (secret)
        show_nothing(fd);
    dprintf(fd, "%s: ", what);
    read_line(fd, ret, size);
    show_again();
    if (secret)
        dprintf(fd, "\n");
    return true;
}

static bool take_password(struct cli *cli, const struct cli_image_login *o, char *ret, size_t size)
{
    size_t n = 0;

    if (!o->password_stdin)
        return ask(cli, "Password", true, ret, size);
    for (ssize_t got; n + 1 < size && (got = read(STDIN_FILENO, ret + n, size - 1 - n)) != 0;)
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            break;
    while (n > 0 && (ret[n - 1] == '\n' || ret[n - 1] == '\r'))
        n--;
    ret[n] = '\0';
    return true;
}

/* ---- the registry ---- */

/* Runs skopeo with this standard input, and stores its standard error in `said`. -1: it did not run. */
static int run_skopeo(char *const argv[], const char *input, struct buf *said)
{
    posix_spawn_file_actions_t actions;
    int in[2], out[2], status = -1;
    char piece[4096];
    pid_t pid = -1;
    ssize_t n;

    if (pipe2(in, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
    status = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    if (status == 0)
        ERR_IGNORE(fs_write_all(in[1], input, strlen(input))); /* its exit reports the result */
    close(in[1]);
    while (status == 0 && ((n = read(out[0], piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            buf_add(said, piece, (size_t)n);
    close(out[0]);
    if (status != 0) {
        errno = status;
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* skopeo's last line, without its clock and level. */
static const char *reason_of(struct buf *said)
{
    char *message;

    while (said->n > 0 && strchr(" \n\"", said->p[said->n - 1]) != NULL)
        said->p[--said->n] = '\0';
    message = said->n > 0 ? strstr(said->p, "msg=\"") : NULL;
    return message != NULL ? message + strlen("msg=\"") : said->n > 0 ? said->p : "no reason given";
}

/* Asks the registry; *ret: the entry that skopeo wrote. */
static int check_login(struct cli *cli, const struct cli_image_login *o, const struct auth_file *f,
                       const char *registry, const char *user, const char *password, json_t **ret)
{
    char dir[] = "/tmp/coracle-login-XXXXXX", path[64];
    const char *argv[16] = { "skopeo" };
    size_t n_argv = 1;
    buf_auto said = BUF_INIT(64 * 1024);
    json_auto_t *written = NULL;
    str_auto text = NULL;
    struct err e = { 0 };
    int status, code = EXIT_OK;
    size_t n = 0;

    if (mkdtemp(dir) == NULL)
        return cli_error(cli, "make a folder in /tmp: %s", strerror(errno));
    snprintf(path, sizeof(path), "%s/auth.json", dir);
    if (f->registries != NULL) {
        argv[n_argv++] = "--registries-conf";
        argv[n_argv++] = f->registries;
    }
    memcpy(argv + n_argv,
           (const char *[]){ "login", "--authfile", path, "--username", user, "--password-stdin", registry,
                             o->insecure ? "--tls-verify=false" : NULL },
           8 * sizeof(*argv));
    status = run_skopeo((char *const *)argv, password, &said);
    if (status < 0)
        code = cli_error(cli, "cannot ask the registry: skopeo: %s%s", strerror(errno),
                         errno == ENOENT ? " (Debian package skopeo)" : "");
    else if (status != 0)
        code = cli_error(cli, "login to %s: %s", registry, reason_of(&said));
    else if (fs_read_at(AT_FDCWD, path, AUTH_FILE_MAX, &text, &n, &e) != ERR_OK ||
             json_parse(text, n, AUTH_FILE_MAX, &written, "skopeo's file", &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else
        *ret = json_incref(json_object_get(written, "auths"));
    unlink(path);
    rmdir(dir);
    if (text != NULL)
        explicit_bzero(text, n);
    return code;
}

/* ---- the commands ---- */

/* "https://registry.example/" is "registry.example", "docker.io" is it. */
static char *registry_of(const char *word)
{
    const char *from = str_starts(word, "https://")  ? word + 8
                       : str_starts(word, "http://") ? word + 7
                                                     : word;

    return strndup(from, strcspn(from, "/"));
}

static int merge(struct cli *cli, struct auth_file *f, json_t *entries)
{
    json_t *auths = json_object_get(f->config, "auths");

    if (auths == NULL) {
        auths = json_object();
        if (json_object_set_new(f->config, "auths", auths) != 0)
            return cli_error(cli, "out of memory");
    }
    if (!json_is_object(auths) || json_object_update(auths, entries) != 0)
        return cli_error(cli, "%s: auths is not an object: mend or remove the file", f->path);
    return auth_file_write(cli, f);
}

static int login_as(struct cli *cli, const struct cli_image_login *o, struct auth_file *f,
                    const char *registry, char *user, size_t user_size, char *password, size_t password_size)
{
    json_auto_t *entries = NULL;
    int code;

    if (o->username != NULL)
        snprintf(user, user_size, "%s", o->username);
    else if (!ask(cli, "Username", false, user, user_size))
        return EXIT_USAGE;
    if (user[0] == '\0')
        return cli_wrong(cli, "the user may not be empty");
    if (!take_password(cli, o, password, password_size))
        return EXIT_USAGE;
    if (password[0] == '\0')
        return cli_wrong(cli, "the password may not be empty");
    code = check_login(cli, o, f, registry, user, password, &entries);
    if (code == EXIT_OK)
        code = merge(cli, f, entries);
    if (code == EXIT_OK)
        cli_print(cli, "Login to %s succeeded; the node's pulls use it (%s)\n", registry, f->path);
    return code;
}

int cli_image_login(struct cli *cli, const struct cli_image_login *o, const char *word)
{
    str_auto registry = registry_of(word);
    mem_auto char *password = calloc(1, PASSWORD_MAX);
    struct auth_file f = { 0 };
    char user[1024] = "";
    int code;

    if (registry == NULL || password == NULL)
        return cli_error(cli, "out of memory");
    if (registry[0] == '\0' || strchr(word, '@') != NULL)
        return cli_wrong(cli, "\"%s\" is no registry: HOST or HOST:PORT is expected", word);
    if (o->username != NULL && strlen(o->username) >= sizeof(user))
        return cli_wrong(cli, "--username: the name is too long");
    code = auth_file_open(cli, &f, o->authfile);
    if (code == EXIT_OK && access(f.path, F_OK) == 0 && access(f.path, W_OK) != 0) {
        cli_error(cli, "%s: %s", f.path, strerror(errno));
        code = EXIT_DENIED;
    }
    if (code == EXIT_OK)
        code = login_as(cli, o, &f, registry, user, sizeof(user), password, PASSWORD_MAX);
    explicit_bzero(password, PASSWORD_MAX);
    auth_file_done(&f);
    return code;
}

int cli_image_logout(struct cli *cli, const struct cli_image_login *o, const char *word)
{
    str_auto registry = registry_of(word);
    struct auth_file f = { 0 };
    int code;

    if (registry == NULL)
        return cli_error(cli, "out of memory");
    code = auth_file_open(cli, &f, o->authfile);
    if (code == EXIT_OK && json_object_del(json_object_get(f.config, "auths"), registry) != 0) {
        cli_error(cli, "%s has no login to %s", f.path, registry);
        code = EXIT_NOT_FOUND;
    }
    if (code == EXIT_OK)
        code = auth_file_write(cli, &f);
    if (code == EXIT_OK)
        cli_print(cli, "Removed the login to %s from %s\n", registry, f.path);
    auth_file_done(&f);
    return code;
}
