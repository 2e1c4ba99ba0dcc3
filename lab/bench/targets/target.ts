import type { Command } from '#testkit/programs/child.ts';

/** The ports and the folder of a target. */
export interface Surroundings {
  /** The port of 127.0.0.1 to listen on. */
  readonly port: number;
  readonly replicaPorts: readonly number[];
  /** A collector that accepts every record, at /v1/traces. */
  readonly collectorPort: number;
  /** A port that refuses connections. */
  readonly closedPort: number;
  /** For targets that insist on a second listener. */
  readonly sparePort: number;
  /** PEM files with which the port is served over TLS 1.3; absent: without TLS. */
  readonly tls?: { readonly certPath: string; readonly keyPath: string };
  /** An empty folder for configuration and state. */
  readonly folder: string;
  /** Another checkout of this repository to compare with; null without --baseline. */
  readonly baseline: string | null;
  /** Options of Node, before those of the gateway, such as --cpu-prof. */
  readonly nodeFlags: readonly string[];
}

/** What is measured: this gateway, a variant of it, or a rival. */
export interface Target {
  readonly name: string;
  /** What it records of a request, in a few words; absent: nothing. */
  readonly records?: string;
  /** Why it cannot run here, or null when it can. */
  readonly findObstacle: (baseline: string | null) => string | null;
  /** Writes the configuration and returns the command that starts the target. */
  readonly prepare: (surroundings: Surroundings) => Command;
  /** Additional header fields of requests, as `Name: value`. */
  readonly toHeaders?: (surroundings: Surroundings) => readonly string[];
  /** Null if unknown; absent where the commit is the version. */
  readonly readVersion?: () => string | null;
  readonly startTimeoutMs?: number;
  /** Whether the target takes part in a case; absent: in all. */
  readonly isFor?: (caseName: string) => boolean;
}
