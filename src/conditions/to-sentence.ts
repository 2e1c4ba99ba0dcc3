import type { FigureKind } from './definition.ts';

/** The values of a condition's figures. */
export type Figures = Readonly<Record<string, string | number>>;

/** What a sentence is made of: that of a ConditionDefinition. */
interface Template {
  readonly sentence: string;
  readonly figures: Readonly<Record<string, FigureKind>>;
}

/** The sentence of one condition. `subject` and figures of kind text stand in it as they are. */
export function toSentence(
  { sentence, figures: kinds }: Template,
  subject: string,
  figures: Figures,
): string {
  return sentence.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'subject') return subject;
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    const value = figures[name];
    return kind === undefined || value === undefined ? '' : toFigureText(kind, value);
  });
}

/** The figures as a sentence shows them. Those of kind text stand as they are. */
export function toFigureTexts(
  kinds: Template['figures'],
  figures: Figures,
): Readonly<Record<string, string>> {
  const texts = Object.entries(kinds).flatMap(([name, kind]) => {
    const value = figures[name];
    return value === undefined ? [] : [[name, toFigureText(kind, value)]];
  });
  return Object.fromEntries(texts);
}

function toFigureText(kind: FigureKind, value: string | number): string {
  if (typeof value === 'string') return value;
  switch (kind) {
    case 'share':
      return toShareText(value);
    case 'seconds':
      return toDurationText(value);
    case 'bytes':
      return toBytesText(value);
    case 'ratio':
      return `${value.toFixed(1)} ×`;
    case 'text':
    case 'count':
      return value.toLocaleString('en');
  }
}

/** 0.274 → `27 %`. What is not nothing is not shown as nothing. */
function toShareText(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 1) return '< 1 %';
  return `${Math.round(percent)} %`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** 5400 → `90 min`: the greatest unit of which there are at least two. */
function toDurationText(seconds: number): string {
  for (const [unit, length] of UNITS) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

const SIZES = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const;

function toBytesText(bytes: number): string {
  for (const [unit, size] of SIZES) {
    if (bytes >= size) return `${(bytes / size).toFixed(bytes < 10 * size ? 1 : 0)} ${unit}`;
  }
  return `${bytes} B`;
}
