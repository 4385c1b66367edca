/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of certificates, as kubelet leaves it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kube/credentials/pki.h"
#include "base/buf.h"
#include "base/files/fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN EC PRIVATE KEY-----\nBBBB\n-----END EC PRIVATE KEY-----\n"

static int setup(void **state)
{
    char path[] = "/tmp/test-pki.XXXXXX";

    *state = mkdtemp(path) != NULL ? str_printf("%s/pki", path) : NULL;
    return *state != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct err e = { 0 };
    char *path = *state;

    *strrchr(path, '/') = '\0';
    if (fs_remove_tree(AT_FDCWD, path, &e) != ERR_OK)
        return -1;
    free(path);
    return 0;
}

static char *pki_file(const char *dir, const char *name)
{
    str_auto path = str_printf("%s/%s", dir, name);
    struct err e = { 0 };
    char *text = NULL;

    if (fs_read_at(AT_FDCWD, path, 65536, &text, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return text;
}

static unsigned mode_of(const char *dir, const char *name)
{
    str_auto path = str_printf("%s/%s", dir, name);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void a_client_certificate_is_a_dated_file_behind_a_link_with_an_absolute_target(void **state)
{
    const char *dir = *state;
    str_auto link = str_printf("%s/kubelet-client-current.pem", dir);
    str_auto start = str_printf("%s/kubelet-client-2", dir);
    str_auto text = NULL;
    char target[300] = "";
    struct err e = { 0 };

    assert_int_equal(pki_write(dir, "client", CERTIFICATE, KEY, &e), ERR_OK);
    text = pki_file(dir, "kubelet-client-current.pem");
    assert_string_equal(text, CERTIFICATE KEY);
    assert_true(readlink(link, target, sizeof(target) - 1) > 0);
    assert_true(str_starts(target, start) && str_ends(target, ".pem"));
    assert_int_equal(strlen(target), strlen(dir) + strlen("/kubelet-client-2026-01-02-03-04-05.pem"));
    assert_int_equal(mode_of(dir, "kubelet-client-current.pem"), 0600);
    assert_int_equal(pki_write(dir, "client", CERTIFICATE CERTIFICATE, KEY, &e),
                     ERR_OK); /* again: replaced */
    free(take_ptr(&text));
    text = pki_file(dir, "kubelet-client-current.pem");
    assert_string_equal(text, CERTIFICATE CERTIFICATE KEY);
}

static void a_key_waits_until_its_certificate_comes(void **state)
{
    const char *dir = *state;
    char *key;
    struct err e = { 0 };

    assert_null(pki_waiting_key(dir));
    assert_int_equal(pki_write(dir, "client", NULL, KEY, &e), ERR_OK);
    assert_int_equal(mode_of(dir, "kubelet-client.key.tmp"), 0600);
    key = pki_waiting_key(dir);
    assert_string_equal(key, KEY);
    free(key);
    assert_int_equal(pki_write(dir, "client", CERTIFICATE, KEY, &e), ERR_OK);
    assert_null(pki_waiting_key(dir));
}

static void the_pair_of_the_nodes_port_is_chosen_as_by_kubelet(void **state)
{
    const char *dir = *state;
    char *certificate = NULL, *key = NULL;
    struct err e = { 0 };

    assert_int_equal(pki_read_serving(dir, "", "", true, &certificate, &key, &e), ERR_NOT_FOUND);
    e = (struct err){ 0 };
    assert_int_equal(pki_write(dir, "self-signed", CERTIFICATE, KEY, &e), ERR_OK);
    assert_int_equal(mode_of(dir, "kubelet.crt"), 0644);
    assert_int_equal(mode_of(dir, "kubelet.key"), 0600);
    assert_int_equal(pki_read_serving(dir, "", "", true, &certificate, &key, &e), ERR_OK);
    assert_string_equal(certificate, CERTIFICATE);
    free(certificate);
    free(key);
    assert_int_equal(pki_write(dir, "server", CERTIFICATE CERTIFICATE, KEY, &e), ERR_OK);
    assert_int_equal(pki_read_serving(dir, "", "", true, &certificate, &key, &e), ERR_OK);
    assert_string_equal(certificate, CERTIFICATE CERTIFICATE KEY);
    free(certificate);
    free(key);
    assert_int_equal(pki_read_serving(dir, "", "", false, &certificate, &key, &e), ERR_OK);
    assert_string_equal(certificate, CERTIFICATE);
    free(certificate);
    free(key);
}

static void what_is_no_certificate_is_refused_and_nothing_is_written(void **state)
{
    const char *dir = *state;
    str_auto current = str_printf("%s/kubelet-client-current.pem", dir);
    struct err e = { 0 };

    assert_int_equal(pki_write(dir, "client", "hello", KEY, &e), ERR_INVALID);
    assert_string_equal(e.text, "client certificate: it is not a PEM certificate");
    e = (struct err){ 0 };
    assert_int_equal(pki_write(dir, "server", NULL, KEY, &e), ERR_INVALID);
    e = (struct err){ 0 };
    assert_int_equal(pki_write(dir, "client", CERTIFICATE, CERTIFICATE, &e), ERR_INVALID);
    assert_string_equal(e.text, "client certificate: its key is not a PEM private key");
    e = (struct err){ 0 };
    assert_int_equal(pki_write(dir, "ca", CERTIFICATE, KEY, &e), ERR_INVALID);
    assert_string_equal(e.text, "certificate: unknown usage \"ca\"");
    assert_int_equal(access(dir, F_OK), -1);
}

/* A file in the link's place may be the only copy of a key. */
static void a_current_that_is_no_link_stays(void **state)
{
    const char *dir = *state;
    str_auto current = str_printf("%s/kubelet-client-current.pem", dir);
    str_auto text = NULL;
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(dir, 0755, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, current, "mine", 4, 0600, false, &e), ERR_OK);
    assert_int_equal(pki_write(dir, "client", CERTIFICATE, KEY, &e), ERR_PRECONDITION);
    assert_true(str_ends(e.text, "/kubelet-client-current.pem is not a symlink"));
    text = pki_file(dir, "kubelet-client-current.pem");
    assert_string_equal(text, "mine");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_client_certificate_is_a_dated_file_behind_a_link_with_an_absolute_target),
        TEST(a_key_waits_until_its_certificate_comes),
        TEST(the_pair_of_the_nodes_port_is_chosen_as_by_kubelet),
        TEST(what_is_no_certificate_is_refused_and_nothing_is_written),
        TEST(a_current_that_is_no_link_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
