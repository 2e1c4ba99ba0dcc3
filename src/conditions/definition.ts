/** How bad a condition is, the worst first: something is lost now; it will be; nothing is. */
export const SEVERITIES = ['critical', 'warning', 'notice'] as const;

export type Severity = (typeof SEVERITIES)[number];

/** The kinds of things that can be wrong. */
export const SUBJECT_KINDS = [
  'gateway',
  'replica',
  'model',
  'tenant',
  'client',
  'certificate',
  'file',
  'source',
  'export',
  'fleet',
  'rollout',
] as const;

export type SubjectKind = (typeof SUBJECT_KINDS)[number];

/** How a figure is shown: a text, a number, a share of 1, a duration in seconds, a size in bytes, a multiple. */
export const FIGURE_KINDS = ['text', 'count', 'share', 'seconds', 'bytes', 'ratio'] as const;

export type FigureKind = (typeof FIGURE_KINDS)[number];

/** The parts of the page that a condition may be about; none of them says more of it. */
export const PLACES = ['replicas', 'reasons', 'records', 'export', 'saturation', 'fleet', 'none'] as const;

export type Place = (typeof PLACES)[number];

/** One kind of condition, as the registry has it (registry/conditions.yaml). */
export interface ConditionDefinition {
  readonly severity: Severity;
  readonly subject: SubjectKind;
  /** What is wrong, without names and figures. */
  readonly title: string;
  /** The same of one subject. The names of figures, and `subject`, are in braces. */
  readonly sentence: string;
  readonly figures: Readonly<Record<string, FigureKind>>;
  /** How long it must be true before it is told, and not true any more before that is. */
  readonly afterMs: number;
  readonly untilMs: number;
  /** How long what happened in a moment is told; null: until it is cleared. */
  readonly lastsMs: number | null;
  readonly means: string;
  readonly remedy: string;
  readonly place: Place;
}
