import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { answeredInput, answerText, PLAN_TOOL } from '../../adapters/claude/requests';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf } from '../../host/source';

/**
 * Permissions, questions and plans of a terminal that can be answered in the dashboard as well, while the hook that
 * reported them waits. That hook is PermissionRequest: the terminal shows its dialog beside it, and the first answer
 * counts. A PreToolUse hook that waits would keep the dialog from being shown.
 *
 * Ordering: a hook names the tool and its input; which request that is, is known once the transcript has the call.
 * Failure: a hook that has waited long enough, or is gone, gets no answer, and its request is one for the terminal only.
 *
 * @see measured in a terminal with CLI 2.1.332
 */
export interface PermissionHooksOptions {
  /** Something is held, or nothing any more. */
  onChange: () => void;
  /** A person has answered: told before the agent is. */
  onAnswered: (sessionId: string, requestId: string, answer: { behavior: 'allow' | 'deny'; message?: string }) => void;
  /** From now on it can only be answered in the terminal. */
  onLetGo: (sessionId: string, requestId: string) => void;
}

export interface PermissionHook {
  sessionId: string;
  tool: string;
  input: unknown;
  /** What the terminal offers so that it need not ask again. @see PermissionUpdate, Agent SDK 0.3.329 */
  suggestions: readonly unknown[];
  withinMs: number;
  /** Fires when the hook is gone. */
  signal: AbortSignal;
}

interface WaitingHook extends Pick<PermissionHook, 'sessionId' | 'tool' | 'suggestions'> {
  /** As JSON. */
  input: string;
  requestId: string | null;
  /** Gives the hook what it prints. */
  print: (output: string) => void;
}

const NOTHING = '';
const MOST_HELD = 64;

export class PermissionHooks {
  readonly #options: PermissionHooksOptions;
  readonly #requests = new PendingRequests();
  readonly #held = new Set<WaitingHook>();

  constructor(options: PermissionHooksOptions) {
    this.#options = options;
  }

  get areAny(): boolean {
    return this.#held.size > 0;
  }

  /** @returns what the hook prints: a decision, or nothing, and then the terminal's own question stands */
  hold({ withinMs, signal, input, ...about }: PermissionHook): Promise<string> {
    if (this.#held.size >= MOST_HELD || signal.aborted) return Promise.resolve(NOTHING);
    return new Promise((resolve) => {
      const print = (output: string) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        resolve(output);
      };
      const held: WaitingHook = { ...about, input: jsonOf(input), requestId: null, print };
      const giveUp = () => this.#giveUp(held);
      const timer = setTimeout(giveUp, withinMs);
      signal.addEventListener('abort', giveUp);
      this.#held.add(held);
      this.#options.onChange();
    });
  }

  /** The transcript has the call that a hook is about. @param value of the `request:opened` as it is told */
  opened(sessionId: string, value: Fields): void {
    const requestId = textOf(value.request_id);
    const { tool_name: tool, input } = value;
    const isIts = (held: WaitingHook) =>
      held.sessionId === sessionId && held.requestId === null && held.tool === tool && held.input === jsonOf(input);
    const held = [...this.#held].find(isIts);
    if (held === undefined || requestId === null) return;
    held.requestId = requestId;
    const give = (answer: RequestAnswer) => this.#give(held, requestId, answer);
    const kind = value.kind === 'question' ? 'question' : 'permission';
    this.#requests.hold({ sessionId, requestId, kind, tool: held.tool, input, give });
  }

  /** It was answered in the terminal, or is not asked any more. */
  resolved(sessionId: string, requestId: string): void {
    for (const held of this.#held) {
      if (held.sessionId === sessionId && held.requestId === requestId) this.#end(held, NOTHING);
    }
  }

  /** Nobody can answer any more: the session was left, or the companion ends. @param sessionId null for all of them */
  letGo(sessionId: string | null): void {
    for (const held of this.#held) if (sessionId === null || held.sessionId === sessionId) this.#giveUp(held);
  }

  /** @returns why the answer was not given, or null */
  answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<string | null> {
    return this.#requests.answer(command);
  }

  #give(held: WaitingHook, requestId: string, answer: RequestAnswer): string | null {
    if (answer.kind === 'option' || !this.#held.has(held)) return 'the agent does not wait for this any more';
    const decision = decisionOf(held, answer);
    const message = answer.kind === 'question' ? answerText(answer.answers) : answer.message;
    const said = message === undefined ? {} : { message };
    this.#options.onAnswered(held.sessionId, requestId, { behavior: decision.behavior, ...said });
    this.#end(held, JSON.stringify({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } }));
    return null;
  }

  #giveUp(held: WaitingHook): void {
    if (!this.#held.has(held)) return;
    this.#end(held, NOTHING);
    if (held.requestId !== null) this.#options.onLetGo(held.sessionId, held.requestId);
  }

  #end(held: WaitingHook, output: string): void {
    if (!this.#held.delete(held)) return;
    if (held.requestId !== null) this.#requests.release(held.sessionId, held.requestId);
    held.print(output);
    this.#options.onChange();
  }
}

/** @see PermissionRequest's `decision`, CLI 2.1.332 */
function decisionOf(
  { tool, input, suggestions }: WaitingHook,
  answer: Exclude<RequestAnswer, { kind: 'option' }>,
): Fields & { behavior: 'allow' | 'deny' } {
  const asked = fieldsOf(JSON.parse(input));
  if (answer.kind === 'question') return { behavior: 'allow', updatedInput: answeredInput(asked, answer.answers) };
  const { isAllowed, isLasting, message } = answer;
  if (!isAllowed) return { behavior: 'deny', message: message?.trim() ? message : 'A person declined this.' };
  const lasting = isLasting && suggestions.length > 0 ? { updatedPermissions: suggestions } : {};
  // The terminal ignores a plan's approval without an input. For other tools, an input makes it apply the "ask" rules of
  // its settings again, and ask anew.
  return { behavior: 'allow', ...(tool === PLAN_TOOL ? { updatedInput: asked } : {}), ...lasting };
}

function jsonOf(input: unknown): string {
  return JSON.stringify(input ?? null);
}
