/** Which replicas a comparison is about, as somebody has written it. */
export type Selector =
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'model' | 'host'; readonly value: string }
  /** Of pods: all of these must be as they say. */
  | { readonly kind: 'labels'; readonly labels: readonly string[] };

const MAX_CHARS = 8_192;
const MAX_LABELS = 16;

/** The names that replicas may have. */
const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;
/** https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set */
const LABEL =
  /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?=(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/;

/** What a selector is written like. */
export const SELECTOR_FORM =
  'names of replicas with commas between them, model:NAME, host:NAME, or pod.label/KEY=VALUE';

/** Reads a selector; null if it is none. */
export function parseSelector(text: string): Selector | null {
  if (text.length > MAX_CHARS) return null;
  const [, kind, value] = /^(model|host):(.+)$/s.exec(text) ?? [];
  if ((kind === 'model' || kind === 'host') && value !== undefined) return { kind, value };
  const prefix = 'pod.label/';
  if (text.startsWith(prefix)) {
    const labels = text.slice(prefix.length).split(',');
    return labels.length <= MAX_LABELS && labels.every((label) => LABEL.test(label))
      ? { kind: 'labels', labels }
      : null;
  }
  const names = text.split(',');
  return names.every((name) => NAME.test(name)) ? { kind: 'names', names: [...new Set(names)] } : null;
}
