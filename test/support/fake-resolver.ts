import type { Endpoint, Resolver } from '../../src/replicas/control/discovery/resolver.ts';
import { EventLog } from './event-log.ts';

/** A resolver that knows what the test says. */
export interface FakeResolver extends Resolver {
  /** The names that were asked for, oldest first. */
  readonly questions: EventLog<string>;
  /** Who is behind a name from now on: endpoints; a code: it cannot be told. */
  point(name: string, to: readonly Endpoint[] | string): void;
  /** Resolves when the gateway goes by what was said last: it has asked twice since, one time after the other. */
  untilHeard(): Promise<void>;
}

/** Creates a resolver that knows no name. */
export function createFakeResolver(): FakeResolver {
  const known = new Map<string, readonly Endpoint[] | string>();
  const questions = new EventLog<string>();
  const resolve = async (name: string) => {
    questions.push(name);
    const found = known.get(name) ?? 'ENOTFOUND';
    if (typeof found === 'string') throw Object.assign(new Error(`${name} ${found}`), { code: found });
    return found;
  };
  return {
    questions,
    resolveHost: resolve,
    resolveService: resolve,
    point: (name, to) => known.set(name, to),
    untilHeard: async () => {
      await questions.count(questions.items.length + 2);
    },
  };
}

/** Endpoints by their addresses, at the port of the service's url. */
export function addresses(...hosts: readonly string[]): readonly Endpoint[] {
  return hosts.map((host) => ({ host, port: null }));
}
