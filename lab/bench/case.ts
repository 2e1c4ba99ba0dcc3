import type { Aim } from './driver.ts';

/** One figure of a case. The first of a case is the one that is compared with the reference. */
export interface Figure {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
}

/** What one measurement of one target found, by the keys of the figures. */
export type Sample = Readonly<Record<string, number>>;

/** What a case is given to measure one target once. */
export interface Measurement extends Aim {
  readonly headers: readonly string[];
  readonly warmMs: number;
  readonly runMs: number;
  /** Where the mock replica listens itself, for what no gateway adds. */
  readonly replicaPort: number;
  /** Holds the request bodies. */
  readonly folder: string;
}

/** One kind of load, and what it shows of a target. */
export interface Case {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** The target that the others are compared with. */
  readonly reference: string;
  /** Without it, all targets. */
  readonly targets?: readonly string[];
  readonly replicaCount?: number;
  readonly isQuick?: boolean;
  /** How often it is measured; without it, as the command line says. */
  readonly rounds?: number;
  readonly measure: (measurement: Measurement) => Promise<Sample>;
}
