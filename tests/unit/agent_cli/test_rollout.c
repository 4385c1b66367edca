/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/change/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

struct sample {
    const char *object, *text;
    enum rollout_state state;
};

static void check(enum api_kind kind, const struct sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_auto_t *o = json_loads(samples[i].object, 0, NULL);
        buf_auto text = BUF_INIT(64 * 1024);

        assert_non_null(o);
        assert_int_equal(rollout_state_of(kind, o, &text), samples[i].state);
        assert_string_equal(text.p, samples[i].text);
    }
}

#define META "\"metadata\":{\"name\":\"web\",\"generation\":2},"

static void deployments_roll_out_in_kubectls_words(void **state)
{
    static const struct sample samples[] = {
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":1}}",
          "Waiting for deployment spec update to be observed...", ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"updatedReplicas\":1}}",
          "Waiting for deployment \"web\" rollout to finish: 1 out of 2 new replicas have been updated...",
          ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"replicas\":3,"
          "\"updatedReplicas\":2}}",
          "Waiting for deployment \"web\" rollout to finish: 1 old replicas are pending termination...",
          ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"replicas\":2,"
          "\"updatedReplicas\":2,\"availableReplicas\":1}}",
          "Waiting for deployment \"web\" rollout to finish: 1 of 2 updated replicas are available...",
          ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"replicas\":2,"
          "\"updatedReplicas\":2,\"availableReplicas\":2}}",
          "deployment \"web\" successfully rolled out", ROLLOUT_DONE },
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"conditions\":["
          "{\"type\":\"Progressing\",\"reason\":\"ProgressDeadlineExceeded\"}]}}",
          "deployment \"web\" exceeded its progress deadline", ROLLOUT_FAILED },
        { "{}", "deployment \"\" successfully rolled out", ROLLOUT_DONE },
    };

    (void)state;
    check(API_KIND_DEPLOYMENT, samples, ARRAY_LEN(samples));
}

static void daemon_sets_and_stateful_sets_do_so_too(void **state)
{
    static const struct sample daemons[] = {
        { "{" META "\"status\":{\"observedGeneration\":2,\"desiredNumberScheduled\":1}}",
          "Waiting for daemon set \"web\" rollout to finish: 0 out of 1 new pods have been updated...",
          ROLLOUT_GOES_ON },
        { "{" META "\"status\":{\"observedGeneration\":2,\"desiredNumberScheduled\":1,"
          "\"updatedNumberScheduled\":1,\"numberAvailable\":1}}",
          "daemon set \"web\" successfully rolled out", ROLLOUT_DONE },
        { "{" META "\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\"}}}",
          "rollout status is only available for RollingUpdate strategy type", ROLLOUT_FAILED },
    };
    static const struct sample sets[] = {
        { "{" META "\"spec\":{\"replicas\":2},\"status\":{\"observedGeneration\":2,\"readyReplicas\":1}}",
          "Waiting for 1 pods to be ready...", ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":1},\"status\":{\"observedGeneration\":2,\"readyReplicas\":1,"
          "\"updatedReplicas\":0,\"updateRevision\":\"web-2\",\"currentRevision\":\"web-1\"}}",
          "waiting for statefulset rolling update to complete 0 pods at revision web-2...", ROLLOUT_GOES_ON },
        { "{" META "\"spec\":{\"replicas\":1},\"status\":{\"observedGeneration\":2,\"readyReplicas\":1,"
          "\"currentReplicas\":1,\"updateRevision\":\"web-2\",\"currentRevision\":\"web-2\"}}",
          "statefulset rolling update complete 1 pods at revision web-2...", ROLLOUT_DONE },
    };

    (void)state;
    check(API_KIND_DAEMON_SET, daemons, ARRAY_LEN(daemons));
    check(API_KIND_STATEFUL_SET, sets, ARRAY_LEN(sets));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deployments_roll_out_in_kubectls_words),
        cmocka_unit_test(daemon_sets_and_stateful_sets_do_so_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
