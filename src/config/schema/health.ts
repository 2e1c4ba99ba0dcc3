import { duration, durationOrAuto, flag, percent, text, wholeNumber } from './codecs.ts';
import { section } from './keys.ts';

const URL_PATH_OR_AUTO = /^auto$|^\/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,1023}$/; // RFC 3986 3.3, with a query if need be

const peers = section({
  tolerance: percent(0, 900).prefault('5%').describe('How much slower than its peers a replica may be.'),
  max_failing: percent(1, 99)
    .prefault('50%')
    .describe(
      "The share of a model's replicas that may be drained, unreachable, failing or on a ramp when one more is to be tried last.",
    ),
  cool_down: duration({ minMs: 10 })
    .prefault('1m')
    .describe(
      'How long such a replica is tried last; twice as long each time it is soon found again, up to 16 times.',
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
  passive: flag().prefault(true).describe('Whether a replica that refuses connections is failing.'),
  active: flag().prefault(true).describe('Whether a replica that does not answer probes is failing.'),
  failures: wholeNumber(1, 1_000)
    .prefault(3)
    .describe('It is failing after this many refused connections or failed probes in a row.'),
  successes: wholeNumber(1, 1_000)
    .prefault(2)
    .describe('It is ok again after this many answered probes in a row.'),
  cool_down: duration({ minMs: 10 })
    .prefault('10s')
    .describe(
      'How often one request tries a failing replica again; after silent streams, how long it is tried last.',
    ),
  frozen_after: durationOrAuto({ minMs: 100 })
    .prefault('auto')
    .describe(
      'How long a replica may be silent while a request waits for it and another replica of the model sends something. `auto` learns it: see routing.md.',
    ),
  peers: peers
    .optional()
    .describe(
      'Compare each replica with its peers on similar requests: one that fails more, is slower, or has more silent streams is failing. Off unless set; `{}` is enough. Replicas that differ by nature need a `gpu_model`, or more `tolerance`.',
    ),
  path: text('auto, or a path that begins with /', URL_PATH_OR_AUTO)
    .prefault('auto')
    .describe('The path of probes; 200 to 299 is a success. `auto`: `/health`, else `/v1/models`.'),
  interval: duration({ minMs: 10 }).prefault('5s').describe('The time between two probes.'),
  timeout: duration({ minMs: 10 }).prefault('2s').describe('How long a probe may take.'),
});

/** What holds without the section: a replica that fails keeps its turns. */
export const HEALTH_OFF = { passive: false, active: false, frozen_after: 'off' } as const;
