import type { ClientLimiter, TenantLimits } from '#access/limits';
import type { Log } from '#otel/base';
import type { Recorder } from '#otel/span';
import type { ApiClient, ApiClients, PassedPaths, TrustedProxies } from '#proxy/entry';
import type { ReplicaPool } from '#replicas';
import type { SharedLimit } from '#shared-memory';
import type { SendListener } from './attempt/copying.ts';
import type { SendSettings } from './attempt/send.ts';
import type { RecordedEndpoint } from './endpoints/recorded-endpoint.ts';
import type { BackgroundResponse } from './record/background-response.ts';
import type { PrefixHashSettings } from './record/prefix-hashes.ts';
import type { RecordedFieldsSettings } from './record/recorded-fields.ts';
import type { BodyInspector } from './request/inspection/body-inspector.ts';
import type { ModelAliases } from './request/model-aliases.ts';
import type { EventScratch } from './response/events/event-scratch.ts';

/** The settings of the proxy. A request keeps those it began with. */
export interface ProxySettings extends SendSettings {
  /** The endpoints that are recorded, by path. */
  readonly endpoints: ReadonlyMap<string, RecordedEndpoint>;
  readonly recordedFields: RecordedFieldsSettings;
  /** Whether the spans of requests are children of their clients' spans. */
  readonly continuesTraces: boolean;
  /** Whether answers say which replica they are from, and why. */
  readonly tellsRoute: boolean;
  /** Who may send requests; null: everyone. */
  readonly apiClients: ApiClients | null;
  /** Null: tenants have no limits. */
  readonly tenantLimits: TenantLimits | null;
  /** What is relayed and not recorded. */
  readonly passes: PassedPaths;
  readonly aliases: ModelAliases;
  /** Whether the gateway lists the models of all replicas itself. */
  readonly listsAllModels: boolean;
  /** Whether clients may read their own usage. */
  readonly tellsUsage: boolean;
  readonly maxBodyBytes: number;
  /** How much of a form is held while its model is not known. */
  readonly maxBeforeModelBytes: number;
  readonly maxEventBytes: number;
  /** Unicode code points in a block of a hashed prefix. */
  readonly prefixBlockChars: number;
  /** Whether engines are asked for running figures of usage. */
  readonly asksRunningUsage: boolean;
  readonly clientBodyMs: number;
  /** Whether each step of a request is logged. */
  readonly isDebug: boolean;
  /** How long a request may wait for a replica with room, over all attempts. */
  readonly queueMs: number;
}

/** The settings of all requests of a listener. */
export interface ProxyPolicy {
  readonly settings: ProxySettings;
  /** The settings of requests from proxies that are trusted to set headers; null: these make no difference. */
  readonly trusted: { readonly proxies: TrustedProxies; readonly settings: ProxySettings } | null;
}

/** What the proxy works with. */
export interface ProxyCollaborators {
  readonly pool: ReplicaPool;
  readonly telemetry: Omit<Recorder, 'shutdown'>;
  /** How the texts of requests are hashed. */
  readonly prefixHash: PrefixHashSettings;
  readonly bodyBudget: SharedLimit;
  readonly limiter: ClientLimiter;
  readonly log: Log<'debug' | 'error'>;
  /** Called with each response that its replica goes on with after its answer. */
  readonly followResponse: (response: Omit<BackgroundResponse, 'worker'>) => void;
  /** Hears of requests that go to replicas; null: nobody does. */
  readonly sendListener: SendListener | null;
  /** Called with each request that was refused because it has come back. */
  readonly onLoop: () => void;
  /** Answers a client that asks for its usage. `search`: the query as sent. */
  readonly tellUsage: (
    client: Pick<ApiClient, 'name' | 'tenant'>,
    search: string,
  ) => Promise<{ readonly status: number; readonly body: string }>;
}

/** The same, with what the proxy creates for itself. */
export interface ProxyTools extends ProxyCollaborators {
  readonly scratch: EventScratch;
  readonly inspector: BodyInspector;
}
