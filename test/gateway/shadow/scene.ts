import {
  answerStream,
  chatChunk,
  DONE,
  type FakeReplica,
  type Script,
  startFakeReplicas,
  usageChunk,
} from '#testkit/fake-replica.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

/** A gateway with a replica that serves, `a`, and a shadow, `s`, which gets a copy of every request. */
export interface ShadowScene extends AsyncDisposable {
  readonly gateway: StartedGateway;
  readonly a: FakeReplica;
  readonly s: FakeReplica;
  /** Sends chats until the shadow has got so many requests in all: while the machine is busy, some are not copied. */
  untilCopied(count: number, members?: object): Promise<void>;
}

/** A stream of these words, each a token. */
export const words = (...texts: readonly string[]): Script =>
  answerStream([
    ...texts.map((text) => chatChunk(text)),
    chatChunk('', 'stop'),
    usageChunk(7, texts.length),
    DONE,
  ]);

/** Starts the scene. `role`: of `s`. */
export async function startShadowScene({
  role = 'shadow' as 'shadow' | 'serve',
  shadow = {},
  workers = 1,
  config = {},
  replica = {},
  ...options
}: Partial<StartGatewayOptions> & {
  readonly role?: 'shadow' | 'serve';
  readonly shadow?: Readonly<Record<string, unknown>>;
  readonly workers?: number;
  /** What both replicas have in the configuration, too. */
  readonly replica?: Readonly<Record<string, unknown>>;
} = {}): Promise<ShadowScene> {
  const replicas = await startFakeReplicas('a', 's');
  const [a, s] = replicas;
  const gateway = await startGateway({
    replicas: [
      { ...toConfigured(a), ...replica },
      { ...toConfigured(s), ...replica, role },
    ],
    ...options,
    config: { gateway: { workers }, shadow: { requests: '100%', ...shadow }, ...config },
  });
  return {
    gateway,
    a,
    s,
    async untilCopied(count, members = {}) {
      while (s.requests.length < count) await (await gateway.chat(members)).text();
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await replicas[Symbol.asyncDispose]();
    },
  };
}

/** A replica as the configuration has it. */
export function toConfigured({ name, url }: FakeReplica): { readonly name: string; readonly url: string } {
  return { name, url };
}

/** The answer to GET /admin/verdict. */
export interface ShadowVerdict {
  readonly verdict: string;
  readonly sentence: string;
  readonly reasons: readonly string[];
  readonly requests: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly pairs: {
    readonly outputs: {
      readonly compared: number;
      readonly equal: number;
      readonly parts_after: readonly number[];
      readonly again: Readonly<Record<string, number>>;
    };
    readonly tool_calls: { readonly compared: number; readonly same: number };
    readonly waiting: number;
    readonly skipped: Readonly<Record<string, number>>;
    readonly candidate: { readonly cost_per_million: number | null };
  } | null;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Asks for the verdict on the shadow. */
export async function askVerdict(gateway: StartedGateway, query = 'candidate=s'): Promise<ShadowVerdict> {
  return (await (await gateway.admin(`/admin/verdict?${query}`)).json()) as ShadowVerdict;
}
