/*
 * The state of backends as series: how many wait, and who could serve them.
 *
 * Shown for the backends that have series of their own (catalog_metrics.c).
 */
#include "node/proxy/catalog.h"
#include "node/proxy/queue.h"
#include "node/proxy/stats_text.h"

#include <utlist.h>

enum { VALUES = 5 };

static void take_values(const struct backend *backend, uint64_t ret_values[VALUES])
{
    uint32_t usable = 0;
    uint32_t available = 0;
    backend_availability(backend, &usable, &available);
    ret_values[0] = place_waiting(backend);
    ret_values[1] = usable;
    ret_values[2] = available;
    ret_values[3] = backend_panics(backend);
    ret_values[4] = counter_read(&backend->ejections);
}

void catalog_metrics_state(const struct catalog *catalog, struct buf *out)
{
    static const struct {
        const char *metric;
        const char *type;
        const char *help;
    } rows[VALUES] = {
        {"skein_backend_queue_length", "gauge", "Requests that wait for an endpoint now"},
        {"skein_backend_endpoints_usable", "gauge", "Endpoints with a weight that do not drain"},
        {"skein_backend_endpoints_available", "gauge", "Of those: neither down nor ejected"},
        {"skein_backend_panic", "gauge", "1: so few are available that all are used"},
        {"skein_backend_ejections_total", "counter", "Endpoints left out because they failed"},
    };
    struct buf label;
    buf_init(&label, 8192);
    for (size_t row = 0; row < VALUES; row++) {
        text_family(out, rows[row].metric, rows[row].type, rows[row].help);
        const struct backend *backend;
        DL_FOREACH (catalog->backends, backend) {
            if (backend->series_share != SERIES_ALL && backend->series_share != SERIES_COUNTERS) {
                continue;
            }
            uint64_t values[VALUES];
            take_values(backend, values);
            buf_reset(&label);
            text_label(&label, "backend", backend->name);
            text_series(out, rows[row].metric, &label, "", values[row]);
        }
    }
    buf_deinit(&label);
}
