import { duration, durationOrAuto, flag, percent, text, wholeNumber } from './codecs.ts';
import { section } from './keys.ts';

const URL_PATH_OR_AUTO = /^auto$|^\/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,1023}$/; // RFC 3986 3.3, with a query if need be

const peers = section({
  tolerance: percent(0, 900)
    .prefault('5%')
    .describe(
      'How much slower than its peers a replica may be. Choose more where equal replicas differ by as much.',
    ),
  max_failing: percent(1, 99)
    .prefault('50%')
    .describe(
      'A replica is not tried last if more than this share of the replicas of one of its models would then be drained, unreachable, failing or on a ramp. The last one never is.',
    ),
  cool_down: duration({ minMs: 10 })
    .prefault('1m')
    .describe(
      'How long such a replica is tried last before it gets turns again. If it is found again soon, each time twice as long as before, up to 16 times.',
    ),
  ramp: duration({ minMs: 0 })
    .prefault('1m')
    .describe('How long its share of turns then grows, from 5 % of an even share to all of it.'),
});

/**
 * How it is decided which replicas are tried last: `health`. An empty section is what is right for most: it has the judges
 * that no difference between healthy replicas deceives.
 */
export const health = section({
  passive: flag()
    .prefault(true)
    .describe(
      'Whether a replica that refuses the connections of requests is failing, and tried after the others.',
    ),
  active: flag()
    .prefault(true)
    .describe('Whether a replica that does not answer probes is failing, and tried after the others.'),
  failures: wholeNumber(1, 1_000)
    .prefault(3)
    .describe('A replica is failing after this many refused connections or failed probes in a row.'),
  successes: wholeNumber(1, 1_000)
    .prefault(2)
    .describe('A failing replica is ok again after this many answered probes in a row.'),
  cool_down: duration({ minMs: 10 })
    .prefault('10s')
    .describe(
      'With `passive` or `frozen_after`: how often one request tries a failing replica again. After silent streams: how long it is tried last before it gets turns again, up to four times as long if it is found again soon.',
    ),
  frozen_after: durationOrAuto({ minMs: 100 })
    .prefault('auto')
    .describe(
      'A replica is failing if it has sent nothing for this long while a request waited for it and another replica of the same model sent something. `auto`: for at least 15s, and three times as long as the longest such silence of these replicas that ended by itself within a day: see routing.md. With any of these it also is when clearly more of its streams are silent than of those of its peers. `off`: silence does not count, but for silent streams with `peers`.',
    ),
  peers: peers
    .optional()
    .describe(
      'Compares the requests of each replica with like requests of its peers, and tries a replica last that fails more of them, is slower, or has more silent streams. An empty object, `{}`, is enough. Off unless it is set: replicas that differ by nature need a `gpu_model`, or more `tolerance`.',
    ),
  path: text('auto, or a path that begins with /', URL_PATH_OR_AUTO)
    .prefault('auto')
    .describe(
      'The path that probes request; any status from 200 to 299 is a success. `auto`: `/health`, and `/v1/models` if the server answers that with a 4xx status, as Ollama does; there a status with which it wants a key is a success too.',
    ),
  interval: duration({ minMs: 10 }).prefault('5s').describe('The time between two probes of a replica.'),
  timeout: duration({ minMs: 10 }).prefault('2s').describe('The longest time that a probe may take.'),
});

/** What holds without the section: a replica that fails keeps its turns. */
export const HEALTH_OFF = { passive: false, active: false, frozen_after: 'off' } as const;
