import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AdminCollaborators } from '../../src/admin/admin-collaborators.ts';
import type { Overview } from '../../src/admin/dashboard/overview.ts';
import { sendResponse } from '../../src/admin/listener/send-response.ts';
import { showDashboard, showDashboardFile } from '../../src/admin/routes/dashboard.ts';
import type { FoundJson } from '../../src/admin/routes/history/record.ts';
import type { TimelineJson } from '../../src/admin/routes/history/timeline.ts';
import type { UsageJson } from '../../src/admin/routes/history/usage.ts';
import { closeServer, listen } from '../servers/local-server.ts';
import { forgetAll } from './made-history.ts';
import { withFastPolls } from './page.ts';

/** The token that the scripted admin API wants. */
export const TOKEN = 'scripted-token';

/** A drain or an undrain that the page has asked for. */
export interface DrainCall {
  readonly name: string;
  readonly action: 'drain' | 'undrain';
  readonly reason: string | null;
  /** Whether the gateway must refuse if no other replica answers. */
  readonly unlessLast: boolean;
  /** How long the share of turns grows; absent if the page did not say. */
  readonly ramp?: string;
}

/** The dashboard's page with an admin API that answers what a test tells it to. */
export interface ScriptedDashboard extends AsyncDisposable {
  readonly url: string;
  readonly drains: readonly DrainCall[];
  /** What the next polls are answered with. Records and failures are sent once per page. */
  show(overview: Overview): void;
  /** What the history was asked so far: path and query below `/admin/`. */
  readonly asked: readonly string[];
  /** What the history answers from now on. */
  remember(answer: ScriptedHistory): void;
  /** Refuses the next drain. */
  refuseDrain(error: { readonly code: string; readonly message: string }): void;
}

/** A page of GET /admin/records, as far as the page reads it. */
export interface RecordsPage {
  readonly records: FoundJson['records'];
  readonly history: { readonly next: number | null; readonly note: string | null };
}

/** Answers a call to the history: its path below `/admin/` and its query. */
export type ScriptedHistory = (
  path: string,
  query: URLSearchParams,
) => UsageJson | TimelineJson | FoundJson | RecordsPage | { readonly code: string; readonly message: string };

/** Starts the page on a free port. Its files and their headers are those of the gateway. */
export async function startScriptedDashboard(
  first: Overview,
  firstHistory: ScriptedHistory = forgetAll,
): Promise<ScriptedDashboard> {
  const drains: DrainCall[] = [];
  const refusals: { readonly code: string; readonly message: string }[] = [];
  const asked: string[] = [];
  let overview = first;
  let history = firstHistory;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://page');
    const [, root, ...segments] = pathname.split('/').map(decodeURIComponent);
    const none = {
      search: new URLSearchParams(),
      body: Buffer.alloc(0),
      accept: '',
      caller: null,
      signal: AbortSignal.timeout(10_000),
    };
    if (pathname === '/') {
      const answer = await showDashboard.respond({ ...none, params: {} }, NOBODY);
      if (!('body' in answer)) throw new Error('no page');
      await sendResponse(response, { ...answer, body: withFastPolls(String(answer.body)) });
    } else if (root === 'dashboard') {
      const [version = '', folder = '', name = ''] = segments;
      const params = { version, folder, file: name };
      await sendResponse(response, await showDashboardFile.respond({ ...none, params }, NOBODY));
    } else if (request.headers.authorization !== `Bearer ${TOKEN}`) {
      answerJson(response, 401, {});
    } else if (root === 'admin' && ['usage', 'timeline', 'records'].includes(segments[0] ?? '')) {
      asked.push(`${segments.join('/')}?${searchParams}`);
      const answer = history(segments.join('/'), searchParams);
      if ('code' in answer)
        answerJson(response, answer.code === 'record_not_found' ? 404 : 503, { error: answer });
      else answerJson(response, 200, answer);
    } else if (pathname === '/admin/rollouts') {
      answerJson(response, 200, { rollouts: [] });
    } else if (request.method === 'POST') {
      const [, name = '', action] = segments;
      const ramp = searchParams.get('ramp');
      drains.push({
        name,
        action: action === 'drain' ? 'drain' : 'undrain',
        reason: searchParams.get('reason'),
        unlessLast: searchParams.get('unless_last') === 'true',
        ...(ramp === null ? {} : { ramp }),
      });
      const refusal = refusals.shift();
      if (refusal === undefined) answerJson(response, 200, { replica: { name } });
      else answerJson(response, 409, { error: refusal });
    } else {
      const isNews = Number(searchParams.get('after')) < overview.last_record;
      answerJson(response, 200, isNews ? overview : { ...overview, records: [], failures: [] });
    }
  }

  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/`,
    drains,
    asked,
    remember(answer) {
      history = answer;
    },
    show(next) {
      overview = next;
    },
    refuseDrain: (error) => refusals.push(error),
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

/** The routes of the page ask nobody. */
const NOBODY = {} as AdminCollaborators;

function answerJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(value));
}
