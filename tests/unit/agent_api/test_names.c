/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "agent/api/manifest/internal.h"

static void good(enum api_format format, const char *text)
{
    const char *rule = api_format_rule(format, text);

    if (rule != NULL)
        fail_msg("\"%s\" %s", text, rule);
}

static void bad(enum api_format format, const char *text)
{
    if (api_format_rule(format, text) == NULL)
        fail_msg("\"%s\" should be refused", text);
}

static const char *repeat(char ch, size_t n)
{
    static char text[5000];

    memset(text, ch, n);
    text[n] = '\0';
    return text;
}

static void dns_labels_and_subdomains(void **state)
{
    (void)state;
    good(API_FMT_LABEL, "a");
    good(API_FMT_LABEL, "0-9");
    good(API_FMT_LABEL, repeat('a', 63));
    bad(API_FMT_LABEL, repeat('a', 64));
    bad(API_FMT_LABEL, "");
    bad(API_FMT_LABEL, "-a");
    bad(API_FMT_LABEL, "a-");
    bad(API_FMT_LABEL, "A");
    bad(API_FMT_LABEL, "a.b");
    bad(API_FMT_LABEL, "a_b");
    bad(API_FMT_LABEL, "a\n");
    good(API_FMT_SUBDOMAIN, "a.b-c.0");
    good(API_FMT_SUBDOMAIN, repeat('a', 253)); /* the parts have no limit of their own */
    bad(API_FMT_SUBDOMAIN, repeat('a', 254));
    bad(API_FMT_SUBDOMAIN, "a..b");
    bad(API_FMT_SUBDOMAIN, ".a");
    bad(API_FMT_SUBDOMAIN, "a.");
    bad(API_FMT_SUBDOMAIN, "a.-b");
}

static void label_keys_and_values(void **state)
{
    (void)state;
    good(API_FMT_LABEL_KEY, "A_b.c-9");
    good(API_FMT_LABEL_KEY, "example.com/Name");
    bad(API_FMT_LABEL_KEY, "Example.com/name");
    bad(API_FMT_LABEL_KEY, "/name");
    bad(API_FMT_LABEL_KEY, "a/b/c");
    bad(API_FMT_LABEL_KEY, "a/");
    bad(API_FMT_LABEL_KEY, "");
    bad(API_FMT_LABEL_KEY, "-a");
    bad(API_FMT_LABEL_KEY, repeat('a', 64));
    good(API_FMT_LABEL_VALUE, "");
    good(API_FMT_LABEL_VALUE, "1.2_3-X");
    bad(API_FMT_LABEL_VALUE, "_a");
    bad(API_FMT_LABEL_VALUE, "a b");
    bad(API_FMT_LABEL_VALUE, repeat('a', 64));
}

static void data_keys_and_environment_names(void **state)
{
    (void)state;
    good(API_FMT_DATA_KEY, ".dockercfg");
    good(API_FMT_DATA_KEY, "A_b-c.D");
    bad(API_FMT_DATA_KEY, ".");
    bad(API_FMT_DATA_KEY, "..");
    bad(API_FMT_DATA_KEY, "..a");
    bad(API_FMT_DATA_KEY, "a/b");
    bad(API_FMT_DATA_KEY, "");
    bad(API_FMT_DATA_KEY, repeat('a', 254));
    good(API_FMT_ENV_NAME, "a b!");
    good(API_FMT_ENV_NAME, "1digit");
    bad(API_FMT_ENV_NAME, "a=b");
    bad(API_FMT_ENV_NAME, "a\tb");
    bad(API_FMT_ENV_NAME, "\xc3\xa9");
    bad(API_FMT_ENV_NAME, "");
}

