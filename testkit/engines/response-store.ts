import { answerJson, type Script } from '../fake-replica.ts';

/** How far a stored response is, in the words of the API. */
export type StoredStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/**
 * The store of vLLM 0.32 with VLLM_ENABLE_RESPONSES_API_STORE=1 (vllm/entrypoints/openai/responses/serving.py): a POST
 * with `background` is answered as `queued` at once and generates on, GET says how far it is, cancel ends it, and an
 * unknown id is 404. The test says when a response goes on.
 */
export interface ResponseStore {
  /** For requests of clients. */
  readonly script: Script;
  /** For the gateway's own requests. */
  readonly probeScript: Script;
  /** The ids that it has made, oldest first. */
  readonly ids: readonly string[];
  /** How often each id was asked for by the gateway. */
  pollsOf(id: string): number;
  /** Ends a response, or goes on with it. */
  set(id: string, status: StoredStatus): void;
  /** Forgets all responses, as a restart does. */
  forget(): void;
  /** The answer to the gateway's GETs from now on instead; null: its own. */
  answerPolls(script: Script | null): void;
}

/** Creates a store whose ids begin with the name. */
export function createResponseStore(name = 'a'): ResponseStore {
  const statuses = new Map<string, StoredStatus>();
  const polls = new Map<string, number>();
  const ids: string[] = [];
  let override: Script | null = null;

  const get = (id: string): Script => {
    const status = statuses.get(id);
    return status === undefined
      ? answerJson(notFound(id), { status: 404 })
      : answerJson(toObject(id, status));
  };
  return {
    ids,
    pollsOf: (id) => polls.get(id) ?? 0,
    set: (id, status) => void statuses.set(id, status),
    forget: () => statuses.clear(),
    answerPolls(script) {
      override = script;
    },
    async script(exchange) {
      const { method, url, body } = exchange.request;
      const [, id = '', action] = /^\/v1\/responses\/([^/?]+)(\/cancel)?/.exec(url) ?? [];
      if (method === 'POST' && id === '') {
        const { background } = JSON.parse((await body).toString()) as { background?: boolean };
        const made = `resp_${name}${ids.length + 1}`;
        ids.push(made);
        statuses.set(made, background === true ? 'queued' : 'completed');
        return await get(made)(exchange);
      }
      if (action !== undefined && statuses.has(id)) statuses.set(id, 'cancelled');
      const answer = get(id);
      if (method === 'DELETE') statuses.delete(id);
      await answer(exchange);
    },
    async probeScript(exchange) {
      const { url } = exchange.request;
      const [, id] = /^\/v1\/responses\/([^/?]+)$/.exec(url) ?? [];
      if (id === undefined) return await answerJson({ object: 'list', data: [{ id: 'm' }] })(exchange);
      polls.set(id, (polls.get(id) ?? 0) + 1);
      await (override ?? get(id))(exchange);
    },
  };
}

function notFound(id: string): object {
  return {
    error: {
      message: `Response with id '${id}' not found.`,
      type: 'invalid_request_error',
      param: 'response_id',
      code: 404,
    },
  };
}

/** In the order of the members of vLLM's ResponsesResponse: the status is behind the output. */
function toObject(id: string, status: StoredStatus): object {
  const isOpen = status === 'queued' || status === 'in_progress';
  const hasOutput = status === 'completed' || status === 'incomplete';
  return {
    id,
    created_at: 1_780_000_000,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: null,
    model: 'm',
    object: 'response',
    output: hasOutput
      ? [
          {
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            type: 'message',
            content: [{ type: 'output_text', text: 'status: "queued"', annotations: [], logprobs: null }],
          },
        ]
      : [],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    background: true,
    max_output_tokens: 6000,
    service_tier: 'auto',
    status,
    truncation: 'disabled',
    usage:
      isOpen || !hasOutput
        ? null
        : {
            input_tokens: 12,
            input_tokens_details: { cached_tokens: 4 },
            output_tokens: 6000,
            output_tokens_details: { reasoning_tokens: 20 },
            total_tokens: 6012,
          },
    user: null,
  };
}
