/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_cli/served.h"

#include "tests/unit/agent_cli/man.h"

#include "base/scope.h"

/* ---- usage ----------------------------------------------------------------------------------- */

static void wrong_usage_shows_the_right_one_and_ends_with_2(void **state)
{
    static const struct {
        const char *line, *error;
    } wrong[] = {
        { "", "coracle - a node agent" },
        { "frobnicate", "error: unknown command \"frobnicate\"\n\"coracle help\" lists the commands.\n" },
        { "ps -a", "error: unknown command \"ps\": use \"coracle get pods\"\n\"coracle help\" lists" },
        { "gte", "error: unknown command \"gte\": did you mean \"get\"?\n\"coracle help\" lists" },
        { "get pods --hepl", "error: unknown flag: --hepl (did you mean --help?)\n\nUsage:\n" },
        { "logs web --folow", "error: unknown flag: --folow (did you mean --follow?)\n\nUsage:\n" },
        { "-x get pods",
          "error: -x is before the command: flags of a command must follow it\n\"coracle help\" lists" },
        { "-n", "error: flag needs a value: -n\n" },
        { "-n shop", "error: no command follows shop\n" },
        { "-n shop version", "error: unknown flag: -n\n\n" },
        { "--request-timeout soon get pods", "error: --request-timeout: \"soon\" is not a duration such as" },
        { "get pods --request-timeout -1s", "error: --request-timeout: \"-1s\" is not a duration such as" },
        { "--socket= get pods", "error: --socket: a path is expected\n" },
        { "delete vms vm", "error: the server doesn't have a resource type \"vms\": there are pods" },
        { "delete pod/web cm", "error: \"cm\" has no kind: with KIND/NAME every word is one\n" },
        { "delete web", "error: the server doesn't have a resource type \"web\": there are pods" },
        { "delete pod a --now --grace-period 3", "error: --now and --grace-period cannot be specified" },
        { "label pod a", "error: at least one label is expected: KEY=VALUE, or KEY- to remove it\n\n" },
        { "annotate pod a b", "error: at least one annotation is expected" },
        { "scale deployment/a", "error: the --replicas=N flag is required\n\n" },
        { "scale pod/a --replicas=2", "error: pods have no replicas: deployments, replicasets and" },
        { "rollout deployment/a", "error: rollout deployment/a: restart, status, pause, resume, history or" },
        { "rollout status pod/a", "error: pods have no rollouts: deployments, daemonsets and statefulsets" },
        { "set env pod/a b=c", "error: set env: image is expected; other fields: coracle edit\n\n" },
        { "set image cm/a b=c", "error: configmaps have no containers\n" },
        { "edit", "error: you must specify objects, as KIND/NAME\n\n" },
        { "edit pod a --dry-run=maybe", "error: --dry-run is client, server or none, not \"maybe\"\n" },
        { "get pods -o jsonpath", "error: -o jsonpath needs a template: -o jsonpath={.status.podIP}\n" },
        { "get pod/", "error: the name of a resource may not be empty\n" },
        { "help a b", "error: at most one command can be explained\n\nUsage:\n" },
        { "help frob", "error: unknown command \"frob\"\n\"coracle help\" lists" },
        { "logs svc/web", "error: svc/web: a pod is expected, as NAME or pod/NAME\n" },
        { "exec job/a -- ls", "error: job/a: a pod is expected, as NAME or pod/NAME\n" },
        { "port-forward svc/web 80", "error: svc/web: a pod is expected, as NAME or pod/NAME\n" },
        { "restart node/n", "error: node/n: a pod is expected, as NAME or pod/NAME\n" },
        { "delete pod", "error: names are expected, or --all, or -l SELECTOR\n\n" },
        { "explain pod/a b", "error: you must specify one pod, node, or a field like pod.spec\n\n" },
        { "get pods -o jsonpath={.x", "error: jsonpath: a } is missing: {.x}\n" },
        { "completion tcsh", "error: you must specify bash, zsh or fish\n\n" },
        { "get", "error: you must specify what to get: pods, nodes, configmaps, " },
        { "get pods --frob", "error: unknown flag: --frob\n\n" },
        { "get pods -x", "error: unknown flag: -x\n\n" },
        { "get pods -n", "error: flag needs a value: -n\n\n" },
        { "get pods --namespace", "error: flag needs a value: --namespace\n\n" },
        { "get pods --watch=maybe", "error: invalid value \"maybe\" for --watch: true or false\n\n" },
        { "logs", "error: expected 'logs [-f] [-p] (POD [CONTAINER] | -l LABELS)'\n\n" },
        { "logs a b -c c", "error: only one of -c or an inline CONTAINER is allowed\n\n" },
        { "describe", "error: you must specify the type of resource to describe: pod NAME\n\n" },
        { "explain", "error: you must specify one pod, node, or a field like pod.spec\n\n" },
        { "validate", "error: you must specify files, or - for standard input\n\n" },
        { "image",
          "error: you must specify ls, inspect, history, import, pull, tag, rm, verify, prune, pin, unpin, "
          "export, login or logout\n\n" },
        { "image pull", "error: image pull: wrong number of words, or no such command\n\n" },
        { "version now", "error: unexpected word \"now\"\n\n" },
        { "config view", "error: unexpected argument \"view\"\n\nUsage:\n    coracle config [-o yaml|json]" },
        { "config --frobnicate", "error: unknown flag --frobnicate\n\nUsage:\n    coracle config " },
        { "top jobs", "error: there are pods and node, not \"jobs\"\n\nUsage:\n    coracle top " },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(run(f, wrong[i].line), 2);
        assert_string_equal(f->out, "");
        if (strncmp(f->err, wrong[i].error, strlen(wrong[i].error)) != 0)
            fail_msg("coracle %s: %s", wrong[i].line, f->err);
    }
}

