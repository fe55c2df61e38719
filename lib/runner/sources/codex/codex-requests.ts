import type { CodexRequest, QuestionField } from '../../adapters/codex/requests';
import { setBounded } from '../../adapters/wire';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf } from '../../host/source';
import { outcomeOf } from '../../host/source-commands';
import type { AppServer } from './app-server';

const MAX_HELD = 1_000;

/**
 * Requests of an app-server that wait for a person. The first client to answer wins; the server notifies the others by
 * its own request id.
 */
export class CodexRequests {
  readonly #requests = new PendingRequests();
  readonly #byRpcId = new Map<string | number, { sessionId: string; requestId: string }>();

  hold(sessionId: string, request: CodexRequest, server: AppServer): void {
    const { rpcId, value } = request;
    const { request_id: requestId } = value;
    // An answer to an earlier request with this id must not apply.
    this.release(rpcId);
    setBounded(this.#byRpcId, rpcId, { sessionId, requestId }, MAX_HELD);
    this.#requests.open(sessionId, value, (answer) => {
      const given = answerResult(request, answer);
      if ('refusal' in given) return given.refusal;
      return server.answer(rpcId, given.result) ? null : 'the connection to Codex broke';
    });
  }

  release(rpcId: string | number): void {
    const held = this.#byRpcId.get(rpcId);
    this.#byRpcId.delete(rpcId);
    if (held !== undefined) this.#requests.release(held.sessionId, held.requestId);
  }

  /** The connection is gone; the next one repeats its requests. */
  clear(): void {
    this.#requests.clear();
    this.#byRpcId.clear();
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#requests.answer(command));
  }
}

/** @returns `result` for the app-server, or the problem */
function answerResult(request: CodexRequest, answer: RequestAnswer): { result: object } | { refusal: string } {
  if (answer.kind === 'question') return questionResult(request, answer.answers);
  if (request.value.kind === 'question') {
    return { result: request.isForm ? { action: 'decline', content: null, _meta: null } : { answers: {} } };
  }
  const found =
    answer.kind === 'option'
      ? request.decisions.find(({ option }) => option.id === answer.optionId)
      : request.decisions.find(({ option }) => (option.kind === 'allow') === answer.isAllowed);
  return found === undefined ? { refusal: 'Codex does not offer this answer' } : { result: found.result };
}

function questionResult(
  { fields, isForm }: CodexRequest,
  answers: Record<string, string | string[]>,
): { result: object } | { refusal: string } {
  const answered = fields.flatMap((field) => {
    const given = answers[field.question] ?? answers[field.header] ?? answers[field.id];
    return given === undefined ? [] : [{ field, texts: [given].flat() }];
  });
  if (answered.length === 0) return { refusal: 'none of the questions was answered' };
  if (!isForm) {
    return {
      result: { answers: Object.fromEntries(answered.map(({ field, texts }) => [field.id, { answers: texts }])) },
    };
  }
  const content = Object.fromEntries(answered.map(({ field, texts }) => [field.id, typedValue(field, texts)]));
  return { result: { action: 'accept', content, _meta: null } };
}

/** Converts to the type of the form field. Anything else stays text, which the MCP server rejects itself. */
function typedValue({ type }: QuestionField, texts: string[]): unknown {
  const text = texts.join(', ');
  if (type === 'texts') return texts;
  if (type === 'boolean') return /^(yes|true)$/i.test(text.trim());
  const value = Number(text);
  return type === 'number' && text.trim() !== '' && Number.isFinite(value) ? value : text;
}
