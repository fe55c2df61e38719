import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { AnsweredRequest } from '@interlude/protocol/commands';
import { requestDigest } from '@interlude/protocol/request-digest';
import { remember } from '../adapters/remember';
import type { CommandOf } from './source';

/**
 * What the agents of one source wait for people to say.
 *
 * Failure: an answer that was meant for anything but the request that is held here, to the last byte of its input, is
 * refused, and so is a second one; the agent goes on waiting.
 */
export interface PendingRequest {
  sessionId: string;
  requestId: string;
  kind: 'permission' | 'question';
  /** As the `request:opened` told them. */
  tool: string | null;
  input: unknown;
  options?: readonly RequestOption[];
  /** Gives the answer to the agent. @returns why it could not be given, or null */
  give(answer: RequestAnswer): Promise<string | null> | string | null;
}

export type RequestAnswer =
  | { kind: 'option'; optionId: string; message?: string }
  /** Of a request without options, or answered by somebody who saw none. */
  | { kind: 'permission'; isAllowed: boolean; isLasting: boolean; message?: string }
  | { kind: 'question'; answers: Record<string, string | string[]> };

/** Most answered requests that are remembered, so that a late answer is told why it comes to nothing. */
const MAX_ANSWERED = 256;
/** Most that are held at once; an adapter tells of no more. */
const MAX_HELD = 1_000;

type Answer = CommandOf<'permission.decision' | 'question.answer'>;

export class PendingRequests {
  readonly #held = new Map<string, PendingRequest>();
  readonly #answered = new Map<string, true>();
  /** Openings by their digest: what is asked again in the same words is another one, which takes an answer of its own. */
  readonly #answeredOpenings = new Map<string, true>();
  /** Held, and their answer is on its way. */
  readonly #giving = new Set<PendingRequest>();

  hold(request: PendingRequest): void {
    const key = keyOf(request.sessionId, request.requestId);
    this.#answered.delete(key);
    this.#held.delete(key);
    remember(this.#held, key, request, MAX_HELD);
  }

  /** The agent asks this no more, or somebody else has answered it. */
  letGo(sessionId: string, requestId: string): void {
    this.#held.delete(keyOf(sessionId, requestId));
  }

  /** The process that asked is gone. */
  letGoAll(): void {
    this.#held.clear();
  }

  /** @returns why it was not given, or null. It is given at most once. */
  async answer(command: Answer): Promise<string | null> {
    const { body } = command;
    const key = keyOf(command.sessionId ?? '', body.requestId);
    const request = this.#held.get(key);
    if (request === undefined || this.#giving.has(request)) {
      return request !== undefined || this.#answered.has(key)
        ? 'it was answered already'
        : 'the agent does not wait for this any more';
    }
    // One without is refused.
    const { digest = '' } = body;
    if (this.#answeredOpenings.has(digest)) return 'it was answered already';
    const refusal = refusalOf(request, body);
    if (refusal !== null) return refusal;
    const answer = answerOf(request, command);
    if (typeof answer === 'string') return answer;
    const failed = await this.#give(request, answer, digest);
    if (failed !== null) return failed;
    remember(this.#answered, key, true, MAX_ANSWERED);
    if (this.#held.get(key) === request) this.#held.delete(key);
    return null;
  }

  async #give(request: PendingRequest, answer: RequestAnswer, digest: string): Promise<string | null> {
    this.#giving.add(request);
    remember(this.#answeredOpenings, digest, true, MAX_ANSWERED);
    let isGiven = false;
    try {
      const failed = await request.give(answer);
      isGiven = failed === null;
      return failed;
    } finally {
      this.#giving.delete(request);
      if (!isGiven) this.#answeredOpenings.delete(digest);
    }
  }
}

function keyOf(sessionId: string, requestId: string): string {
  return `${sessionId}\n${requestId}`;
}

/** Whether what was answered is what is held here: computed anew, over what would run. */
function refusalOf(request: PendingRequest, { digest, openedPosition }: AnsweredRequest): string | null {
  if (digest === undefined || openedPosition === undefined) {
    return 'the server does not say what was answered; update it, or answer where the agent runs';
  }
  const { sessionId, requestId, kind, tool, input } = request;
  const options = kind === 'permission' ? request.options : undefined;
  if (requestDigest({ sessionId, requestId, tool, input, options, position: openedPosition }) === digest) return null;
  return 'the agent asks for something other than what was answered, and is still waiting';
}

/** @returns as the agent can be told it, or why it can't */
function answerOf({ kind, options = [] }: PendingRequest, command: Answer): RequestAnswer | string {
  if (command.type === 'question.answer') {
    if (kind !== 'question') return 'this is a permission; send "behavior" instead of "answers"';
    return { kind: 'question', answers: command.body.answers };
  }
  const { behavior, message, remember: isLasting = false, optionId, updatedInput } = command.body;
  if (kind === 'question' && behavior === 'allow') return 'this is a question; send "answers", or deny it';
  if (updatedInput !== undefined) return 'this agent runs what it asked for, and takes no other input';
  const said = message === undefined ? {} : { message };
  const isAllowed = behavior === 'allow';
  if (optionId !== undefined) {
    const option = options.find(({ id }) => id === optionId);
    if (option === undefined) return `the agent does not offer "${optionId}"`;
    if ((option.kind === 'allow') !== isAllowed) return `"${option.label}" is no way to ${behavior} this`;
    return { kind: 'option', optionId, ...said };
  }
  const fitting = options.filter((option) => (option.kind === 'allow') === isAllowed);
  const option = fitting.find((one) => (one.isLasting === true) === isLasting) ?? fitting.find((one) => !one.isLasting);
  if (option !== undefined) return { kind: 'option', optionId: option.id, ...said };
  if (options.length > 0 && isAllowed) return 'the agent offers no way to allow this once; choose one of its answers';
  return { kind: 'permission', isAllowed, isLasting, ...said };
}
