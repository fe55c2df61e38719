import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { ClaudeAdapter, type ProcessExit } from './claude-adapter';
import { FinalText } from './final-text';
import { TranscriptRequests } from './requests';
import { type Stop, StopHooks } from './stop-hooks';
import { messageHandlers } from './system-messages';
import {
  authorOf,
  blocksOf,
  contentText,
  forkOf,
  LineTurns,
  lineText,
  parseCommand,
  sdkMessage,
  stopFeedbackOf,
  systemMessage,
} from './transcript-line';
import { type Notification, parseNotifications, TranscriptTasks, type UnlistedTasks } from './transcript-tasks';
import { PERSONS, ReplyMarks, type RunStart } from './turn-attribution';

/**
 * Translates Claude Code's transcript file to AG-UI events: each line becomes the message the Agent SDK would have
 * sent, for the same ClaudeAdapter. So an interactive session looks like a driven one.
 *
 * A transcript lacks deltas (texts come by block), task progress, requests (reported by a hook) and results. The
 * prompt's line opens a turn. `turn_duration`, an interruption line, or a Stop hook with no further lines (`stopped`)
 * closes it. The hook carries the final text (`announced`): if the transcript lacks it at the close, it is written from
 * the hook, and the late line is dropped. Without a terminal (`claude -p`, the Agent SDK) there is no `turn_duration`:
 * the next turn's first line closes a turn that had its final text.
 *
 * Pure and deterministic: runs are named after their opening line, so a reader restarted from the beginning continues.
 *
 * Ordering: lines in file order; hooks may be ahead of or behind them.
 * Failure: never throws; lines of unknown types are skipped.
 *
 * @see measured with CLI 2.1.329 (tests/fixtures/recordings/hooks) and 2.1.332 (tests/fixtures/cases/real-…)
 */
export class TranscriptAdapter {
  readonly #adapter: ClaudeAdapter;
  readonly tasks = new TranscriptTasks();
  readonly #requests = new TranscriptRequests();
  /** User messages that the next result will name. */
  #answers: string[] = [];
  readonly #replies = new ReplyMarks((run) => this.#runStarted(run));
  /** Cause of the open turn, if not a person. */
  #origin: Fields | null = null;
  /** Slash command waiting for the next line, which shows whether the model or the CLI answers it. */
  #command: { line: Fields; id: string; text: string; at: number } | null = null;
  /** True if the person's last line is a command that the model has not answered so far. */
  #isCommandLast = false;
  #isForkNoted = false;
  /** True if the last main-thread line ends its turn unless a hook blocks the stop. */
  #hasFinished = false;
  /** True if the turn has agent content. */
  #hasActed = false;
  /** Stop hooks whose turns are still open in the events. */
  readonly stops = new StopHooks();
  readonly finalText = new FinalText();
  readonly #turns = new LineTurns();
  /** True if the current line belongs to an earlier turn. */
  #isBehind = false;
  /** Prompt of the turn that the current line opens. */
  #prompt: { promptId: string | null } | undefined;
  #apiError: string | null = null;
  #key = '';

  constructor({ sessionId }: { sessionId: string }) {
    this.#adapter = new ClaudeAdapter({ sessionId, newRunId: () => `run-${this.#key}`, knowsDeliveries: true });
  }

  get openRunId(): string | null {
    return this.#adapter.turn?.runId ?? null;
  }

  /** True if the turn has ended and only its stop hook is outstanding. */
  get hasFinished(): boolean {
    return this.openRunId !== null && this.#hasFinished;
  }

  /** True if the stop hook carries a final text that no line has. */
  get lacksFinalText(): boolean {
    return this.finalText.missingOf(this.stops.ofOpenTurn?.text) !== null;
  }

  /** Notes that a stop hook let the turn end. Call `stopped` once the transcript has the final text. */
  announced(stop: Stop): void {
    this.stops.ran(stop, this.hasFinished);
  }

