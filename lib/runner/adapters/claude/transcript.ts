import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { truncateText } from '@interlude/protocol/text';
import { PERSONS } from './attribution';
import { ClaudeAdapter, type ProcessExit } from './claude-adapter';
import { HeardStops, type HeardStopsState, type Stop } from './heard-stops';
import { type ClosedTurn, LastWords } from './last-words';
import { LineTurns } from './line-turns';
import { type Notification, notificationsIn } from './notifications-in';
import { readersOf } from './readers';
import { contentText } from './stand-in';
import { TranscriptAsks } from './transcript-asks';
import { authorOf, commandIn, sdkMessage, stopFeedbackIn, textIn } from './transcript-line';
import { TranscriptTasks } from './transcript-tasks';

/**
 * Claude Code's transcript file as AG-UI events: each line becomes the message that the Agent SDK would have sent, and
 * the same ClaudeAdapter reads both. So an interactive session looks like one that is driven.
 *
 * A transcript does not hold deltas (text comes block by block), task progress, requests (a hook reports them) or
 * results. A turn opens with the line that asks for it. It closes with `turn_duration`, with the line that says it was
 * interrupted, or once its Stop hook has run and nothing more comes (`stopped`). That hook brings the turn's last text
 * (`announced`): a turn that closes without having said it gets it from there, and the line that comes too late is left
 * out. Without a terminal (`claude -p`, the Agent SDK) no `turn_duration` is written: there the first line of the next
 * turn closes a turn that had said its last words.
 *
 * Pure, and the same lines give the same events: a run is named after the line that opens it. After a restart, a new
 * reader reads everything again and goes on.
 *
 * @see measured with CLI 2.1.329 (tests/fixtures/recordings/hooks) and 2.1.332 (tests/fixtures/cases/real-…)
 */
export class TranscriptAdapter {
  readonly #adapter: ClaudeAdapter;
  readonly #tasks = new TranscriptTasks();
  readonly #asks = new TranscriptAsks();
  /** The user messages that the next result names. */
  #answers: string[] = [];
  /** The ones that the assistant's next words answer. */
  #replyTo: string[] = [];
  /** The cause of the open turn, if that is not a person. */
  #origin: Fields | null = null;
  /** A slash command, until the next line says whether the model is asked or the CLI answers it. */
  #command: { line: Fields; id: string; text: string; at: number } | null = null;
  /** The newest line of a person is a command, and no answer of the model has come since. */
  #isCommandLast = false;
  /** The session that this one was forked from, once known. */
  #forkOf: string | null = null;
  /** Tasks that the CLI's list of `at` does not name. */
  #unlisted: { ids: string[]; at: number } | null = null;
  /** Tasks that were given up for that reason. */
  #presumedLost: string[] = [];
  /** The newest line of the main thread ends its turn, unless a hook holds it. */
  #saidLastWord = false;
  /** The agent has said or done something since the turn opened. */
  #hasActed = false;
  /** Stop hooks that let their turns end, while the events do not show those turns as over. */
  readonly stops = new HeardStops();
  readonly #lastWords = new LastWords();
  readonly #turns = new LineTurns();
  /** The line belongs to a turn before the open one, though it comes after the open one's first line. */
  #isBehind = false;
  /** The prompt for the turn that the line opens. */
  #prompt: { promptId: string | null } | undefined;
  /** Run of the newest RUN_STARTED: the same again means that a prompt has joined it. */
  #newestRunId: string | null = null;
  /** Outputs that have been through `#tell`: a line may give its outputs in steps. */
  readonly #isTold = new WeakSet<TimedEvent>();
  #apiError: string | null = null;
  #key = '';

  constructor({ sessionId }: { sessionId: string }) {
    this.#adapter = new ClaudeAdapter({ sessionId, newRunId: () => `run-${this.#key}`, saysWhatIsTold: true });
  }

  get openRunId(): string | null {
    return this.#adapter.turn?.runId ?? null;
  }

  /** The agent or the model API has ended the turn: only its stop hook is still to come. */
  get hasSaidLastWord(): boolean {
    return this.openRunId !== null && this.#saidLastWord;
  }

