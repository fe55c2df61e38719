import type { CommandBodies } from '@interlude/protocol/commands';
import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { answeredInput, answerText } from '../../adapters/claude/requests';
import { type AnswerCommand, PendingRequests } from '../../host/pending-requests';
import type { PermissionContext, PermissionResult } from './claude-sdk';

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

/** Holds permission and question requests that wait for a person, each for a limited time. */
export class PermissionRequests {
  readonly #sessionId: string;
  readonly #requests = new PendingRequests();
  readonly #settlers = new Map<string, (decision: Decision) => void>();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /**
   * Resolves with a person's decision, on timeout, or when the agent withdraws the request.
   * @param onSettled called first with the same decision
   */
  wait(
    requestId: string,
    { tool, input, context: { signal } }: PermissionRequest,
    withinMs: number,
    onSettled: (decision: Decision) => void = () => {},
  ): Promise<Decision> {
    const sessionId = this.#sessionId;
    this.withdraw(requestId);
    return new Promise((resolve) => {
      const settle = (decision: Decision) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', cancel);
        this.#settlers.delete(requestId);
        this.#requests.release(sessionId, requestId);
        onSettled(decision);
        resolve(decision);
      };
      const cancel = () => settle({ kind: 'cancelled' });
      const timer = setTimeout(() => settle({ kind: 'expired' }), withinMs);
      signal.addEventListener('abort', cancel);
      this.#settlers.set(requestId, settle);
      const kind = tool === QUESTION_TOOL ? 'question' : 'permission';
      const deliver = (_: unknown, { type, body }: AnswerCommand) => {
        settle(type === 'question.answer' ? { kind: 'question', body } : { kind: 'permission', body });
        return null;
      };
      this.#requests.hold({ sessionId, requestId, kind, tool: tool || null, input, acceptsInput: true, deliver });
      if (signal.aborted) cancel();
    });
  }

  /** @returns the reason why the answer is refused, or null */
  answer(command: AnswerCommand): Promise<string | null> {
    return this.#requests.answer(command);
  }

  withdraw(requestId: string): void {
    this.#settlers.get(requestId)?.({ kind: 'cancelled' });
  }

  cancelAll(): void {
    for (const settle of [...this.#settlers.values()]) settle({ kind: 'cancelled' });
  }
}

const REFUSALS = {
  expired: 'Nobody answered in time. Continue without it, or say what you need and end your turn.',
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

/** Returns the answer in the form that the adapter records. */
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
