/** Where everybody is. */
export const hostOf = {
  gateway: (index: number) => `10.0.0.${index + 1}`,
  replica: (index: number) => `10.0.1.${index + 1}`,
  collector: '10.0.2.1',
  redis: '10.0.3.1',
  client: '10.1.0.1',
  operator: '10.2.0.1',
} as const;

export const PORTS = { clients: 8080, admin: 9090, replica: 8000, collector: 4318, redis: 6379 } as const;

/** The name of a replica in the configuration. */
export const nameOfReplica = (index: number): string => `replica-${index}`;
