import type { TimedEvent, TurnTrigger } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import type { TurnInput, Verdict } from '@interlude/protocol/lifecycle/grammar';
import { unwrapErrorMessage } from '../wire';
import type { SessionWriter, TurnCause, TurnDetails, TurnEnd } from '../writer/session-writer';

/**
 * Attributes user messages and task ends to turns. A turn runs from `init` to `result` (Agent SDK 0.3.332), and only
 * the result states for certain what it answered.
 */
export class TurnAttribution {
  readonly ends: PendingTaskEnds;
  readonly #writer: SessionWriter;
  readonly #endOfRun: (taskRunId: string) => TaskEnd | null;
  /** Oldest first. */
  readonly #unanswered = new Set<string>();
  /**
   * True once an init has named its user messages: from then on, an init without names does not open a user turn. Older
   * CLIs name none.
   */
  #initsNameMessages = false;
  /** Task ends that the newest turn seemed to answer when it began. */
  #guess: readonly TaskEnd[] = [];
  /** True once the newest turn has content. Late messages of the previous turn then no longer count. */
  #hasActed = false;
  /** True once the newest turn has a text, which its result repeats. */
  #hasText = false;

  /**
   * @param endOfRun looks up a task end by run, answered or not
   * @param knowsDeliveries true if the source calls `ends.delivered`
   */
  constructor(writer: SessionWriter, endOfRun: (taskRunId: string) => TaskEnd | null, knowsDeliveries?: boolean) {
    this.ends = new PendingTaskEnds(knowsDeliveries);
    this.#writer = writer;
    this.#endOfRun = endOfRun;
  }

  sent(messageId: string): void {
    this.#unanswered.add(messageId);
  }

  init(message: Fields): void {
    const ids = userMessageIds(message);
    if (ids.length > 0) this.#initsNameMessages = true;
    const { turn } = this.#writer;
    const isRepeated = turn !== null && ids.length > 0 && ids.every((id) => turn.answers.has(id));
    if (isRepeated) return;
    // A prompt drained together with another one is answered with it.
    if (ids.length > 0 && message.joins === true && turn !== null && !this.#hasActed) {
      this.ends.joined();
      this.#writer.joinTurn(this.#answered(ids));
    } else this.#apply(ids.length > 0 ? 'begin' : 'announce', message);
  }

  /** The main thread asks the model (`request`) or produces content. */
  active(input: 'request' | 'content', message: Fields): void {
    this.#apply(input, message);
    if (input === 'content') this.#hasActed = true;
    this.#answers(message);
  }

  textWritten(): void {
    this.#hasText = true;
  }

  result(message: Fields): void {
    if (this.#apply(this.#isForeign(message) ? 'foreign-end' : 'end', message) === 'stray') {
      if (fieldsOf(message.origin).kind === 'task-notification') this.ends.discard(originRun(message));
      return;
    }
    this.#answers(message);
    const text = textOf(message.result);
    const end = outcomeOf(message);
    // A local command answers only in its result.
    if (!this.#hasText && text !== null && end.kind === 'success') {
      const id = `${this.#writer.turn?.runId}/result`;
      this.#writer.parts().appendText('text', id, text);
      this.#writer.parts().endText(id);
    }
    this.#writer.finish(end, { result: message });
  }

  /** Returns the final cause and answers of the turn about to end. @param result the agent's, if any */
  settle(end: TurnEnd, { result }: TurnDetails): TurnDetails {
    const fields = fieldsOf(result);
    const runId = originRun(fields);
    const kind = this.#writer.turn?.kind ?? 'user';
    // The model was never reached, so the next turn gets the same notifications.
    const unanswered = end.kind === 'failed' && end.code === 'api_error';
    const { causes, folded } = this.ends.settle({ kind, runId, guess: this.#guess, unanswered });
    if (kind === 'between-run' && runId !== null && !causes.some((one) => one.runId === runId)) {
      // A notification attributed to an earlier turn got its own turn after all.
      const late = this.#endOfRun(runId);
      if (late !== null) causes.push(late);
    }
    return {
      result: result === undefined ? undefined : resultSummary(fields),
      trigger: causes.length > 0 ? taskTrigger(causes) : otherTrigger(fields),
      foldedTaskIds: folded.map(({ taskId }) => taskId),
    };
  }

  #apply(input: Exclude<TurnInput, 'gone'>, message: Fields): Verdict {
    return this.#writer.applyTurnInput(input, () => this.#causeOf(message));
  }

  #causeOf(message: Fields): TurnCause {
    const named = userMessageIds(message);
    const guess = this.ends.waking();
    const waiting = this.#initsNameMessages || guess.length > 0 ? [] : [...this.#unanswered];
    const userMessages = this.#answered(named.length > 0 ? named : waiting);
    const kind = userMessages.length > 0 ? 'user' : 'between-run';
    this.ends.opened(kind);
    this.#guess = guess;
    this.#hasActed = false;
    this.#hasText = false;
    if (kind === 'user') return { kind, userMessageIds: userMessages };
    const parentRunId = guess.find((end) => end.startedInRun !== null)?.startedInRun ?? null;
    return { kind, trigger: guess.length > 0 ? taskTrigger(guess) : otherTrigger(message), parentRunId };
  }

