import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/admin/access/caller.ts';
import { SignIns } from '../../../src/admin/access/sign-ins.ts';

const ALICE: Caller = { name: 'alice', role: 'operator' };
const BOB: Caller = { name: 'bob', role: 'reader' };

const digestOf = (secret: string) => createHash('sha256').update(secret).digest('base64');

function create() {
  const clock = { nowMs: 1_000_000, stepMs: 0 };
  const signIns = new SignIns(
    () => clock.nowMs + clock.stepMs,
    () => clock.nowMs,
  );
  const find = (secret: string) => signIns.find(digestOf(secret));
  const open = (secret: string) => {
    const caller = find(secret);
    return caller === null ? null : signIns.open(caller);
  };
  return { clock, signIns, find, open };
}

test('a link opens one session, with the name and the role of who made it', () => {
  const { signIns, find, open } = create();
  const { secret } = signIns.createLink(ALICE);
  expect(find(secret)).toEqual({ ...ALICE, via: 'link' });
  const session = open(secret);
  expect(find(session?.secret ?? '')).toEqual({ ...ALICE, via: 'session' });
  expect(find(secret)).toBeNull();
  expect(open(secret)).toBeNull();
});

test('of two calls with the same link at once, one opens a session', () => {
  const { signIns, find } = create();
  const caller = find(signIns.createLink(ALICE).secret) as Caller;
  expect([signIns.open(caller), signIns.open(caller)].filter((session) => session !== null)).toHaveLength(1);
});

test('a session opens no other', () => {
  const { signIns, find, open } = create();
  const session = open(signIns.createLink(ALICE).secret);
  expect(signIns.open(find(session?.secret ?? '') as Caller)).toBeNull();
});

test('a link ends after ten minutes, a session after twelve hours', () => {
  const { clock, signIns, find, open } = create();
  const late = signIns.createLink(ALICE);
  const session = open(signIns.createLink(ALICE).secret);
  clock.nowMs = late.untilMs - 1;
  expect(find(late.secret)).not.toBeNull();
  clock.nowMs += 1;
  expect(late.untilMs).toBe(1_000_000 + 10 * 60_000);
  expect(find(late.secret)).toBeNull();
  clock.nowMs = 1_000_000 + 12 * 3_600_000 - 1;
  expect(find(session?.secret ?? '')).not.toBeNull();
  clock.nowMs += 1;
  expect(find(session?.secret ?? '')).toBeNull();
});

test('a link ends after ten minutes even if the time of day is set back, and when it has passed the end', () => {
  const { clock, signIns, find } = create();
  const { secret } = signIns.createLink(ALICE);
  clock.stepMs = -3_600_000;
  clock.nowMs += 10 * 60_000 - 1;
  expect(find(secret)).not.toBeNull();
  clock.nowMs += 1;
  expect(find(secret)).toBeNull();
  const later = signIns.createLink(ALICE);
  expect(later.untilMs).toBe(clock.nowMs - 3_600_000 + 10 * 60_000);
  clock.stepMs = 0;
  expect(find(later.secret)).toBeNull();
});

test('links and sessions end with the token that they were made with', () => {
  const { signIns, find, open } = create();
  const [ofAlice, ofBob] = [ALICE, BOB].map((each) => signIns.createLink(each).secret);
  const session = open(signIns.createLink(BOB).secret);
  signIns.keepOf([ALICE]);
  expect(find(ofAlice ?? '')).not.toBeNull();
  expect(find(ofBob ?? '')).toBeNull();
  expect(find(session?.secret ?? '')).toBeNull();
});

test('too many links of one token take the places of its oldest ones, and of nobody else', () => {
  const { signIns, find } = create();
  const ofAlice = signIns.createLink(ALICE).secret;
  const ofBob = Array.from({ length: 33 }, () => signIns.createLink(BOB).secret);
  expect(ofBob.map(find).map((caller) => caller === null)).toEqual([true, ...Array(32).fill(false)]);
  expect(find(ofAlice)).not.toBeNull();
});
