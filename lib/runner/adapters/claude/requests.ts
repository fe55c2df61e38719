import type { RequestOpenedValue, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';

type Outcome = RequestResolvedValue['outcome'];

/** What the agent says about a tool call that waited, if anything. */
export type Verdict = Extract<Outcome, 'allowed' | 'denied' | 'cancelled'>;

/** What a tool call came to. */
export interface CallResult {
  isError: boolean;
  text: string;
  /** Whether the tool was allowed to run, if the agent says so. */
  verdict: Verdict | null;
}

/** Asks for approval of a plan. */
export const PLAN_TOOL = 'ExitPlanMode';

const TITLES: ReadonlyMap<string, string> = new Map([
  [QUESTION_TOOL, 'A question'],
  [PLAN_TOOL, 'Approve the plan'],
]);

/** Most results that are kept for a request that is reported later. */
const MAX_RESULTS = 64;

/**
 * Reads Claude's requests, by the id of the tool call that waits. The answer is what `canUseTool` returned or, if that was
 * not recorded, what the agent says about the tool call.
 *
 * @see CanUseTool, Agent SDK 0.3.329; `tool_result_meta` (CLI 2.1.329) and `permission_denials` for the verdicts
 */
export class Requests {
  readonly #writer: SessionWriter;
  /** Results of calls that have not answered a request: of none that is known, or with an error that says nothing. */
  readonly #results = new Map<string, CallResult>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** A call begins: the result of an earlier one under its id does not answer a request about this one. */
  called(id: string): void {
    this.#results.delete(id);
  }

  /** @param callId the id under which the call is shown */
  asked(request: Fields, callId: string | null = textOf(request.toolUseID)): void {
    const id = textOf(request.toolUseID) ?? textOf(request.requestId);
    if (id === null || this.#isAsked(id)) return;
    if (this.#awaits(id)) this.called(id);
    const tool = textOf(request.tool) ?? textOf(request.toolName);
    const question = tool === QUESTION_TOOL;
    const value: RequestOpenedValue = compact({
      request_id: id,
      kind: question ? ('question' as const) : ('permission' as const),
      tool_use_id: callId ?? undefined,
      tool_name: tool ?? undefined,
      title: titleOf(request, tool, question),
      input: request.input,
      expires_at: numberOf(request.expiresAt) ?? undefined,
    });
    this.#writer.requested(value, textOf(request.agentID) !== null);
    const result = this.#results.get(id);
    if (result !== undefined) this.toolResult(id, result);
  }

  /** @param answer `{ behavior: 'allow' | 'deny', message?, outcome? }`; with an outcome if it was not answered */
  answered(toolUseId: string | null, answer: Fields): void {
    const id = toolUseId ?? this.#only();
    if (id === null) return;
    const unanswered = answer.outcome === 'expired' || answer.outcome === 'cancelled' ? answer.outcome : null;
    const outcome = unanswered ?? (answer.behavior === 'allow' ? this.#allowed(id) : 'denied');
    this.#writer.resolved(id, outcome, textOf(answer.message));
  }

  /** The state went from `requires_action` back to `running`. If several are open, only their tool results say which. */
  running(): void {
    const id = this.#only();
    if (id !== null) this.#writer.passed(id);
  }

  /**
   * The tool that waited has a result. A tool that succeeded was allowed; an error does not say whether the tool ran:
   * only the verdict does, or the turn's result, which may list it as denied.
   */
  toolResult(toolUseId: string, result: CallResult): void {
    const { verdict, isError, text } = result;
    const isAwaited = this.#awaits(toolUseId);
    const saysNothing = verdict === null && isError;
    if (isAwaited && !saysNothing) {
      const outcome = verdict === null || verdict === 'allowed' ? this.#allowed(toolUseId) : verdict;
      this.#writer.resolved(toolUseId, outcome, outcome === 'denied' ? text : null);
      this.#results.delete(toolUseId);
      return;
    }
    remember(this.#results, toolUseId, result, MAX_RESULTS);
    if (isAwaited) this.#writer.passed(toolUseId);
  }

  /** The agent says that the tool was not run. */
  denied(id: string | null, message: string | null): void {
    if (id !== null) this.#writer.resolved(id, 'denied', message ?? this.#results.get(id)?.text);
  }

  #allowed(id: string): 'answered' | 'allowed' {
    return this.#writer.requests.about(id)?.kind === 'question' ? 'answered' : 'allowed';
  }

  /** Whether it waits, or was passed in this turn. In a later turn the model uses its id for another call. */
  #isAsked(id: string): boolean {
    const { requests, turn } = this.#writer;
    const isOfThisTurn = requests.about(id)?.askedIn === (turn?.runId ?? null);
    return requests.stateOf(id) === 'open' || (requests.stateOf(id) === 'passed' && isOfThisTurn);
  }

  /** Whether an answer to the request would be new. */
  #awaits(id: string): boolean {
    const state = this.#writer.requests.stateOf(id);
    return state === 'open' || state === 'passed';
  }

  /** The request, if only one waits. */
  #only(): string | null {
    const [only = null, ...others] = this.#writer.requests.open;
    return others.length === 0 ? only : null;
  }
}

function titleOf(request: Fields, tool: string | null, question: boolean): string {
  const asked = question ? fieldsOf(listOf(fieldsOf(request.input).questions)[0]).question : null;
  const said = textOf(asked) ?? textOf(request.title) ?? textOf(request.description);
  return said ?? toolTitle(tool ?? 'a tool', textOf(request.displayName));
}

/** The title of a request that brings none. */
export function toolTitle(tool: string, displayName: string | null = null): string {
  return TITLES.get(tool) ?? `Use ${displayName ?? tool}`;
}

/**
 * Adds a person's answers to the input of AskUserQuestion, as the terminal does: by the text of each question, several
 * choices joined by ", ". An answer may name its question by the header.
 */
export function answeredInput(input: Fields, said: Record<string, string | string[]>): Fields {
  const questions = listOf(input.questions).map(fieldsOf);
  const answers = Object.entries(said).map(([name, answer]) => {
    const named = questions.find(({ question, header }) => question === name || header === name);
    return [textOf(named?.question) ?? name, Array.isArray(answer) ? answer.join(', ') : answer];
  });
  return { ...input, answers: Object.fromEntries(answers) };
}

/** All answers in one line. */
export function answerText(said: Record<string, string | string[]>): string {
  return Object.values(said).flat().join(', ');
}

/** Reasons for which a tool was not run without a decision about it. */
const BROKEN_OFF: ReadonlySet<string> = new Set(['interrupted', 'cancelled']);

/** What a message with tool results says about one of its calls besides the result. */
export function verdictIn(message: Fields, toolUseId: string): Verdict | null {
  const meta = listOf(message.tool_result_meta)
    .map(fieldsOf)
    .find(({ id }) => id === toolUseId);
  if (meta === undefined) return null;
  const notRunFor = textOf(meta.non_execution_kind);
  if (notRunFor !== null) return BROKEN_OFF.has(notRunFor) ? 'cancelled' : 'denied';
  const { decision } = fieldsOf(meta.permission_decision);
  return decision === 'accept' ? 'allowed' : decision === 'reject' ? 'denied' : null;
}
