import type { Command } from '../child.ts';

/** What a target is started in front of, and where. */
export interface Surroundings {
  /** Where it shall listen, on 127.0.0.1. */
  readonly port: number;
  readonly replicaPorts: readonly number[];
  /** Where records go: a collector that takes everything, at /v1/traces. */
  readonly collectorPort: number;
  /** A port that refuses connections. */
  readonly closedPort: number;
  /** For a second listener that nobody asks for, where there must be one. */
  readonly sparePort: number;
  /** An empty folder of its own, for configuration and state. */
  readonly folder: string;
  /** Another checkout of this repository, to compare with; null unless --baseline names one. */
  readonly baseline: string | null;
  /** Given to Node before the gateway's own arguments, as --cpu-prof. */
  readonly nodeFlags: readonly string[];
}

/** Something that is measured: this gateway, a variant of it, or a rival. */
export interface Target {
  readonly name: string;
  /** Why it cannot run here, or null when it can. */
  readonly findObstacle: (baseline: string | null) => string | null;
  /** Writes its configuration and tells how to start it. */
  readonly prepare: (surroundings: Surroundings) => Command;
  /** What requests need for it beyond the usual, as `Name: value`. */
  readonly toHeaders?: (surroundings: Surroundings) => readonly string[];
  /** Null when it cannot be told; absent where the commit says it. */
  readonly readVersion?: () => string | null;
  readonly startTimeoutMs?: number;
  /** Cases that it is left out of, because they say nothing about it or would take too long. */
  readonly isFor?: (caseName: string) => boolean;
}
