/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the settings for documentation: `coracle run --help`, manual pages, completion. */
#include "agent/config/internal.h"

static const char *placeholder(enum config_type type)
{
    switch (type) {
    case T_BOOL:
        return "";
    case T_INT:
        return "N";
    case T_PATH:
        return "PATH";
    case T_DURATION:
        return "DURATION";
    case T_TEXTS:
        return "VALUE[,...]";
    case T_TEXT_MAP:
    case T_BOOL_MAP:
    case T_COUNT_MAP:
        return "KEY=VALUE[,...]";
    default:
        return "VALUE";
    }
}

void config_documented(void (*fn)(const struct config_documented *s, void *arg), void *arg)
{
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        enum config_doc doc;
        const struct config_row *r = config_row(i, &doc);

        fn(
            &(struct config_documented){
                .kind = r->key != NULL ? config_doc_kind[doc] : NULL,
                .key = r->key,
                .flag = r->flag,
                .value = placeholder(r->type),
                .otherwise = r->otherwise != NULL && r->otherwise[0] != '\0' ? r->otherwise : NULL,
                .words = r->type == T_WORD ? r->allowed : NULL,
                .help = r->help,
                .why = r->effect != WORKS ? r->why : NULL,
                .later = r->effect == LATER,
                .live = (r->marks & LIVE) != 0,
                .joined = (r->marks & JOINED) != 0,
            },
            arg);
    }
}

static void print_flag(const struct config_documented *s, void *arg)
{
    char left[80];

    (void)arg;
    if (s->flag == NULL || s->why != NULL)
        return;
    snprintf(left, sizeof(left), "%s%s%s%s", s->flag[1] == '\0' ? "-" : "--", s->flag,
             s->value[0] != '\0' ? " " : "", s->value);
    printf("  %-38s %s", left, s->help);
    if (s->otherwise != NULL && s->value[0] != '\0')
        printf(" (default %s)", s->otherwise);
    printf("\n");
}

void config_help(void)
{
    printf("Usage: coracle run [FLAG...]\n\nRuns the node agent in the foreground.\n\nFlags:\n");
    config_documented(print_flag, NULL);
    printf("\nAll other kubelet flags are accepted, with a warning if they would have an effect in kubelet.\n"
           "Keys of the configuration file: coracle config --sample\n");
}
