/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what every test of agent/eviction includes. */
#ifndef TESTS_UNIT_AGENT_EVICTION_HELPER_H
#define TESTS_UNIT_AGENT_EVICTION_HELPER_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/eviction/manager.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MI (1ull << 20)

/* One row of pods in a text: "name priority usage request flags", separated by ";". */
#define PODS_MAX 16

struct pods {
    struct ev_pod v[PODS_MAX];
    char keys[PODS_MAX][40];
    size_t n;
};

/* Usage and request are of whatever the signal measures; flags: c critical, u unknown, e ending. */
static inline void read_pods(const char *text, enum ev_signal s, struct pods *ret)
{
    *ret = (struct pods){ 0 };
    while (*text != '\0') {
        struct ev_pod *p = &ret->v[ret->n];
        char name[30], flags[8] = "";
        unsigned long long usage, request;
        int priority, used = 0;

        assert_true(ret->n < PODS_MAX);
        assert_true(sscanf(text, " %29s %d %llu %llu %7[a-z]", name, &priority, &usage, &request, flags) >=
                    4);
        used = (int)strcspn(text, ";");
        text += used + (text[used] == ';');
        snprintf(ret->keys[ret->n], sizeof(ret->keys[0]), "default/%s", name);
        *p = (struct ev_pod){ .key = ret->keys[ret->n], .uid = ret->keys[ret->n], .priority = priority };
        p->critical = strchr(flags, 'c') != NULL;
        p->ending = strchr(flags, 'e') != NULL;
        p->memory_known = p->layers_known = p->rest_known = p->processes_known = strchr(flags, 'u') == NULL;
        p->memory = p->processes = usage;
        p->grace_s = 30;
        if (ev_signal_unit(s) == EV_INODES)
            p->volumes.inodes = usage;
        else
            p->volumes.bytes = usage;
        p->memory_request = p->storage_request = request;
        ret->n++;
    }
}
#endif
