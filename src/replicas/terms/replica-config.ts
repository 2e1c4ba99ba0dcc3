import type { SecuredReplica } from '#config';

/**
 * One replica, from the configuration, DNS or Kubernetes. `url` is the origin and a path prefix without a trailing slash.
 * `apiKey` is secret.
 */
export type ReplicaConfig = Omit<SecuredReplica, 'url' | 'dns' | 'kubernetes' | 'host'> & {
  readonly url: string;
  readonly host: string;
  /** The id of its pod: one that has another id is another server, even if it has the same address. */
  readonly serverId?: string;
};

/** An inference engine whose API the gateway knows. */
export type Engine = Exclude<ReplicaConfig['engine'], 'auto'>;
