import { CUSTOM, type RequestOpenedValue, type RequestResolvedValue } from '@/lib/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@/lib/protocol/fields';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import { custom, type Emit } from '../emit';
import { remember } from '../remember';

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

/** Asks a question. Requests of all other tools are permissions. */
export const QUESTION_TOOL = 'AskUserQuestion';
/** Asks for approval of a plan. */
export const PLAN_TOOL = 'ExitPlanMode';

const TITLES: ReadonlyMap<string, string> = new Map([
  [QUESTION_TOOL, 'A question'],
  [PLAN_TOOL, 'Approve the plan'],
]);

/** Most results that are kept for a request that is reported later. */
const MAX_RESULTS = 64;
const MAX_OPEN = 1_000;

interface OpenRequest {
  id: string;
  question: boolean;
  /** A subagent asks: its request outlives the turn. */
  subagent: boolean;
  /** The error of its tool, if we don't know whether that ran: the turn's result may list it as denied. */
  failedWith: string | null;
}

/**
 * Requests that wait for a person, by the id of the tool call that waits. The answer is what `canUseTool` returned or,
 * if that was not recorded, what the agent says about the tool call.
 *
 * @see CanUseTool, Agent SDK 0.3.329; `tool_result_meta` (CLI 2.1.329) and `permission_denials` for the verdicts
 */
export class Requests {
  readonly #emit: Emit;
  /** One that was passed stays known: the result of its tool says what the answer was. */
  readonly #requests = new Entities<'request', OpenRequest>('request', { mostOpen: MAX_OPEN, mostEnded: MAX_RESULTS });
  /** Results of calls for which no request is known. */
  readonly #results = new Map<string, CallResult>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** A call begins: the result of an earlier one under its id does not answer a request about this one. */
  called(id: string): void {
    this.#results.delete(id);
  }

  /** @param callId the id under which the call is shown */
  asked(request: Fields, callId: string | null = textOf(request.toolUseID)): void {
    const id = textOf(request.toolUseID) ?? textOf(request.requestId);
    if (id === null || this.#requests.verdict(id, 'ask') !== 'begins') return;
    const tool = textOf(request.tool) ?? textOf(request.toolName);
    const question = tool === QUESTION_TOOL;
    const crowded = this.#requests.crowded;
    if (crowded !== null) this.#resolve(this.#requests.about(crowded) as OpenRequest, 'unknown', null);
    this.#requests.take(id, 'ask', { id, question, subagent: textOf(request.agentID) !== null, failedWith: null });
    const value: RequestOpenedValue = compact({
      request_id: id,
      kind: question ? ('question' as const) : ('permission' as const),
      tool_use_id: callId ?? undefined,
      tool_name: tool ?? undefined,
      title: titleOf(request, tool, question),
      input: request.input,
      expires_at: numberOf(request.expiresAt) ?? undefined,
    });
    this.#emit(custom(CUSTOM.requestOpened, value));
    const result = this.#results.get(id);
    if (result !== undefined) this.toolResult(id, result);
  }

  /** @param answer `{ behavior: 'allow' | 'deny', message?, outcome? }`; with an outcome if nobody answered */
  answered(id: string | null, answer: Fields): void {
    const request = id === null ? this.#only() : this.#find(id);
    if (request === undefined) return;
    const allowed = answer.behavior === 'allow';
    const unanswered = answer.outcome === 'expired' || answer.outcome === 'cancelled' ? answer.outcome : null;
    const outcome = unanswered ?? (!allowed ? 'denied' : request.question ? 'answered' : 'allowed');
    this.#resolve(request, outcome, textOf(answer.message));
  }

  /** The state went from `requires_action` back to `running`. If several are open, only their tool results tell which. */
  running(): void {
    const request = this.#only();
    if (request !== undefined) this.#goOn(request);
  }

  /**
   * The tool that waited has a result. A tool that succeeded was allowed; an error does not say whether the tool ran:
   * only the verdict does.
   */
  toolResult(toolUseId: string, result: CallResult): void {
    const { verdict, isError, text } = result;
    const request = this.#find(toolUseId);
    if (request === undefined) {
      remember(this.#results, toolUseId, result, MAX_RESULTS);
      return;
    }
    this.#results.delete(toolUseId);
    if (verdict === null && isError) {
      request.failedWith = text;
      this.#goOn(request);
      return;
    }
    const allowed = request.question ? 'answered' : 'allowed';
    const outcome = verdict === null || verdict === 'allowed' ? allowed : verdict;
    this.#resolve(request, outcome, outcome === 'denied' ? text : null);
  }

  /** The agent says that the tool was not run. */
  denied(toolUseId: string | null, message: string | null): void {
    const request = toolUseId === null ? undefined : this.#find(toolUseId);
    if (request !== undefined) this.#resolve(request, 'denied', message ?? request.failedWith);
  }

  turnEnded(cancelled: boolean): void {
    for (const [, request] of this.#requests.entries())
      if (!request.subagent) this.#resolve(request, cancelled ? 'cancelled' : 'unknown', null);
  }

  processEnded(): void {
    for (const [, request] of this.#requests.entries()) this.#resolve(request, 'cancelled', null);
  }

  /** The agent went on before an answer was seen. */
  #goOn({ id }: OpenRequest): void {
    if (this.#requests.take(id, 'pass') === 'ends')
      this.#emit(custom(CUSTOM.requestResolved, { request_id: id, outcome: 'unknown' }));
  }

  #resolve({ id }: OpenRequest, outcome: Outcome, message: string | null): void {
    const isAnswer = outcome !== 'unknown' && outcome !== 'cancelled';
    if (this.#requests.take(id, isAnswer ? 'answer' : 'cut') === 'repeats') return;
    this.#emit(custom(CUSTOM.requestResolved, compact({ request_id: id, outcome, message })));
  }

  #find(id: string): OpenRequest | undefined {
    return this.#requests.stateOf(id) === 'resolved' ? undefined : this.#requests.about(id);
  }

  /** The request, if only one waits. */
  #only(): OpenRequest | undefined {
    const waiting = this.#requests.entries().filter(([, { failedWith }]) => failedWith === null);
    return waiting.length === 1 ? waiting[0]?.[1] : undefined;
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
