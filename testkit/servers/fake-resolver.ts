import type { Endpoint, Resolver } from '#replicas/discovery';
import { EventLog } from '../event-log.ts';

/** A resolver with scripted answers. */
export interface FakeResolver extends Resolver {
  /** The queried names, oldest first. */
  readonly questions: EventLog<string>;
  /** The endpoints of a name from now on; a code: the query fails with it. */
  point(name: string, to: readonly Endpoint[] | string): void;
  /** Resolves when the gateway uses the latest answer: after two more queries. */
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
