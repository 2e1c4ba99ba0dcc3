/** Formats numbers and times. Pure. */

/** Stands for an unknown value. */
export const UNKNOWN = '–';
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const cost = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const smallCost = new Intl.NumberFormat('en', { minimumSignificantDigits: 2, maximumSignificantDigits: 2 });
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const minute = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const shortDay = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });
const day = new Intl.DateTimeFormat('en', { year: 'numeric', month: 'short', day: 'numeric' });

/**
 * A whole number with thousands separators.
 * @param {number | undefined} count
 */
export function formatCount(count) {
  return count === undefined ? UNKNOWN : whole.format(count);
}

/**
 * A rate, with one decimal for small values. Exactly zero is `0`.
 * @param {number} perSecond
 */
export function formatRate(perSecond) {
  if (perSecond === 0) return '0';
  if (perSecond < 0.05) return '<0.1';
  return perSecond < 99.95 ? tenths.format(perSecond) : whole.format(perSecond);
}

/**
 * An amount of money without its currency, with as many decimals as it takes to tell small ones apart.
 * @param {number} amount
 */
export function formatCost(amount) {
  return (amount < 0.995 ? smallCost : cost).format(amount);
}

/**
 * A duration in the unit that makes it short.
 * @param {number | null | undefined} ms
 */
export function formatMs(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms < 9.95) return `${tenths.format(ms)} ms`;
  if (ms < 999.5) return `${whole.format(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9_995 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/**
 * A part of a whole, in percent.
 * @param {number} part
 * @param {number} all
 */
export function formatShare(part, all) {
  if (all === 0) return UNKNOWN;
  if (part === 0) return '0 %';
  const percent = (100 * part) / all;
  if (percent < 0.05) return '<0.1 %';
  return `${percent < 9.95 ? tenths.format(percent) : whole.format(percent)} %`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * A number of bytes in the unit that makes it short.
 * @param {number} bytes
 */
export function formatBytes(bytes) {
  const unit = Math.min(bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10), BYTE_UNITS.length - 1);
  const value = bytes / 1024 ** unit;
  return `${unit === 0 || value >= 99.95 ? whole.format(value) : tenths.format(value)} ${BYTE_UNITS[unit]}`;
}

/**
 * A time of day in the reader's time zone; with the date if that is another day than `now`.
 * @param {string | number} time RFC 3339, or milliseconds of the epoch
 * @param {string | number} now in the same forms
 */
export function formatMoment(time, now) {
  const isToday = day.format(new Date(time)) === day.format(new Date(now));
  return isToday ? formatTime(time) : `${day.format(new Date(time))}, ${formatTime(time)}`;
}

/**
 * A text of the gateway, whose times are RFC 3339, with these as the page shows its own.
 * @param {string} text
 */
export function withLocalTimes(text) {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => formatMoment(time, Date.now()));
}

/**
 * A time of day in the reader's time zone.
 * @param {string | number} time RFC 3339, or milliseconds of the epoch
 */
export function formatTime(time) {
  return clock.format(new Date(time));
}

/**
 * A time of day in the reader's time zone, without seconds.
 * @param {number} epochMs
 */
export function formatMinute(epochMs) {
  return minute.format(new Date(epochMs));
}

/**
 * A day in the reader's time zone, without its year.
 * @param {number} epochMs
 */
export function formatDay(epochMs) {
  return shortDay.format(new Date(epochMs));
}

/**
 * A rounded duration.
 * @param {number} ms
 */
export function formatAgo(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/**
 * A count and its noun.
 * @param {number} count
 * @param {string} one
 * @param {string} many
 */
export function counted(count, one, many = `${one}s`) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/**
 * A text with a capital letter at its beginning.
 * @param {string} text
 */
export function toCapital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
