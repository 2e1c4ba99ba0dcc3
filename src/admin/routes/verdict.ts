import { z } from 'zod';
import { type Answer, parseSelector, type Refusal, SELECTOR_FORM, WRONG_BY_ITSELF } from '#comparisons';
import { ADMIN_ERRORS, AdminError } from '../admin-error.ts';
import { percentParam } from '../query-params.ts';
import { defineRoute, json } from '../route.ts';
import { replicaNotFound } from '../unknown-name.ts';

const count = () => z.int().min(0);
const ratio = (what: string) =>
  z.number().min(0).optional().describe(`How many times that of the baseline ${what} of like requests is.`);
const share = (what: string) => z.number().min(0).max(1).optional().describe(what);

/** What can be wrong, in the order of the documentation. */
const REASONS = [
  ...['first_token', 'gaps', 'duration', 'lengths', 'cached', 'errors', 'finish_reasons'],
  ...['tool_calls', 'outputs'],
  ...WRONG_BY_ITSELF,
];

const sideSchema = z.object({
  errors: count(),
  finishes: z.record(z.string(), count()).describe('By finish reason.'),
  completion_tokens: count(),
  mean_inflight: z
    .number()
    .min(0)
    .describe('Requests in flight when a pair began. With less to do, a replica is faster.'),
  cost_per_million: z
    .number()
    .min(0)
    .nullable()
    .describe('What a million tokens of completions cost, in `currency`; null without prices or tokens.'),
});

const pairsSchema = z
  .object({
    ratios: z
      .record(
        z.string(),
        z.object({
          p10: z.number(),
          median: z.number(),
          p90: z.number(),
          counts: z
            .array(z.tuple([z.number(), count()]))
            .readonly()
            .describe('How often each ratio came, in steps of 1 %.'),
        }),
      )
      .describe(
        'Of `first_token`, `gaps`, `duration` and `lengths`, as far as they were measured: how many times that of its ' +
          'primary the value of the shadow is, in the same request.',
      ),
    outputs: z
      .object({
        compared: count(),
        equal: count(),
        parts_after: z
          .array(count())
          .readonly()
          .describe('How often after 0, 1, 2 to 3, 4 to 7, … equal tokens.'),
        again: z
          .object({ as_shadow: count(), as_primary: count(), other: count() })
          .describe('Where outputs differ, the shadow is asked once more: what it then says.'),
      })
      .describe('Of requests at temperature 0 or with a seed.'),
    tool_calls: z.object({ compared: count(), same: count() }),
    waiting: count().describe(
      'Pairs that are not in `requests`: they are compared in blocks of at least ten.',
    ),
    skipped: z
      .record(z.string(), count())
      .describe('Requests that were not copied although it was their turn, by reason.'),
    currency: z.string().describe('A code of ISO 4217.'),
    candidate: sideSchema,
    baseline: sideSchema,
  })
  .meta({ id: 'Pairs' });

