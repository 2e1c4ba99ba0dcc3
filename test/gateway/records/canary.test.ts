import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import { CANARY } from '#testkit/canaries/canary.ts';
import { CHAT, PASSAGES } from '#testkit/canaries/passages.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerStream, chatChunk, DONE, startFakeReplica } from '#testkit/fake-replica.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

test.for(PASSAGES)(
  'no text of $name is kept: not in records, logs, exports, files or admin answers',
  async (passage) => {
    const { path = CHAT, body, fields = [], script } = passage;
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica(script === undefined ? {} : { script });
    await using gateway = await startGateway({
      replicas: [replica],
      collector,
      hashSalt: '',
      config: {
        endpoints: ['responses', 'messages', 'audio/transcriptions'],
        log: { level: 'trace', requests: true },
        limits: { body: '16KiB' },
      },
    });
    using client = await RawConnection.open(gateway.url);
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: g',
      `Content-Length: ${Buffer.byteLength(body)}`,
      ...fields,
    ];
    client.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    await client.readResponse();
    client.write(`${CANARY} ${CANARY}\r\n${CANARY}\r\n\r\n`);
    await client.readToClose();

    const admin = await Promise.all(
      ['/admin/replicas', '/admin/stats', '/metrics', '/admin/unknown'].map(async (target) =>
        (await gateway.admin(target)).text(),
      ),
    );
    const filesBefore = await readFiles(gateway.stateDir);
    const isRecorded = !path.startsWith(`/v1/${CANARY}`);
    if (isRecorded) await collector.waitFor(({ spans }) => spans.length === 1);
    const files = [...filesBefore, ...(await readFiles(gateway.stateDir))];
    await gateway.close();

    expect(gateway.records).toHaveLength(isRecorded ? 1 : 0);
    expect(files.length).toBeGreaterThan(0);
    const kept = {
      records: JSON.stringify(gateway.records),
      exported: collector.calls.map((call) => call.body).join('\n'),
      log: gateway.logLines.join('\n'),
      admin: admin.join('\n'),
      files: files.join('\n'),
    };
    for (const [where, text] of Object.entries(kept)) expect(text, where).not.toContain(CANARY);
  },
);

test('the file export keeps no text either', async () => {
  await using replica = await startFakeReplica({ script: answerStream([chatChunk(CANARY), DONE]) });
  await using gateway = await startGateway({ replicas: [replica] });
  await (await gateway.chat({ stream: true, messages: [{ role: 'user', content: CANARY }] })).text();
  await gateway.waitForRecords(1);
  const { stateDir } = gateway;
  await askUntil(gateway.stats, ({ exported }) => exported === 1);

  const files = await readFiles(stateDir);

  expect(files.join('\n')).toContain('gateway.request_id');
  expect(files.join('\n')).not.toContain(CANARY);
});

/** Names and contents of all files in a directory. */
async function readFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(
    files.map(async ({ parentPath, name }) => `${name}\n${await readFile(join(parentPath, name), 'latin1')}`),
  );
}
