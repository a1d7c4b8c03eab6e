/*
 * The text form of metrics (Prometheus exposition 0.0.4): heads of families, labels, series.
 * Written without printf, since a large node has a hundred thousand of them.
 */
#ifndef SKEIN_NODE_PROXY_STATS_TEXT_H
#define SKEIN_NODE_PROXY_STATS_TEXT_H

#include "node/base/buf.h"
#include "node/proxy/histogram.h"

/* Once for each family, before its series. */
void text_family(struct buf *out, const char *metric, const char *type, const char *help);

/* Add key="value" to a list of labels, with a comma where one is needed. Values are escaped. */
void text_label(struct buf *labels, const char *key, const char *value);

/* One series. labels: "", or a list as text_label makes it; more: the same, after it. */
void text_series(struct buf *out, const char *metric, const struct buf *labels, const char *more,
                 uint64_t value);

/* _bucket, _sum and _count. */
void text_histogram(struct buf *out, const char *metric, const struct buf *labels,
                    const struct histogram *histogram);

#endif
