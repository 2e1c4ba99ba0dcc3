import { readLimit } from '#shared-memory';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { countOpenFiles, readMaxFiles } from '../serving/file-descriptors.ts';
import { toWorkerCount } from '../serving/settings.ts';
import { ClockWatch } from './clock-watch.ts';
import { createOverloadProducer } from './overload-conditions.ts';
import { createRoomProducer } from './room-conditions.ts';
import { createThreadProducer } from './thread-conditions.ts';

interface Watched {
  readonly replicas: { readonly registry: { readonly waiting: number } };
  readonly dataPlane: Pick<DataPlane, 'serving'>;
}

const nowMs = () => performance.now();

/** Tells the board of what the machine and the process lack: room, time, and a steady clock. */
export function addMachineConditions(composition: Composition, { replicas, dataPlane }: Watched): void {
  const { board, collaborators, events, inEffect, memory, parts } = composition;
  const overload = createOverloadProducer(nowMs);
  events.on(
    'record',
    guarded(({ record }) => overload.note(record), collaborators.log),
  );
  board.add(overload.produce);
  const maxFiles = readMaxFiles();
  board.add(
    createRoomProducer({
      waiting: () => ({ now: replicas.registry.waiting, limit: inEffect.config.limits.queue }),
      buffered: () => readLimit(memory.buffered),
      connections: () => readLimit(memory.connections),
      descriptors() {
        const now = maxFiles === null ? null : countOpenFiles();
        return now === null || maxFiles === null ? null : { now, limit: maxFiles };
      },
    }),
  );
  board.add(createThreadProducer(toLoopTimes(composition, dataPlane), nowMs));
  parts.add('watches', new ClockWatch(board, { nowMs, epochMs: () => Date.now() }));
}

/** The times of all threads. A single worker is the main thread. */
function toLoopTimes({ inEffect }: Composition, { serving }: Watched['dataPlane']) {
  const isSingle = toWorkerCount(inEffect.config) === 1;
  return () => {
    const { active, idle } = performance.eventLoopUtilization();
    const workers = isSingle ? [] : serving.eventLoopTimes();
    return [
      { thread: 'main', activeMs: active, idleMs: idle },
      ...workers.map(({ worker, ...times }) => ({ thread: `worker ${worker}`, ...times })),
    ];
  };
}
