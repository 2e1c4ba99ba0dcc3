import { z } from 'zod';
import { SOURCE_KINDS, SOURCE_STATES, type SourceState } from '#replicas/discovery';

const count = () => z.int().min(0);
const sourceState = z.enum(SOURCE_STATES);
const errorCode = z.string().max(64).nullable();

/** Since when something is in its state, and why it fails. */
const statusShape = {
  since: z.iso.datetime().nullable().describe('When `state` began; null while it is `unknown`.'),
  error_code: errorCode.describe('Why it is failing, in one word; otherwise null.'),
  error_cause: errorCode.describe(
    'The code of its cause, such as ECONNREFUSED or ERR_TLS_CERT_ALTNAME_INVALID; null if there is none.',
  ),
  advice: z
    .string()
    .max(256)
    .nullable()
    .describe('What is to be done, such as the rule that a Role lacks; null if the failure does not say.'),
};

const readinessGateSchema = z
  .object({
    condition: z.string().describe('The condition that a pod gets once it has answered the gateway.'),
    state: sourceState.describe(
      'Whether conditions can be written: `failing` after a failed write, `unknown` before the first one.',
    ),
    ...statusShape,
    confirmed: count().describe('Pods that got the condition from this gateway since the gate was opened.'),
    waiting: count().describe('Pods that are not ready and have not got it.'),
    waiting_pods: z
      .array(
        z.object({
          pod: z.string(),
          since: z.iso.datetime().describe('When the gateway first saw it.'),
          problem: z.string().nullable().describe('Why it was not confirmed the last time, in words.'),
        }),
      )
      .readonly()
      .describe('Those of them that wait for the longest time.'),
  })
  .meta({ id: 'ReadinessGate' });

/** What tells of the replicas behind one name of the configuration. */
export const sourceSchema = z
  .object({
    name: z.string().describe('The `name` of the entry in `replicas` of the configuration.'),
    kind: z.enum(SOURCE_KINDS),
    state: sourceState.describe(
      'Whether it answers. While it is failing, the replicas stay as they were. `unknown` before the first answer.',
    ),
    ...statusShape,
    readiness_gate: readinessGateSchema
      .nullable()
      .describe('The gate for the pods of a source with `readiness_gate`; otherwise null.'),
  })
  .meta({ id: 'Source' });

/** Converts a source to the shape of `sourceSchema`. */
export function toSourceJson(source: SourceState): z.output<typeof sourceSchema> {
  const { readinessGate: gate, ...rest } = toStatusJson(source);
  return { ...rest, readiness_gate: gate === null ? null : toReadinessGateJson(gate) };
}

function toReadinessGateJson(
  gate: NonNullable<SourceState['readinessGate']>,
): z.output<typeof readinessGateSchema> {
  const { confirmedCount: confirmed, waitingCount, waiting: waiting_pods, ...rest } = toStatusJson(gate);
  return { ...rest, confirmed, waiting: waitingCount, waiting_pods };
}

function toStatusJson<T extends Pick<SourceState, 'errorCode' | 'errorCause'>>(status: T) {
  const { errorCode: error_code, errorCause: error_cause, ...rest } = status;
  return { ...rest, error_code, error_cause };
}
