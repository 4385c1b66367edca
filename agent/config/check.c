/* SPDX-License-Identifier: Apache-2.0 */
/* Rules across settings, as in kubelet (ValidateKubeletConfiguration). */
#include "agent/config/internal.h"
#include "base/codec/json.h"

#include <string.h>

static const json_t *config_check_get(const struct config_state *s, const char *key)
{
    return config_effective(s, config_find_key(DOC_KUBELET, key));
}

static const char *config_check_text(const struct config_state *s, const char *key)
{
    const json_t *v = config_check_get(s, key);

    return json_is_string(v) ? json_string_value(v) : "";
}

static int64_t config_check_ns(const struct config_state *s, const char *key)
{
    return config_duration_ns(config_check_get(s, key));
}

static bool config_check_given(const struct config_state *s, const char *key)
{
    return s->set[config_find_key(DOC_KUBELET, key)].value != NULL;
}

static bool enforces(const struct config_state *s, const char *what)
{
    return json_has(config_check_get(s, "enforceNodeAllocatable"), what);
}

static enum err_code check_images(const struct config_state *s, struct err *e)
{
    json_int_t low = json_integer_value(config_check_get(s, "imageGCLowThresholdPercent")),
               high = json_integer_value(config_check_get(s, "imageGCHighThresholdPercent"));

    if (low >= high)
        return err_set(
            e, ERR_INVALID,
            "imageGCLowThresholdPercent: %lld is not less than imageGCHighThresholdPercent, which is %lld",
            (long long)low, (long long)high);
    if (config_check_ns(s, "imageMaximumGCAge") > 0 &&
        config_check_ns(s, "imageMaximumGCAge") <= config_check_ns(s, "imageMinimumGCAge"))
        return err_set(e, ERR_INVALID,
                       "imageMaximumGCAge: %s is not more than imageMinimumGCAge, which is %s",
                       config_check_text(s, "imageMaximumGCAge"), config_check_text(s, "imageMinimumGCAge"));
    if (json_is_true(config_check_get(s, "serializeImagePulls")) &&
        json_integer_value(config_check_get(s, "maxParallelImagePulls")) > 1)
        return err_set(e, ERR_INVALID, "maxParallelImagePulls: more than 1 needs serializeImagePulls: false");
    if (json_array_size(config_check_get(s, "preloadedImagesVerificationAllowlist")) > 0 &&
        strcmp(config_check_text(s, "imagePullCredentialsVerificationPolicy"),
               "NeverVerifyAllowlistedImages") != 0)
        return err_set(e, ERR_INVALID,
                       "preloadedImagesVerificationAllowlist: needs imagePullCredentialsVerificationPolicy: "
                       "NeverVerifyAllowlistedImages");
    return ERR_OK;
}

static enum err_code check_shutdown(const struct config_state *s, struct err *e)
{
    static const char *const keys[] = { "shutdownGracePeriod", "shutdownGracePeriodCriticalPods" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (config_check_ns(s, keys[i]) > 0 && config_check_ns(s, keys[i]) < 1000000000)
            return err_set(e, ERR_INVALID, "%s: %s is neither 0s nor at least 1s", keys[i],
                           config_check_text(s, keys[i]));
    if (config_check_ns(s, keys[1]) > config_check_ns(s, keys[0]))
        return err_set(e, ERR_INVALID,
                       "shutdownGracePeriodCriticalPods: %s is more than shutdownGracePeriod, which is %s",
                       config_check_text(s, keys[1]), config_check_text(s, keys[0]));
    if (json_array_size(config_check_get(s, "shutdownGracePeriodByPodPriority")) > 0 &&
        (config_check_ns(s, keys[0]) > 0 || config_check_ns(s, keys[1]) > 0))
        return err_set(e, ERR_INVALID,
                       "shutdownGracePeriodByPodPriority: cannot be given together with shutdownGracePeriod");
    return ERR_OK;
}

static enum err_code check_reservations(const struct config_state *s, struct err *e)
{
    static const char *const whose[][3] = {
        { "system-reserved", "system-reserved-compressible", "systemReservedCgroup" },
        { "kube-reserved", "kube-reserved-compressible", "kubeReservedCgroup" },
    };

