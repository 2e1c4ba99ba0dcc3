import { expect, test } from 'vitest';
import { findRecordedEndpoint } from '../../../../src/proxy/endpoints/table.ts';
import { readRequestFacts } from '../../../../src/proxy/request/inspection/request-facts.ts';

function parametersOf(body: string, path = '/v1/chat/completions') {
  const endpoint = findRecordedEndpoint(path);
  if (endpoint === undefined) throw new Error(path);
  return readRequestFacts(Buffer.from(body), endpoint).parameters;
}

test('the parameters of a body that are no text are read', () => {
  expect(
    parametersOf(
      '{"model":"m","temperature":0.7,"top_p":1,"top_k":40,"seed":7,"n":2,"frequency_penalty":-0,"presence_penalty":1e-1,"response_format":{"schema":{},"type":"json_schema"}}',
    ),
  ).toEqual({
    temperature: 0.7,
    topP: 1,
    topK: 40,
    seed: 7,
    choiceCount: 2,
    frequencyPenalty: 0,
    presencePenalty: 0.1,
    outputType: 'json',
  });
});

test('a body without them costs no object, and one choice says nothing', () => {
  expect(parametersOf('{"model":"m","messages":[],"n":1,"stop":["secret"]}')).toBeNull();
});

test('what is no number, and a type of output that is none of ours, is not taken over', () => {
  const body =
    '{"temperature":"secret","top_p":null,"top_k":[1],"seed":1.5,"presence_penalty":1e999,"frequency_penalty":{},"response_format":{"type":"secret"}}';
  expect(parametersOf(body)).toBeNull();
  expect(parametersOf('{"response_format":"text","temperature":true}')).toBeNull();
});

test('of duplicate members the last one counts, also if it is not valid', () => {
  expect(parametersOf('{"temperature":1,"temperature":2}')).toEqual({ temperature: 2 });
  expect(parametersOf('{"temperature":1,"seed":3,"temperature":"x"}')).toEqual({ seed: 3 });
});

test('a response says the type of its output in text.format', () => {
  const path = '/v1/responses';
  expect(parametersOf('{"text":{"format":{"type":"json_object"}}}', path)).toEqual({ outputType: 'json' });
  expect(parametersOf('{"text":{"format":{"type":"text"},"verbosity":"low"}}', path)).toEqual({
    outputType: 'text',
  });
  expect(parametersOf('{"text":"secret"}', path)).toBeNull();
});
