import type { ServiceConfig } from '../../../config/config.ts';
import { inParallel } from '../in-parallel.ts';
import { waitAtMost } from '../wait-at-most.ts';
import { hasSrvRecords } from './expand-service.ts';
import type { Endpoint, Resolver } from './resolver.ts';

/** Look-ups at the same time: those of addresses take threads that files and connections need as well. */
const PARALLEL_LOOKUPS = 2;

/** Where it is told that a name cannot be resolved, and that it can again. A pino logger fits. */
export interface EndpointLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/**
 * Who is behind the names of services, as far as is known. A name that cannot be resolved, or has no address any
 * more, keeps those it had last: replicas that are gone refuse connections, and those that are not go on serving.
 */
export class EndpointDiscovery {
  readonly #resolver: Resolver;
  readonly #log: EndpointLog;
  readonly #known = new Map<string, readonly Endpoint[]>();
  readonly #failing = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(resolver: Resolver, log: EndpointLog) {
    this.#resolver = resolver;
    this.#log = log;
  }

  /** Null while the name was never resolved. */
  endpointsOf(service: ServiceConfig): readonly Endpoint[] | null {
    return this.#known.get(hostOf(service)) ?? null;
  }

  /** Resolves the names again; waits for at most so long. An answer that comes later counts when it comes. */
  async resolve(services: readonly ServiceConfig[], timeoutMs: number): Promise<void> {
    const all = inParallel(services, PARALLEL_LOOKUPS, (service) => this.#resolve(service));
    await waitAtMost(timeoutMs, all);
  }

  /** A look-up that takes longer than the interval is not begun again. */
  #resolve(service: ServiceConfig): Promise<void> {
    const host = hostOf(service);
    const begun = this.#underWay.get(host);
    if (begun !== undefined) return begun;
    const lookUp = this.#lookUp(service, host).finally(() => this.#underWay.delete(host));
    this.#underWay.set(host, lookUp);
    return lookUp;
  }

  async #lookUp(service: ServiceConfig, host: string): Promise<void> {
    try {
      const found = hasSrvRecords(service)
        ? await this.#resolver.resolveService(host)
        : await this.#resolver.resolveHost(host);
      if (found.length === 0) this.#noteFailure(service, host, 'ENODATA');
      else this.#noteSuccess(service, host, found);
    } catch (error) {
      this.#noteFailure(service, host, codeOf(error));
    }
  }

  #noteSuccess({ name }: ServiceConfig, host: string, found: readonly Endpoint[]): void {
    this.#known.set(host, found);
    if (this.#failing.delete(host)) this.#log.info({ service: name, dns_name: host }, 'name resolved again');
  }

  #noteFailure({ name }: ServiceConfig, host: string, errorCode: string): void {
    if (this.#failing.has(host)) return;
    this.#failing.add(host);
    const kept = this.#known.get(host)?.length ?? 0;
    this.#log.warn({ service: name, dns_name: host, error_code: errorCode, kept }, 'name not resolved');
  }
}

function hostOf({ url }: ServiceConfig): string {
  return new URL(url).hostname;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}
