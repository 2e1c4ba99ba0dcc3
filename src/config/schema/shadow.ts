import { flag, percent, wholeNumber } from './codecs.ts';
import { section } from './keys.ts';

/** `shadow`: what goes to replicas that are shadows. */
export const shadow = section({
  requests: percent(1, 100)
    .prefault('5%')
    .describe(
      "The share of its models' live requests that a shadow gets. `gateway compare` and `gateway rollout --shadow` set their own.",
    ),
  max_inflight: wholeNumber(1, 1_000)
    .prefault(8)
    .describe('How many copies may be in flight on a shadow. What exceeds it is not copied.'),
  cut_with_client: flag()
    .prefault(false)
    .describe('Whether a copy ends when the client leaves. Otherwise the answer is read to its end.'),
});
