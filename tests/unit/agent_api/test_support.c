/* SPDX-License-Identifier: Apache-2.0 */
/* The support table: complete in itself, and the same as the page in docs/. */
#include "helper.h"

#include "agent/api/manifest/internal.h"
#include "tests/unit/agent_api/support_table.h"

/* Visits every table that a Pod reaches. */
static void visit(const struct api_schema *schema, const struct api_schema **seen, size_t *n,
                  void (*fn)(const struct api_schema *schema, const struct api_row *row))
{
    for (size_t i = 0; i < *n; i++) {
        if (seen[i] == schema)
            return;
    }
    assert_true(*n < 200);
    seen[(*n)++] = schema;
    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        fn(schema, row);
        if (row->nested != NULL)
            visit(row->nested, seen, n, fn);
    }
    if (schema->base != NULL)
        visit(schema->base, seen, n, fn);
}

static void check_row(const struct api_schema *schema, const struct api_row *row)
{
    bool reason = row->support >= API_ACCEPTED, note = row->support == API_ACTED;
    size_t same = 0;

    for (const struct api_row *other = schema->rows; other->name != NULL; other++)
        same += strcmp(other->name, row->name) == 0;
    if (same != 1 || (reason && row->why == NULL) || (!reason && !note && row->why != NULL))
        fail_msg("%s.%s", schema->name, row->name);
    if ((row->type == API_OBJECT || row->type == API_LIST) != (row->nested != NULL))
        fail_msg("%s.%s: nested", schema->name, row->name);
    if (row->type == API_LIST && row->slot != 0 && (row->nested->size == 0 || row->count == 0))
        fail_msg("%s.%s: list", schema->name, row->name);
    if (row->flags & (API_POINTER | API_ONE) && row->nested->size == 0)
        fail_msg("%s.%s: size", schema->name, row->name);
    if (row->type == API_ENUM && row->values == NULL)
        fail_msg("%s.%s: values", schema->name, row->name);
}

static void every_row_is_complete(void **state)
{
    const struct api_schema *seen[200];
    size_t n = 0;

    (void)state;
    visit(&api_schema_pod, seen, &n, check_row);
    visit(&api_schema_config_map, seen, &n, check_row);
    visit(&api_schema_secret, seen, &n, check_row);
    visit(&api_schema_priority_class, seen, &n, check_row);
    visit(&api_schema_runtime_class, seen, &n, check_row);
    visit(&api_schema_list, seen, &n, check_row);
    assert_true(n > 80);
}

/* A field that nothing else was said about must have a slot: otherwise it would be silently dropped. */
static void check_acted(const struct api_schema *schema)
{
    for (const struct api_row *row = schema->rows; row->name != NULL; row++) {
        if (row->support != API_WITH_PARENT && row->support != API_ACTED)
            continue;
        if (row->support == API_WITH_PARENT && row->slot == 0)
            fail_msg("%s.%s is neither kept nor explained", schema->name, row->name);
        if (row->nested != NULL)
            check_acted(row->nested);
    }
    if (schema->base != NULL)
        check_acted(schema->base);
}

static void a_field_is_kept_or_explained(void **state)
{
    (void)state;
    check_acted(&api_schema_pod);
    check_acted(&api_schema_config_map);
    check_acted(&api_schema_secret);
    check_acted(&api_schema_priority_class);
    check_acted(&api_schema_runtime_class);
}

static void the_table_shows_what_the_rows_say(void **state)
{
    char *table = support_table();

    (void)state;
    assert_non_null(table);
    assert_non_null(strstr(table, "| `hostPort` | number |  | 1 to 65535 | acted on |  |\n"));
    assert_non_null(strstr(table, "| `livenessProbe` | Probe |  |  | acted on |  |\n"));
    assert_non_null(
        strstr(table, "| `restartPolicyRules` | list of ContainerRestartRule |  |  | acted on |  |\n"));
    assert_non_null(
        strstr(table, "| `restartPolicy` | string | `Always` | Always, OnFailure, Never | acted on |  |\n"));
    assert_non_null(strstr(table, "| `gitRepo` | anything |  |  | refused | "));
    assert_non_null(strstr(table, "| refused | this is a Linux node (except `{}`) |\n"));
    assert_non_null(strstr(table, "## Resource names\n"));
    /* Required node affinity is checked, everything else of an affinity is for the scheduler. */
    assert_non_null(strstr(table, "| `affinity` | Affinity |  |  | acted on |  |\n"));
    assert_non_null(strstr(table, "| `requiredDuringSchedulingIgnoredDuringExecution` | NodeSelector |  |  | "
                                  "acted on | checked when the pod is admitted |\n"));
    assert_non_null(strstr(table, "| `preferredDuringSchedulingIgnoredDuringExecution` | list of "
                                  "PreferredSchedulingTerm |  |  | accepted | for the scheduler;"));
    assert_non_null(strstr(table, "| `podAffinity` | PodAffinity, PodAntiAffinity |  |  | accepted | for"));
    assert_non_null(strstr(table,
                           "## NodeSelectorTerm\n\nThe table shows the use that is acted on. Other uses: "
                           "`preference` of PreferredSchedulingTerm: accepted.\n\n"));
    free(table);
}

static void the_page_in_docs_is_this_table(void **state)
{
    char *table = support_table(), *page;
    FILE *f = fopen("docs/pod-fields.md", "r");
    size_t n;

    (void)state;
    if (f == NULL) {
        free(table);
        fail_msg("docs/pod-fields.md is missing (tests run in the project's root)");
    }
    page = calloc(1, 1 << 20);
    n = fread(page, 1, (1 << 20) - 1, f);
    fclose(f);
    if (n != strlen(table) || strcmp(page, table) != 0)
        print_message("docs/pod-fields.md is out of date; `make samples` writes it again\n");
    if (getenv("WRITE_SAMPLES") != NULL) {
        f = fopen("docs/pod-fields.md", "w");
        assert_non_null(f);
        assert_int_equal(fputs(table, f) < 0, 0);
        fclose(f);
        free(page);
        free(table);
        return;
    }
    assert_true(strcmp(page, table) == 0);
    free(page);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(a_field_is_kept_or_explained),
        cmocka_unit_test(the_table_shows_what_the_rows_say),
        cmocka_unit_test(the_page_in_docs_is_this_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