  /** True for an empty result, or one that names another cause: it does not end the open turn. */
  #isForeign(result: Fields): boolean {
    const empty = result.num_turns === 0 && result.result === '' && result.is_error !== true;
    const { turn } = this.#writer;
    if (turn === null) return empty;
    const names = userMessageIds(result).length > 0;
    if (names || fieldsOf(result.origin).kind !== 'task-notification') return false;
    return turn.kind === 'user' || (empty && this.#hasActed);
  }

  #answers(message: Fields): void {
    if (this.#writer.turn !== null) this.#writer.addAnswered(this.#answered(userMessageIds(message)));
  }

  #answered(ids: readonly string[]): readonly string[] {
    for (const id of ids) this.#unanswered.delete(id);
    return ids;
  }
}

export interface RunStart {
  /** Epoch milliseconds. */
  startedAt: number;
  /** False if a prompt joined the open run, which repeats its RUN_STARTED. */
  isNew: boolean;
}

/** Marks the next text of the agent with the messages it answers. */
export class ReplyMarks {
  readonly #onRun: (run: RunStart) => void;
  /** Events already marked: those of one line may pass through `mark` several times. */
  readonly #marked = new WeakSet<TimedEvent>();
  #replyTo: string[] = [];
  #newestRunId: string | null = null;

  constructor(onRun: (run: RunStart) => void) {
    this.#onRun = onRun;
  }

  /** Notes the messages that the open turn answers. */
  answered(messageIds: readonly string[]): void {
    this.#replyTo.push(...messageIds);
  }

