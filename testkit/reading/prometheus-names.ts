import { METRICS } from '../../otel/metrics/metric-table.ts';

const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes' };
const SUFFIXES = {
  counter: ['_total'],
  histogram: ['_bucket', '_sum', '_count'],
  updowncounter: [''],
  gauge: [''],
};

/** The names of all samples that the gateway gives to Prometheus, but those about the target. */
export const PROMETHEUS_NAMES: ReadonlySet<string> = new Set(
  Object.values(METRICS).flatMap(({ name, unit, instrument }) =>
    SUFFIXES[instrument].map((suffix) => name.replaceAll('.', '_') + (UNITS[unit] ?? '') + suffix),
  ),
);

const METRIC = /\b(?:http|gen_ai|gateway|otel|process|nodejs)_\w+/g;
/** Texts, selectors and groupings, in which the same namespaces are those of labels. */
const LABELS = /"(?:[^"\\]|\\.)*"|\b(?:by|on|ignoring|without)\s*\([^)]*\)|\{[^}]*\}/g;

/** The names of the gateway's metrics in a query, each as often as it is there. */
export function metricsIn(promql: string): readonly string[] {
  return promql.replace(LABELS, ' ').match(METRIC) ?? [];
}
