/** A chat without a stream, as most measurements of a request's CPU time send it: about 2 KB. */
export const PLAIN_BODY = JSON.stringify({
  model: 'm',
  max_tokens: 40,
  messages: [{ role: 'user', content: 'lorem ipsum '.repeat(166) }],
});

/** Its answer, with usage. */
export const PLAIN_ANSWER = JSON.stringify({
  object: 'chat.completion',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'hello '.repeat(40) }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 500, completion_tokens: 40, total_tokens: 540 },
});
