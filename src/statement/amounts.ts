/*
 * Sums that every reader computes alike, in whatever order: each amount of a record is rounded to a whole number of a small
 * unit, and these are added.
 */

/** Digits after the point: GPU seconds have nanoseconds, costs trillionths of the currency. */
export const DIGITS = { gpuSeconds: 9, cost: 12 } as const;

/** The amount in units of its last digit. What is no amount is 0. */
export function toUnits(amount: number, digits: number): bigint {
  return Number.isFinite(amount) && amount > 0 ? BigInt(Math.floor(amount * 10 ** digits + 0.5)) : 0n;
}

/** Prints units as a decimal number with all of its digits: `0.000001230000`. */
export function printUnits(units: bigint, digits: number): string {
  const text = String(units).padStart(digits + 1, '0');
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}
