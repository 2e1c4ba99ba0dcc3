import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '#config';
import {
  expandService,
  hasSrvRecords,
  mergeReplicas,
} from '../../../src/replicas/discovery/expand-service.ts';
import { type ServiceConfig, splitServers } from '../../../src/replicas/discovery/servers.ts';

function service(name: string, dns: string, more: object = {}): ServiceConfig {
  const text = JSON.stringify({ replicas: [{ name, dns, ...more }] });
  const { replicas } = parseConfig(text, { path: 'gateway.yaml', env: {} });
  const [first] = splitServers(replicas.map(({ tls: _, ...entry }) => entry)).services;
  if (first === undefined) throw new Error('a service');
  return first;
}

const endpoint = (host: string, port: number | null = null) => ({ host, port });
const namesOf = (replicas: readonly { readonly name: string }[]) => replicas.map(({ name }) => name);

describe('a name with addresses', () => {
  const pods = service('vllm', 'http://vllm.llm.svc.cluster.local:8000/engine', { gpu_model: 'H100' });

  test('is one replica for each address, named after it, with the same settings', () => {
    expect(hasSrvRecords(pods)).toBe(false);
    const { kubernetes: _, ...settings } = pods;
    const common = { ...settings, gpuModel: 'H100', tlsName: 'vllm.llm.svc.cluster.local' };
    expect(expandService(pods, [endpoint('10.0.0.11'), endpoint('fd00::b')])).toEqual([
      { ...common, name: 'vllm-10.0.0.11', url: 'http://10.0.0.11:8000/engine', host: '10.0.0.11' },
      { ...common, name: 'vllm-fd00--b', url: 'http://[fd00::b]:8000/engine', host: 'fd00::b' },
    ]);
  });

  test('is the same list in whatever order the addresses arrive', () => {
    const endpoints = Array.from({ length: 12 }, (_, index) => endpoint(`10.0.0.${index}`));
    const inOrder = expandService(pods, endpoints);
    expect(namesOf(inOrder).at(-1)).toBe('vllm-10.0.0.11');
    fc.assert(
      fc.property(fc.shuffledSubarray(endpoints, { minLength: 12 }), (shuffled) => {
        expect(expandService(pods, shuffled)).toEqual(inOrder);
      }),
    );
  });
});

describe('a name with SRV records', () => {
  const pods = service('vllm', 'https://_http._tcp.vllm.llm.svc.cluster.local');

  test('is one replica for each target, named after the pod', () => {
    expect(hasSrvRecords(pods)).toBe(true);
    const found = ['vllm-10', 'vllm-2'].map((pod) => endpoint(`${pod}.vllm.llm.svc.cluster.local`, 8000));
    expect(expandService(pods, found)).toMatchObject([
      { name: 'vllm-2', url: 'https://vllm-2.vllm.llm.svc.cluster.local:8000' },
      { name: 'vllm-10', url: 'https://vllm-10.vllm.llm.svc.cluster.local:8000' },
    ]);
    expect(expandService(pods, found)[0]).not.toHaveProperty('tlsName');
  });

  test('prefixes targets with the name of the entry unless they begin with it', () => {
    expect(namesOf(expandService(pods, [endpoint('gpu-7.example.com', 80)]))).toEqual(['vllm-gpu-7']);
  });

  test('leaves out targets that are not host names', () => {
    for (const host of ['', '.', 'a b', 'a/b', 'a@b', '-.:', 'x'.repeat(64)]) {
      expect(expandService(pods, [endpoint(host, 80)])).toEqual([]);
    }
  });
});

test('of two replicas with one name the first is kept and the other is reported', () => {
  const a = service('vllm', 'http://_http._tcp.a.test');
  const b = service('vllm', 'http://_http._tcp.b.test');
  const [first] = expandService(a, [endpoint('vllm-0.a.test', 80)]);
  const [second] = expandService(b, [endpoint('vllm-0.b.test', 80)]);
  if (first === undefined || second === undefined) throw new Error('two replicas');
  expect(mergeReplicas([first, second])).toEqual({ replicas: [first], leftOut: [second] });
});
