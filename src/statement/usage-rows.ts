import type { BilledRecord } from './billed-record.ts';
import { type Day, dayOf } from './calendar.ts';

/** Sums of requests, as a statement has them. Amounts are decimal numbers as texts. */
export interface StatedSums {
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly gpu_seconds: string;
  /** By currency. */
  readonly costs: Readonly<Record<string, string>>;
}

/** The sums of one model on one day. */
export interface StatedRow extends StatedSums {
  readonly day: string;
  readonly model: string | null;
}

class Sums {
  requests = 0;
  promptTokens = 0;
  completionTokens = 0;
  cachedTokens = 0;
  reasoningTokens = 0;
  gpuUnits = 0n;
  readonly costUnits = new Map<string, bigint>();

  add(record: BilledRecord): void {
    this.requests += 1;
    this.promptTokens += record.promptTokens;
    this.completionTokens += record.completionTokens;
    this.cachedTokens += record.cachedTokens;
    this.reasoningTokens += record.reasoningTokens;
    this.gpuUnits += toUnits(record.gpuSeconds, DIGITS.gpuSeconds);
    const { cost } = record;
    if (cost === null) return;
    const units = this.costUnits.get(cost.currency) ?? 0n;
    this.costUnits.set(cost.currency, units + toUnits(cost.amount, DIGITS.cost));
  }

  toStated(): StatedSums {
    const costs = [...this.costUnits].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      requests: this.requests,
      prompt_tokens: this.promptTokens,
      completion_tokens: this.completionTokens,
      cached_tokens: this.cachedTokens,
      reasoning_tokens: this.reasoningTokens,
      gpu_seconds: printUnits(this.gpuUnits, DIGITS.gpuSeconds),
      costs: Object.fromEntries(costs.map(([currency, units]) => [currency, printUnits(units, DIGITS.cost)])),
    };
  }
}

/** Sums records by day and model. */
export class UsageRows {
  readonly #days: readonly Day[];
  readonly #rows = new Map<
    string,
    { readonly day: string; readonly model: string | null; readonly sums: Sums }
  >();
  readonly #total = new Sums();

  constructor(days: readonly Day[]) {
    this.#days = days;
  }

  /** Adds a record of one of the days. */
  add(record: BilledRecord): void {
    const day = dayOf(this.#days, record.ts);
    const { model } = record;
    const key = JSON.stringify([day, model]);
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = { day, model, sums: new Sums() };
      this.#rows.set(key, row);
    }
    row.sums.add(record);
    this.#total.add(record);
  }

  /** By day, then by model; requests without a model come first. */
  get rows(): readonly StatedRow[] {
    return [...this.#rows.values()]
      .sort((a, b) => compare(a.day, b.day) || compare(a.model ?? '', b.model ?? ''))
      .map(({ day, model, sums }) => ({ day, model, ...sums.toStated() }));
  }

  get total(): StatedSums {
    return this.#total.toStated();
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/*
 * Sums that every reader computes alike, in whatever order: each amount of a record is rounded to a whole number of a small
 * unit, and these are added.
 */

/** Digits after the point: GPU seconds have nanoseconds, costs trillionths of the currency. */
const DIGITS = { gpuSeconds: 9, cost: 12 } as const;

/** The amount in units of its last digit. What is no amount is 0. */
export function toUnits(amount: number, digits: number): bigint {
  return Number.isFinite(amount) && amount > 0 ? BigInt(Math.floor(amount * 10 ** digits + 0.5)) : 0n;
}

/** Prints units as a decimal number with all of its digits: `0.000001230000`. */
export function printUnits(units: bigint, digits: number): string {
  const text = String(units).padStart(digits + 1, '0');
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