const verdictSchema = z
  .object({
    verdict: z.enum(['good', 'bad', 'undecided']),
    sentence: z
      .string()
      .describe('Why, in one line that follows the name of the candidate: `is as good as its peers: …`.'),
    summary: z.string().describe('The most important figures in words.'),
    reasons: z.array(z.enum(REASONS)).readonly().describe('What is wrong; empty unless `verdict` is `bad`.'),
    requests: count().describe('Requests of the candidate that were compared.'),
    baseline_requests: count().describe('Requests of the baseline that were compared.'),
    requests_needed: count()
      .nullable()
      .describe(
        'While it is `undecided`: about how many further requests of the candidate are needed. Null if it is decided, or ' +
          'neither clearly good nor clearly bad, as if its times are somewhat longer: more requests may not tell then.',
      ),
    figures: z.object({
      requests: count(),
      peer_requests: count(),
      first_token_ratio: ratio('the time to the first token'),
      gaps_ratio: ratio('the gap between tokens'),
      duration_ratio: ratio('the duration of a response in one piece'),
      lengths_ratio: ratio('the length of the completion'),
      cached_difference: z
        .number()
        .optional()
        .describe('How much more of the prompt came from the cache than at the baseline: a share.'),
      error_share: share('Of the requests of the candidate.'),
      peer_error_share: share('Of the requests of the baseline.'),
    }),
    candidate: z.array(z.string()).readonly().describe('The names of the replicas that are judged.'),
    baseline: z.array(z.string()).readonly().describe('The names of those that they are compared with.'),
    since: z.iso.datetime().describe('The time asked for.'),
    from: z.iso
      .datetime()
      .describe('The requests since then were looked at: later than `since` if older ones are not kept.'),
    until: z.iso.datetime(),
    complete: z.boolean().describe('Whether all requests of this gateway since `since` were looked at.'),
    gateways: z
      .int()
      .min(1)
      .describe(
        'How many gateways have served the requests: those of a fleet that have told what they know.',
      ),
    pairs: pairsSchema
      .nullable()
      .describe('What pairs of answers to the same requests show, if the candidate is shadows; else null.'),
  })
  .meta({
    id: 'Verdict',
    description: 'Whether one group of replicas is as good as another one, by the requests that were served.',
  });

/** Reads a probability: the query has texts. */
const probability = (max: number, text: string, description: string) =>
  z
    .string()
    .regex(/^(?:0?\.\d{1,12}|\d{1,2}e-\d{1,2})$/, 'a probability such as 0.001')
    .transform(Number)
    .refine((value) => value > 0 && value <= max, `a probability above 0, at most ${max}`)
    .default(Number(text))
    .describe(`${description} Default: ${text}.`);

const selector = (description: string) =>
  z
    .string()
    .transform((text, context) => {
      const parsed = parseSelector(text);
      if (parsed !== null) return { text, selector: parsed };
      context.addIssue(SELECTOR_FORM);
      return z.NEVER;
    })
    .describe(description);

/** GET /admin/verdict. */
export const showVerdict = defineRoute({
  method: 'GET',
  path: '/admin/verdict',
  operationId: 'showVerdict',
  summary: 'Whether replicas are as good as others',
  description:
    'Compares the requests of two groups of replicas, like with like. A selector is names with commas between them, ' +
    '`model:NAME`, `host:NAME`, or `pod.label/KEY=VALUE`. Ask as often as you like: the verdict stays as sure as it says. ' +
    'A comparison goes on until nobody has asked for it for ten minutes. In a fleet the ' +
    'requests of all gateways count, a second or two after they have ended; of shadows only the pairs of this gateway do.',
  query: {
    candidate: selector('The replicas that are judged.'),
    baseline: selector(
      'Those that they are compared with. Default: all other replicas that serve a model of the candidate.',
    ).optional(),
    since: z.iso
      .datetime({ offset: true, error: 'a time such as 2026-01-31T12:00:00Z' })
      .refine((text) => Date.parse(text) <= Date.now() + MAX_AHEAD_MS, 'a time that is not to come')
      .optional()
      .describe(
        'Only requests that ended later count. Default: when the candidate was last drained, undrained or a shadow, or when the ' +
          'first of its replicas came, or the start of the gateway. Another time is another comparison.',
      ),
    false_alarm: probability(
      0.05,
      '0.001',
      'The probability with which a candidate that is like its baseline may be called bad.',
    ),
    missed: probability(
      0.2,
      '0.05',
      'The probability with which a candidate that is 20 % slower may be called good.',
    ),
    tolerance: percentParam(
      50,
      'How much slower a shadow may be than the replicas that get the same requests. It is good when 4 % more are ruled out. Default: 1%.',
    ).default(0.01),
  },
  response: {
    description: 'The verdict so far.',
    content: json(verdictSchema),
  },
  errors: [
    'replica_not_found',
    'selector_matches_nothing',
    'groups_overlap',
    'models_differ',
    'shadows_mixed',
    'no_pods',
    'pods_not_readable',
  ],
  async handle({ query }, { settleRecords, judge, registry }) {
    const { candidate, baseline, since, false_alarm: falseAlarm, missed, tolerance } = query;
    await settleRecords();
    const answer = await judge.ask({
      selectors: { candidate: candidate.selector, baseline: baseline?.selector ?? null },
      texts: { candidate: candidate.text, baseline: baseline?.text ?? null },
      sinceEpochMs: since === undefined ? null : Date.parse(since),
      falseAlarm,
      missed,
      tolerance: 1 + tolerance,
    });
    return 'code' in answer ? toAdminError(answer, registry) : { body: toJson(answer) };
  },
});

