/*
 * One client request, from its head to its record.
 *
 * It never knows which replicas there should be, nor what becomes of a record.
 * Begin with handle-request.ts and follow the request: request/, attempt/, response/ (relay.ts decides what is held back, and
 * how long), record/. endpoints/ has one file for each endpoint, form/ the requests that are forms. failure.ts has each
 * refusal with its status and its words; endpoints/answers/message-errors.ts has the form of Anthropic's.
 */

export type { AnswerListener, SendListener, SentRequest } from './attempt/copying.ts';
export { logDefect } from './defect.ts';
export { StoredResponseReader } from './endpoints/stored-response-reader.ts';
export { endpointsByPath } from './endpoints/table.ts';
export { createProxy } from './handle-request.ts';
export type { ProxyPolicy } from './proxy-context.ts';
export type { BackgroundResponse } from './record/background-response.ts';
export { AnswerReader } from './response/answer-reader.ts';
export type { ResponseFields } from './response/response-fields.ts';