    for (size_t i = 0; i < ARRAY_LEN(whose); i++) {
        bool all = enforces(s, whose[i][0]), cpu = enforces(s, whose[i][1]);
        if (all && cpu)
            return err_set(e, ERR_INVALID,
                           "enforceNodeAllocatable: \"%s\" and \"%s\" cannot be given together", whose[i][0],
                           whose[i][1]);
        if ((all || cpu) && config_check_text(s, whose[i][2])[0] == '\0')
            return err_set(e, ERR_INVALID, "enforceNodeAllocatable: \"%s\" needs %s", whose[i][cpu ? 1 : 0],
                           whose[i][2]);
        if (config_check_text(s, "reservedSystemCPUs")[0] != '\0' &&
            config_check_text(s, whose[i][2])[0] != '\0')
            return err_set(e, ERR_INVALID, "reservedSystemCPUs: cannot be given together with %s",
                           whose[i][2]);
    }
    if (json_is_false(config_check_get(s, "cgroupsPerQOS")) &&
        json_array_size(config_check_get(s, "enforceNodeAllocatable")) > 0 && !enforces(s, "none"))
        return err_set(e, ERR_INVALID, "cgroupsPerQOS: false needs enforceNodeAllocatable: [\"none\"]");
    if (config_check_text(s, "systemCgroups")[0] != '\0' && !config_check_given(s, "cgroupRoot"))
        return err_set(e, ERR_INVALID, "systemCgroups: needs cgroupRoot");
    return ERR_OK;
}

static enum err_code check_placement(const struct config_state *s, struct err *e)
{
    const json_t *isolates = config_effective(s, config_find_key(DOC_OWN, "isolateExclusiveCPUs"));

    if (json_is_true(isolates) && strcmp(config_check_text(s, "cpuManagerPolicy"), "static") != 0)
        return err_set(e, ERR_INVALID, "isolateExclusiveCPUs: true needs cpuManagerPolicy: static");
    return ERR_OK;
}

static enum err_code check_eviction(const struct config_state *s, struct err *e)
{
    struct ev_settings settings = { 0 };

    return config_parse_eviction(s, &settings, e);
}

enum err_code config_check(struct config_state *s, struct err *e)
{
    int64_t period = config_check_ns(s, "cpuCFSQuotaPeriod"),
            backoff = config_check_ns(s, "crashLoopBackOff.maxContainerRestartPeriod");

    if (period < 1000000 || period > 1000000000)
        return err_set(e, ERR_INVALID, "cpuCFSQuotaPeriod: %s is not between 1ms and 1s",
                       config_check_text(s, "cpuCFSQuotaPeriod"));
    if (backoff < 1000000000 || backoff > 300000000000)
        return err_set(e, ERR_INVALID,
                       "crashLoopBackOff.maxContainerRestartPeriod: %s is not between 1s and 5m",
                       config_check_text(s, "crashLoopBackOff.maxContainerRestartPeriod"));
    if (config_check_ns(s, "containerLogMonitorInterval") < 3000000000)
        return err_set(e, ERR_INVALID, "containerLogMonitorInterval: %s is less than 3s",
                       config_check_text(s, "containerLogMonitorInterval"));
    if (json_is_true(config_check_get(s, "runOnce")))
        return err_set(e, ERR_INVALID, "runOnce: kubelet no longer supports it, so it cannot be set");
    if (json_is_true(config_check_get(s, "enableSystemLogQuery")) &&
        json_is_false(config_check_get(s, "enableSystemLogHandler")))
        return err_set(e, ERR_INVALID, "enableSystemLogQuery: needs enableSystemLogHandler: true");
    if (check_images(s, e) != ERR_OK || check_shutdown(s, e) != ERR_OK ||
        check_reservations(s, e) != ERR_OK || check_placement(s, e) != ERR_OK)
        return e->code;
    return check_eviction(s, e);
}