  /** The stop hook has the agent's last words, and no line has said them yet. */
  get lacksLastWords(): boolean {
    return this.#lastWords.missingOf(this.stops.own?.text) !== null;
  }

  /** The last turn that a hook closed: some of its lines may still come. */
  get closed(): ClosedTurn | null {
    return this.#lastWords.closed;
  }

  /** As the reader before this one left it. */
  recallStops(before: HeardStopsState & { closed: ClosedTurn | null }): void {
    this.stops.recall(before);
    this.#lastWords.recall(before.closed);
  }

  /** A stop hook let the turn end. `stopped` closes the turn once the transcript has the agent's last words. */
  announced(stop: Stop): void {
    this.stops.heard(stop, this.hasSaidLastWord);
  }

  /** Background subagents, running or ended: their own transcripts are worth reading. */
  get subagents(): string[] {
    return this.#tasks.subagents;
  }

  /**
   * @param line one parsed line of the session's file or of a subagent's
   * @param key names the line within the session
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
    // Older CLIs wrote what subagents say into the session's own file. It is kept, but is not the agent's word.
    if (isMain && fields.isSidechain === true) return this.#tell(this.#sidechain(fields, madeAt));
    if (isMain) this.#reaches(fields, madeAt, now);
    return this.#tell([...this.#forked(fields, madeAt), ...reader(fields, madeAt)]);
  }

  #sidechain(line: Fields, at: number): TimedEvent[] {
    const { uuid, message } = line;
    const blocks = listOf(fieldsOf(message).content).map(fieldsOf);
    for (const { type, id, input } of blocks) if (type === 'tool_use') this.#tasks.called(`${id}`, fieldsOf(input));
    const results = blocks.filter(({ type }) => type === 'tool_result');
    // The work that it leaves in the background is shown all the same.
    const started = results.length === 0 ? null : this.#tasks.launched(line, results, at);
    const ended = results.length === 0 ? [] : this.#tasks.endedByCall(line, results);
    const messages = [started, ...ended.map((end) => end.message), { type: 'sidechain', uuid, message }];
    return messages.flatMap((one) => (one === null ? [] : this.#adapter.read(one, at)));
  }

  /** Says once that the session is a fork, and of what: lines that were copied into it name the original. */
  #forked(line: Fields, at: number): TimedEvent[] {
    const of = textOf(fieldsOf(line.forkedFrom).sessionId) ?? textOf(line.requestSessionId);
    const own = textOf(line.sessionId);
    if (of === null || own === null || of === own || this.#forkOf !== null) return [];
    this.#forkOf = of;
    const value = { text: 'This session is a fork of', tone: 'info', of_session_id: of };
    return [{ occurredAt: at, event: { type: 'CUSTOM', name: CUSTOM.notice, value } }];
  }

