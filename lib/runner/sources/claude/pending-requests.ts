import type { CommandBodies } from '@/lib/protocol/commands';
import type { PermissionContext, PermissionResult } from './claude-sdk';

/** What the agent waits for people to say, each for a limited time. */

export type Decision =
  | { kind: 'permission'; said: CommandBodies['permission.decision'] }
  | { kind: 'question'; said: CommandBodies['question.answer'] }
  | { kind: 'expired' }
  | { kind: 'cancelled' };

export interface PendingRequest {
  tool: string;
  input: Record<string, unknown>;
  context: PermissionContext;
}

interface Open extends PendingRequest {
  resolve: (decision: Decision) => void;
}

export const QUESTION_TOOL = 'AskUserQuestion';

export class PendingRequests {
  readonly #open = new Map<string, Open>();

  /** Resolves with what a person said, or when the time is over or the agent asks no more. */
  wait(id: string, request: PendingRequest, withinMs: number): Promise<Decision> {
    return new Promise((resolve) => {
      const { signal } = request.context;
      const settle = (decision: Decision) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', cancel);
        this.#open.delete(id);
        resolve(decision);
      };
      const cancel = () => settle({ kind: 'cancelled' });
      const timer = setTimeout(() => settle({ kind: 'expired' }), withinMs);
      signal.addEventListener('abort', cancel);
      this.#open.set(id, { ...request, resolve: settle });
      if (signal.aborted) cancel();
    });
  }

  /** @returns why it can't be taken, or null */
  decide(id: string, decision: Decision): string | null {
    const open = this.#open.get(id);
    if (open === undefined) return 'the agent does not wait for this any more';
    if (decision.kind === 'question' && open.tool !== QUESTION_TOOL) {
      return 'this is a permission; send "behavior" instead of "answers"';
    }
    if (decision.kind === 'permission' && decision.said.behavior === 'allow' && open.tool === QUESTION_TOOL) {
      return 'this is a question; send "answers", or deny it';
    }
    open.resolve(decision);
    return null;
  }

  /** The process that asked is gone. */
  cancelAll(): void {
    for (const { resolve } of [...this.#open.values()]) resolve({ kind: 'cancelled' });
  }
}

const REFUSALS = {
  expired: 'Nobody answered in time. Go on without it, or say what you need and end your turn.',
  cancelled: 'The request was withdrawn.',
} as const;

/** What `canUseTool` gives back. */
export function resultOf(decision: Decision, { input, context }: PendingRequest): PermissionResult {
  switch (decision.kind) {
    case 'question':
      return { behavior: 'allow', updatedInput: { ...input, answers: answersOf(decision.said.answers, input) } };
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
      return { behavior: 'allow', message: Object.values(decision.said.answers).flat().join(', ') };
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

/** By the text of the question, several choices joined: what the tool reads. People may name the header instead. */
function answersOf(said: Record<string, string | string[]>, input: Record<string, unknown>): Record<string, string> {
  const questions = Array.isArray(input.questions) ? (input.questions as { question?: string; header?: string }[]) : [];
  return Object.fromEntries(
    Object.entries(said).map(([name, answer]) => {
      const named = questions.find(({ question, header }) => question === name || header === name);
      return [named?.question ?? name, Array.isArray(answer) ? answer.join(', ') : answer];
    }),
  );
}
