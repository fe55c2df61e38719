import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import type { EmittedEvent, WireAdapter, WireAdapterOptions, WireEnd, WireFrame } from '../wire';
import { setBounded } from '../wire';
import { SessionWriter, type TurnEnd } from '../writer/session-writer';
import { truncateWithNote } from '../writer/size-limits';
import { type AgentApiFrame, type ApiMessage, frameOf, withoutTrailing } from './agentapi-frames';
import { parseScreenPrompt, type ScreenPrompt } from './screen-prompt';

interface AgentApiAdapterOptions extends WireAdapterOptions {
  /** `progress` of an earlier adapter. */
  progress?: string | null;
  /** Messages being posted at the time, to recognize them among the server's. */
  inFlight?: readonly { messageId: string; text: string }[];
  /** Shorter in tests. */
  waits?: { settleMs?: number };
}

/** Added to the two seconds after which AgentAPI reports `stable`. */
const SETTLE_MS = 2_000;
const MAX_POSTED = 64;
const MAX_ERRORS = 256;
const MAX_TEXT = 512 * 1024;
const MAX_ERROR = 64 * 1024;
const MAX_QUOTED = 2_000;

/**
 * Translates an agent's terminal through AgentAPI: messages scraped from its screen, and whether the screen is stable.
 *
 * AgentAPI rewrites the agent's last message as a whole, even long after its turn: additions without a prompt form a
 * between-run turn. A turn ends (inferred) once the screen has been stable for SETTLE_MS.
 *
 * @see coder/agentapi 0.12.1
 */
export class AgentApiAdapter implements WireAdapter {
  readonly #writer: SessionWriter;
  readonly #newRunId: () => string;
  readonly #settleMs: number;
  /** Posted messages not yet among the server's. */
  readonly #posted: { content: string; messageId: string | null; isAccepted: boolean }[] = [];
  readonly #errors = new Map<string, true>();
  #progress: Progress;
  /** True without earlier progress, when the server's messages are history. */
  #isFirst: boolean;
  /** Messages of a running replay, by id. */
  #replay: Map<number, ApiMessage> | null = null;
  /** The agent's message at the end of its last turn. */
  #base = '';
  #isStable: boolean | null = null;
  #agentType: string | null = null;
  #screen: string | null = null;
  #prompt: { id: string; prompt: ScreenPrompt } | null = null;
  #answered: string | null = null;
  #isInterrupted = false;
  #stableSince: number | null = null;
  /** True while the event stream is down and only polled lists arrive. */
  #isPolling = false;
  #now = 0;

  constructor({ progress, inFlight = [], sessionOf, newRunId, isReplay, waits }: AgentApiAdapterOptions) {
    this.#settleMs = waits?.settleMs ?? SETTLE_MS;
    this.#newRunId = newRunId;
    this.#writer = new SessionWriter({ sessionId: sessionOf(''), newRunId, isReplay });
    this.#isFirst = (progress ?? null) === null;
    this.#progress = parseProgress(progress ?? null);
    this.#base = this.#progress.agent?.text ?? '';
    for (const { messageId, text } of inFlight) this.#posts(text, messageId);
  }

