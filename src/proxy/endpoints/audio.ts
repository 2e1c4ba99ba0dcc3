import { toFailureJson } from '../failure.ts';
import {
  readTranscription,
  readTranscriptionEvent,
  TRANSCRIPTION_ANSWER,
} from './answers/transcription-answers.ts';
import { toChoicesErrorEvent } from './choices.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/** The text of audio: a form with `file` and, in any order, `model` and more. vLLM, SGLang and llama.cpp have it. */
export const TRANSCRIPTIONS: RecordedEndpoint = {
  path: '/v1/audio/transcriptions',
  needsModel: false,
  isForm: true,
  keepsResponses: false,
  textMembers: [],
  readText: () => false,
  maxTokensMembers: [],
  undoRules: null,
  readEvent: readTranscriptionEvent,
  usageInStream: 'in_parts',
  needsEndMark: false,
  wantedOfAnswer: TRANSCRIPTION_ANSWER,
  readAnswer: readTranscription,
  toErrorBody: toFailureJson,
  toErrorEvent: toChoicesErrorEvent,
};

/** The English text of audio. vLLM has it. */
export const TRANSLATIONS: RecordedEndpoint = { ...TRANSCRIPTIONS, path: '/v1/audio/translations' };
