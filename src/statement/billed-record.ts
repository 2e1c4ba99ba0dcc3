/** The facts of a record that a statement sums, and by which it is known again. */
export interface BilledRecord {
  readonly instance: string;
  readonly seq: number;
  /** When the request arrived: RFC 3339 in UTC with milliseconds, as the gateway writes it. */
  readonly ts: string;
  /** Null: the request named none. */
  readonly model: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
  readonly gpuSeconds: number;
  /** Null: there was no price. */
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}