  /** Progress for the next adapter. */
  get progress(): string {
    return serializeProgress(this.#progress);
  }

  /** True while the screen is stable; null before the first frame. */
  get isStable(): boolean | null {
    return this.#isStable;
  }

  /** `claude`, `aider` …; null until known. */
  get agentType(): string | null {
    return this.#agentType;
  }

  /** Open request for the prompt on screen. */
  get requestId(): string | null {
    return this.#prompt?.id ?? null;
  }

  get dueAt(): number | null {
    return this.#stableSince === null || this.#writer.turn === null ? null : this.#stableSince + this.#settleMs;
  }

  read(frame: WireFrame, now: number): EmittedEvent[] {
    this.#now = now;
    this.#writer.at(now);
    this.#read(frameOf(frame));
    return this.#writer.drain();
  }

  elapsed(now: number): EmittedEvent[] {
    this.#now = now;
    this.#writer.at(now);
    if (this.#stableSince !== null && this.#stableSince + this.#settleMs <= now) this.#settle();
    return this.#writer.drain();
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    this.#now = now;
    this.#writer.at(now);
    this.#reconcile();
    this.#prompt = null;
    this.#isStable = null;
    this.#stableSince = null;
    this.#writer.end(end, end.goesOn !== undefined);
    return this.#writer.drain();
  }

  #read(frame: AgentApiFrame): void {
    switch (frame.kind) {
      case 'post':
        this.#posts(frame.content, frame.messageId);
        return;
      case 'posted':
        this.#postResponded(frame.isAccepted);
        return;
      case 'keys':
        if (frame.isInterrupt) this.#isInterrupted = this.#writer.turn !== null;
        if (this.#prompt !== null) this.#answered = frame.optionId ?? this.#answered;
        return;
      case 'opened':
        this.#isPolling = false;
        this.#replay = new Map();
        return;
      case 'ended':
        this.#reconcile();
        this.#isPolling = true;
        return;
      case 'status':
        this.#reconcile();
        this.#agentType = frame.agent ?? this.#agentType;
        this.#status(frame.isStable);
        return;
      case 'message':
        if (this.#replay === null) this.#message(frame.message);
        else this.#replay.set(frame.message.id, frame.message);
        return;
      case 'listed':
        this.#listed(frame.messages);
        return;
      case 'screen':
        this.#screen = frame.screen;
        this.#readScreen();
        return;
      case 'error':
        this.#error(frame);
        return;
      case 'unreadable':
        this.#writer.raw(quoted(frame.what), 'agentapi');
    }
  }

  #posts(content: string, messageId: string | null): void {
    if (messageId !== null && this.#posted.some((post) => post.messageId === messageId)) return;
    this.#posted.push({ content: withoutTrailing(content), messageId, isAccepted: false });
    if (this.#posted.length > MAX_POSTED) this.#posted.shift();
  }

  #postResponded(isAccepted: boolean): void {
    const index = this.#posted.findIndex((post) => !post.isAccepted);
    const post = this.#posted[index];
    if (post === undefined) return;
    if (!isAccepted) {
      this.#posted.splice(index, 1);
      return;
    }
    post.isAccepted = true;
    this.#postWritten(post.messageId, post.content);
  }

  /** Handles a person's message that reached the agent. */
  #postWritten(messageId: string | null, text: string): void {
    const ids = messageId === null ? [] : [messageId];
    if (messageId !== null) this.#writer.dashboardMessage(messageId, truncateWithNote(text));
    this.#finish({ kind: 'success' });
    this.#writer.begin({ kind: 'user', userMessageIds: ids });
    this.#base = this.#progress.agent?.text ?? '';
    this.#isStable = false;
    this.#stableSince = null;
  }

  #message(message: ApiMessage): void {
    if (message.role === 'user') this.#userMessage(message);
    else this.#agentMessage(message);
  }

  #userMessage({ id, content, time }: ApiMessage): void {
    const { user } = this.#progress;
    if (user !== null && id <= user.id) return;
    this.#progress.user = { id, time };
    const index = this.#posted.findIndex((post) => post.content === content);
    const post = this.#posted[index];
    if (post !== undefined) {
      this.#posted.splice(index, 1);
      // The response to the POST may come only after the turn.
      if (!post.isAccepted) this.#postWritten(post.messageId, post.content);
      return;
    }
    const name = `${this.#progress.epoch}/${id}`;
    this.#writer.userMessage(name, truncateWithNote(content));
    this.#postWritten(name, content);
  }

  #agentMessage({ id, content }: ApiMessage): void {
    const text = truncateText(content, MAX_TEXT);
    let { agent } = this.#progress;
    if (agent !== null && id < agent.id) return;
    if (agent === null || id > agent.id) {
      agent = { id, text: '', stretch: 0 };
      this.#progress.agent = agent;
      this.#base = '';
    }
    if (agent.text === text) return;
    agent.text = text;
    const tail = this.#base === '' ? text : addedText(this.#base, text);
    if (this.#isStable === true) this.#stableSince = this.#now;
    if (tail.trim() === '') return;
    // Text before the first message is the program's greeting.
    if (this.#writer.turn === null && this.#progress.user !== null) {
      agent.stretch += 1;
      this.#writer.begin({ kind: 'between-run', trigger: { kind: 'unknown', taskIds: [] } });
    }
    this.#writer.parts().setText('text', this.#nameOf(agent), tail);
  }

