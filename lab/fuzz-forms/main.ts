import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { compare, type Verdict } from './compare.ts';
import type { Form, PeerReading } from './form.ts';
import { generateForm } from './generate.ts';
import { formsOfClients, installPeers, type Peer, readWithPeers } from './peers/peers.ts';
import { readOurs } from './read-ours.ts';

const USAGE = `npm run lab -- fuzz-forms [options]
  Gives the same forms to the gateway's reader and to real parsers: Starlette with python-multipart, and cpp-httplib,
  two versions of each. What the gateway accepts, every parser that accepts it must read in the same way. Prints the
  first form for which that does not hold, and exits with 1. Forms of real clients come first: all must accept them.
  Installs the parsers in the user cache: needs Python, tar and g++.
  --forms N   number of generated forms (200000)
  --seed N    seed of their generator (1)
  --first N   index of the first form (0), to repeat a finding
  --alone     only the gateway's reader, which must read the same however a form is cut`;

/** Forms in one file for the parsers. */
const BATCH_FORMS = 10_000;

const { forms, seed, first, alone } = startProgram(USAGE, {
  forms: { type: 'string', default: '200000' },
  seed: { type: 'string', default: '1' },
  first: { type: 'string', default: '0' },
  alone: { type: 'boolean', default: false },
});
process.exitCode = await run(toCount(forms), toCount(seed), toCount(first), alone);

async function run(count: number, seed: number, first: number, isAlone: boolean): Promise<number> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-forms-'));
  const peers = isAlone ? [] : await installPeers();
  for (const { name } of peers) console.log(name);
  if (!isAlone && !(await acceptClients(peers, folder.path))) return 1;
  const counts: Record<Verdict, number> = { alike: 0, peer_refused: 0, refused: 0, split: 0 };
  const refusals = new Map<string, number>();
  const end = first + count;
  for (let at = first; at < end; at += BATCH_FORMS) {
    const indexes = Array.from({ length: Math.min(BATCH_FORMS, end - at) }, (_, i) => at + i);
    const batch = indexes.map((index) => generateForm(seed, index));
    const readings = await readWithPeers(peers, batch, folder.path);
    for (const [i, form] of batch.entries()) {
      const ours = readOurs(form);
      const theirs = readingsOf(readings, i);
      const { verdict, difference } = compare(form, ours, theirs);
      if (difference !== null) {
        report(form, difference);
        console.error(`again: npm run lab -- fuzz-forms --seed ${seed} --first ${at + i} --forms 1`);
        return 1;
      }
      counts[verdict]++;
      if (verdict !== 'peer_refused') continue;
      for (const [name, parts] of theirs)
        if (parts === null) refusals.set(name, (refusals.get(name) ?? 0) + 1);
    }
    console.error(`${at + batch.length - first} forms …`);
  }
  console.log(
    `seed ${seed}: ${count} forms: ${counts.alike} accepted and read alike by all, ${counts.peer_refused} accepted ` +
      `and refused by a parser, ${counts.split} refused that the parsers read in different ways, ` +
      `${counts.refused} other refused, 0 accepted and read in different ways`,
  );
  for (const [name, refused] of refusals) console.log(`${name} refused ${refused} of those accepted`);
  return 0;
}

/** Whether the forms of real clients are accepted, and read alike, by all. */
async function acceptClients(peers: readonly Peer[], folder: string): Promise<boolean> {
  const forms = [...(await formsOfClients(folder)), await formOfNode()];
  const readings = await readWithPeers(peers, forms, folder);
  for (const [i, form] of forms.entries()) {
    const { verdict, difference } = compare(form, readOurs(form), readingsOf(readings, i));
    if (verdict === 'alike' && difference === null) continue;
    report(form, difference ?? `a client's form is ${verdict}`);
    return false;
  }
  console.log(`${forms.length} forms of clients: accepted and read alike by all`);
  return true;
}

/** A form as Node writes it, and so OpenAI's client for JavaScript. */
async function formOfNode(): Promise<Form> {
  const data = new FormData();
  data.append('file', new File(['RIFF'], 'é "1".wav', { type: 'audio/wav' }));
  data.append('model', 'whisper');
  data.append('prompt', 'é');
  const request = new Request('http://localhost', { method: 'POST', body: data });
  const contentType = request.headers.get('content-type') ?? '';
  return { contentType, pieces: [Buffer.from(await request.arrayBuffer())] };
}

function readingsOf(
  readings: ReadonlyMap<string, readonly PeerReading[]>,
  index: number,
): ReadonlyMap<string, PeerReading> {
  return new Map([...readings].map(([name, all]) => [name, all[index] ?? null]));
}

function report({ contentType, pieces }: Form, difference: string): void {
  console.error(`FOUND: ${difference}`);
  console.error(`type:   ${JSON.stringify(contentType)}`);
  console.error(`pieces: ${JSON.stringify(pieces.map((piece) => piece.toString('latin1')))}`);
}