/** The clocks of who asks and of the gateway may differ. */
const MAX_AHEAD_MS = 60_000;

function toJson(answer: Answer): z.output<typeof verdictSchema> {
  const { verdict, sentence, summary, reasons, requests, baselineRequests, requestsNeeded } = answer;
  const { figures, candidate, baseline, sinceEpochMs, fromEpochMs, untilEpochMs, gateways, pairs } = answer;
  const toTime = (epochMs: number) => new Date(epochMs).toISOString();
  return {
    verdict,
    sentence,
    summary,
    reasons: [...reasons],
    requests,
    baseline_requests: baselineRequests,
    requests_needed: requestsNeeded,
    figures: { requests, peer_requests: baselineRequests, ...figures },
    candidate,
    baseline,
    since: toTime(sinceEpochMs),
    from: toTime(fromEpochMs),
    until: toTime(untilEpochMs),
    complete: fromEpochMs <= sinceEpochMs,
    gateways,
    pairs: pairs === null ? null : toPairsJson(pairs),
  };
}

/** The report is read-only, the schema's types are not. */
function toPairsJson(
  pairs: NonNullable<Answer['pairs']>,
): NonNullable<z.output<typeof verdictSchema>['pairs']> {
  const ratios = Object.entries(pairs.ratios).map(([measure, { counts, ...shares }]) => {
    const copied = counts.map(([ratioOfPair, times]): [number, number] => [ratioOfPair, times]);
    return [measure, { ...shares, counts: copied }] as const;
  });
  return { ...pairs, ratios: Object.fromEntries(ratios) };
}

/** How many names of an overlap an error lists. */
const MAX_LISTED = 8;

function toAdminError(problem: Refusal, registry: Parameters<typeof replicaNotFound>[1]): AdminError {
  switch (problem.code) {
    case 'replica_not_found':
      return replicaNotFound(problem.name, registry);
    case 'selector_matches_nothing':
      return new AdminError(problem.code, { param: problem.param, message: NOTHING[problem.param] });
    case 'groups_overlap':
    case 'shadows_mixed': {
      const { names, code } = problem;
      const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '';
      const listed = `${names.slice(0, MAX_LISTED).join(', ')}${more}`;
      const which = code === 'groups_overlap' ? 'In both' : 'Shadows';
      return new AdminError(code, {
        param: 'baseline',
        message: `${ADMIN_ERRORS[code].message} ${which}: ${listed}.`,
      });
    }
    case 'pods_not_readable': {
      const why = problem.isForbidden ? RIGHT : `It is asked again in a few seconds (${problem.failure}).`;
      return new AdminError(problem.code, { message: `${ADMIN_ERRORS.pods_not_readable.message} ${why}` });
    }
    default:
      return new AdminError(problem.code);
  }
}

const RIGHT =
  'Its service account needs the rule apiGroups [""], resources [pods], verbs [list] in the Role of the namespace.';

const NOTHING: Readonly<Record<'candidate' | 'baseline', string>> = {
  candidate: 'No replica is what `candidate` says.',
  baseline: 'No replica is what `baseline` says; if it says nothing, there is no other replica of the model.',
};
