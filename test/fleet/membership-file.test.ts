import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newLogicalTimestamp } from '#replicas/drain-state';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { createMembershipFile } from '../../src/fleet/membership-file.ts';

test('the membership survives a restart', async () => {
  const folder = await temporaryFolder();
  const membership = {
    id: newLogicalTimestamp(''),
    home: newLogicalTimestamp(''),
    isKnown: true,
    removed: [newLogicalTimestamp('')],
    members: new Map([[newLogicalTimestamp(''), 'gw-b']]),
  };
  const open = () => createMembershipFile(folder, { error: () => expect.unreachable() });
  expect((await open().read()).id).toBeNull();
  await open().write(membership);
  expect(await open().read()).toEqual(membership);
  expect(await readFile(join(folder, 'fleet.json'), 'utf8')).toContain('gw-b');
});

const ID = newLogicalTimestamp('');
const FOREIGN = { version: 1, id: ID, isKnown: true, members: { foo: 'foo', [ID]: 'gw' }, removed: ['x'] };
test.each([
  ['', null],
  ['{}', null],
  [JSON.stringify({ ...FOREIGN, id: 'x' }), null],
  [
    JSON.stringify(FOREIGN),
    { id: ID, home: null, isKnown: true, members: new Map([[ID, 'gw']]), removed: [] },
  ],
])('what is readable of a damaged file is kept, and the file is set aside: %j', async (text, kept) => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'fleet.json'), text);
  const lines: object[] = [];
  const file = createMembershipFile(folder, { error: (fields) => void lines.push(fields) });
  expect(await file.read()).toMatchObject(kept ?? { id: null, isKnown: false });
  const [aside = '', ...others] = await readdir(folder);
  expect([others, await readFile(join(folder, aside), 'utf8')]).toEqual([[], text]);
  expect(lines).toEqual([
    {
      file: join(folder, 'fleet.json'),
      set_aside: expect.stringMatching(/^fleet\.json\.damaged-\d{8}T\d{6}\.\d{3}Z$/),
      lost: kept === null ? 'all of it' : ['foo', 'x'],
    },
  ]);
});

test('an id that is an object which cannot be a text is named as JSON', async () => {
  const folder = await temporaryFolder();
  const damaged = { ...FOREIGN, members: {}, removed: [{ toString: 1 }] };
  await writeFile(join(folder, 'fleet.json'), JSON.stringify(damaged));
  const lines: object[] = [];
  const file = createMembershipFile(folder, { error: (fields) => void lines.push(fields) });
  expect(await file.read()).toMatchObject({ id: ID, removed: [] });
  expect(lines).toMatchObject([{ lost: ['{"toString":1}'] }]);
});