  mark(events: readonly TimedEvent[]): TimedEvent[] {
    return events.map((one) => {
      if (this.#marked.has(one)) return one;
      const marked = this.#markOne(one);
      this.#marked.add(one).add(marked);
      return marked;
    });
  }

  #markOne(one: TimedEvent): TimedEvent {
    const { event, occurredAt } = one;
    if (event.type === 'RUN_STARTED') {
      const isNew = event.runId !== this.#newestRunId;
      this.#newestRunId = textOf(event.runId);
      this.#onRun({ startedAt: occurredAt, isNew });
    }
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') this.#replyTo = [];
    const isReply = event.type === 'TEXT_MESSAGE_START' && event.role === 'assistant';
    if (!isReply || this.#replyTo.length === 0 || event.subagentRunId !== undefined) return one;
    return { ...one, event: withInterlude(event, { replyTo: [...this.#replyTo] }) };
  }
}

/** Origins of user messages to show. @see SDKMessageOrigin */
export const PERSONS: ReadonlySet<unknown> = new Set(['human', 'peer', 'channel', 'coordinator']);

function userMessageIds(message: Fields): string[] {
  const ids = textsOf(message.user_message_uuids);
  const last = textOf(message.user_message_uuid);
  return ids.length > 0 || last === null ? ids : [last];
}

/** Run of the task whose end caused the turn. */
function originRun(result: Fields): string | null {
  return textOf(fieldsOf(result.origin).runId);
}

/**
 * Cause of a turn started by neither a person nor a task.
 * @see SDKMessageOrigin, Agent SDK 0.3.329
 */
function otherTrigger(result: Fields): TurnTrigger {
  const { kind, subkind, reason, setAt } = fieldsOf(result.origin);
  if (subkind === 'scheduled-trigger') {
    return {
      kind: 'timer',
      taskIds: [],
      ...compact({ reason: textOf(reason) ?? undefined, setAt: numberOf(setAt) ?? undefined }),
    };
  }
  const byAgent = kind === 'peer' || kind === 'coordinator' || kind === 'observer' || subkind === 'peer-send-message';
  return { kind: byAgent ? 'agent' : 'unknown', taskIds: [] };
}

/** Texts for result subtypes and terminal reasons more specific than the result's own. */
const FAILURE_TEXTS: ReadonlyMap<string, string> = new Map([
  ['error_max_turns', 'The turn reached its step limit.'],
  ['max_turns', 'The turn reached its step limit.'],
  ['error_max_budget_usd', 'The turn reached its budget.'],
  ['budget_exhausted', 'The turn reached its budget.'],
  ['error_max_structured_output_retries', 'The agent did not produce the requested structured output.'],
  ['structured_output_retry_exhausted', 'The agent did not produce the requested structured output.'],
  ['prompt_too_long', 'The conversation is too long for the model.'],
  ['blocking_limit', 'The conversation is too long for the model.'],
]);

/**
 * Derives the outcome from a result. An interrupted turn has `is_error` and subtype `error_during_execution`; only
 * `terminal_reason` distinguishes it from a failure. A turn refused by the model API has subtype `success`.
 *
 * @see SDKResultMessage, TerminalReason, Agent SDK 0.3.329
 */
function outcomeOf(result: Fields): TurnEnd {
  const subtype = textOf(result.subtype) ?? '';
  const reason = textOf(result.terminal_reason) ?? '';
  if (reason.startsWith('aborted_')) return { kind: 'cancelled' };
  if (result.is_error !== true && !subtype.startsWith('error_')) return { kind: 'success' };
  const apiRefused = reason === 'api_error' || numberOf(result.api_error_status) !== null;
  const code = apiRefused ? 'api_error' : subtype.startsWith('error_') ? subtype : reason || 'error';
  return { kind: 'failed', message: errorText(result, apiRefused), code };
}

/** The part of a result stored with its turn. Times in milliseconds; cost in US dollars, cumulative per process. */
function resultSummary(result: Fields): Fields {
  const usage = fieldsOf(result.usage);
  const denials = listOf(result.permission_denials).length;
  return compact({
    subtype: result.subtype,
    terminalReason: result.terminal_reason,
    stopReason: result.stop_reason,
    numTurns: result.num_turns,
    durationMs: result.duration_ms,
    durationApiMs: result.duration_api_ms,
    totalCostUsd: result.total_cost_usd,
    usage: compact({
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      cacheReadTokens: usage.cache_read_input_tokens,
      cacheCreationTokens: usage.cache_creation_input_tokens,
    }),
    permissionDenials: denials > 0 ? denials : undefined,
    structuredOutput: result.structured_output,
    origin: result.origin,
    resultIndex: result.result_index,
    resumeReason: result.resume_reason,
  });
}

function errorText(result: Fields, apiRefused: boolean): string {
  const text = readable(textOf(result.result) ?? textsOf(result.errors).find((text) => !isDiagnostic(text)) ?? '');
  if (apiRefused) {
    const details = [numberOf(result.api_error_status), textOf(result.api_error_type)].filter((part) => part !== null);
    const refused = `The model API refused the request${details.length > 0 ? ` (${details.join(' ')})` : ''}`;
    return text === '' ? `${refused}.` : `${refused}: ${text}`;
  }
  const known =
    FAILURE_TEXTS.get(textOf(result.subtype) ?? '') ?? FAILURE_TEXTS.get(textOf(result.terminal_reason) ?? '');
  if (known !== undefined) return text === '' ? known : `${known} ${text}`;
  return text === '' ? 'The agent failed during this turn.' : text;
}

/** `[ede_diagnostic] …` is for developers of the CLI. */
function isDiagnostic(text: string): boolean {
  return /^\[\w*diagnostic\]/.test(text);
}

/** Extracts the message from `API Error: 400 {"error":{"message":…}}`, or strips the stack trace. */
function readable(text: string): string {
  const json = text.slice(text.indexOf('{'));
  const message = text.includes('{') ? unwrapErrorMessage(json) : json;
  if (message !== json) return message;
  const stack = text.search(/\n\s+at /);
  return (stack < 0 ? text : text.slice(0, stack)).trim();
}

/** A run of a task; `runId` is null if the source knows only one. */
export interface TaskRef {
  taskId: string;
  runId: string | null;
}

/** A task end that a prompt reports to the agent. */
export interface TaskEnd extends TaskRef {
  startedInRun: string | null;
  /** True if it does not open a turn: the next turn reports it. */
  quiet: boolean;
}

interface Waiting extends TaskEnd {
  /** True if the result of its own turn was empty, so that the next turn answers it. */
  swallowed: boolean;
  /** True if the open turn received it. */
  received: boolean;
  /** True if the agent reported that it opened the current turn. */
  wakes: boolean;
}

interface ResultCause {
  kind: 'user' | 'between-run';
  /** `origin.runId` of the result. */
  runId: string | null;
  /** Task ends that the turn seemed to answer when it opened. */
  guess: readonly TaskEnd[];
  /** True if the model was never reached, so that the notification is sent again with the next turn. */
  unanswered: boolean;
}

/**
 * Task ends that no turn has answered. The CLI queues a notification for each and delivers it unannounced in one of
 * these ways:
 * - in its own turn, whose result names the task's run (`origin.runId`);
 * - together with later ones: each but the last gets an init and an EMPTY result just before that turn;
 * - inside a running turn after a round of tools, without a result that names it;
 * - with the next user turn, if it does not open a turn (a stopped shell) or its own turn failed at the API.
 *
 * A source that sees each prompt's notifications (a transcript) calls `delivered`, and nothing is guessed: a task that
 * ends while a turn opens waits for the next one.
 *
 * Measured with Agent SDK 0.3.329.
 */
class PendingTaskEnds {
  readonly #knowsDeliveries: boolean;
  #waiting: Waiting[] = [];

  /** @param knowsDeliveries true if the source calls `delivered` */
  constructor(knowsDeliveries = false) {
    this.#knowsDeliveries = knowsDeliveries;
  }

  add(end: TaskEnd): void {
    this.#waiting = this.#waiting.filter((other) => !isSame(other, end));
    this.#waiting.push({ ...end, swallowed: false, received: false, wakes: false });
  }

  /**
   * Records that a prompt delivered these ends; null means all pending ones.
   * @param how `wakes`: the prompt opens a turn; `received`: it joins the open turn
   */
  delivered(ends: readonly TaskRef[] | null, how: 'wakes' | 'received'): void {
    // An earlier turn learned of the same end through a call, but the end still causes this turn.
    const again =
      how === 'received' ? [] : (ends ?? []).filter((end) => !this.#waiting.some((one) => isSame(one, end)));
    for (const end of again) this.add({ ...end, startedInRun: null, quiet: false });
    for (const end of this.#waiting) if (ends === null || ends.some((ref) => isSame(ref, end))) end[how] = true;
  }

  /** Returns the ends that may have opened the turn. */
  waking(): TaskEnd[] {
    if (this.#knowsDeliveries) return this.#waiting.filter((end) => end.wakes);
    return this.#waiting.filter((end) => !end.quiet || end.swallowed);
  }

  /** Handles an empty result for this run. Tasks of an earlier process have no run. */
  discard(runId: string | null): void {
    for (const end of this.#waiting) if (end.runId === runId) end.swallowed = true;
  }

  /** Opens a turn, whose prompt reports quiet ends and, in a user turn, swallowed ones. */
  opened(kind: 'user' | 'between-run'): void {
    for (const end of this.#waiting) if (end.quiet || (kind === 'user' && end.swallowed)) end.received = true;
  }

  /** Notes that a user prompt joins the turn that these ends opened. */
  joined(): void {
    for (const end of this.#waiting) if (end.wakes) [end.wakes, end.received] = [false, true];
  }

  /** Continues the open turn after a tool result, which delivers all pending ends. */
  boundary(): void {
    if (this.#knowsDeliveries) return;
    for (const end of this.#waiting) end.received = true;
  }

  /** Closes the open turn. @returns the ends that caused it and the others it received */
  settle(cause: ResultCause): { causes: TaskEnd[]; folded: TaskEnd[] } {
    const causes = cause.kind === 'user' ? [] : this.#waiting.filter((end) => isCause(end, cause));
    const folded = this.#waiting.filter((end) => (end.received || end.wakes) && !causes.includes(end));
    this.#waiting = this.#waiting.filter((end) => !causes.includes(end) && !folded.includes(end));
    if (cause.unanswered)
      for (const end of [...causes, ...folded])
        this.#waiting.push({ ...end, quiet: true, swallowed: false, received: false, wakes: false });
    return { causes, folded };
  }

  /** Clears the queue, which ended with the process. */
  clear(): void {
    this.#waiting = [];
  }
}

function isCause(end: Waiting, cause: ResultCause): boolean {
  if (end.swallowed || end.wakes) return true;
  if (cause.runId !== null) return end.runId === cause.runId;
  return cause.guess.some((guess) => isSame(guess, end));
}

function isSame(one: TaskRef, other: TaskRef): boolean {
  return one.taskId === other.taskId && one.runId === other.runId;
}

function taskTrigger(ends: readonly TaskEnd[]): TurnTrigger {
  return { kind: 'task', taskIds: ends.map((end) => end.taskId), taskRunIds: ends.map((end) => end.runId) };
}
