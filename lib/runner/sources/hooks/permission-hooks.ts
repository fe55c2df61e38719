import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { answeredInput, answerText, PLAN_TOOL } from '../../adapters/claude/requests';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf } from '../../host/source';

export interface PermissionHooksOptions {
  /** Called when a hook starts or stops waiting. */
  onChange: () => void;
  /** Called when a person has answered, before the agent gets the answer. */
  onAnswered: (sessionId: string, requestId: string, answer: { behavior: 'allow' | 'deny'; message?: string }) => void;
  /** Called once the request can only be answered in the terminal. */
  onReleased: (sessionId: string, requestId: string) => void;
}

export interface PermissionHook {
  sessionId: string;
  tool: string;
  input: unknown;
  /** Permission updates the terminal suggests. @see PermissionUpdate, Agent SDK 0.3.329 */
  suggestions: readonly unknown[];
  withinMs: number;
  /** Aborts when the hook disconnects. */
  signal: AbortSignal;
}

interface WaitingHook extends Pick<PermissionHook, 'sessionId' | 'tool' | 'suggestions'> {
  input: string;
  requestId: string | null;
  /** Sends the output of the hook. */
  print: (output: string) => void;
}

const NO_OUTPUT = '';
const MAX_WAITING = 64;

/**
 * Lets the dashboard answer permissions, questions and plans of a terminal while the PermissionRequest hook that
 * reported them waits. The terminal shows its dialog at the same time, and the first answer wins. (A waiting PreToolUse
 * hook would block the dialog.)
 *
 * Ordering: a hook names the tool and its input; the request is known once the transcript has the call.
 * Failure: a hook that times out or disconnects gets no answer, and its request remains for the terminal only.
 *
 * @see measured in a terminal with CLI 2.1.332
 */
export class PermissionHooks {
  readonly #options: PermissionHooksOptions;
  readonly #requests = new PendingRequests();
  readonly #waiting = new Set<WaitingHook>();

  constructor(options: PermissionHooksOptions) {
    this.#options = options;
  }

  get hasWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** @returns output of the hook: a decision, or nothing, which leaves the request to the terminal */
  hold({ withinMs, signal, input, ...about }: PermissionHook): Promise<string> {
    if (this.#waiting.size >= MAX_WAITING || signal.aborted) return Promise.resolve(NO_OUTPUT);
    return new Promise((resolve) => {
      const print = (output: string) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        resolve(output);
      };
      const hook: WaitingHook = { ...about, input: jsonOf(input), requestId: null, print };
      const giveUp = () => this.#giveUp(hook);
      const timer = setTimeout(giveUp, withinMs);
      signal.addEventListener('abort', giveUp);
      this.#waiting.add(hook);
      this.#options.onChange();
    });
  }

  /** Matches a request of the transcript with its hook. @param value of the `request:opened` */
  opened(sessionId: string, value: Fields): void {
    const requestId = textOf(value.request_id);
    const { tool_name: tool, input } = value;
    const matches = (hook: WaitingHook) =>
      hook.sessionId === sessionId && hook.requestId === null && hook.tool === tool && hook.input === jsonOf(input);
    const hook = [...this.#waiting].find(matches);
    if (hook === undefined || requestId === null) return;
    hook.requestId = requestId;
    const deliver = (answer: RequestAnswer) => this.#answer(hook, requestId, answer);
    const kind = value.kind === 'question' ? 'question' : 'permission';
    this.#requests.hold({ sessionId, requestId, kind, tool: hook.tool, input, deliver });
  }

  /** Handles a request that was answered in the terminal, or withdrawn. */
  resolved(sessionId: string, requestId: string): void {
    for (const hook of this.#waiting) {
      if (hook.sessionId === sessionId && hook.requestId === requestId) this.#end(hook, NO_OUTPUT);
    }
  }

  /** Stops waiting, because a session was left or the companion stops. @param sessionId null for all */
  release(sessionId: string | null): void {
    for (const hook of this.#waiting) if (sessionId === null || hook.sessionId === sessionId) this.#giveUp(hook);
  }

  /** @returns the reason for a failure, or null */
  answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<string | null> {
    return this.#requests.answer(command);
  }

  #answer(hook: WaitingHook, requestId: string, answer: RequestAnswer): string | null {
    if (answer.kind === 'option' || !this.#waiting.has(hook)) return 'the agent no longer waits for this';
    const decision = decisionOf(hook, answer);
    const message = answer.kind === 'question' ? answerText(answer.answers) : answer.message;
    const note = message === undefined ? {} : { message };
    this.#options.onAnswered(hook.sessionId, requestId, { behavior: decision.behavior, ...note });
    this.#end(hook, JSON.stringify({ hookSpecificOutput: { hookEventName: 'PermissionRequest', decision } }));
    return null;
  }

  #giveUp(hook: WaitingHook): void {
    if (!this.#waiting.has(hook)) return;
    this.#end(hook, NO_OUTPUT);
    if (hook.requestId !== null) this.#options.onReleased(hook.sessionId, hook.requestId);
  }

  #end(hook: WaitingHook, output: string): void {
    if (!this.#waiting.delete(hook)) return;
    if (hook.requestId !== null) this.#requests.release(hook.sessionId, hook.requestId);
    hook.print(output);
    this.#options.onChange();
  }
}

/** @see PermissionRequest's `decision`, CLI 2.1.332 */
function decisionOf(
  { tool, input, suggestions }: WaitingHook,
  answer: Exclude<RequestAnswer, { kind: 'option' }>,
): Fields & { behavior: 'allow' | 'deny' } {
  const requested = fieldsOf(JSON.parse(input));
  if (answer.kind === 'question') return { behavior: 'allow', updatedInput: answeredInput(requested, answer.answers) };
  const { isAllowed, isLasting, message } = answer;
  if (!isAllowed) return { behavior: 'deny', message: message?.trim() ? message : 'A person declined this.' };
  const lasting = isLasting && suggestions.length > 0 ? { updatedPermissions: suggestions } : {};
  // The terminal ignores the approval of a plan without an input. For other tools, an input makes it reapply its "ask"
  // rules and ask again.
  return { behavior: 'allow', ...(tool === PLAN_TOOL ? { updatedInput: requested } : {}), ...lasting };
}

function jsonOf(input: unknown): string {
  return JSON.stringify(input ?? null);
}