/* ---- what the README types ------------------------------------------------------------------- */

static bool is_flag(const struct cli_command *c, const char *word, size_t n)
{
    const struct cli_flag *const tables[] = { c->flags, cli_common_flags };

    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        for (const struct cli_flag *f = tables[i]; f->name != NULL; f++)
            if (word[1] == '-' ? strlen(f->name) == n - 2 && strncmp(f->name, word + 2, n - 2) == 0
                               : f->letter == word[1])
                return true;
    return false;
}

/* "-it", "--timeout=1m", "pod/web"; a word in capitals would be a placeholder. */
static bool can_be_typed(const struct cli_command *c, const char *word)
{
    const size_t n = strcspn(word, "=");
    char letter[] = "-x";

    if (word[0] != '-' || word[1] == '\0')
        return word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] != '\0';
    if (word[1] == '-')
        return is_flag(c, word, n);
    for (size_t i = 1; word[i] != '\0'; i++) {
        letter[1] = word[i];
        if (!is_flag(c, letter, 2))
            return false;
    }
    return true;
}

/* A line, or what is between backquotes: up to a comment, or to what is behind "--". */
static void check_typed(char *line)
{
    char *rest = line + strlen("coracle "), *word = strsep(&rest, " )");
    const struct cli_command *c = cli_command_find(word);

    if (c == NULL)
        fail_msg("README.md: coracle %s", word);
    while (rest != NULL && (word = strsep(&rest, " )")) != NULL && strcmp(word, "--") != 0 && word[0] != '#')
        if (word[0] != '\0' && !can_be_typed(c, word))
            fail_msg("README.md: coracle %s: %s", c->name, word);
}

static void the_readme_types_what_there_is(void **state)
{
    struct err e = { 0 };
    str_auto text = NULL;
    unsigned n = 0;
    char *at;

    (void)state;
    assert_int_equal(fs_read_at(AT_FDCWD, "README.md", 1 << 20, &text, NULL, &e), ERR_OK);
    for (at = text; (at = strstr(at, "coracle ")) != NULL; at += strlen("coracle ")) {
        const char before = at > text ? at[-1] : '\n';
        str_auto line = NULL;

        if (before != '\n' && before != '`' && before != '(' && before != '/')
            continue;
        line = strndup(at, strcspn(at, "\n`"));
        check_typed(line);
        n++;
    }
    assert_true(n > 25);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void for_each_command(void (*check)(const struct cli_command *c))
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        print_message("%s\n", cli_commands[i]->name);
        check(cli_commands[i]);
    }
}