static void ports_headers_addresses(void **state)
{
    (void)state;
    good(API_FMT_PORT_NAME, "http");
    good(API_FMT_PORT_NAME, "0a-1");
    bad(API_FMT_PORT_NAME, "123");
    bad(API_FMT_PORT_NAME, "a--b");
    bad(API_FMT_PORT_NAME, "-a");
    bad(API_FMT_PORT_NAME, "a-");
    bad(API_FMT_PORT_NAME, "abcdefghijklmnop");
    bad(API_FMT_PORT_NAME, "Http");
    good(API_FMT_HEADER_NAME, "X-Forwarded-For");
    bad(API_FMT_HEADER_NAME, "X_A");
    bad(API_FMT_HEADER_NAME, "a b");
    good(API_FMT_IP, "10.0.0.1");
    good(API_FMT_IP, "::1");
    bad(API_FMT_IP, "10.0.0");
    bad(API_FMT_IP, "10.0.0.256");
    bad(API_FMT_IP, "host");
}

static void search_domains_and_sysctls(void **state)
{
    (void)state;
    good(API_FMT_SEARCH_DOMAIN, ".");
    good(API_FMT_SEARCH_DOMAIN, "a.example.");
    good(API_FMT_SEARCH_DOMAIN, "_sip._tcp.abc_d.example.com");
    bad(API_FMT_SEARCH_DOMAIN, "");
    bad(API_FMT_SEARCH_DOMAIN, "a..b");
    good(API_FMT_SYSCTL, "net.ipv4.ip_forward");
    good(API_FMT_SYSCTL, "net/ipv4/conf/eth0.1/x");
    bad(API_FMT_SYSCTL, "net..x");
    bad(API_FMT_SYSCTL, "_a.b");
    bad(API_FMT_SYSCTL, "A.b");
    bad(API_FMT_SYSCTL, "a.b_");
}

static void paths(void **state)
{
    (void)state;
    good(API_FMT_DESCENDING, "a/b");
    good(API_FMT_DESCENDING, "..a/b");
    bad(API_FMT_DESCENDING, "/a");
    bad(API_FMT_DESCENDING, "a/../b");
    bad(API_FMT_DESCENDING, "..");
    good(API_FMT_FILE_PATH, "a/..b");
    bad(API_FMT_FILE_PATH, "..a");
    bad(API_FMT_FILE_PATH, repeat('a', 256));
    good(API_FMT_NO_BACKSTEPS, "/a/b/...");
    bad(API_FMT_NO_BACKSTEPS, "/a/..");
}

static void uids_images_media(void **state)
{
    (void)state;
    good(API_FMT_UID, "6f0c1c1e-0000-4000-8000-000000000001");
    good(API_FMT_UID, "ABCdef012");
    bad(API_FMT_UID, "-a");
    bad(API_FMT_UID, "a/b");
    bad(API_FMT_UID, "a.b");
    bad(API_FMT_UID, "");
    bad(API_FMT_UID, repeat('a', 129));
    good(API_FMT_IMAGE, "a b");
    bad(API_FMT_IMAGE, " a");
    bad(API_FMT_IMAGE, "a\n");
    good(API_FMT_MEDIUM, "Memory");
    good(API_FMT_MEDIUM, "HugePages");
    good(API_FMT_MEDIUM, "HugePages-2Mi");
    bad(API_FMT_MEDIUM, "HugePages-x");
    bad(API_FMT_MEDIUM, "memory");
}

static void quoted_values_are_cut_between_characters_and_show_no_control_bytes(void **state)
{
    char text[400] = "";

    (void)state;
    assert_string_equal(QUOTE("a\nb\x7f"), "\"a?b?\"");
    for (int i = 0; i < 100; i++)
        strcat(text, "\xc3\xa9");
    assert_true(strlen(QUOTE(text)) < sizeof(struct api_quoted));
    assert_true(str_ends(QUOTE(text), "\xc3\xa9...\""));
    assert_string_equal(QUOTE(""), "\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dns_labels_and_subdomains),
        cmocka_unit_test(label_keys_and_values),
        cmocka_unit_test(data_keys_and_environment_names),
        cmocka_unit_test(ports_headers_addresses),
        cmocka_unit_test(search_domains_and_sysctls),
        cmocka_unit_test(paths),
        cmocka_unit_test(uids_images_media),
        cmocka_unit_test(quoted_values_are_cut_between_characters_and_show_no_control_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
