/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `coracle run`: an argument a line. */
#include "agent/config/config.h"

#include "tests/fuzz/text.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARGS_MAX = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *cursor = text, *argv[ARGS_MAX + 2] = { (char *)"run" };
    struct agent_config c = { 0 };
    struct err e = { 0 };
    bool help = false;
    int argc = 1;

    while (argc <= ARGS_MAX && cursor != NULL)
        argv[argc++] = strsep(&cursor, "\n");
    for (int i = 1; i < argc; i++) /* no file of this machine is read */
        if (strstr(argv[i], "config") != NULL)
            argv[i] = (char *)"--config=/dev/null/none";
    if (config_parse(&c, argc, argv, &help, &e) == ERR_OK)
        assert(e.code == ERR_OK && (help || (c.root_dir[0] == '/' && c.max_pods_n <= CONFIG_PODS_MAX)));
    else
        assert(e.text[0] != '\0');
    config_done(&c);
    free(text);
    return 0;
}
