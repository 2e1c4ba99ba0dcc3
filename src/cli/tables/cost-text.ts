import { memberOf } from '#base/parsed';

const large = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const small = new Intl.NumberFormat('en', { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });

/** Formats an amount, such as `0.0013 EUR`; `-` if it is not known. */
export function toCostText(amount: unknown, currency: unknown): string {
  if (typeof amount !== 'number' || typeof currency !== 'string') return '-';
  return `${(amount < 0.995 ? small : large).format(amount)} ${currency}`;
}

/** Formats the cost of a record or of a row of the admin API. */
export const toCostCell = (of: unknown) => toCostText(memberOf(of, 'cost'), memberOf(of, 'currency'));
