// Answers Flagger's webhooks with the verdict of the gateway, because they can send neither GET nor a token:
//
//   POST /good  200 if the candidate is good, otherwise 409: `confirm-promotion`
//   POST /bad   200 if the candidate is bad, otherwise 409: `rollback`
//
// The metadata of the webhook are `candidate`, `baseline` and `since`, as for GET /admin/verdict. docs/rollouts.md
// has the rest.
//
//   GATEWAY_ADMIN   address of the admin API
//   SVC_READ_TOKEN  its token; one that only reads is enough
//   LISTEN, PORT    0.0.0.0, 8080
import { createServer } from 'node:http';

const { GATEWAY_ADMIN: admin, SVC_READ_TOKEN: token, LISTEN = '0.0.0.0', PORT = '8080' } = process.env;
if (!admin || !token) throw new Error('GATEWAY_ADMIN and SVC_READ_TOKEN are needed');

const MAX_BODY_BYTES = 64 * 1024;
const TIMEOUT_MS = 8_000; // Flagger waits for ten seconds

const server = createServer(async (request, response) => {
  const { status, text } = await answer(request).catch(() => ({
    status: 502,
    text: 'the gateway does not answer',
  }));
  console.log(JSON.stringify({ path: request.url, status, text }));
  response.writeHead(status, { 'Content-Type': 'text/plain' }).end(text);
});
server.listen(Number(PORT), LISTEN, () => {
  console.log(JSON.stringify({ listen: `http://${LISTEN}:${server.address().port}` }));
});
process.once('SIGTERM', () => process.exit());

async function answer(request) {
  const wanted = new Map([
    ['/good', 'good'],
    ['/bad', 'bad'],
  ]).get(request.url);
  if (request.method !== 'POST' || wanted === undefined) return { status: 404, text: 'POST /good or /bad' };
  const metadata = await readMetadata(request);
  if (metadata === null) return { status: 400, text: 'the body is not that of a webhook' };
  const query = new URLSearchParams();
  for (const name of ['candidate', 'baseline', 'since'])
    if (typeof metadata[name] === 'string') query.set(name, metadata[name]);
  const asked = await fetch(`${admin}/admin/verdict?${query}`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const told = await asked.json();
  if (!asked.ok)
    return { status: 409, text: `${asked.status} ${told?.error?.message ?? told?.error?.code ?? ''}` };
  return { status: told.verdict === wanted ? 200 : 409, text: `${told.verdict}: ${told.sentence}` };
}

/** The metadata of a webhook; null if the body is none. */
async function readMetadata(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (size > MAX_BODY_BYTES) return null;
  try {
    const { metadata } = JSON.parse(Buffer.concat(chunks).toString());
    return metadata !== null && typeof metadata === 'object' ? metadata : null;
  } catch {
    return null;
  }
}