static void is_complete(const struct cli_command *c)
{
    char start[40];

    snprintf(start, sizeof(start), "%s ", c->name);
    assert_int_equal(strncmp(c->usage, start, strlen(start) - (c->usage[strlen(c->name)] == '\0')), 0);
    assert_true(c->summary[0] != '\0' && strlen(c->summary) < 60);
    assert_int_equal(c->about[strlen(c->about) - 1], '.');
    assert_null(strchr(c->about, '\n'));
    assert_true(c->words[0] != '\0');
    assert_non_null(c->run);
    assert_non_null(c->examples[0].line);
    assert_ptr_equal(cli_command_find(c->name), c);
    for (const struct cli_example *x = c->examples; x->line != NULL; x++)
        assert_true(x->what[0] != '\0' && strstr(x->line, "coracle") != NULL);
    assert_non_null(c->exits[0].when);
    assert_non_null(c->exits[1].when);
    for (const struct cli_exit *x = c->exits; x[1].when != NULL; x++)
        assert_true(x[0].code < x[1].code);
    for (const struct cli_flag *f = c->flags; f->name != NULL; f++) {
        assert_true(f->help != NULL && f->help[0] != '\0');
        assert_int_equal(f->type != FLAG_SWITCH, f->value != NULL);
    }
}

static void every_command_says_what_it_is_how_it_is_used_and_how_it_ends(void **state)
{
    (void)state;
    for_each_command(is_complete);
}

static void has_names_of_its_own(const struct cli_command *c)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        assert_true(cli_commands[i] == c || strcmp(cli_commands[i]->name, c->name) != 0);
    for (const struct cli_flag *f = c->flags; f->name != NULL; f++)
        for (const struct cli_flag *g = f + 1; g->name != NULL; g++) {
            assert_string_not_equal(f->name, g->name);
            assert_true(f->letter == 0 || f->letter != g->letter);
        }
}

static void commands_and_flags_have_names_of_their_own(void **state)
{
    (void)state;
    for_each_command(has_names_of_its_own);
}

static void refers_to_commands(const struct cli_command *c)
{
    str_auto names = strdup(c->see_also != NULL ? c->see_also : "");
    char *save = NULL;

    for (char *name = strtok_r(names, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save))
        if (cli_command_find(name) == NULL)
            fail_msg("see also %s", name);
}

static void commands_that_are_referred_to_exist(void **state)
{
    (void)state;
    for_each_command(refers_to_commands);
}

static void every_command_has_help(void **state)
{
    struct fixture *f = *state;
    str_auto flag = NULL;
    char line[40];

    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (cli_commands[i] == &command_run || cli_commands[i]->hidden)
            continue;
        snprintf(line, sizeof(line), "%s --help", cli_commands[i]->name);
        assert_int_equal(run(f, line), 0);
        assert_string_equal(f->err, "");
        assert_non_null(strstr(f->out, "\nUsage:\n    coracle "));
        assert_non_null(strstr(f->out, "--socket PATH"));
        assert_non_null(strstr(f->out, "\nExamples:\n    # "));
        assert_non_null(strstr(f->out, "\nExit codes:\n    "));
        free(flag);
        flag = strdup(f->out);
        snprintf(line, sizeof(line), "help %s", cli_commands[i]->name);
        expect(f, line, 0, flag, "");
    }
    assert_int_equal(run(f, "help"), 0);
    assert_non_null(strstr(f->out, "    coracle logs              print a container's log\n"));
    assert_null(strstr(f->out, "__complete"));
    for (const struct cli_exit *x = cli_exits; x->when != NULL; x++) {
        snprintf(line, sizeof(line), "\n    %d   %.30s", x->code, x->when);
        assert_non_null(strstr(f->out, line));
    }
    assert_int_equal(run(f, "-h"), 0);
    expect(f, "--version", 0, "coracle v" CORACLE_VERSION "\n", "");
}

