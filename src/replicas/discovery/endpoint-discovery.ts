import { inParallel } from '#base';
import { type Log, waitAtMost } from '#otel/base';
import { hasSrvRecords } from './expand-service.ts';
import type { Endpoint, Resolver } from './resolver.ts';
import type { ServiceConfig } from './servers.ts';
import { type SourceStatus, toFailing, toOk, UNKNOWN_STATUS } from './source-state.ts';

/** Look-ups at the same time. Those of addresses take threads of the pool that files and connections need too. */
const PARALLEL_LOOKUPS = 2;

/**
 * The endpoints behind the names of services. A name that cannot be resolved, or has no address any more, keeps its
 * last endpoints: replicas that are gone refuse connections, and the others go on serving.
 */
export class EndpointDiscovery {
  readonly #resolver: Resolver;
  readonly #log: Log<'info' | 'warn'>;
  readonly #known = new Map<string, readonly Endpoint[]>();
  readonly #statuses = new Map<string, SourceStatus>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(resolver: Resolver, log: Log<'info' | 'warn'>) {
    this.#resolver = resolver;
    this.#log = log;
  }

  /** Null if the name was never resolved. */
  endpointsOf(service: ServiceConfig): readonly Endpoint[] | null {
    return this.#known.get(hostOf(service)) ?? null;
  }

  /** Whether the name was resolved the last time. */
  statusOf(service: ServiceConfig): SourceStatus {
    return this.#statusOf(hostOf(service));
  }

  /** Resolves the names again, and waits for that at most `timeoutMs`. Later answers are used when they arrive. */
  async resolve(services: readonly ServiceConfig[], timeoutMs: number): Promise<void> {
    const all = inParallel(services, PARALLEL_LOOKUPS, (service) => this.#resolve(service));
    await waitAtMost(timeoutMs, all);
  }

  /** Looks a name up, or waits for the look-up that is under way. */
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
    const before = this.#statusOf(host);
    this.#statuses.set(host, toOk(before));
    if (before.state !== 'failing') return;
    this.#log.info({ service: name, dns_name: host }, 'name resolved again');
  }

  #noteFailure({ name }: ServiceConfig, host: string, errorCode: string): void {
    const before = this.#statusOf(host);
    this.#statuses.set(host, toFailing(before, errorCode));
    if (before.state === 'failing') return;
    const kept = this.#known.get(host)?.length ?? 0;
    this.#log.info({ service: name, dns_name: host, error_code: errorCode, kept }, 'name not resolved');
  }

  #statusOf(host: string): SourceStatus {
    return this.#statuses.get(host) ?? UNKNOWN_STATUS;
  }
}

function hostOf({ url }: ServiceConfig): string {
  return new URL(url).hostname;
}

/** The codes of the system and of name servers are words such as `ENOTFOUND`. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^\w{1,64}$/.test(code) ? code : 'unknown_error';
}
