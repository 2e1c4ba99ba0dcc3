/** Asks a gateway for a chat completion. Rejects unless it is answered with one. */
export async function chatOnce(url: string, model: string): Promise<void> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  });
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes('chat.completion'))
    throw new Error(`the request was answered with ${answer.status}: ${text}`);
}
