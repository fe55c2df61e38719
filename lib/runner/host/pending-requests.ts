import type { RequestOpenedValue, RequestOption } from '@interlude/protocol/ag-ui';
import type { AnsweredRequest } from '@interlude/protocol/commands';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { type EmittedEvent, setBounded } from '../adapters/wire';
import type { CommandOf } from './source';

export interface PendingRequest {
  sessionId: string;
  requestId: string;
  kind: 'permission' | 'question';
  /** From the `request:opened` event. */
  tool: string | null;
  input: unknown;
  options?: readonly RequestOption[];
  /** True if the agent accepts an input that a person changed. */
  acceptsInput?: true;
  /** Passes the answer to the agent. @returns the reason for a failure, or null */
  deliver(answer: RequestAnswer, command: AnswerCommand): Promise<string | null> | string | null;
}

export type RequestAnswer =
  | { kind: 'option'; optionId: string; message?: string }
  /** For a request without options, or answered without seeing them. */
  | { kind: 'permission'; isAllowed: boolean; isLasting: boolean; message?: string }
  | { kind: 'question'; answers: Record<string, string | string[]> };

/** Answered requests remembered, so that a late answer gets a reason. */
const MAX_ANSWERED = 256;
/** No adapter opens more requests than this. */
const MAX_PENDING = 1_000;

export type AnswerCommand = CommandOf<'permission.decision' | 'question.answer'>;

/**
 * Permission and question requests that wait for a person.
 *
 * Failure: an answer is refused unless it refers to exactly this request, to the last byte of its input. A second
 * answer is refused too. The agent keeps waiting.
 */
export class PendingRequests {
  readonly #pending = new Map<string, PendingRequest>();
  readonly #answered = new Map<string, true>();
  /** Digests of answered requests. A repeated request has another digest, so it needs a new answer. */
  readonly #answeredOpenings = new Map<string, true>();
  /** Requests whose answer is being passed to the agent. */
  readonly #answering = new Set<PendingRequest>();

  /** Adds requests that the events open, and removes those that they resolve. */
  observe(
    events: readonly EmittedEvent[],
    deliver: (
      answer: RequestAnswer,
      value: RequestOpenedValue,
      sessionId: string,
    ) => ReturnType<PendingRequest['deliver']>,
  ): void {
    for (const { sessionId, event } of events) {
      if (event.type !== 'CUSTOM') continue;
      const value = event.value as RequestOpenedValue;
      if (event.name === CUSTOM.requestOpened)
        this.open(sessionId, value, (answer) => deliver(answer, value, sessionId));
      else if (event.name === CUSTOM.requestResolved) this.release(sessionId, value.request_id);
    }
  }

  open(sessionId: string, value: RequestOpenedValue, deliver: PendingRequest['deliver']): void {
    const { request_id: requestId, kind, tool_name: tool = null, input, options } = value;
    this.hold({
      sessionId,
      requestId,
      kind,
      tool,
      input,
      ...(options === undefined ? {} : { options }),
      deliver,
    });
  }

  hold(request: PendingRequest): void {
    const key = keyOf(request.sessionId, request.requestId);
    this.#answered.delete(key);
    this.#pending.delete(key);
    setBounded(this.#pending, key, request, MAX_PENDING);
  }

  /** Removes a request that was withdrawn or answered elsewhere. */
  release(sessionId: string, requestId: string): void {
    this.#pending.delete(keyOf(sessionId, requestId));
  }

  /** Removes all requests, because the asking process has exited. */
  clear(): void {
    this.#pending.clear();
  }

  /** Passes an answer on, at most once. @returns the reason for a failure, or null */
  async answer(command: AnswerCommand): Promise<string | null> {
    const { body } = command;
    const key = keyOf(command.sessionId ?? '', body.requestId);
    const request = this.#pending.get(key);
    if (request === undefined || this.#answering.has(request)) {
      return request !== undefined || this.#answered.has(key)
        ? 'it was already answered'
        : 'the agent no longer waits for this';
    }
    // `refusalOf` refuses an answer without a digest.
    const { digest = '' } = body;
    if (this.#answeredOpenings.has(digest)) return 'it was already answered';
    const refusal = refusalOf(request, body);
    if (refusal !== null) return refusal;
    const answer = answerOf(request, command);
    if (typeof answer === 'string') return answer;
    const failed = await this.#respond(request, answer, command);
    if (failed !== null) return failed;
    setBounded(this.#answered, key, true, MAX_ANSWERED);
    if (this.#pending.get(key) === request) this.#pending.delete(key);
    return null;
  }

  async #respond(request: PendingRequest, answer: RequestAnswer, command: AnswerCommand): Promise<string | null> {
    const { digest = '' } = command.body;
    this.#answering.add(request);
    setBounded(this.#answeredOpenings, digest, true, MAX_ANSWERED);
    let isDelivered = false;
    try {
      const failed = await request.deliver(answer, command);
      isDelivered = failed === null;
      return failed;
    } finally {
      this.#answering.delete(request);
      if (!isDelivered) this.#answeredOpenings.delete(digest);
    }
  }
}

function keyOf(sessionId: string, requestId: string): string {
  return `${sessionId}\n${requestId}`;
}

/** Recomputes the digest from the input that would run. */
function refusalOf(request: PendingRequest, { digest, openedPosition }: AnsweredRequest): string | null {
  if (digest === undefined || openedPosition === undefined) {
    return 'the server does not name the answered request; update it, or answer in the agent’s own interface';
  }
  const { sessionId, requestId, kind, tool, input } = request;
  const options = kind === 'permission' ? request.options : undefined;
  if (requestDigest({ sessionId, requestId, tool, input, options, position: openedPosition }) === digest) return null;
  return 'the request has changed since it was answered, and the agent still waits; reload the page and answer again';
}

/** @returns the answer for the agent, or why there is none */
function answerOf(
  { kind, options = [], acceptsInput }: PendingRequest,
  command: AnswerCommand,
): RequestAnswer | string {
  if (command.type === 'question.answer') {
    if (kind !== 'question') return 'this is a permission; send "behavior" instead of "answers"';
    return { kind: 'question', answers: command.body.answers };
  }
  const { behavior, message, remember: isLasting = false, optionId, updatedInput } = command.body;
  if (kind === 'question' && behavior === 'allow') return 'this is a question; send "answers", or deny it';
  if (updatedInput !== undefined && acceptsInput !== true)
    return 'this agent accepts no changed input; answer without changes';
  const note = message === undefined ? {} : { message };
  const isAllowed = behavior === 'allow';
  if (optionId !== undefined) {
    const option = options.find(({ id }) => id === optionId);
    if (option === undefined) return `the agent does not offer "${optionId}"; choose one of its options`;
    if ((option.kind === 'allow') !== isAllowed) return `"${option.label}" can’t ${behavior} this`;
    return { kind: 'option', optionId, ...note };
  }
  const fitting = options.filter((option) => (option.kind === 'allow') === isAllowed);
  const option = fitting.find((one) => (one.isLasting === true) === isLasting) ?? fitting.find((one) => !one.isLasting);
  if (option !== undefined) return { kind: 'option', optionId: option.id, ...note };
  if (options.length > 0 && isAllowed) return 'the agent can’t allow this once; choose one of its options';
  return { kind: 'permission', isAllowed, isLasting, ...note };
}
