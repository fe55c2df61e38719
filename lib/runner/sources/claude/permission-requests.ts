import type { AnsweredRequest, CommandBodies } from '@interlude/protocol/commands';
import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { answeredInput, answerText } from '../../adapters/claude/requests';
import { setBounded } from '../../adapters/wire';
import type { PermissionContext, PermissionResult } from './claude-sdk';

/**
 * Permission and question requests that wait for a person, each for a limited time.
 *
 * Failure: an answer is refused unless it refers to exactly this request, to the last byte of its input. A second
 * answer is refused too. The agent keeps waiting.
 */

export type Decision =
  | { kind: 'permission'; body: CommandBodies['permission.decision'] }
  | { kind: 'question'; body: CommandBodies['question.answer'] }
  | { kind: 'expired' }
  | { kind: 'cancelled' };

export interface PermissionRequest {
  tool: string;
  input: Record<string, unknown>;
  context: PermissionContext;
}

interface Open extends PermissionRequest {
  resolve: (decision: Decision) => void;
}

/** Answered requests remembered, so that a late answer gets a reason. */
const MAX_ANSWERED = 256;

export class PermissionRequests {
  readonly #sessionId: string;
  readonly #open = new Map<string, Open>();
  readonly #answered = new Map<string, true>();
  /** Answered openings by digest. Asking again with the same content needs a new answer. */
  readonly #answeredOpenings = new Map<string, true>();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /**
   * Resolves with the decision of a person, on timeout, or when the agent withdraws.
   * @param onSettled called first with the same decision
   */
  wait(
    id: string,
    request: PermissionRequest,
    withinMs: number,
    onSettled: (decision: Decision) => void = () => {},
  ): Promise<Decision> {
    this.withdraw(id);
    return new Promise((resolve) => {
      const { signal } = request.context;
      const settle = (decision: Decision) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', cancel);
        this.#open.delete(id);
        const isAnswer = decision.kind === 'permission' || decision.kind === 'question';
        if (isAnswer) setBounded(this.#answered, id, true, MAX_ANSWERED);
        onSettled(decision);
        resolve(decision);
      };
      const cancel = () => settle({ kind: 'cancelled' });
      const timer = setTimeout(() => settle({ kind: 'expired' }), withinMs);
      signal.addEventListener('abort', cancel);
      this.#answered.delete(id);
      this.#open.set(id, { ...request, resolve: settle });
      if (signal.aborted) cancel();
    });
  }

  /** @returns why the decision is refused, or null */
  decide(id: string, decision: Decision): string | null {
    const open = this.#open.get(id);
    if (open === undefined) {
      return this.#answered.has(id) ? 'it was already answered' : 'the agent no longer waits for this';
    }
    if (decision.kind === 'question' && open.tool !== QUESTION_TOOL) {
      return 'this is a permission; send "behavior" instead of "answers"';
    }
    if (decision.kind === 'permission' && decision.body.behavior === 'allow' && open.tool === QUESTION_TOOL) {
      return 'this is a question; send "answers", or deny it';
    }
    if (decision.kind === 'permission' || decision.kind === 'question') {
      const { digest = '' } = decision.body;
      const refusal = this.#refusalOf(id, open, decision.body);
      if (refusal !== null) return refusal;
      setBounded(this.#answeredOpenings, digest, true, MAX_ANSWERED);
    }
    open.resolve(decision);
    return null;
  }

  withdraw(id: string): void {
    this.#open.get(id)?.resolve({ kind: 'cancelled' });
  }

  cancelAll(): void {
    for (const { resolve } of [...this.#open.values()]) resolve({ kind: 'cancelled' });
  }

  /** Recomputes the digest over what would run. */
  #refusalOf(id: string, { tool, input }: Open, { digest, openedPosition }: AnsweredRequest): string | null {
    if (digest === undefined || openedPosition === undefined) {
      return 'the server does not say which request was answered; update it, or answer where the agent runs';
    }
    const held = { sessionId: this.#sessionId, requestId: id, tool: tool || null, input, position: openedPosition };
    if (this.#answeredOpenings.has(digest)) return 'it was already answered';
    if (requestDigest(held) === digest) return null;
    return 'the agent is asking for something else than what was answered, and is still waiting';
  }
}

const REFUSALS = {
  expired: 'Nobody answered in time. Go on without it, or say what you need and end your turn.',
  cancelled: 'The request was withdrawn.',
} as const;

/** Result of `canUseTool`. */
export function resultOf(decision: Decision, { input, context }: PermissionRequest): PermissionResult {
  switch (decision.kind) {
    case 'question':
      return { behavior: 'allow', updatedInput: answeredInput(input, decision.body.answers) };
    case 'permission': {
      const { behavior, message, updatedInput, remember } = decision.body;
      if (behavior === 'deny') return { behavior, message: message || 'A person declined this.' };
      const rules = remember === true && context.suppressAlwaysAllowRule !== true ? context.suggestions : undefined;
      return { behavior, updatedInput: updatedInput ?? input, ...(rules ? { updatedPermissions: rules } : {}) };
    }
    default:
      return { behavior: 'deny', message: REFUSALS[decision.kind] };
  }
}

/** Answer as the adapter records it. */
export function answerOf(decision: Decision): { behavior: 'allow' | 'deny'; message?: string; outcome?: string } {
  switch (decision.kind) {
    case 'question':
      return { behavior: 'allow', message: answerText(decision.body.answers) };
    case 'permission': {
      const { behavior, message } = decision.body;
      return { behavior, ...(message === undefined ? {} : { message }) };
    }
    case 'expired':
      return { behavior: 'deny', outcome: 'expired', message: 'Nobody answered in time.' };
    case 'cancelled':
      return { behavior: 'deny', outcome: 'cancelled' };
  }
}