  /**
   * @param line parsed line of the session's or a subagent's file
   * @param key identifies the line within the session
   */
  read(line: unknown, key: string, now: number): TimedEvent[] {
    const fields = fieldsOf(line);
    const at = Date.parse(textOf(fields.timestamp) ?? '');
    this.#key = textOf(fields.uuid) ?? key;
    const reader = this.#readers.get(fields.type);
    if (reader === undefined) return [];
    const madeAt = Number.isFinite(at) ? at : now;
    this.#prompt = undefined;
    const isMain = textOf(fields.agentId) === null;
    // Older CLIs wrote subagent lines into the session's file: stored, but not agent content.
    if (isMain && fields.isSidechain === true) return this.#process(this.#sidechain(fields, madeAt));
    if (isMain) this.#advance(fields, madeAt, now);
    return this.#process([...this.#forked(fields, madeAt), ...reader(fields, madeAt)]);
  }

  #sidechain(line: Fields, at: number): TimedEvent[] {
    const { uuid, message } = line;
    for (const { id, input } of blocksOf(message, 'tool_use')) this.tasks.called(`${id}`, fieldsOf(input));
    const results = blocksOf(message, 'tool_result');
    // The subagent's background work is still shown.
    const started = results.length === 0 ? null : this.tasks.launched(line, results, at);
    const ended = this.tasks.endedByCall(line, results);
    const messages = [started, ...ended.map((end) => end.message), { type: 'sidechain', uuid, message }];
    return messages.flatMap((one) => (one === null ? [] : this.#adapter.read(one, at)));
  }

  /** Notes once that the session is a fork: copied lines name the original. */
  #forked(line: Fields, at: number): TimedEvent[] {
    const original = forkOf(line);
    if (original === null || this.#isForkNoted) return [];
    this.#isForkNoted = true;
    const value = { text: 'This session is a fork of', tone: 'info', of_session_id: original };
    return [{ occurredAt: at, event: { type: 'CUSTOM', name: CUSTOM.notice, value } }];
  }

  /**
   * Marks the open work of the previous process as interrupted or lost after another took over at `at` (epoch
   * milliseconds).
   */
  replaced(at: number, now: number): TimedEvent[] {
    const before = this.#adapter.turn;
    const isOver = this.#hasFinished || this.stops.ofTurnEndedAt(at) !== null;
    const last = before !== null && isOver && before.startedAt <= at ? this.stopped(now) : [];
    this.tasks.processReplaced(at);
    // Hooks of ended turns have arrived by now.
    this.stops.clearBefore(at);
    const events = [...last, ...this.#process(this.#adapter.replaced(at, now))];
    if (before !== null && this.#adapter.turn === null) {
      this.#requests.sessionEnded();
      // Late lines of the old process do not open a turn.
      if (last.length === 0) this.finalText.close(at, null);
      this.finalText.reset();
      this.#answers = [];
      this.#hasFinished = false;
    }
    return events;
  }

  /** Presumes tasks lost that stay unlisted and unreported for `UNLISTED_MS`. */
  unlisted(now: number): TimedEvent[] {
    const ids = this.tasks.presumeUnlisted(now);
    return ids.length === 0 ? [] : this.#process(this.#adapter.presumeLost(ids, now));
  }

  /** Restores the state of the previous reader, which has already emitted these events. */
  restoreUnlisted(state: UnlistedTasks, now: number): void {
    this.tasks.restoreUnlisted(state);
    this.#adapter.presumeLost(state.lost, now);
  }

  /** Tracks a main-thread line. The CLI's own lines come at any time and don't count. */
  #advance(line: Fields, madeAt: number, now: number): void {
    this.#isBehind = this.#turns.isBehind(line);
    if (this.#isBehind || (line.type !== 'user' && line.type !== 'assistant')) return;
    this.stops.reached(madeAt, now);
  }

  /** Records a request shown in the terminal, which is written once the transcript has its tool call. */
  requestOpened(tool: string, input: unknown, about: Fields, now: number): TimedEvent[] {
    this.#requests.opened({ tool, input, about, at: now });
    return this.#process(this.#matchRequests(now));
  }

  /** Resolves a request answered outside the terminal. @param answer `{ behavior: 'allow' | 'deny', message? }` */
  requestAnswered(requestId: string, answer: Fields, now: number): TimedEvent[] {
    return this.#process(this.#adapter.requestAnswered(requestId, answer, now));
  }

  /** Records messages delivered to the agent: the open turn answers them. */
  messagesDelivered(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#adapter.delivered(id);
    this.#answers.push(...messageIds);
    this.#replies.answered(messageIds);
  }

  /** Closes the turn after its last hook, once the transcript has nothing more for it. */
  stopped(now: number): TimedEvent[] {
    if (this.openRunId === null) return [];
    return this.#process(this.#close(`${this.#key}/stopped`, {}, now, true));
  }

  ended(now: number, exit: ProcessExit): TimedEvent[] {
    // A turn with its final text had ended, even without a hook.
    const isOver = this.#hasFinished || this.stops.ofOpenTurn !== null || this.stops.ahead !== null;
    const last = isOver ? this.stopped(now) : [];
    this.#requests.sessionEnded();
    this.finalText.reset();
    this.#answers = [];
    return [...last, ...this.#process(this.#adapter.ended(now, exit))];
  }

  /** Other lines are the CLI's bookkeeping. */
  readonly #readers = messageHandlers<TimedEvent[], [at: number]>({
    user: (line, at) => this.#user(line, at),
    assistant: (line, at) => this.#assistant(line, at),
    system: (line, at) => this.#system(line, at),
    // Queue entries don't name their author; those delivered to a subagent are the harness's.
    'queue-operation': (line, at) =>
      line.reason === 'delivered_to_agent' ? this.#taskNotifications(parseNotifications(`${line.content}`), at) : [],
    attachment: (line, at) => this.#attachment(line, at),
    // Written by the file reader in place of unreadable lines.
    unreadable: (line, at) =>
      this.#adapter.read({ type: 'system', subtype: 'mirror_error', error: textOf(line.reason) }, at),
  });

  #user(line: Fields, at: number): TimedEvent[] {
    const agentId = textOf(line.agentId);
    const results = blocksOf(line.message, 'tool_result');
    if (results.length > 0) return this.#toolResults(line, results, agentId, at);
    if (agentId !== null) return this.#readAs(line, at);
    if (stopFeedbackOf(line) !== null) return this.#stopBlocked(at);
    const text = contentText(fieldsOf(line.message).content);
    const isUnsigned = line.origin === undefined && line.promptSource === undefined;
    if (text.startsWith('[Request interrupted') && isUnsigned) {
      if (this.#isBehind) return [];
      const stopped = { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_streaming' };
      return this.#close(`${this.#key}/interrupted`, stopped, at);
    }
    const author = authorOf(line, text);
    const typed = author === 'person' ? parseCommand(text) : null;
    // The CLI sets `origin` or `promptSource` on typed lines, but not on command output.
    const command = typed?.kind !== 'output' || isUnsigned || this.#isCommandLast ? typed : null;
    const isAnswer = this.#isCommandLast;
    if (author === 'person') this.#isCommandLast = command !== null && command.kind !== 'output';
    if (command?.kind === 'output') return this.#commandOutput(line, command.text, at, isAnswer);
    const before = this.#settleCommand(author === 'harness' && line.parentUuid === this.#command?.line.uuid);
    if (author === 'task') return [...before, ...this.#wokenByTask(line, text, at)];
    if (author === 'timer') return [...before, ...this.#wokenByTimer(line, text, at)];
    if (author === 'other' && !this.#isBusy(at))
      return [...before, ...this.#beginTurn(line, fieldsOf(line.origin), at)];
    if (author === 'person' && text !== '') {
      const asksModel = line.turnOrigin !== undefined || line.origin !== undefined;
      if (command?.kind === 'slash' && !asksModel) {
        this.#command = { line, id: this.#key, text: command.text, at };
        if (!this.#isBusy(at)) this.#turns.opened(line);
        return before;
      }
      const prompt = command === null ? line : { ...line, message: { role: 'user', content: command.text } };
      return [...before, ...this.#userPrompt(prompt, this.#key, at)];
    }
    if (line.isMeta !== true && !this.#isBehind) this.stops.named(textOf(line.promptId));
    return before;
  }

  /** Completes the waiting slash command. @param asksModel true if the model answers it rather than the CLI */
  #settleCommand(asksModel: boolean): TimedEvent[] {
    const command = this.#command;
    if (command === null) return [];
    this.#command = null;
    const { line, id, text, at } = command;
    const prompt = { ...line, message: { role: 'user', content: text } };
    // A command typed while the agent works does not open a turn.
    if (this.#isBusy(at) && !asksModel) {
      this.#answers.push(id);
      return this.#adapter.sent({ type: 'user', uuid: id, message: prompt.message }, at);
    }
    // The turn is named after the command's own line.
    const key = this.#key;
    this.#key = id;
    const opened = this.#process(this.#userPrompt(prompt, id, at));
    this.#key = key;
    return asksModel ? opened : [...opened, ...this.#close(`${id}/command`, LOCAL, at)];
  }

  /** Command waiting for the next line. */
  get pendingCommand(): string | null {
    return this.#command?.id ?? null;
  }

  /** Completes the waiting command, which the CLI answered silently. */
  commandSettled(): TimedEvent[] {
    return this.#process(this.#settleCommand(false));
  }

  #isBusy(at: number): boolean {
    return this.openRunId !== null && !this.#hasFinished && this.stops.ofTurnEndedAt(at) === null;
  }

  /**
   * Shows a command's output. Without `turnOrigin` the model is not asked, and the turn ends.
   *
   * @param isAnswer true if the command was the person's last line
   */
  #commandOutput(line: Fields, text: string, at: number, isAnswer: boolean): TimedEvent[] {
    const isMidTurn = this.#command !== null && this.#isBusy(at);
    const opened = this.#command === null ? [] : this.#process(this.#settleCommand(!isMidTurn));
    const output = { type: 'system', subtype: 'local_command_output', uuid: `${this.#key}/output`, content: text };
    const printed = text === '' ? [] : this.#adapter.read(output, at);
    const isOver = isAnswer && !isMidTurn && line.turnOrigin === undefined && !this.#hasActed;
    return [...opened, ...printed, ...(isOver ? this.#close(`${this.#key}/command`, LOCAL, at) : [])];
  }

  /** Continues the turn after a stop hook blocked the stop. */
  #stopBlocked(at: number): TimedEvent[] {
    this.stops.blocked(at);
    if (this.finalText.isBeforeEnd(at)) return this.#emitLate(this.finalText.blockedEarlier(), at);
    this.#hasFinished = false;
    this.finalText.blocked();
    return [];
  }

  #assistant(line: Fields, at: number): TimedEvent[] {
    const { content, model, stop_reason } = fieldsOf(line.message);
    const calls = blocksOf(line.message, 'tool_use');
    for (const block of calls) {
      const id = textOf(block.id);
      if (id === null) continue;
      this.#requests.called(id, block);
      this.tasks.called(id, fieldsOf(block.input));
    }
    const isMain = textOf(line.agentId) === null;
    // The CLI's synthetic "No response requested." follows an interrupted turn; the agent did not write it.
    if (isMain && model === SYNTHETIC && line.isApiErrorMessage !== true) return [];
    const before = isMain ? this.#process(this.#settleCommand(true)) : [];
    if (contentText(content) === '' && listOf(content).length === 0) return before;
    // Text before a tool call is not final; the same text may follow the call.
    const isLast = stop_reason !== 'tool_use' && calls.length === 0;
    if (isMain && (this.#isBehind || this.finalText.isLate(line, this.openRunId !== null))) {
      return this.#emitLate(this.finalText.late(line, isLast), at);
    }
    if (isMain) {
      if (isLast) this.finalText.append(lineText(line));
      else this.finalText.reset();
      this.#hasFinished = stop_reason === 'end_turn' || line.isApiErrorMessage === true;
      this.#hasActed = true;
      this.#isCommandLast = false;
    }
    if (line.isApiErrorMessage === true) this.#apiError = contentText(content);
    return [...before, ...this.#readAs(line, at), ...this.#matchRequests(at)];
  }

  #system(line: Fields, at: number): TimedEvent[] {
    const { uuid } = line;
    switch (line.subtype) {
      case 'turn_duration':
        if (this.#isBehind) return [];
        return this.#close(`${uuid}/result`, compact({ duration_ms: numberOf(line.durationMs) }), at);
      case 'scheduled_task_fire':
        this.tasks.fired(textOf(line.taskId));
        return [];
      default: {
        const message = systemMessage(line);
        return message === null ? [] : this.#adapter.read(message, at);
      }
    }
  }

  /** Handles input to a running turn, which answers it. */
  #attachment(line: Fields, at: number): TimedEvent[] {
    const { type, prompt, commandMode, source_uuid, origin, isMeta } = fieldsOf(line.attachment);
    if (stopFeedbackOf(line) !== null) return this.#stopBlocked(at);
    if (type !== 'queued_command') return [];
    const text = contentText(prompt);
    if (commandMode === 'task-notification') {
      const notifications = parseNotifications(text);
      const out = this.#taskNotifications(notifications, at);
      // The main thread does not receive a subagent's notifications.
      if (textOf(line.agentId) === null) this.#deliver(notifications, 'received');
      return out;
    }
    const { kind } = fieldsOf(origin);
    const byPerson = line.isMeta !== true && isMeta !== true && (kind === undefined || PERSONS.has(kind));
    if (textOf(line.agentId) !== null || text === '' || !byPerson) return [];
    const id = textOf(source_uuid) ?? this.#key;
    if (this.openRunId === null)
      return this.#userPrompt({ ...line, message: { role: 'user', content: prompt } }, id, at);
    this.#answers.push(id);
    return this.#adapter.sent({ type: 'user', uuid: id, message: { role: 'user', content: prompt } }, at);
  }

  #userPrompt(line: Fields, id: string, at: number): TimedEvent[] {
    const before = this.#closeBefore(at);
    this.#opens(line);
    this.#answers.push(id);
    this.#origin = null;
    this.#hasActed = false;
    const init = { type: 'system', subtype: 'init', uuid: `${id}/init`, user_message_uuids: [id], joins: true };
    return [
      ...before,
      ...this.#adapter.sent({ type: 'user', uuid: id, message: line.message }, at),
      ...this.#adapter.read(init, at),
    ];
  }

  #opens(line: Fields): void {
    this.#turns.opened(line);
    // An interrupted turn may still be open.
    this.finalText.reset();
    this.#prompt = { promptId: textOf(line.promptId) };
  }

  #wokenByTask(line: Fields, text: string, at: number): TimedEvent[] {
    const notifications = parseNotifications(text);
    const joins = this.openRunId !== null && !this.#hasActed;
    // Drained together with the opening prompt, or without opening a turn: the open turn answers both.
    if (joins || line.queueTranscriptOnly === true) {
      const more = this.#taskNotifications(notifications, at);
      this.stops.named(textOf(line.promptId));
      this.#deliver(notifications, joins && this.#origin?.kind === BY_TASK.kind ? 'wakes' : 'received');
      return more;
    }
    return this.#beginTurn(line, BY_TASK, at, notifications);
  }

  /** Begins the turn of a wake-up that the agent had scheduled. */
  #wokenByTimer(line: Fields, text: string, at: number): TimedEvent[] {
    if (this.openRunId !== null && !this.#hasActed) return [];
    const { reason, setAt } = this.tasks.timerOf(text) ?? { reason: null, setAt: null };
    const origin = {
      kind: 'system',
      subkind: 'scheduled-trigger',
      reason: reason ?? truncateText(text, MAX_REASON),
      setAt,
    };
    return this.#beginTurn(line, origin, at);
  }

  /** Begins a turn without a prompt from a person. */
  #beginTurn(line: Fields, origin: Fields, at: number, notifications: readonly Notification[] = []): TimedEvent[] {
    const before = this.#closeBefore(at);
    this.#opens(line);
    this.#origin = origin;
    this.#hasActed = false;
    const events = this.#taskNotifications(notifications, at);
    // As from the SDK: `init`, then `status`, which opens the turn before the model answers.
    const init = this.#adapter.read({ type: 'system', subtype: 'init', uuid: `${line.uuid}/init` }, at);
    // An interrupted turn is closed by now, so the notifications go to the new turn.
    if (notifications.length > 0) this.#deliver(notifications, 'wakes');
    const status = { type: 'system', subtype: 'status', status: 'requesting', uuid: `${line.uuid}/status`, origin };
    return [...before, ...events, ...init, ...this.#adapter.read(status, at)];
  }

  /** Delivers notifications at the line where the agent reads them, possibly after later ends. */
  #deliver(notifications: readonly Notification[], how: 'wakes' | 'received'): void {
    const ends = notifications.flatMap((notification) => this.tasks.taskOf(notification) ?? []);
    // An older CLI may omit the task id.
    const namesNone = notifications.every(({ fields }) => fields.task_id === undefined);
    if (ends.length > 0 || namesNone) this.#adapter.taskEndsDelivered(namesNone ? null : ends, how);
  }

  #taskNotifications(notifications: readonly Notification[], at: number): TimedEvent[] {
    return notifications.flatMap((notification) =>
      this.tasks.ended(notification, at).flatMap((message) => this.#adapter.read(message, at)),
    );
  }

  #toolResults(line: Fields, results: Fields[], agentId: string | null, at: number): TimedEvent[] {
    const started = this.tasks.launched(line, results, at);
    const ends = this.tasks.endedByCall(line, results);
    for (const result of results) this.#requests.returned(`${result.tool_use_id}`, at);
    if (agentId === null && !this.#isBehind) {
      this.stops.named(textOf(line.promptId));
      this.finalText.reset();
    }
    const launched = started === null ? [] : this.#adapter.read(started, at);
    const returned = this.#readAs(line, at);
    const ended = ends.flatMap(({ message }) => this.#adapter.read(message, at));
    // The agent learned of the end through its own call. A subagent's end is also notified, and opens a turn.
    const received = ends.flatMap(({ ref, isSubagent }) => (isSubagent || agentId !== null ? [] : ref));
    if (received.length > 0) this.#adapter.taskEndsDelivered(received, 'received');
    return [...launched, ...returned, ...ended];
  }

  #readAs(line: Fields, at: number): TimedEvent[] {
    return this.#adapter.read(sdkMessage(line), at);
  }

  /** Emits late lines of a closed turn outside any turn. */
  #emitLate(lines: readonly Fields[], at: number): TimedEvent[] {
    return lines.flatMap((line) => this.#adapter.read({ ...sdkMessage(line), late: true }, at));
  }

  /** Closes an ended turn before an opening line; input to a running turn comes as an attachment instead. */
  #closeBefore(at: number): TimedEvent[] {
    if (this.#hasFinished || this.#apiError !== null || this.stops.ofTurnEndedAt(at) !== null)
      return this.#close(`${this.#key}/before`, {}, at);
    // The next turn does not answer an interrupted turn's messages.
    if (this.openRunId === null || this.#hasActed) this.#answers = [];
    return [];
  }

  #close(uuid: string, outcome: Fields, at: number, byHook = false): TimedEvent[] {
    if (this.openRunId === null) return [];
    const stop = byHook ? this.stops.ofOpenTurn : this.stops.ofTurnEndedAt(at);
    const text = this.finalText.missingOf(stop?.text);
    const id = `${this.openRunId}/last-words`;
    const message = { id, role: 'assistant', content: [{ type: 'text', text }] };
    const last = text === null ? [] : this.#adapter.read({ type: 'assistant', uuid: id, message }, at);
    if (byHook || text !== null) this.finalText.close(stop?.at ?? at, text);
    if (byHook) this.stops.endByHook();
    else this.stops.endByLine(at, this.finalText.texts, outcome.terminal_reason === undefined);
    this.finalText.reset();
    const failure = this.#apiError ?? stop?.failure ?? null;
    const failed = failure !== null && outcome.terminal_reason === undefined;
    const error = failed ? { is_error: true, terminal_reason: 'api_error', result: failure } : {};
    const origin = this.#answers.length === 0 ? this.#origin : undefined;
    this.#origin = null;
    const answers = this.#answers;
    this.#answers = [];
    this.#requests.turnEnded();
    this.#apiError = null;
    this.#hasFinished = false;
    const result = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, ...outcome, ...error };
    return [...last, ...this.#adapter.read(compact({ ...result, uuid, origin, user_message_uuids: answers }), at)];
  }

  #matchRequests(at: number): TimedEvent[] {
    return this.#requests.matched(at).flatMap((request) => this.#adapter.requestOpened(request, at));
  }

  #process(outputs: TimedEvent[]): TimedEvent[] {
    // Drops the synthetic inits.
    return this.#replies.mark(outputs.filter(({ event }) => event.name !== 'claude:init'));
  }

  #runStarted({ startedAt, isNew }: RunStart): void {
    if (isNew) {
      this.stops.opened(startedAt, this.#prompt);
      this.finalText.opened(startedAt);
    } else this.stops.named(this.#prompt?.promptId ?? null);
  }
}

/** Result of a command that the CLI answers, without a model request or stop hook. */
const LOCAL = { terminal_reason: 'local_command' };
const SYNTHETIC = '<synthetic>';
const BY_TASK = { kind: 'task-notification' };
/** UTF-16 units. */
const MAX_REASON = 200;