/* ---- manual pages ---------------------------------------------------------------------------- */

/* The output of a shell command line, its standard error with it. */
static char *shell(const char *command)
{
    FILE *p = popen(command, "re");
    struct buf out = BUF_INIT(1u << 20);
    char piece[4096];
    size_t n;

    assert_non_null(p);
    while ((n = fread(piece, 1, sizeof(piece), p)) > 0)
        buf_add(&out, piece, n);
    pclose(p);
    return buf_detach(&out);
}

static char *man(const char *page)
{
    buf_auto text = BUF_INIT(4u << 20);

    assert_true(man_page(page, &text));
    return buf_detach(&text);
}

static void manual_pages_format_without_a_warning(void **state)
{
    static const char *const pages[] = { "coracle.1", "coracle.8", "coracle-config.5",
                                         "coracle-annotations.5" };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        char line[200], path[100];
        str_auto page = man(pages[i]);
        str_auto said = NULL;
        FILE *out;

        snprintf(path, sizeof(path), "%s/%s", f->dir, pages[i]);
        out = fopen(path, "we");
        fputs(page, out);
        fclose(out);
        snprintf(line, sizeof(line), "mandoc -Tlint -Wstyle %s 2>&1; echo $?", path);
        said = shell(line);
        assert_string_equal(said, "0\n");
    }
}

static void manual_pages_have_all_commands_flags_and_keys(void **state)
{
    str_auto clients = man("coracle.1");
    str_auto daemon = man("coracle.8");
    str_auto keys = man("coracle-config.5");
    str_auto annotations = man("coracle-annotations.5");

    (void)state;
    assert_non_null(strstr(annotations, "\n.B \"coracle.dev/on\\-config\\-change\"\n"));
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        str_auto head = str_printf("\n.SS \"%s\"\n", cli_commands[i]->name);
        char *hyphen = strchr(head, '-');
        str_auto escaped =
            hyphen != NULL ? str_printf("%.*s\\%s", (int)(hyphen - head), head, hyphen) : strdup(head);

        if ((strstr(clients, escaped) != NULL) == cli_commands[i]->hidden)
            fail_msg("%s", cli_commands[i]->name);
    }
    assert_non_null(strstr(daemon, "\\fB\\-\\-pod\\-manifest\\-path\\fR \\fI"));
    assert_non_null(strstr(keys, "\n.B \"staticPodPath\"\n"));
}

/* What `make install` installs is in the repository: a cross build could not run the program that prints it.
 */
static void the_files_to_install_are_what_the_program_prints(void **state)
{
    static const struct {
        const char *line, *path;
    } files[] = {
        { "coracle.1", "docs/man/coracle.1.in" },
        { "coracle.8", "docs/man/coracle.8.in" },
        { "coracle-config.5", "docs/man/coracle-config.5.in" },
        { "coracle-annotations.5", "docs/man/coracle-annotations.5.in" },
        { "completion bash", "systemd/completion.bash" },
        { "completion zsh", "systemd/completion.zsh" },
        { "completion fish", "systemd/completion.fish" },
    };
    static const char version[] = "\"coracle " CORACLE_VERSION "\"";
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_auto text = NULL;
        str_auto want = NULL;
        str_auto have = NULL;
        struct err e = { 0 };
        char *at;

        if (strncmp(files[i].line, "coracle", strlen("coracle")) == 0) {
            text = man(files[i].line);
        } else {
            assert_int_equal(run(f, files[i].line), 0);
            text = strdup(f->out);
        }
        at = strstr(text, version);
        want = at == NULL
                   ? strdup(text)
                   : str_printf("%.*s\"coracle @VERSION@\"%s", (int)(at - text), text, at + strlen(version));
        if (getenv("WRITE_SAMPLES") != NULL) {
            FILE *out = fopen(files[i].path, "we");

            assert_non_null(out);
            assert_true(fputs(want, out) >= 0);
            assert_int_equal(fclose(out), 0);
        }
        if (fs_read_at(AT_FDCWD, files[i].path, 1 << 20, &have, NULL, &e) != ERR_OK ||
            strcmp(have, want) != 0)
            fail_msg("%s is out of date; `make samples` writes it again", files[i].path);
    }
}

