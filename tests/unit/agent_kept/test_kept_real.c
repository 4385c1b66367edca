/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of kept objects, with the real coracle-seal of the build. */
#include "tests/unit/base/helper.h"

#include "agent/kept/kept.h"
#include "agent/kept/kept_file.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"

#include <dirent.h>

#define PASSWORD "a-password-in-plain-text"

struct folder {
    uv_loop_t loop;
    char dir[64], kept_dir[80], creds[80], program[4096];
    struct kept *k;
    struct buf heard;            /* "name=text\n" */
    const char *config, *secret; /* content; NULL: not known */
    unsigned loads;
};

static void on_object(const char *name, bool sealed, const char *text, size_t n, void *arg)
{
    struct folder *f = arg;

    buf_addf(&f->heard, "%s%s=%.*s\n", name, sealed ? "*" : "", (int)n, text);
}

static void on_loaded(void *arg)
{
    struct folder *f = arg;

    f->loads++;
}

static bool content(const char *name, struct buf *ret, void *arg)
{
    struct folder *f = arg;
    const char *text = str_starts(name, "Secret/") ? f->secret : f->config;

    buf_adds(ret, text != NULL ? text : "");
    return text != NULL;
}

static void open_it(struct folder *f)
{
    const struct kept_options o = { .loop = &f->loop,
                                    .dir = f->kept_dir,
                                    .program = f->program,
                                    .systemd_creds = f->creds,
                                    .cgroup_fd = -1,
                                    .on_object = on_object,
                                    .on_loaded = on_loaded,
                                    .content = content,
                                    .arg = f };
    struct err e = { 0 };

    assert_int_equal(kept_open(&f->k, &o, &e), ERR_OK);
    f->loads = 0;
    buf_reset(&f->heard);
    kept_load(f->k);
    while (f->loads == 0)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static void close_it(struct folder *f)
{
    kept_close(f->k);
    while (kept_busy(f->k))
        uv_run(&f->loop, UV_RUN_ONCE);
    kept_free(take_ptr(&f->k));
}

static int setup(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    ssize_t n = readlink("/proc/self/exe", f->program, sizeof(f->program) - 32);
    char *tests;

    f->program[n > 0 ? n : 0] = '\0';
    tests = strstr(f->program, "/tests/unit/");
    if (tests == NULL)
        return -1;
    strcpy(tests, "/coracle-seal");
    strcpy(f->dir, "/tmp/coracle-unit-XXXXXX");
    if (mkdtemp(f->dir) == NULL)
        return -1;
    snprintf(f->kept_dir, sizeof(f->kept_dir), "%s/kept", f->dir);
    snprintf(f->creds, sizeof(f->creds), "%s/systemd-creds", f->dir);
    buf_init(&f->heard, 1 << 20);
    uv_loop_init(&f->loop);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct folder *f = *state;
    struct err e = { 0 };
    int ret;

    if (f->k != NULL)
        close_it(f);
    proc_forget(&f->loop);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    ret = uv_loop_close(&f->loop);
    if (fs_remove_tree(AT_FDCWD, f->dir, &e) != ERR_OK)
        ret = -1;
    buf_done(&f->heard);
    free(f);
    return ret;
}

static void need_program(const struct folder *f)
{
    if (access(f->program, X_OK) != 0)
        SKIP("coracle-seal is not built");
}

static char *path_of(const struct folder *f, const char *name)
{
    char file[KEPT_FILE_SIZE];

    kept_file_name(name, file);
    return str_printf("%s/%s", f->kept_dir, file);
}

static bool is_there(const struct folder *f, const char *name)
{
    str_auto path = path_of(f, name);

    return access(path, F_OK) == 0;
}

/* Until the file is there, or gone. */
static void wait_file(struct folder *f, const char *name, bool there)
{
    uint64_t end = uv_hrtime() + 15000000000u;

    while (is_there(f, name) != there) {
        assert_true(uv_hrtime() < end);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void write_both(struct folder *f)
{
    f->config = "{\"k\":1}";
    f->secret = "{\"p\":\"" PASSWORD "\"}";
    kept_changed(f->k, "ConfigMap/a/c", false);
    kept_changed(f->k, "Secret/a/s", true);
    wait_file(f, "ConfigMap/a/c", true);
    wait_file(f, "Secret/a/s", true);
}

static char *text_of(const char *path, size_t *ret_n)
{
    struct err e = { 0 };
    char *text = NULL;

    if (fs_read_at(AT_FDCWD, path, KEPT_FILE_MAX, &text, ret_n, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return text;
}

static unsigned count_aside(const struct folder *f)
{
    DIR *d = opendir(f->kept_dir);
    unsigned n = 0;

    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        n += damaged_file_is(entry->d_name);
    closedir(d);
    return n;
}

static void explain_has(const struct folder *f, const char *text)
{
    json_auto_t *o = kept_explain(f->k);

    if (strstr(json_str(o, "detail"), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, json_str(o, "detail"));
}

static void what_is_kept_is_read_again_and_secrets_are_sealed(void **state)
{
    struct folder *f = *state;
    str_auto path = path_of(f, "Secret/a/s");
    str_auto text = NULL;
    struct stat st;
    size_t n;

    need_program(f);
    open_it(f);
    explain_has(f, "0 on the disk; nothing secret among them yet");
    write_both(f);
    text = text_of(path, &n);
    assert_null(memmem(text, n, PASSWORD, strlen(PASSWORD)));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(f->kept_dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    explain_has(f, "a key that only root may read");
    close_it(f);
    open_it(f);
    assert_non_null(strstr(f->heard.p, "ConfigMap/a/c={\"k\":1}\n"));
    assert_non_null(strstr(f->heard.p, "Secret/a/s*={\"p\":\"" PASSWORD "\"}\n"));
    explain_has(f, "2 on the disk");
}

static void what_nobody_needs_goes(void **state)
{
    struct folder *f = *state;

    need_program(f);
    open_it(f);
    write_both(f);
    kept_drop(f->k, "Secret/a/s");
    wait_file(f, "Secret/a/s", false);
    assert_true(is_there(f, "ConfigMap/a/c"));
}

static bool wants_secrets(const char *name, void *arg)
{
    (void)arg;
    return str_starts(name, "Secret/");
}

static void a_sweep_drops_what_an_earlier_run_left(void **state)
{
    struct folder *f = *state;

    need_program(f);
    open_it(f);
    write_both(f);
    close_it(f);
    open_it(f);
    kept_sweep(f->k, wants_secrets);
    wait_file(f, "ConfigMap/a/c", false);
    assert_true(is_there(f, "Secret/a/s"));
}

static void a_file_in_the_place_of_another_is_set_aside(void **state)
{
    struct folder *f = *state;
    str_auto from = path_of(f, "Secret/a/s");
    str_auto to = path_of(f, "Secret/a/other");

    need_program(f);
    open_it(f);
    write_both(f);
    close_it(f);
    assert_int_equal(rename(from, to), 0);
    open_it(f);
    assert_null(strstr(f->heard.p, "Secret"));
    assert_int_equal(count_aside(f), 1);
}

/* Also its head says so: only what is sealed tells. */
static void a_sealed_text_under_another_name_is_set_aside(void **state)
{
    struct folder *f = *state;
    str_auto from = path_of(f, "Secret/a/s");
    str_auto to = path_of(f, "Secret/a/t");
    str_auto text = NULL;
    struct err e = { 0 };
    size_t n;

    need_program(f);
    open_it(f);
    write_both(f);
    close_it(f);
    text = text_of(from, &n);
    *(char *)memmem(text, n, "a/s\n", 4) = 'a';
    ((char *)memmem(text, n, "a/s\n", 4))[2] = 't';
    assert_int_equal(fs_replace_at(AT_FDCWD, to, text, n, 0600, false, &e), ERR_OK);
    assert_int_equal(unlink(from), 0);
    open_it(f);
    assert_null(strstr(f->heard.p, "Secret"));
    assert_int_equal(count_aside(f), 1);
    assert_false(is_there(f, "Secret/a/t"));
}

static void another_key_opens_nothing(void **state)
{
    struct folder *f = *state;
    str_auto path = str_printf("%s/key", f->kept_dir);
    char other[32] = "another key of the right size..";
    struct err e = { 0 };

    need_program(f);
    open_it(f);
    write_both(f);
    close_it(f);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, other, sizeof(other), 0600, false, &e), ERR_OK);
    open_it(f);
    assert_string_equal(f->heard.p, "ConfigMap/a/c={\"k\":1}\n");
    assert_int_equal(count_aside(f), 1);
}

static void without_its_key_the_rest_is_read(void **state)
{
    struct folder *f = *state;
    str_auto path = str_printf("%s/key", f->kept_dir);

    need_program(f);
    open_it(f);
    write_both(f);
    close_it(f);
    assert_int_equal(unlink(path), 0);
    open_it(f);
    assert_string_equal(f->heard.p, "ConfigMap/a/c={\"k\":1}\n");
    explain_has(f, "the file of the key is missing in ");
    assert_int_equal(count_aside(f), 0);
    /* The next content is sealed with a new one. */
    kept_changed(f->k, "Secret/a/s", true);
    while (access(path, F_OK) != 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    f->secret = "{\"p\":\"next\"}";
    close_it(f);
}

static void script_creds(const struct folder *f, const char *script)
{
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(AT_FDCWD, f->creds, script, strlen(script), 0755, false, &e), ERR_OK);
}

static void a_tpm_that_refuses_is_asked_again_and_then_replaced(void **state)
{
    struct folder *f = *state;
    str_auto tpm = str_printf("%s/key.tpm", f->kept_dir);
    str_auto plain = str_printf("%s/key", f->kept_dir);
    str_auto before = NULL;
    size_t n;

    need_program(f);
    script_creds(f, "#!/bin/sh\ncase $1 in has-tpm2) exit 0 ;; *) exec cat ;; esac\n");
    open_it(f);
    write_both(f);
    explain_has(f, "a key that only this machine's TPM gives");
    assert_int_equal(access(plain, F_OK), -1);
    close_it(f);
    script_creds(f, "#!/bin/sh\necho 'no such PCR' >&2; exit 1\n");
    open_it(f);
    assert_string_equal(f->heard.p, "ConfigMap/a/c={\"k\":1}\n");
    explain_has(f, "the TPM does not give the key: systemd-creds: exit status 1: no such PCR");
    assert_int_equal(count_aside(f), 0);
    before = text_of(tpm, &n);
    /* Somebody says what the Secret is; there is no TPM any more: a new key, readable for root. */
    f->secret = "{\"p\":\"next\"}";
    kept_changed(f->k, "Secret/a/s", true);
    while (access(plain, F_OK) != 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    while (access(tpm, F_OK) == 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    for (uint64_t end = uv_hrtime() + 1500000000u; uv_hrtime() < end;)
        uv_run(&f->loop, UV_RUN_ONCE);
    close_it(f);
    open_it(f);
    assert_non_null(strstr(f->heard.p, "Secret/a/s*={\"p\":\"next\"}\n"));
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(what_is_kept_is_read_again_and_secrets_are_sealed),
        WITH(what_nobody_needs_goes),
        WITH(a_sweep_drops_what_an_earlier_run_left),
        WITH(a_file_in_the_place_of_another_is_set_aside),
        WITH(a_sealed_text_under_another_name_is_set_aside),
        WITH(another_key_opens_nothing),
        WITH(without_its_key_the_rest_is_read),
        WITH(a_tpm_that_refuses_is_asked_again_and_then_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
