import type { Logger } from 'pino';
import type { ConditionBoard } from '#conditions';
import type { EnvironmentSecrets } from '#config/secrets';
import type { RequestRecord } from '#otel/record/registry';
import type { Resolver } from '#replicas/discovery';
import type { OnStateWrite } from '#state-dir';
import type { Parts } from '../parts.ts';
import type { ConfigSource } from '../reload-config.ts';
import type { ServingMemory } from '../serving/serving-memory.ts';
import type { ConfigInEffect } from './config-in-effect.ts';
import type { LoadChannels } from './fleet-channel.ts';
import type { GatewayEvents } from './gateway-events.ts';

/** Lines of the log that were lost. */
export interface LostLogLines {
  readonly lost: number;
  /** `reader_is_slow`, or a code of the system. */
  readonly reason: string;
}

/** What a gateway gets from outside, beside its configuration. */
export interface GatewayCollaborators {
  readonly secrets: EnvironmentSecrets;
  readonly log: Logger;
  /** The id of the process. */
  readonly pid: number;
  /** Reads the configuration again. Unset: a reload is refused. */
  readonly configSource?: ConfigSource | undefined;
  /** Resolves the DNS names of services. Unset: the system's resolver. */
  readonly resolver?: Resolver | undefined;
  /** The lines of the log that were lost since the start, and why the last one was. Unset: nobody knows. */
  readonly lostLogLines?: (() => LostLogLines) | undefined;
  /** Called with every finished record after it has entered the queue. */
  readonly onRecord?: ((record: Readonly<RequestRecord>) => void) | undefined;
  /** Whether made-up requests run before clients are served. Unset: none do, and the first clients wait for V8. */
  readonly rehearses?: boolean;
}

/** What each step of the composition gets. */
export interface Composition {
  readonly inEffect: ConfigInEffect;
  readonly collaborators: GatewayCollaborators;
  /** Gets what is to be started and stopped. */
  readonly parts: Parts;
  readonly events: GatewayEvents;
  /** What is wrong: who knows of something tells it. */
  readonly board: ConditionBoard;
  /** To be called with what came of each write in state_dir. */
  readonly onStateWrite: OnStateWrite;
  readonly memory: ServingMemory;
  /** On which the gateways of a fleet tell each other something that may get lost. */
  readonly loadChannels: LoadChannels;
  /** Of the gateway. */
  readonly version: string;
}