/* ---- completion ------------------------------------------------------------------------------ */

static void words_are_completed_from_the_tables(void **state)
{
    struct fixture *f = *state;

    expect(f, "__complete -n default get ev", 0, "evictions\nevents\n", "");
    expect(f, "__complete -A --out", 0, "--output\tjson, yaml or another format of the command\n", "");
    expect(f, "__complete --output=y", 0, "--output=yaml\n", "");
    expect(f, "__complete --so", 0, "--socket\tthe daemon's socket (" CLI_SOCKET ", or CORACLE_SOCKET)\n",
           "");
    expect(f, "__complete expl", 0, "explain\tshow why a pod is not running, and what it is waiting for\n",
           "");
    expect(f, "__complete get ev", 0, "evictions\nevents\n", "");
    expect(f, "__complete get pods --no", 0, "--no-headers\tdo not print headers\n", "");
    expect(f, "__complete get pods -o j", 0, "json\njsonpath=\njsonpath-file=\n", "");
    expect(f, "__complete get pods --output=y", 0, "--output=yaml\n", "");
    expect(f, "__complete image r", 0, "rm\n", "");
    expect(f, "__complete validate x", 0, ":files\n", "");
    expect(f, "__complete validate a.yaml x", 0, ":files\n", "");
    expect(f, "__complete help lo", 0, "logs\tprint a container's log\n", "");
    expect(f, "__complete run --pod-man", 0,
           "--pod-manifest-path\tfolder of manifests: Pods, and the ConfigMaps, Secrets, PriorityClasses "
           "and RuntimeClasses they use\n",
           "");
    expect(f, "__complete nonsense x", 0, "", "");
    expect(f, "__complete exec web -- --", 0, "", ""); /* the command's own */
}

static void names_are_completed_by_the_daemon(void **state)
{
    struct fixture *f = *state;

    expect(f, "__complete describe pod w", 0, "web\n", "");
    expect(f, "__complete describe pod web d", 0, "db\n", "");
    expect(f, "__complete logs -n a z", 0, "z\n", "");
    expect(f, "__complete logs --namespace d", 0, "default\n", "");
    expect(f, "__complete logs db c", 0, "c\n", "");
    expect(f, "__complete exec db -c c", 0, "c\n", "");
    expect(f, "__complete image rm docker", 0, "docker.io/library/busybox:1\n:files\n", "");
    expect(f, "__complete --socket /nonexistent logs w", 0, "", "");
    expect(f, "__complete -n a logs z", 0, "z\n", "");
    expect(f, "__complete -n d", 0, "default\n", "");
    expect(f, "__complete --namespace=d", 0, "--namespace=default\n", "");
    expect(f, "__complete wait pod/w", 0, "pod/web\n", "");
    expect(f, "__complete wait pod/web po/d", 0, "po/db\n", "");
    expect(f, "__complete get pod/w", 0, "pod/web\n", "");
    expect(f, "__complete get cm/se", 0, "cm/settings\n", "");
    expect(f, "__complete wait cm/", 0, "", "");
    expect(f, "__complete exec web pod/", 0, "", "");
    expect(f, "__complete events --for pod/", 0, "pod/db\npod/web\n", "");
    expect(f, "__complete events --for=node/", 0, "--for=node/n1\n", "");
}

static void put(struct fixture *f, const char *name, const char *text)
{
    char path[100];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    out = fopen(path, "we");
    fputs(text, out);
    fclose(out);
}

/* What bash would offer for a line, with a program "coracle" that asks as ours does. */
static void expect_bash(struct fixture *f, const char *line, const char *answer, const char *want)
{
    str_auto command = NULL;
    str_auto got = NULL;

    assert_int_equal(run(f, "completion bash"), 0);
    put(f, "completion", f->out);
    command = str_printf("bash -c '. %s/completion; coracle() { [ \"$1\" = __complete ] && printf -- \"%s\"; "
                         "}; COMP_LINE=\"%s\"; "
                         "COMP_POINT=${#COMP_LINE}; _coracle; echo \"${COMPREPLY[*]}\"' 2>&1",
                         f->dir, answer, line);
    got = shell(command);
    assert_string_equal(got, want);
}

