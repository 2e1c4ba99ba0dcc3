import type { Logger } from 'pino';
import { ConditionBoard, type ConditionChange } from '#conditions';
import { toShownName } from '#otel/base';
import type { Parts } from '../parts.ts';
import type { GatewayEvents } from './gateway-events.ts';

const LEVELS = { critical: 'error', warning: 'warn', notice: 'info' } as const;

interface BoardSurroundings {
  readonly log: Logger;
  readonly events: GatewayEvents;
  readonly parts: Parts;
}

/** Creates the board of conditions. Each begin and each end is a line of the log, and a span. */
export function createBoard({ log, events, parts }: BoardSurroundings): ConditionBoard {
  const board = new ConditionBoard({
    nowMs: () => performance.now(),
    epochMs: Date.now,
    toShown: toShownName,
    onChange(change) {
      logChange(log, change);
      const { id, severity, subject, sentence, sinceEpochMs } = change.condition;
      const condition = { id, severity, subject, sentence, tokenName: null } as const;
      if (change.kind === 'begins')
        events.emit('action', { ...condition, action: 'condition_begins', startEpochMs: Date.now() });
      else events.emit('action', { ...condition, action: 'condition_ends', startEpochMs: sinceEpochMs });
    },
    onDefect: (error) =>
      log.error(
        { error: error instanceof Error ? error.name : typeof error },
        'a check for conditions failed',
      ),
  });
  parts.add('watches', board);
  return board;
}

/** One line at each end, with the id of docs/troubleshooting.md. */
function logChange(log: Logger, { kind, condition }: ConditionChange): void {
  const { id, severity, subjectKind, subject, sentence, figures, sinceEpochMs } = condition;
  const since = new Date(sinceEpochMs).toISOString();
  const known = Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== ''));
  const fields = { condition: id, [subjectKind]: subject || undefined, since, ...known };
  if (kind === 'begins') log[LEVELS[severity]](fields, sentence);
  else log.info(fields, `over: ${sentence}`);
}
