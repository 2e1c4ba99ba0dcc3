import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const lineOf = (name: string) =>
  `${JSON.stringify({ name, key_sha256: createHash('sha256').update(name).digest('hex') })}\n`;

test('a file of clients that cannot be used is told, as long as it stays so', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'clients.jsonl');
  const put = async (text: string) => {
    await writeFile(`${path}.next`, text);
    await rename(`${path}.next`, path);
  };
  await put(lineOf('first'));
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({ replicas: [replica], config: { clients_file: path } });
  await put(lineOf('twice') + lineOf('twice'));
  const { subject, figures } = await untilCondition(gateway, 'clients_file_unusable');
  expect(subject).toBe(path);
  expect(figures.reason).toContain('has the same name');

  // A reload refuses the file too, and the condition stays.
  expect((await gateway.reload()).status).toBe(422);
  await put(lineOf('second'));
  await untilOver(gateway, 'clients_file_unusable');
  expect(linesOf(gateway, 'clients_file_unusable')).toHaveLength(2);
  expect(gateway.logLines.join('\n')).toContain('clients_file applied');
});