  /**
   * Another process has served the session since `at`: what its predecessor had open is interrupted or lost.
   *
   * @param at epoch milliseconds
   */
  replaced(at: number, now: number): TimedEvent[] {
    const before = this.#adapter.turn;
    const isOver = this.#saidLastWord || this.stops.ownAt(at) !== null;
    const last = before !== null && isOver && before.startedAt <= at ? this.stopped(now) : [];
    this.#tasks.processReplaced(at);
    // By now the hook of a turn that was over has had its say.
    this.stops.clearBefore(at);
    const told = [...last, ...this.#tell(this.#adapter.replaced(at, now))];
    if (before !== null && this.#adapter.turn === null) {
      this.#asks.sessionEnded();
      // A line that the old process made opens no turn when it comes.
      if (last.length === 0) this.#lastWords.leaves(at, null);
      this.#lastWords.given();
      this.#answers = [];
      this.#saidLastWord = false;
    }
    return told;
  }

  /** A stop hook lists the background work that goes on. What is missing may have been reported by a line to come. */
  listed(ids: readonly string[], at: number): void {
    const unlisted = this.#tasks.unlisted(ids, at);
    this.#unlisted = unlisted.length === 0 ? null : { ids: unlisted, at };
  }

  /** Gives up tasks that the CLI has not listed for `UNLISTED_MS`, and did not report. */
  unlisted(now: number): TimedEvent[] {
    if (this.#unlisted === null || now - this.#unlisted.at < UNLISTED_MS) return [];
    const ids = this.#unlisted.ids.filter((id) => this.#tasks.isRunning(id));
    this.#unlisted = null;
    if (ids.length === 0) return [];
    this.#tasks.lost(ids);
    this.#presumedLost = [...this.#presumedLost, ...ids].slice(-MAX_LOST);
    return this.#tell(this.#adapter.presumeLost(ids, now));
  }

  /** What another reader of the same transcript could not read from it. */
  get unlistedState(): { unlisted: { ids: string[]; at: number } | null; lost: string[] } {
    return { unlisted: this.#unlisted, lost: this.#presumedLost };
  }

  /** As the reader before this one left it, which has emitted the events about these tasks. */
  recallUnlisted({ unlisted, lost }: TranscriptAdapter['unlistedState'], now: number): void {
    this.#unlisted = unlisted;
    this.#presumedLost = lost;
    this.#tasks.lost(lost);
    this.#adapter.presumeLost(lost, now);
  }

  /** A line of the main thread. Lines of the CLI itself come at any time and count for nothing. */
  #reaches(line: Fields, madeAt: number, now: number): void {
    this.#isBehind = this.#turns.isBehind(line);
    if (this.#isBehind || (line.type !== 'user' && line.type !== 'assistant')) return;
    this.stops.reached(madeAt, now);
  }

  /** The terminal shows a request. It is written as soon as the transcript has its tool call. */
  permissionAsked(tool: string, input: unknown, about: Fields, now: number): TimedEvent[] {
    this.#asks.asked({ tool, input, about, at: now });
    return this.#tell(this.#matchAsks(now));
  }

  /** It was answered elsewhere than in the terminal. @param answer `{ behavior: 'allow' | 'deny', message? }` */
  permissionAnswered(requestId: string, answer: Fields, now: number): TimedEvent[] {
    return this.#tell(this.#adapter.permissionAnswered(requestId, answer, now));
  }

  /** Somebody's messages were put before the agent: the open turn answers them. */
  handedOver(messageIds: readonly string[]): void {
    for (const id of messageIds) this.#adapter.delivered(id);
    this.#answers.push(...messageIds);
    this.#replyTo.push(...messageIds);
  }

  /** The turn's last hook has run, and the transcript has nothing more to say about the turn. */
  stopped(now: number): TimedEvent[] {
    if (this.openRunId === null) return [];
    return this.#tell(this.#close(`${this.#key}/stopped`, {}, now, true));
  }

  ended(now: number, exit: ProcessExit): TimedEvent[] {
    // A turn that had said its last words was over, though no hook came to say so.
    const isOver = this.#saidLastWord || this.stops.own !== null || this.stops.ahead !== null;
    const last = isOver ? this.stopped(now) : [];
    this.#asks.sessionEnded();
    this.#lastWords.given();
    this.#answers = [];
    return [...last, ...this.#tell(this.#adapter.ended(now, exit))];
  }

  /** Other lines are the CLI's own bookkeeping: what it wrote for the model, and what it needs to resume. */
  readonly #readers = readersOf<TimedEvent[], [at: number]>({
    user: (line, at) => this.#user(line, at),
    assistant: (line, at) => this.#assistant(line, at),
    system: (line, at) => this.#system(line, at),
    // An entry of the queue does not say who wrote it; one that was handed to a subagent is the harness's.
    'queue-operation': (line, at) =>
      line.reason === 'delivered_to_agent' ? this.#notified(notificationsIn(`${line.content}`), at) : [],
    attachment: (line, at) => this.#attachment(line, at),
    // Written by the reader of the file, in place of what it could not read.
    unreadable: (line, at) =>
      this.#adapter.read({ type: 'system', subtype: 'mirror_error', error: textOf(line.reason) }, at),
  });

  #user(line: Fields, at: number): TimedEvent[] {
    const { content } = fieldsOf(line.message);
    const agentId = textOf(line.agentId);
    const results = listOf(content)
      .map(fieldsOf)
      .filter((block) => block.type === 'tool_result');
    if (results.length > 0) return this.#toolResults(line, results, agentId, at);
    if (agentId !== null) return this.#readAs(line, at);
    if (stopFeedbackIn(line) !== null) return this.#held(at);
    const text = contentText(content);
    const isUnsigned = line.origin === undefined && line.promptSource === undefined;
    if (text.startsWith('[Request interrupted') && isUnsigned) {
      if (this.#isBehind) return [];
      const stopped = { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_streaming' };
      return this.#close(`${this.#key}/interrupted`, stopped, at);
    }
    const author = authorOf(line, text);
    const typed = author === 'person' ? commandIn(text) : null;
    // The CLI signs what a person typed, but not what a command printed.
    const command = typed?.kind !== 'output' || isUnsigned || this.#isCommandLast ? typed : null;
    const isAnswer = this.#isCommandLast;
    if (author === 'person') this.#isCommandLast = command !== null && command.kind !== 'output';
    if (command?.kind === 'output') return this.#commandOutput(line, command.text, at, isAnswer);
    const before = this.#settleCommand(author === 'harness' && line.parentUuid === this.#command?.line.uuid);
    if (author === 'task') return [...before, ...this.#woken(line, text, at)];
    if (author === 'timer') return [...before, ...this.#scheduled(line, text, at)];
    if (author === 'other' && !this.#isAtWork(at)) return [...before, ...this.#begins(line, fieldsOf(line.origin), at)];
    if (author === 'person' && text !== '') {
      const asks = line.turnOrigin !== undefined || line.origin !== undefined;
      if (command?.kind === 'slash' && !asks) {
        this.#command = { line, id: this.#key, text: command.text, at };
        if (!this.#isAtWork(at)) this.#turns.opened(line);
        return before;
      }
      const said = command === null ? line : { ...line, message: { role: 'user', content: command.text } };
      return [...before, ...this.#asked(said, this.#key, at)];
    }
    if (line.isMeta !== true && !this.#isBehind) this.stops.named(textOf(line.promptId));
    return before;
  }

  /** A slash command whose answer is here. @param asks whether the model answers, rather than the CLI */
  #settleCommand(asks: boolean): TimedEvent[] {
    const command = this.#command;
    if (command === null) return [];
    this.#command = null;
    const { line, id, text, at } = command;
    const said = { ...line, message: { role: 'user', content: text } };
    // Said to the CLI while the agent works: it begins no turn.
    if (this.#isAtWork(at) && !asks) {
      this.#answers.push(id);
      return this.#adapter.sent({ type: 'user', uuid: id, message: said.message }, at);
    }
    // Its turn is named after its own line, as the turn that the line at hand may open is after that.
    const key = this.#key;
    this.#key = id;
    const asked = this.#tell(this.#asked(said, id, at));
    this.#key = key;
    return asks ? asked : [...asked, ...this.#close(`${id}/command`, LOCAL, at)];
  }

  /** The command that waits for what the next line says about it. */
  get pendingCommand(): string | null {
    return this.#command?.id ?? null;
  }

  /** Nothing follows the command that waits: the CLI answered it, without a word. */
  commandSettled(): TimedEvent[] {
    return this.#tell(this.#settleCommand(false));
  }

  /** A turn is open, and nothing says that it is over. */
  #isAtWork(at: number): boolean {
    return this.openRunId !== null && !this.#saidLastWord && this.stops.ownAt(at) === null;
  }

  /**
   * Output of a command that a person typed. Without `turnOrigin` the model is not asked, and the turn is over.
   *
   * @param isAnswer whether the command was the newest that a person said
   */
  #commandOutput(line: Fields, text: string, at: number, isAnswer: boolean): TimedEvent[] {
    const isMidTurn = this.#command !== null && this.#isAtWork(at);
    const opened = this.#command === null ? [] : this.#tell(this.#settleCommand(!isMidTurn));
    const printed = text === '' ? [] : this.#printed(text, at);
    const isOver = isAnswer && !isMidTurn && line.turnOrigin === undefined && !this.#hasActed;
    return [...opened, ...printed, ...(isOver ? this.#close(`${this.#key}/command`, LOCAL, at) : [])];
  }

  #printed(text: string, at: number): TimedEvent[] {
    const message = { type: 'system', subtype: 'local_command_output', uuid: `${this.#key}/output`, content: text };
    return this.#adapter.read(message, at);
  }

  /** A stop hook holds the agent: the turn goes on. */
  #held(at: number): TimedEvent[] {
    this.stops.held(at);
    if (this.#lastWords.isBeforeEnd(at)) return this.#tellLate(this.#lastWords.heldBefore(), at);
    this.#saidLastWord = false;
    this.#lastWords.held();
    return [];
  }

  #assistant(line: Fields, at: number): TimedEvent[] {
    const { content } = fieldsOf(line.message);
    const blocks = listOf(content).map(fieldsOf);
    const callsTool = blocks.some(({ type }) => type === 'tool_use');
    for (const block of blocks) {
      const id = textOf(block.id);
      if (block.type !== 'tool_use' || id === null) continue;
      this.#asks.called(id, block);
      this.#tasks.called(id, fieldsOf(block.input));
    }
    const isMain = textOf(line.agentId) === null;
    // The CLI's own "No response requested." bridges a turn that was broken off: the agent did not say it.
    if (isMain && fieldsOf(line.message).model === SYNTHETIC && line.isApiErrorMessage !== true) return [];
    const before = isMain ? this.#tell(this.#settleCommand(true)) : [];
    if (contentText(content) === '' && listOf(content).length === 0) return before;
    const { stop_reason } = fieldsOf(line.message);
    // text before a tool call is not the last, though the same text may be said again after it
    const isLast = stop_reason !== 'tool_use' && !callsTool;
    if (isMain && (this.#isBehind || this.#lastWords.isLate(line, this.openRunId !== null))) {
      return this.#tellLate(this.#lastWords.late(line, isLast), at);
    }
    if (isMain) {
      if (isLast) this.#lastWords.says(textIn(line));
      else this.#lastWords.given();
      this.#saidLastWord = stop_reason === 'end_turn' || line.isApiErrorMessage === true;
      this.#hasActed = true;
      this.#isCommandLast = false;
    }
    if (line.isApiErrorMessage === true) this.#apiError = contentText(content);
    return [...before, ...this.#readAs(line, at), ...this.#matchAsks(at)];
  }

  #system(line: Fields, at: number): TimedEvent[] {
    const { uuid } = line;
    switch (line.subtype) {
      case 'turn_duration':
        if (this.#isBehind) return [];
        return this.#close(`${uuid}/result`, compact({ duration_ms: numberOf(line.durationMs) }), at);
      case 'compact_boundary': {
        const { trigger, preTokens, postTokens } = fieldsOf(line.compactMetadata);
        const metadata = { trigger, pre_tokens: preTokens, post_tokens: postTokens };
        const message = { type: 'system', subtype: 'compact_boundary', uuid, compact_metadata: metadata };
        return this.#adapter.read(message, at);
      }
      case 'scheduled_task_fire':
        this.#tasks.fired(textOf(line.taskId));
        return [];
      case 'local_command': {
        const said = LOCAL_OUTPUT.exec(`${line.content}`)?.[1]?.trim();
        const message = { type: 'system', subtype: 'local_command_output', uuid, content: said };
        return message.content ? this.#adapter.read(message, at) : [];
      }
      default:
        return [];
    }
  }

  /** What was said to a running turn, which answers it. */
  #attachment(line: Fields, at: number): TimedEvent[] {
    const { type, prompt, commandMode, source_uuid, origin, isMeta } = fieldsOf(line.attachment);
    if (stopFeedbackIn(line) !== null) return this.#held(at);
    if (type !== 'queued_command') return [];
    const text = contentText(prompt);
    if (commandMode === 'task-notification') {
      const notifications = notificationsIn(text);
      const out = this.#notified(notifications, at);
      // the main thread does not see a subagent's notifications
      if (textOf(line.agentId) === null) this.#told(notifications, 'heard');
      return out;
    }
    const { kind } = fieldsOf(origin);
    const byPerson = line.isMeta !== true && isMeta !== true && (kind === undefined || PERSONS.has(kind));
    if (textOf(line.agentId) !== null || text === '' || !byPerson) return [];
    const id = textOf(source_uuid) ?? this.#key;
    if (this.openRunId === null) return this.#asked({ ...line, message: { role: 'user', content: prompt } }, id, at);
    this.#answers.push(id);
    return this.#adapter.sent({ type: 'user', uuid: id, message: { role: 'user', content: prompt } }, at);
  }

  #asked(line: Fields, id: string, at: number): TimedEvent[] {
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
    // a turn that was broken off has not been closed
    this.#lastWords.given();
    this.#prompt = { promptId: textOf(line.promptId) };
  }

  #woken(line: Fields, text: string, at: number): TimedEvent[] {
    const notifications = notificationsIn(text);
    const joins = this.openRunId !== null && !this.#hasActed;
    // Drained together with what opened the turn, or without a turn of its own: one turn answers it all.
    if (joins || line.queueTranscriptOnly === true) {
      const more = this.#notified(notifications, at);
      this.stops.named(textOf(line.promptId));
      this.#told(notifications, joins && this.#origin?.kind === BY_TASK.kind ? 'wakes' : 'heard');
      return more;
    }
    return this.#begins(line, BY_TASK, at, notifications);
  }

  /** A wake-up that the agent scheduled has fired. */
  #scheduled(line: Fields, text: string, at: number): TimedEvent[] {
    if (this.openRunId !== null && !this.#hasActed) return [];
    const { reason, setAt } = this.#tasks.timerOf(text) ?? { reason: null, setAt: null };
    const origin = {
      kind: 'system',
      subkind: 'scheduled-trigger',
      reason: reason ?? truncateText(text, MAX_REASON),
      setAt,
    };
    return this.#begins(line, origin, at);
  }

  /** Begins a turn that no person asked for. */
  #begins(line: Fields, origin: Fields, at: number, notifications: readonly Notification[] = []): TimedEvent[] {
    const before = this.#closeBefore(at);
    this.#opens(line);
    this.#origin = origin;
    this.#hasActed = false;
    const told = this.#notified(notifications, at);
    // Two messages, as from the SDK: the second one opens the turn before the model has answered.
    const init = this.#adapter.read({ type: 'system', subtype: 'init', uuid: `${line.uuid}/init` }, at);
    // by now a turn that was broken off is closed, so the notifications go to the new one
    if (notifications.length > 0) this.#told(notifications, 'wakes');
    const asks = { type: 'system', subtype: 'status', status: 'requesting', uuid: `${line.uuid}/status`, origin };
    return [...before, ...told, ...init, ...this.#adapter.read(asks, at)];
  }

  /** The agent reads the notifications here, perhaps long after the ends, and after later ends. */
  #told(notifications: readonly Notification[], how: 'wakes' | 'heard'): void {
    const ends = notifications.flatMap((notification) => this.#tasks.taskOf(notification) ?? []);
    // An older CLI may not name the task.
    const namesNone = notifications.every(({ fields }) => fields.task_id === undefined);
    if (ends.length > 0 || namesNone) this.#adapter.told(namesNone ? null : ends, how);
  }

  #notified(notifications: readonly Notification[], at: number): TimedEvent[] {
    return notifications.flatMap((notification) =>
      this.#tasks.ended(notification, at).flatMap((message) => this.#adapter.read(message, at)),
    );
  }

  #toolResults(line: Fields, results: Fields[], agentId: string | null, at: number): TimedEvent[] {
    const started = this.#tasks.launched(line, results, at);
    const ends = this.#tasks.endedByCall(line, results);
    for (const result of results) this.#asks.returned(`${result.tool_use_id}`, at);
    if (agentId === null && !this.#isBehind) {
      this.stops.named(textOf(line.promptId));
      this.#lastWords.given();
    }
    const launched = started === null ? [] : this.#adapter.read(started, at);
    const returned = this.#readAs(line, at);
    const ended = ends.flatMap(({ message }) => this.#adapter.read(message, at));
    // The agent knows from its own call. A notification follows the end of a subagent, and wakes it.
    const heard = ends.flatMap(({ ref, isSubagent }) => (isSubagent || agentId !== null ? [] : ref));
    if (heard.length > 0) this.#adapter.told(heard, 'heard');
    return [...launched, ...returned, ...ended];
  }

  #readAs(line: Fields, at: number): TimedEvent[] {
    return this.#adapter.read(sdkMessage(line), at);
  }

  /** Tells lines outside any turn, because theirs is over. */
  #tellLate(lines: readonly Fields[], at: number): TimedEvent[] {
    return lines.flatMap((line) => this.#adapter.read({ ...sdkMessage(line), late: true }, at));
  }

  /** What is said in mid-turn comes as an attachment, so a line that opens a turn comes after the end of the last one. */
  #closeBefore(at: number): TimedEvent[] {
    if (this.#saidLastWord || this.#apiError !== null || this.stops.ownAt(at) !== null)
      return this.#close(`${this.#key}/before`, {}, at);
    // It was broken off: messages that it did not answer, the next turn does not answer either.
    if (this.openRunId === null || this.#hasActed) this.#answers = [];
    return [];
  }

  #close(uuid: string, how: Fields, at: number, byHook = false): TimedEvent[] {
    if (this.openRunId === null) return [];
    const stop = byHook ? this.stops.own : this.stops.ownAt(at);
    const text = this.#lastWords.missingOf(stop?.text);
    const last = text === null ? [] : this.#sayLast(text, at);
    if (byHook || text !== null) this.#lastWords.leaves(stop?.at ?? at, text);
    if (byHook) this.stops.overByHook();
    else this.stops.overByLine(at, this.#lastWords.said, how.terminal_reason === undefined);
    this.#lastWords.given();
    const why = this.#apiError ?? stop?.failure ?? null;
    const failed = why !== null && how.terminal_reason === undefined;
    const error = failed ? { is_error: true, terminal_reason: 'api_error', result: why } : {};
    const origin = this.#answers.length === 0 ? this.#origin : undefined;
    this.#origin = null;
    const answers = this.#answers;
    this.#answers = [];
    this.#asks.turnEnded();
    this.#apiError = null;
    this.#saidLastWord = false;
    const result = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, ...how, ...error };
    return [...last, ...this.#adapter.read(compact({ ...result, uuid, origin, user_message_uuids: answers }), at)];
  }

  /** Says the stop hook's text, which no line has said. A line that says it later is recognised by its text. */
  #sayLast(text: string, at: number): TimedEvent[] {
    const id = `${this.openRunId}/last-words`;
    const message = { id, role: 'assistant', content: [{ type: 'text', text }] };
    return this.#adapter.read({ type: 'assistant', uuid: id, message }, at);
  }

  #matchAsks(at: number): TimedEvent[] {
    return this.#asks.matched(at).flatMap((request) => this.#adapter.permissionAsked(request, at));
  }

  #tell(outputs: TimedEvent[]): TimedEvent[] {
    // The inits are made up here and say nothing about the agent's workings.
    const told = outputs.filter(({ event }) => event.name !== 'claude:init');
    return told.map((output) => {
      const { event } = output;
      if (this.#isTold.has(output)) return output;
      this.#isTold.add(output);
      if (event.type === 'RUN_STARTED' && event.runId === this.#newestRunId) {
        this.stops.named(this.#prompt?.promptId ?? null);
      } else if (event.type === 'RUN_STARTED') {
        this.#newestRunId = textOf(event.runId);
        this.stops.opened(output.occurredAt, this.#prompt);
        this.#lastWords.opened(output.occurredAt);
      }
      if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') this.#replyTo = [];
      const replies = event.type === 'TEXT_MESSAGE_START' && event.role === 'assistant' && this.#replyTo.length > 0;
      if (!replies || event.subagentRunId !== undefined) return output;
      const replying = { ...output, event: withInterlude(event, { replyTo: [...this.#replyTo] }) };
      this.#isTold.add(replying);
      return replying;
    });
  }
}

/** The CLI answered a command itself: no model was asked and no stop hook runs. */
const LOCAL = { terminal_reason: 'local_command' };
const SYNTHETIC = '<synthetic>';
const BY_TASK = { kind: 'task-notification' };
/** Most tasks that are remembered as given up. */
const MAX_LOST = 256;
/** UTF-16 units. */
const MAX_REASON = 200;
/** A notification of what a stop hook no longer lists comes within this time. */
const UNLISTED_MS = 5_000;

const LOCAL_OUTPUT = /^<local-command-std(?:out|err)>([\s\S]*)<\/local-command-std(?:out|err)>$/;
