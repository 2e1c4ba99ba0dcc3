import { hostOf, PORTS } from '../addresses.ts';
import type { AdminAnswer } from '../checks/facts.ts';
import { HttpReader, statusOf } from '../http-reader.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

/** The longest that an operator waits: a fleet may take 10 s for an undrain. */
const PATIENCE_MS = 30_000;

/** Calls the admin API of a gateway, on a connection of its own. `done` gets null if no complete answer came. */
export function callAdmin(
  parts: WorldParts,
  gateway: number,
  call: string,
  token: string,
  done: (answer: AdminAnswer | null) => void,
): void {
  const actor = new Actor(`operator ${call}`);
  let isDone = false;
  const finish = (answer: AdminAnswer | null) => {
    if (isDone) return;
    isDone = true;
    parts.schedule.cancel(patience);
    done(answer);
  };
  const patience = parts.schedule.after(PATIENCE_MS, actor, 'operator gives up', () => finish(null));
  const to = `${hostOf.gateway(gateway)}:${PORTS.admin}`;
  parts.network.connect(hostOf.operator, to, actor, (_error, end) => {
    if (end === null) {
      finish(null);
      return;
    }
    const reader = new HttpReader('response', (message) => {
      end.close();
      finish({ status: statusOf(message), json: JSON.parse(message.body.toString()) });
    });
    end.handler = {
      onData: (bytes) => reader.push(bytes),
      onEnd() {
        reader.end();
        end.close();
        finish(null);
      },
      onError() {
        end.close();
        finish(null);
      },
    };
    end.startReading();
    const request = `${call} HTTP/1.1\r\nHost: ${to}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;
    parts.chronicle.onAdminCall(end, gateway, call);
    end.write(Buffer.from(request), () => undefined);
  });
}
