import type { RequestRecord } from '#otel/record/registry';
import type { MetricDefinition } from './metric-data.ts';

/** The operations of a metric: inference is chat and text_completion; `other` are all but these. */
export type Operations = 'all' | 'inference' | 'other';

/** A field of the record that is a number. */
type NumberField = {
  [Field in keyof RequestRecord]-?: NonNullable<RequestRecord[Field]> extends number ? Field : never;
}[keyof RequestRecord];

/** A metric of the client's side: a row of the table that is made from the registry. */
export interface ClientMetricRow {
  readonly metric:
    | MetricDefinition<'counter'>
    | (MetricDefinition<'histogram'> & { readonly buckets: readonly number[] });
  /** Of which operations it is with these names of the conventions; null: of none. */
  readonly pinned: Operations | null;
  readonly latest: Operations | null;
  /** The attributes of its series besides those of a value. */
  readonly attributes: readonly string[];
  readonly values: readonly ClientValue[];
}

/** A value of a metric: a field of the record, less others that are values of their own. */
export interface ClientValue {
  readonly field: NumberField;
  /** Whether an unknown field counts as 0. */
  readonly isZeroIfUnknown: boolean;
  readonly without: readonly NumberField[];
  readonly attributes: Readonly<Record<string, string>>;
}
