import { createEventRelay, createJsonTap, toReading } from '#testkit/reading/response-reading.ts';
import type { RecordedEndpoint } from '../../../../src/proxy/endpoints/recorded-endpoint.ts';
import { RECORDED_ENDPOINTS } from '../../../../src/proxy/endpoints/table.ts';
import { createEventData, readEventData } from '../../../../src/proxy/response/events/sse.ts';
import { type FuzzInput, type FuzzTarget, must, mustEqual, piecesOf } from '../../fuzz-target.ts';
import { answerText, eventTexts } from './answer-texts.ts';
import { figuresOf } from './naive-usage.ts';

const ENDPOINT_COUNT = RECORDED_ENDPOINTS.length;
const { scratch: SCRATCH } = toReading();

type StreamTap = ReturnType<typeof createEventRelay>['tap'];

/** What is read of answers: usage, finish reasons, identity; of each endpoint, whole and streamed. */
export const USAGE: FuzzTarget = {
  name: 'usage',
  reads: 'the usage and the ends of answers, of every endpoint, whole and streamed',
  oracle:
    'the figures that JSON.parse finds under the names of the API; of streams, those of each event read alone; figures are numbers from 0; cuts change nothing; the client gets every byte',
  variants: 2 * ENDPOINT_COUNT,
  ciInputs: 20_000,
  generate(random, variant) {
    const { path } = endpointOf(variant);
    return Buffer.from(variant < ENDPOINT_COUNT ? answerText(random, path) : eventTexts(random, path));
  },
  check: (input) => (input.variant < ENDPOINT_COUNT ? checkAnswer(input) : checkStream(input)),
  read(input) {
    const endpoint = endpointOf(input.variant);
    const pieces = piecesOf(input);
    if (input.variant < ENDPOINT_COUNT) return readAnswer(endpoint, pieces);
    const { tap, events } = createEventRelay({ endpoint, scratch: SCRATCH });
    for (const piece of pieces) events.push(piece, 1);
    return [tap, events];
  },
};

function endpointOf(variant: number): RecordedEndpoint {
  const endpoint = RECORDED_ENDPOINTS[variant % ENDPOINT_COUNT];
  must(endpoint !== undefined, 'no such endpoint');
  return endpoint;
}

function checkAnswer(input: FuzzInput): boolean {
  const endpoint = endpointOf(input.variant);
  const read = (pieces: readonly Buffer[]) => {
    const tap = readAnswer(endpoint, pieces);
    const fields = {};
    tap.fill(fields);
    return { fields, usage: tap.usage };
  };
  const whole = read([input.bytes]);
  mustEqual('what an answer says in pieces', read(piecesOf(input)), whole);
  mustBeFigures(whole.usage);
  const expected = figuresOf(endpoint.path, input.bytes.toString());
  if (expected === null) return false;
  for (const [figure, count] of Object.entries(expected)) {
    mustEqual(figure, whole.usage[figure as keyof typeof whole.usage], count);
  }
  return true;
}

function readAnswer(endpoint: RecordedEndpoint, pieces: readonly Buffer[]) {
  const tap = createJsonTap({ endpoint, scratch: SCRATCH });
  for (const piece of pieces) tap.push(piece);
  return tap;
}

function checkStream(input: FuzzInput): boolean {
  const endpoint = endpointOf(input.variant);
  const { tap, events } = createEventRelay({ endpoint, scratch: SCRATCH });
  const sent = piecesOf(input).flatMap((piece) => events.push(piece, 1));
  mustEqual(
    'the bytes for the client',
    Buffer.concat([...sent, ...events.end()]).toString('latin1'),
    input.bytes.toString('latin1'),
  );
  const { tap: expected } = createEventRelay({ endpoint, scratch: SCRATCH });
  readEventsAlone(input.bytes, endpoint, expected);
  const found = sayings(tap);
  mustEqual('what a stream says', found, sayings(expected));
  mustBeFigures(tap.usage);
  return tap.outputCount > 0 || tap.isWhole;
}

/** Each event by itself, without anything that earlier ones have taught. */
function readEventsAlone(bytes: Buffer, endpoint: RecordedEndpoint, tap: StreamTap): void {
  const stream = bytes.toString('latin1');
  for (const [text] of stream.matchAll(/(?:[^\r\n]+(?:\r\n|\r|\n|$))*(?:\r\n|\r|\n)?/g)) {
    if (text === '') continue;
    const event = Buffer.from(text, 'latin1');
    const data = createEventData();
    const hasData = readEventData(event, 0, event.length, data);
    const chunk = hasData ? endpoint.readEvent(data, SCRATCH.cursor, tap.wantsIdentity) : null;
    tap.observe(chunk, data.hasErrorLine, 1);
  }
}

function sayings(tap: StreamTap): object {
  const fields = {};
  tap.fill(fields);
  const { isDone, isWhole, hasError, outputCount, responseId } = tap;
  return { fields, isDone, isWhole, hasError, outputCount, responseId };
}

function mustBeFigures(usage: object): void {
  for (const [name, value] of Object.entries(usage)) {
    const isFigure = typeof value === 'number' && Number.isFinite(value) && value >= 0;
    must(isFigure, `${name} is ${String(value)}`);
  }
}