  #nameOf({ id, stretch }: { id: number; stretch: number }): string {
    return `${this.#progress.epoch}/${id}${stretch === 0 ? '' : `#${stretch}`}`;
  }

  /** Applies a polled list. It may be older than the stream; without a stream it counts as a replay. */
  #listed(messages: readonly ApiMessage[]): void {
    // Earlier messages are history, which the stream is about to replay.
    if (this.#replay !== null || (this.#isFirst && !this.#isPolling)) return;
    if (this.#isPolling) {
      this.#replay = new Map(messages.map((message) => [message.id, message]));
      this.#reconcile();
      return;
    }
    for (const message of messages) {
      const { agent, user } = this.#progress;
      const known = message.role === 'user' ? user?.id : agent?.id;
      if (known === undefined || message.id > known) this.#message(message);
    }
  }

  /** Ends a replay and writes what is new in it. */
  #reconcile(): void {
    const replay = [...(this.#replay?.values() ?? [])];
    this.#replay = null;
    if (replay.length === 0) return;
    if (this.#isAnotherProcess(replay)) this.#restart();
    if (!this.#isFirst) {
      for (const message of replay) this.#message(message);
      return;
    }
    this.#isFirst = false;
    const messages = replay.map(({ id, role, content }) => ({
      id: `${this.#progress.epoch}/${id}`,
      role: role === 'user' ? 'user' : 'assistant',
      content: truncateWithNote(content, MAX_TEXT),
    }));
    for (const message of replay) {
      if (message.role === 'user') this.#progress.user = { id: message.id, time: message.time };
      else this.#progress.agent = { id: message.id, text: truncateText(message.content, MAX_TEXT), stretch: 0 };
    }
    this.#base = this.#progress.agent?.text ?? '';
    for (const message of messages) {
      if (message.content !== '') this.#writer.emit({ type: 'MESSAGES_SNAPSHOT', messages: [message] });
    }
  }

  #isAnotherProcess(replay: readonly ApiMessage[]): boolean {
    const { user, agent } = this.#progress;
    if (user !== null) return replay.find(({ id }) => id === user.id)?.time !== user.time;
    return agent !== null && (replay.at(-1)?.id ?? -1) < agent.id;
  }

  #restart(): void {
    const message = 'The agent restarted during this turn.';
    this.#setPrompt(null);
    this.#finish({ kind: 'failed', message, code: 'agent_restarted' });
    this.#writer.notice('The agent restarted and may have lost this conversation.', 'warning');
    this.#posted.length = 0;
    this.#progress = { ...NO_PROGRESS, epoch: this.#progress.epoch + 1, errorAt: this.#progress.errorAt };
    this.#base = '';
    this.#isFirst = true;
  }

  #status(isStable: boolean): void {
    this.#isStable = isStable;
    this.#stableSince = isStable ? (this.#stableSince ?? this.#now) : null;
    this.#readScreen();
  }

  /** Reads the prompt once the screen is stable and fully drawn. */
  #readScreen(): void {
    if (this.#isStable === null) return;
    const prompt = this.#isStable ? parseScreenPrompt(this.#shown) : null;
    if (this.#prompt !== null && prompt?.text === this.#prompt.prompt.text) {
      this.#prompt.prompt = prompt;
      return;
    }
    // The screen changes while a person types an answer, but the question stays open.
    if (prompt === null && !this.#isStable && this.#isOnScreen()) return;
    this.#setPrompt(prompt);
  }

  /** The screen, or the agent's last message without a screen stream. */
  get #shown(): string {
    return this.#screen ?? this.#progress.agent?.text ?? '';
  }

  #isOnScreen(): boolean {
    return this.#prompt !== null && parseScreenPrompt(this.#shown)?.text === this.#prompt.prompt.text;
  }

  #setPrompt(prompt: ScreenPrompt | null): void {
    if (this.#prompt !== null) {
      const { id, prompt: before } = this.#prompt;
      const chosen = before.options.find((option) => option.id === this.#answered);
      const outcome = chosen === undefined ? 'unknown' : chosen.kind === 'allow' ? 'allowed' : 'denied';
      this.#writer.resolved(id, outcome);
      // The agent continues, so its settle time restarts.
      this.#stableSince = this.#isStable === true ? this.#now : null;
    }
    this.#answered = null;
    this.#prompt = null;
    if (prompt === null) return;
    const id = `prompt-${this.#newRunId()}`;
    this.#prompt = { id, prompt };
    const options = prompt.options.map(({ isMarked: _, ...option }) => option);
    const input = { screen: prompt.text };
    this.#writer.requested({ request_id: id, kind: 'permission', title: prompt.title, input, options }, true);
  }

  /** The screen has been stable long enough: ends the turn unless a prompt is open. */
  #settle(): void {
    this.#stableSince = null;
    if (this.#prompt !== null) return;
    this.#finish(this.#isInterrupted ? { kind: 'cancelled' } : { kind: 'success' });
  }

  #finish(end: TurnEnd): void {
    this.#isInterrupted = false;
    this.#base = this.#progress.agent?.text ?? '';
    this.#writer.finish(end, { isInferred: true });
  }

  /** Each connection repeats up to a hundred errors. */
  #error({ message, level, time }: Extract<AgentApiFrame, { kind: 'error' }>): void {
    const key = truncateText(`${time} ${message}`, MAX_QUOTED);
    if (this.#errors.has(key) || (time !== '' && time <= this.#progress.errorAt)) return;
    setBounded(this.#errors, key, true, MAX_ERRORS);
    if (time > this.#progress.errorAt && time.length < MAX_ERRORS) this.#progress.errorAt = time;
    this.#writer.notice(
      `The agent’s terminal: ${truncateWithNote(message, MAX_ERROR)}`,
      level === 'warning' ? 'warning' : 'error',
    );
  }
}

