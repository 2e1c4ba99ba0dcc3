import { describe, expect, test } from 'vitest';
import { ConditionBoard, type ConditionChange, type Finding } from '#conditions';
import { MAX_SUBJECTS, OTHER_SUBJECTS } from '../../src/conditions/board.ts';

const unreachable = (subject: string, reason = 'connection refused'): Finding => ({
  id: 'replica_unreachable',
  subject,
  figures: { reason },
});

/** A board whose time stands still until it is moved. `changes` are its begins and ends: `begins r1`. */
function createBoard() {
  const time = { nowMs: 1_000, aheadMs: 0 };
  const changes: ConditionChange[] = [];
  const defects: unknown[] = [];
  const board = new ConditionBoard({
    nowMs: () => time.nowMs,
    epochMs: () => 1_700_000_000_000 + time.nowMs + time.aheadMs,
    toShown: (text, maxChars) => text.replaceAll('\u0007', '').slice(0, maxChars),
    onChange: (change) => changes.push(change),
    onDefect: (error) => defects.push(error),
  });
  const pass = (ms: number) => {
    time.nowMs += ms;
    board.look();
  };
  const setBack = (ms: number) => {
    time.aheadMs -= ms;
  };
  const told = () => changes.map(({ kind, condition }) => `${kind} ${condition.id} ${condition.subject}`);
  return { board, pass, setBack, told, changes, defects };
}

