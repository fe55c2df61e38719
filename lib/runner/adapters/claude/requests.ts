import type { RequestOpenedValue, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { QUESTION_TOOL } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';

type Outcome = RequestResolvedValue['outcome'];

/** The agent's report about a waiting tool call. */
export type Verdict = Extract<Outcome, 'allowed' | 'denied' | 'cancelled'>;

export interface CallResult {
  isError: boolean;
  text: string;
  /** Null if the agent does not report it. */
  verdict: Verdict | null;
}

/** Tool that submits a plan for approval. */
export const PLAN_TOOL = 'ExitPlanMode';

const TITLES: ReadonlyMap<string, string> = new Map([
  [QUESTION_TOOL, 'A question'],
  [PLAN_TOOL, 'Approve the plan'],
]);

/** Results kept for requests reported later. */
const MAX_RESULTS = 64;

/**
 * Tracks Claude's requests by tool call id. The outcome comes from `canUseTool` or, if that was not recorded, from what
 * the agent reports about the call.
 *
 * @see CanUseTool, Agent SDK 0.3.329; `tool_result_meta` (CLI 2.1.329) and `permission_denials` for the verdicts
 */
export class Requests {
  readonly #writer: SessionWriter;
  /** Results that resolved no request: none was known, or an error left the outcome open. */
  readonly #results = new Map<string, CallResult>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** Notes a new call. If it reuses an id, earlier results don't apply to it. */
  called(id: string): void {
    this.#results.delete(id);
  }

  /** @param callId log id of the call */
  opened(request: Fields, callId: string | null = textOf(request.toolUseID)): void {
    const id = textOf(request.toolUseID) ?? textOf(request.requestId);
    if (id === null || this.#isKnown(id)) return;
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

  /** @param answer `{ behavior: 'allow' | 'deny', message? }`, or `{ outcome }` without an answer */
  answered(toolUseId: string | null, answer: Fields): void {
    const id = toolUseId ?? this.#only();
    if (id === null) return;
    const unanswered = answer.outcome === 'expired' || answer.outcome === 'cancelled' ? answer.outcome : null;
    const outcome = unanswered ?? (answer.behavior === 'allow' ? this.#allowed(id) : 'denied');
    this.#writer.resolved(id, outcome, textOf(answer.message));
  }

  /** Handles a state change from `requires_action` to `running`: closes the open request, if there is only one. */
  running(): void {
    const id = this.#only();
    if (id !== null) this.#writer.requestPassed(id);
  }

  /**
   * Resolves a request from its tool's result. Success means allowed; after an error, the verdict or the denials in
   * the turn's result decide.
   */
  toolResult(toolUseId: string, result: CallResult): void {
    const { verdict, isError, text } = result;
    const isAwaited = this.#awaits(toolUseId);
    const isInconclusive = verdict === null && isError;
    if (isAwaited && !isInconclusive) {
      const outcome = verdict === null || verdict === 'allowed' ? this.#allowed(toolUseId) : verdict;
      this.#writer.resolved(toolUseId, outcome, outcome === 'denied' ? text : null);
      this.#results.delete(toolUseId);
      return;
    }
    setBounded(this.#results, toolUseId, result, MAX_RESULTS);
    if (isAwaited) this.#writer.requestPassed(toolUseId);
  }

  /** Handles the agent's report that the tool was not run. */
  denied(id: string | null, message: string | null): void {
    if (id !== null) this.#writer.resolved(id, 'denied', message ?? this.#results.get(id)?.text);
  }

  #allowed(id: string): 'answered' | 'allowed' {
    return this.#writer.requests.about(id)?.kind === 'question' ? 'answered' : 'allowed';
  }

  /** True for a request that is open, or was passed in this turn. In a later turn, its id means another call. */
  #isKnown(id: string): boolean {
    const { requests, turn } = this.#writer;
    const isOfThisTurn = requests.about(id)?.openedIn === (turn?.runId ?? null);
    return requests.stateOf(id) === 'open' || (requests.stateOf(id) === 'passed' && isOfThisTurn);
  }

  #awaits(id: string): boolean {
    const state = this.#writer.requests.stateOf(id);
    return state === 'open' || state === 'passed';
  }

  /** The open request, if there is exactly one. */
  #only(): string | null {
    const [only = null, ...others] = this.#writer.requests.open;
    return others.length === 0 ? only : null;
  }
}

function titleOf(request: Fields, tool: string | null, question: boolean): string {
  const first = question ? fieldsOf(listOf(fieldsOf(request.input).questions)[0]).question : null;
  const title = textOf(first) ?? textOf(request.title) ?? textOf(request.description);
  return title ?? toolTitle(tool ?? 'a tool', textOf(request.displayName));
}

/** Default title of a request. */
export function toolTitle(tool: string, displayName: string | null = null): string {
  return TITLES.get(tool) ?? `Use ${displayName ?? tool}`;
}

/**
 * Adds a person's answers to the input of AskUserQuestion as the terminal does: keyed by question text, choices joined
 * by ", ". An answer may name its question by header.
 */
export function answeredInput(input: Fields, answersByQuestion: Record<string, string | string[]>): Fields {
  const questions = listOf(input.questions).map(fieldsOf);
  const answers = Object.entries(answersByQuestion).map(([name, answer]) => {
    const named = questions.find(({ question, header }) => question === name || header === name);
    return [textOf(named?.question) ?? name, Array.isArray(answer) ? answer.join(', ') : answer];
  });
  return { ...input, answers: Object.fromEntries(answers) };
}

export function answerText(answers: Record<string, string | string[]>): string {
  return Object.values(answers).flat().join(', ');
}

/** Values of `non_execution_kind` for a tool that did not run and was not denied. */
const ABORTED: ReadonlySet<string> = new Set(['interrupted', 'cancelled']);

/** Returns the verdict about one call in a message with tool results. */
export function verdictOf(message: Fields, toolUseId: string): Verdict | null {
  const meta = listOf(message.tool_result_meta)
    .map(fieldsOf)
    .find(({ id }) => id === toolUseId);
  if (meta === undefined) return null;
  const nonExecution = textOf(meta.non_execution_kind);
  if (nonExecution !== null) return ABORTED.has(nonExecution) ? 'cancelled' : 'denied';
  const { decision } = fieldsOf(meta.permission_decision);
  return decision === 'accept' ? 'allowed' : decision === 'reject' ? 'denied' : null;
}

/** Longest delay of a request's hook after the call's result. Our hook takes at most 2 s. */
const LATE_HOOK_MS = 3_000;
const CALL_LIMITS = { mostOpen: Number.POSITIVE_INFINITY, mostEnded: 64 };
/** A request that stays unmatched for this long belongs to another transcript. */
const STALE_MS = 60_000;
const MAX_REQUESTS = 64;
const MAX_DEPTH = 64;

interface Call {
  name: string;
  input: unknown;
  isMatched: boolean;
  /** Time of the result, epoch milliseconds; null while open. */
  returnedAt: number | null;
}

interface Request {
  tool: string;
  input: unknown;
  about: Fields;
  at: number;
}

/**
 * Matches permission requests in the terminal to tool calls in the transcript. A request's hook names the tool and
 * input, not the call, and may run before the call is written or after its result. The transcript holds the input as
 * the model wrote it, the hook as the tool's schema parses it: reordered keys, defaults filled in, unknown keys
 * dropped, `"5"` as 5. Seen with Edit, WebFetch and AskUserQuestion, CLI 2.1.332.
 */
export class TranscriptRequests {
  /** Open calls, and completed calls of the open turn. */
  #calls = new Entities<'call', Call>('call', CALL_LIMITS);
  #requests: Request[] = [];

  called(id: string, block: Fields): void {
    this.#calls.forget(id);
    const call = { name: textOf(block.name) ?? '', input: block.input, isMatched: false, returnedAt: null };
    this.#calls.take(id, 'start', call);
  }

  returned(id: string, at: number): void {
    const call = this.#calls.about(id);
    if (this.#calls.take(id, 'result') === 'ends' && call !== undefined) call.returnedAt = at;
  }

  opened(ask: Request): void {
    this.#requests.push(ask);
    if (this.#requests.length > MAX_REQUESTS) this.#requests.shift();
  }

  /** @returns each newly matched request once, in the form of `canUseTool` arguments */
  matched(at: number): Fields[] {
    const out: Fields[] = [];
    // An unmatched request must not match an identical later call.
    this.#requests = this.#requests.filter((ask) => {
      if (at - ask.at > STALE_MS) return false;
      const toolUseID = this.#callOf(ask, at);
      if (toolUseID !== null) out.push({ ...ask.about, tool: ask.tool, input: ask.input, toolUseID });
      return toolUseID === null;
    });
    return out;
  }

  turnEnded(): void {
    for (const id of this.#calls.ended) this.#calls.forget(id);
  }

  sessionEnded(): void {
    this.#calls = new Entities('call', CALL_LIMITS);
  }

  #callOf({ tool, input }: Request, at: number): string | null {
    const alike = [...this.#calls.open, ...this.#calls.ended.reverse()].flatMap((id) => {
      const call = this.#calls.about(id);
      if (call?.name !== tool || call.isMatched || at - (call.returnedAt ?? at) > LATE_HOOK_MS) return [];
      return [{ id, call, likeness: likenessOf(call.input, input) }];
    });
    const found = alike.find(({ likeness }) => likeness === SAME) ?? alike.find(({ likeness }) => likeness === ALIKE);
    if (found === undefined) return null;
    found.call.isMatched = true;
    return found.id;
  }
}

const [OTHER, ALIKE, SAME] = [0, 1, 2];

/** SAME: equal in any key order. ALIKE: equal in shared keys. Calls no methods of untrusted values. */
function likenessOf(written: unknown, read: unknown, depth = 0): number {
  if (depth > MAX_DEPTH) return OTHER;
  if (Array.isArray(written) && Array.isArray(read)) {
    if (written.length !== read.length) return OTHER;
    return written.reduce((least, one, index) => Math.min(least, likenessOf(one, read[index], depth + 1)), SAME);
  }
  if (isObject(written) && isObject(read)) {
    const keys = Object.keys(written);
    const shared = keys.filter((key) => Object.hasOwn(read, key));
    const isWhole = shared.length === keys.length && shared.length === Object.keys(read).length;
    const likeness = isWhole ? SAME : ALIKE;
    return shared.reduce((least, key) => Math.min(least, likenessOf(written[key], read[key], depth + 1)), likeness);
  }
  if (written === read) return SAME;
  return isScalar(written) && isScalar(read) && String(written) === String(read) ? ALIKE : OTHER;
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}