function quoted(value: unknown): string {
  try {
    return truncateText(JSON.stringify(value) ?? '', MAX_QUOTED);
  } catch {
    return '[nested too deeply to quote]';
  }
}

/** Position in a server's messages; another adapter continues from it. */
interface Progress {
  /** Counts the server's processes. */
  epoch: number;
  /** A person's last message; its time identifies the process. */
  user: { id: number; time: string } | null;
  agent: { id: number; text: string; stretch: number } | null;
  errorAt: string;
}

/** Longer messages are stored truncated, so later additions to them may be written twice. */
const MAX_PROGRESS_TEXT = 64 * 1024;

const NO_PROGRESS: Progress = { epoch: 0, user: null, agent: null, errorAt: '' };

function parseProgress(text: string | null): Progress {
  const { epoch, user, agent, errorAt } = fieldsOf(parseJson(text ?? ''));
  const [person, program] = [fieldsOf(user), fieldsOf(agent)];
  const [userId, agentId] = [numberOf(person.id), numberOf(program.id)];
  return {
    epoch: numberOf(epoch) ?? 0,
    user: userId === null ? null : { id: userId, time: textOf(person.time) ?? '' },
    agent:
      agentId === null
        ? null
        : { id: agentId, text: textOf(program.text) ?? '', stretch: numberOf(program.stretch) ?? 0 },
    errorAt: textOf(errorAt) ?? '',
  };
}

function serializeProgress(progress: Progress): string {
  const { agent } = progress;
  const text = truncateText(agent?.text ?? '', MAX_PROGRESS_TEXT);
  return JSON.stringify({ ...progress, agent: agent && { ...agent, text } });
}

/**
 * Returns the new text of a message that is rewritten as a whole: the lines after the common prefix or, if the screen
 * has scrolled, after the longest old suffix that is now a prefix.
 *
 * @returns '' if nothing was added
 */
export function addedText(before: string, now: string): string {
  if (now === before) return '';
  const [old, lines] = [before.split('\n'), now.split('\n')];
  const most = Math.min(old.length, lines.length);
  let same = 0;
  while (same < most && old[same] === lines[same]) same += 1;
  if (same === old.length) return joined(lines.slice(same));
  const overlap = overlapOf(old, lines);
  return joined(lines.slice(Math.max(same, overlap)));
}

/** Number of first lines that were the last lines before. */
function overlapOf(old: readonly string[], lines: readonly string[]): number {
  for (let index = Math.max(1, old.length - lines.length); index < old.length; index += 1) {
    if (old[index] !== lines[0]) continue;
    const length = old.length - index;
    let same = 1;
    while (same < length && old[index + same] === lines[same]) same += 1;
    if (same === length) return length;
  }
  return 0;
}

function joined(lines: readonly string[]): string {
  return lines.join('\n').replace(/^\n+/, '').trimEnd();
}
