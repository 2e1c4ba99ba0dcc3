import { expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const SECRET = 'a-text-that-no-span-may-have';

test('a span has the parameters of its request and the names in the headers of the configuration, and no text', async () => {
  await using replica = await startFakeReplica();
  await using collector = await startFakeCollector();
  await using gateway = await startGateway({
    collector,
    replicas: [{ name: 'a', url: replica.url }],
    config: {
      trace: { spans: 'operation', dialects: ['langfuse', 'openinference'] },
      headers: {
        user: 'X-User',
        session: 'X-Session',
        agent: 'X-Agent',
        prompt: 'X-Prompt',
        prompt_version: 'X-V',
      },
    },
  });
  const members = { temperature: 0.5, n: 2, stop: [SECRET], response_format: { type: SECRET }, user: SECRET };
  await gateway.chat(members, {
    headers: {
      'X-User': 'u-1',
      'X-Session': 's\u00f8-1',
      'X-Agent': 'researcher',
      'X-Prompt': 'support',
      'X-V': '3',
    },
  });
  await gateway.chat();
  await collector.waitFor(({ spans }) => spans.length === 4);
  const [said, silent] = collector.spans.filter(({ name }) => name === 'chat m');
  expect(said?.attributes).toMatchObject({
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.choice.count': 2,
    'user.id': 'u-1',
    'session.id': 's\u00f8-1',
    'gen_ai.agent.name': 'researcher',
    'gen_ai.prompt.name': 'support',
    'langfuse.observation.prompt.version': '3',
    'openinference.span.kind': 'LLM',
    'llm.invocation_parameters': '{"temperature":0.5,"n":2}',
  });
  expect(JSON.stringify(collector.spans)).not.toContain(SECRET);
  expect(
    Object.keys(silent?.attributes ?? {}).filter((name) =>
      /user|session|temperature|prompt\.name/.test(name),
    ),
  ).toEqual([]);
});

test('without these keys the same headers say nothing', async () => {
  await using replica = await startFakeReplica();
  await using collector = await startFakeCollector();
  await using gateway = await startGateway({ collector, replicas: [{ name: 'a', url: replica.url }] });
  await gateway.chat({}, { headers: { 'X-User': 'u-1', 'X-Agent': 'researcher' } });
  await collector.waitFor(({ spans }) => spans.length === 1);
  expect(JSON.stringify(collector.spans)).not.toMatch(/u-1|researcher|langfuse/);
});