describe('the board of conditions', () => {
  test('tells what a producer finds, once at each end', () => {
    const { board, pass, told } = createBoard();
    let findings: Finding[] = [];
    board.add(() => findings);
    board.look();
    expect(board.current).toEqual([]);
    findings = [unreachable('r1')];
    pass(1_000);
    pass(1_000);
    expect(told()).toEqual(['begins replica_unreachable r1']);
    expect(board.current).toMatchObject([
      { id: 'replica_unreachable', severity: 'warning', subjectKind: 'replica', subject: 'r1' },
    ]);
    findings = [];
    pass(1_000);
    pass(1_000);
    expect(told()).toEqual(['begins replica_unreachable r1', 'ends replica_unreachable r1']);
    expect(board.current).toEqual([]);
  });

  test('shows names and texts as harmless as they can be made, and ends what was raised by the name that it has', () => {
    const { board, told } = createBoard();
    board.raise(unreachable(`r\u00071${'x'.repeat(300)}`, `gone\u0007 ${'y'.repeat(3_000)}`));
    const subject = `r1${'x'.repeat(254)}`;
    const reason = `gone ${'y'.repeat(2_043)}`;
    expect(board.current).toMatchObject([
      { subject, figures: { reason }, sentence: `${subject} does not answer: ${reason}` },
    ]);
    board.clear('replica_unreachable', `r\u00071${'x'.repeat(300)}`);
    expect(told()).toEqual([`begins replica_unreachable ${subject}`, `ends replica_unreachable ${subject}`]);
  });

  test('shows the newest figures and the time of the first finding', () => {
    const { board, pass } = createBoard();
    let findings = [unreachable('r1')];
    board.add(() => findings);
    board.look();
    findings = [unreachable('r1', 'connect timeout')];
    pass(5_000);
    expect(board.current).toMatchObject([
      { sentence: 'r1 does not answer: connect timeout', sinceEpochMs: 1_700_000_001_000 },
    ]);
  });

  test('takes over when it began, but no time to come', () => {
    const { board } = createBoard();
    const sinceEpochMs = 1_600_000_000_000;
    const later = 1_800_000_000_000;
    board.add(() => [
      { ...unreachable('r1'), sinceEpochMs },
      { ...unreachable('r2'), sinceEpochMs: later },
    ]);
    board.look();
    expect(board.current.map((each) => each.sinceEpochMs)).toEqual([sinceEpochMs, 1_700_000_001_000]);
  });

  test('shows how long something has lasted by a clock that was set back', () => {
    const { board, pass, setBack, changes } = createBoard();
    board.add(() => [unreachable('r1')]);
    board.look();
    const begins = changes[0]?.condition.sinceEpochMs ?? 0;
    pass(5_000);
    setBack(3_600_000);
    pass(2_000);
    expect(board.current).toMatchObject([{ sinceEpochMs: begins - 3_600_000 }]);
    pass(7_200_000);
    expect(board.current).toMatchObject([{ sinceEpochMs: begins - 3_600_000 }]);
  });

  test('begins and ends late where the registry says so', () => {
    const { board, pass, told } = createBoard();
    let findings: Finding[] = [{ id: 'event_loop_behind', subject: '', figures: { busy: 0.95 } }];
    board.add(() => findings);
    board.look();
    pass(4_999);
    expect(board.current).toEqual([]);
    pass(1);
    expect(told()).toEqual(['begins event_loop_behind ']);
    findings = [];
    pass(4_999);
    expect(board.current).toHaveLength(1);
    pass(1);
    expect(board.current).toEqual([]);
  });

  test('forgets what did not last long enough', () => {
    const { board, pass, told } = createBoard();
    let findings: Finding[] = [{ id: 'event_loop_behind', subject: '', figures: { busy: 0.95 } }];
    board.add(() => findings);
    board.look();
    findings = [];
    pass(4_000);
    findings = [{ id: 'event_loop_behind', subject: '', figures: { busy: 0.95 } }];
    pass(1_000);
    pass(1_000);
    expect(told()).toEqual([]);
  });

  test('keeps what was raised until it is cleared', () => {
    const { board, pass, told } = createBoard();
    board.raise({
      id: 'reload_refused',
      subject: 'gateway.yaml',
      figures: { reason: 'line 3', problems: 1 },
    });
    pass(3_600_000);
    expect(board.current).toHaveLength(1);
    board.clear('reload_refused', 'another.yaml');
    expect(board.current).toHaveLength(1);
    board.clear('reload_refused', 'gateway.yaml');
    expect(told()).toEqual(['begins reload_refused gateway.yaml', 'ends reload_refused gateway.yaml']);
  });

  test('ends what happened in a moment after its time, counted from the last time', () => {
    const { board, pass } = createBoard();
    board.raise({ id: 'worker_replaced', subject: '', figures: { ended: 1 } });
    pass(600_000);
    board.raise({ id: 'worker_replaced', subject: '', figures: { ended: 2 } });
    pass(899_000);
    expect(board.current).toMatchObject([{ figures: { ended: 2 } }]);
    pass(1_000);
    expect(board.current).toEqual([]);
  });

  test('lists the most severe first, then the oldest', () => {
    const { board, pass } = createBoard();
    const findings: Finding[] = [{ id: 'replica_loading', subject: 'r1', figures: {} }, unreachable('r3')];
    board.add(() => findings);
    board.look();
    findings.push(unreachable('r2'), {
      id: 'model_unavailable',
      subject: 'm',
      figures: { drained: 1, away: 2 },
    });
    pass(1_000);
    expect(board.current.map(({ subject }) => subject)).toEqual(['m', 'r3', 'r2', 'r1']);
  });

  test('counts the subjects beyond the bound under one name', () => {
    const { board } = createBoard();
    board.add(() => Array.from({ length: MAX_SUBJECTS + 50 }, (_, at) => unreachable(`r${at}`)));
    board.look();
    expect(board.current).toHaveLength(MAX_SUBJECTS + 1);
    expect(board.current.at(-1)).toMatchObject({
      subject: OTHER_SUBJECTS,
      sentence: 'A replica does not answer (and further ones)',
    });
  });

  test('keeps the findings of a producer that throws, and asks the others', () => {
    const { board, pass, defects } = createBoard();
    let isBroken = false;
    board.add(function* () {
      yield unreachable('r1');
      if (isBroken) throw new Error('broken');
    });
    board.add(() => (isBroken ? [unreachable('r2')] : []));
    board.look();
    isBroken = true;
    pass(1_000);
    expect(defects).toHaveLength(1);
    expect(board.current.map(({ subject }) => subject)).toEqual(['r1', 'r2']);
  });

  test('tells a finding of two producers once', () => {
    const { board, told } = createBoard();
    board.add(() => [unreachable('r1', 'the first')]);
    board.add(() => [unreachable('r1', 'the second')]);
    board.look();
    expect(told()).toEqual(['begins replica_unreachable r1']);
    expect(board.current).toMatchObject([{ figures: { reason: 'the first' } }]);
  });

  test('tells names like those of objects apart', () => {
    const { board } = createBoard();
    board.add(() => ['__proto__', 'constructor', 'r1 r2'].map((name) => unreachable(name)));
    board.look();
    expect(board.current.map(({ subject }) => subject)).toEqual(['__proto__', 'constructor', 'r1 r2']);
  });
});
