import type { KeyFacts } from './schema/keys.ts';

/** What a secret is replaced by. */
export const MASK = '***';

const MAX_SHOWN_CHARS = 100;

/**
 * Describes the value of a key without secrets: as it is in the file, with variables unexpanded, secret keys masked, and
 * credentials cut from URLs. `null` and undefined: there is no value.
 */
export function showValue(value: unknown, { holds }: KeyFacts): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'keys with values';
  const isVariable = typeof value === 'string' && /^\$\{[^}]*\}$/.test(value);
  const isSecret = holds === 'secret' || holds === 'digest' || holds === 'secret_url';
  if (isSecret && !isVariable && value !== '') return MASK;
  if (typeof value !== 'string') return String(value);
  if (isPem(value)) return MASK;
  const shown = maskUrl(value, holds === 'url');
  return JSON.stringify(shown.length > MAX_SHOWN_CHARS ? `${shown.slice(0, MAX_SHOWN_CHARS)}…` : shown);
}

/** Whether a text is a certificate or a private key: a mistake for the path of its file. */
export function isPem(text: string): boolean {
  return text.includes('-----BEGIN');
}

/** `['replicas', 0, 'url']` → `replicas[0].url` */
export function toKeyPath(path: readonly PropertyKey[]): string {
  return path
    .map((step) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = String(step);
      return `.${/^[\w-]+$/.test(key) ? key : JSON.stringify(maskUrl(key))}`;
    })
    .join('')
    .replace(/^\./, '');
}

/** Masks the parts of a URL that may be credentials: everything before the last `@`, the query and the fragment. */
function maskUrl(text: string, isUrl = false): string {
  if (!isUrl && !text.includes('://')) return text;
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, `$1${MASK}@`).replace(/([?#]).+$/s, `$1${MASK}`);
}
