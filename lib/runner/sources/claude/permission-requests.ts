import type { AnsweredRequest, CommandBodies } from '@interlude/protocol/commands';
import { requestDigest } from '@interlude/protocol/request-digest';
import { QUESTION_TOOL } from '@interlude/protocol/request-options';
import { answeredInput, answerText } from '../../adapters/claude/requests';
import { remember } from '../../adapters/remember';
import type { PermissionContext, PermissionResult } from './claude-sdk';

/**
 * What the agent waits for people to say, each for a limited time.
 *
 * Failure: an answer that was meant for anything but the request that is held here, to the last byte of its input, is
 * refused, and so is a second one; the agent goes on waiting.
 */

export type Decision =
  | { kind: 'permission'; said: CommandBodies['permission.decision'] }
  | { kind: 'question'; said: CommandBodies['question.answer'] }
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

/** Most answered requests that are remembered, so that a late answer is told why it comes to nothing. */
const MAX_ANSWERED = 256;

export class PermissionRequests {
  readonly #sessionId: string;
  readonly #open = new Map<string, Open>();
  readonly #answered = new Map<string, true>();
  /** Openings by their digest: what is asked again in the same words is another one, which takes an answer of its own. */
  readonly #answeredOpenings = new Map<string, true>();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /**
   * Resolves with what a person said, or when the time is over or the agent asks no more.
   * @param onSettled told the same before anybody else goes on
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
        if (isAnswer) remember(this.#answered, id, true, MAX_ANSWERED);
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

  /** @returns why it can't be taken, or null */
  decide(id: string, decision: Decision): string | null {
    const open = this.#open.get(id);
    if (open === undefined) {
      return this.#answered.has(id) ? 'it was answered already' : 'the agent does not wait for this any more';
    }
    if (decision.kind === 'question' && open.tool !== QUESTION_TOOL) {
      return 'this is a permission; send "behavior" instead of "answers"';
    }
    if (decision.kind === 'permission' && decision.said.behavior === 'allow' && open.tool === QUESTION_TOOL) {
      return 'this is a question; send "answers", or deny it';
    }
    if (decision.kind === 'permission' || decision.kind === 'question') {
      const { digest = '' } = decision.said;
      const refusal = this.#refusalOf(id, open, decision.said);
      if (refusal !== null) return refusal;
      remember(this.#answeredOpenings, digest, true, MAX_ANSWERED);
    }
    open.resolve(decision);
    return null;
  }

  /** The agent asks this no more, or asks anew under the same id. */
  withdraw(id: string): void {
    this.#open.get(id)?.resolve({ kind: 'cancelled' });
  }

  /** The process that asked is gone. */
  cancelAll(): void {
    for (const { resolve } of [...this.#open.values()]) resolve({ kind: 'cancelled' });
  }

  /** Whether what was answered is what is held here: computed anew, over what would run. */
  #refusalOf(id: string, { tool, input }: Open, { digest, openedPosition }: AnsweredRequest): string | null {
    if (digest === undefined || openedPosition === undefined) {
      return 'the server does not say what was answered; update it, or answer where the agent runs';
    }
    const held = { sessionId: this.#sessionId, requestId: id, tool: tool || null, input, position: openedPosition };
    if (this.#answeredOpenings.has(digest)) return 'it was answered already';
    if (requestDigest(held) === digest) return null;
    return 'the agent asks for something other than what was answered, and is still waiting';
  }
}

const REFUSALS = {
  expired: 'Nobody answered in time. Go on without it, or say what you need and end your turn.',
  cancelled: 'The request was withdrawn.',
} as const;

/** What `canUseTool` gives back. */
export function resultOf(decision: Decision, { input, context }: PermissionRequest): PermissionResult {
  switch (decision.kind) {
    case 'question':
      return { behavior: 'allow', updatedInput: answeredInput(input, decision.said.answers) };
    case 'permission': {
      const { behavior, message, updatedInput, remember } = decision.said;
      if (behavior === 'deny') return { behavior, message: message || 'A person declined this.' };
      const rules = remember === true && context.suppressAlwaysAllowRule !== true ? context.suggestions : undefined;
      return { behavior, updatedInput: updatedInput ?? input, ...(rules ? { updatedPermissions: rules } : {}) };
    }
    default:
      return { behavior: 'deny', message: REFUSALS[decision.kind] };
  }
}

/** What the adapter is told of it. */
export function answerOf(decision: Decision): { behavior: 'allow' | 'deny'; message?: string; outcome?: string } {
  switch (decision.kind) {
    case 'question':
      return { behavior: 'allow', message: answerText(decision.said.answers) };
    case 'permission': {
      const { behavior, message } = decision.said;
      return { behavior, ...(message === undefined ? {} : { message }) };
    }
    case 'expired':
      return { behavior: 'deny', outcome: 'expired', message: 'Nobody answered in time.' };
    case 'cancelled':
      return { behavior: 'deny', outcome: 'cancelled' };
  }
}