static void bash_offers_what_stands_behind_its_own_breaks(void **state)
{
    struct fixture *f = *state;

    expect_bash(f, "coracle get pods --output=y", "--output=yaml\\n", "yaml\n");
    expect_bash(f, "coracle image rm localhost/b:", "localhost/b:1\\nlocalhost/b:2\\n", "1 2\n");
    expect_bash(f, "coracle lo", "logs\\ta log\\n", "logs\n");
    expect_bash(f, "coracle validate ", ":files\\n", "\n");
}

/*
 * What zsh makes of a line when the tab key is hit: a zsh types it into another one, on a terminal of its
 * own. Each program "coracle" answers with what the file `answer` says.
 */
static const char zsh_script[] =
    "zmodload zsh/zpty || exit 3\n"
    "export TERM=dumb COLUMNS=200\n"
    "zpty z zsh -f -i\n"
    "zpty -w z \"unset zle_bracketed_paste; unsetopt beep; PS1='> '; cd $1; autoload -U compinit; \"\\\n"
    "\"compinit -u -D; coracle() { [[ \\$1 == __complete ]] && cat answer || print -r -- GOT: \\$* }; source "
    "./completion; echo "
    "RE''ADY\"\n"
    "zpty -r z out '*READY*> '\n"
    "zpty -n -w z \"$2\"$'\\t'${(g::)3}\n"
    "zpty -r z out \"*$4\"\n"
    "print -r -- ${4} came\n"
    "zpty -d z\n";

/* `more`: typed after the tab; with a line break what the program gets is seen. */
static void expect_zsh(struct fixture *f, const char *line, const char *more, const char *answer,
                       const char *want)
{
    str_auto command = NULL;
    str_auto got = NULL;
    str_auto came = str_printf("%s came\n", want);

    assert_int_equal(run(f, "completion zsh"), 0);
    put(f, "completion", f->out);
    put(f, "script", zsh_script);
    put(f, "answer", answer);
    command =
        str_printf("timeout 60 zsh -f %s/script %s '%s' '%s' '%s' 2>&1", f->dir, f->dir, line, more, want);
    got = shell(command);
    assert_string_equal(got, came);
}

static void zsh_offers_the_same(void **state)
{
    struct fixture *f = *state;

    if (system("zsh -f -c 'zmodload zsh/zpty' 2> /dev/null") != 0) {
        print_message("skipped: there is no zsh\n");
        skip();
    }
    expect_zsh(f, "coracle lo", "x\\n", "logs\ta log\n", "GOT: logs x");
    expect_zsh(f, "coracle get pods --output=y", "x\\n", "--output=yaml\n", "GOT: get pods --output=yaml x");
    expect_zsh(f, "coracle image rm l", "x\\n", "localhost/b:1\n", "GOT: image rm localhost/b:1 x");
    expect_zsh(f, "coracle help ex", "", "exec\trun a command\nexplain\twhy: what for\n",
               "explain  -- why: what for");
    expect_zsh(f, "coracle validate ans", "x\\n", ":files\n", "GOT: validate answer x");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(wrong_usage_shows_the_right_one_and_ends_with_2),
        cmocka_unit_test(every_command_says_what_it_is_how_it_is_used_and_how_it_ends),
        cmocka_unit_test(commands_and_flags_have_names_of_their_own),
        cmocka_unit_test(commands_that_are_referred_to_exist),
        T(the_readme_types_what_there_is),
        T(every_command_has_help),
        T(manual_pages_format_without_a_warning),
        T(the_files_to_install_are_what_the_program_prints),
        T(manual_pages_have_all_commands_flags_and_keys),
        T(words_are_completed_from_the_tables),
        T(names_are_completed_by_the_daemon),
        T(zsh_offers_the_same),
        T(bash_offers_what_stands_behind_its_own_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
