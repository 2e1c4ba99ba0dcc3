/** The gateway's configuration of the chart: engines behind Services, and times for an impatient program. */
export function toValues({ gateways = 1, ramp = '1s' } = {}): object {
  const entry = (name: string, gate: boolean) => ({
    name,
    models: ['m'],
    engine: 'vllm',
    kubernetes: { service: name, port_name: 'http', readiness_gate: gate },
  });
  const many = { name: 'many', models: ['many'], kubernetes: { service: 'many', port_name: 'http' } };
  return {
    replicas: gateways,
    image: { tag: 'lab' },
    config: {
      replicas: [
        ...[entry('vllm', false), entry('chat', true), many],
        ...[entry('judged-primary', false), entry('judged-canary', false)], // Flagger's
      ],
      rollout: { ramp },
      shutdown: { delay: '4s', grace: '60s', flush: '2s' },
      export: { endpoint: 'http://otel-collector:4318', interval: '1s' },
      ...(gateways > 1 ? { state: { redis: 'redis://valkey:6379' } } : {}),
    },
    kubernetes: { enabled: true, podLabels: true, readinessGate: { enabled: true } },
    networkPolicy: { enabled: true },
  };
}
