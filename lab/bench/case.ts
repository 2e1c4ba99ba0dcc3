import type { Aim } from './driver.ts';

/** One figure of a case. The first figure of a case is compared with the reference. */
export interface Figure {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
}

/** One measurement of one target, by the keys of the figures. */
export type Sample = Readonly<Record<string, number>>;

/** The parameters of one measurement of one target. */
export interface Measurement extends Aim {
  readonly headers: readonly string[];
  readonly warmMs: number;
  readonly runMs: number;
  /** The port of the mock replica itself, to measure without a target. */
  readonly replicaPort: number;
  /** Holds the request bodies. */
  readonly folder: string;
}

/** One kind of load, and the figures it gives of a target. */
export interface Case {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  /** The target with which the others are compared. */
  readonly reference: string;
  /** Absent: all targets. */
  readonly targets?: readonly string[];
  readonly replicaCount?: number;
  readonly isQuick?: boolean;
  /** Rounds of measurement; absent: those of the command line. */
  readonly rounds?: number;
  readonly measure: (measurement: Measurement) => Promise<Sample>;
}
