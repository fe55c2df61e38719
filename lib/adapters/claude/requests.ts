import { CUSTOM, type RequestOpenedValue, type RequestResolvedValue } from '@/lib/protocol/ag-ui';
import { custom, type Emit } from './emit';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from './fields';

type Outcome = RequestResolvedValue['outcome'];

interface OpenRequest {
  id: string;
  question: boolean;
  /** A subagent asks: its request outlives the turn. */
  subagent: boolean;
  /** The agent went on without an answer being seen; the tool's result will tell which it was. */
  wentOn: boolean;
}

/**
 * Requests that wait for a person, known by the id of the tool call that waits. A request is answered by what
 * `canUseTool` returned; where nobody wrote that down, by what the agent did next.
 *
 * @see CanUseTool, Agent SDK 0.3.329
 */
export class Requests {
  readonly #emit: Emit;
  readonly #open = new Map<string, OpenRequest>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  asked(request: Fields): void {
    const id = textOf(request.toolUseID) ?? textOf(request.requestId);
    if (id === null || this.#open.has(id)) return;
    const tool = textOf(request.tool) ?? textOf(request.toolName);
    const question = tool === 'AskUserQuestion';
    this.#open.set(id, { id, question, subagent: textOf(request.agentID) !== null, wentOn: false });
    const value: RequestOpenedValue = compact({
      request_id: id,
      kind: question ? ('question' as const) : ('permission' as const),
      tool_use_id: textOf(request.toolUseID) ?? undefined,
      tool_name: tool ?? undefined,
      title: titleOf(request, tool, question),
      input: request.input,
      expires_at: numberOf(request.expiresAt) ?? undefined,
    });
    this.#emit(custom(CUSTOM.requestOpened, value));
  }

  /** @param answer `{ behavior: 'allow' | 'deny', message?, outcome? }`; the outcome where nobody answered */
  answered(id: string | null, answer: Fields): void {
    const request = id === null ? this.#only() : this.#open.get(id);
    if (request === undefined) return;
    const allowed = answer.behavior === 'allow';
    const unanswered = answer.outcome === 'expired' || answer.outcome === 'cancelled' ? answer.outcome : null;
    const outcome = unanswered ?? (!allowed ? 'denied' : request.question ? 'answered' : 'allowed');
    this.#resolve(request, outcome, textOf(answer.message));
  }

  /** The state went from `requires_action` back to `running`. With several open, their tool results tell them apart. */
  running(): void {
    const request = this.#only();
    if (request === undefined || request.wentOn) return;
    request.wentOn = true;
    this.#emit(custom(CUSTOM.requestResolved, { request_id: request.id, outcome: 'unknown' }));
  }

  /** The tool that waited has a result: it ran, or it was refused. */
  toolResult(toolUseId: string, isError: boolean, text: string): void {
    const request = this.#open.get(toolUseId);
    if (request === undefined) return;
    const denied = isError && /permission|denied|rejected|refused|doesn't want|not allowed|user declined/i.test(text);
    this.#resolve(request, denied ? 'denied' : request.question ? 'answered' : 'allowed', denied ? text : null);
  }

  turnEnded(cancelled: boolean): void {
    for (const request of this.#open.values())
      if (!request.subagent) this.#resolve(request, cancelled ? 'cancelled' : 'unknown', null);
  }

  processEnded(): void {
    for (const request of this.#open.values()) this.#resolve(request, 'cancelled', null);
  }

  #resolve(request: OpenRequest, outcome: Outcome, message: string | null): void {
    this.#open.delete(request.id);
    if (request.wentOn && (outcome === 'unknown' || outcome === 'cancelled')) return;
    this.#emit(custom(CUSTOM.requestResolved, compact({ request_id: request.id, outcome, message })));
  }

  /** The request, where only one is open. */
  #only(): OpenRequest | undefined {
    return this.#open.size === 1 ? this.#open.values().next().value : undefined;
  }
}

function titleOf(request: Fields, tool: string | null, question: boolean): string {
  const asked = question ? fieldsOf(listOf(fieldsOf(request.input).questions)[0]).question : null;
  const said = textOf(asked) ?? textOf(request.title) ?? textOf(request.description);
  return said ?? `Use ${textOf(request.displayName) ?? tool ?? 'a tool'}`;
}
