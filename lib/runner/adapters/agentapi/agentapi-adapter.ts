import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { ToldEvent, WireAdapter, WireAdapterOptions, WireEnd, WireFrame } from '../wire';
import { fittingText } from '../writer/long-text';
import { SessionWriter, type TurnEnd } from '../writer/session-writer';
import { type AgentApiFrame, type ApiMessage, frameOf, withoutTrailing } from './agentapi-frames';
import { newTail } from './new-tail';
import { NOWHERE, type Place, placeOf, placeText } from './place';
import { promptOn, type ScreenPrompt } from './screen-prompt';

/**
 * The terminal of an agent, as AgentAPI tells it: messages that are read off its screen, and whether that stands still.
 *
 * The last message of the agent is rewritten as a whole, also long after its turn: what comes to it while nobody has asked
 * is a turn of the agent's own. A turn is over when the screen has stood still for two seconds; that it is over is
 * inferred, and said so.
 *
 * @see coder/agentapi 0.12.1
 */
export interface AgentApiAdapterOptions extends WireAdapterOptions {
  /** Up to where an adapter before this one has told, as its `place` was. */
  place?: string | null;
  /** Messages that were being posted by then: among the server's messages they are known again. */
  inHand?: readonly { messageId: string; text: string }[];
  /** Shorter in tests. */
  terms?: { stillMs?: number };
}

/** Still for so long, a turn is over. AgentAPI says so two seconds after the last change already. */
const STILL_MS = 2_000;
const MAX_POSTED = 64;
const MAX_ERRORS = 256;
/** What of a message is kept to be compared. */
const MAX_TEXT = 512 * 1024;
const MAX_ERROR = 64 * 1024;
const QUOTED = 2_000;

export class AgentApiAdapter implements WireAdapter {
  readonly #writer: SessionWriter;
  readonly #newRunId: () => string;
  readonly #stillMs: number;
  /** What was posted and is not yet among the messages. */
  readonly #posted: { content: string; messageId: string | null; isTaken: boolean }[] = [];
  readonly #errors = new Map<string, true>();
  #place: Place;
  /** Nothing was told before: what the server has already is history. */
  #isFirst: boolean;
  /** The messages of a replay by their ids, until its end. */
  #replay: Map<number, ApiMessage> | null = null;
  /** What the agent's message was when its last turn ended. */
  #base = '';
  #isStable: boolean | null = null;
  #agentType: string | null = null;
  #screen: string | null = null;
  #prompt: { id: string; prompt: ScreenPrompt } | null = null;
  #answered: string | null = null;
  #isInterrupted = false;
  #stillAt: number | null = null;
  /** Without the stream of events, the lists that are polled are all that is heard. */
  #isDeaf = false;
  #now = 0;

  constructor({ place, inHand = [], sessionOf, newRunId, isReplay, terms }: AgentApiAdapterOptions) {
    this.#stillMs = terms?.stillMs ?? STILL_MS;
    this.#newRunId = newRunId;
    this.#writer = new SessionWriter({ sessionId: sessionOf(''), newRunId, isReplay });
    this.#isFirst = (place ?? null) === null;
    this.#place = placeOf(place ?? null);
    this.#base = this.#place.agent?.text ?? '';
    for (const { messageId, text } of inHand) this.#posts(text, messageId);
  }

  /** For the next adapter. */
  get place(): string {
    return placeText(this.#place);
  }

  /** Whether the screen stands still; null before anything was heard. */
  get isStable(): boolean | null {
    return this.#isStable;
  }

  /** `claude`, `aider` …, once it is known. */
  get agentType(): string | null {
    return this.#agentType;
  }

  /** The request that is open for what the screen asks. */
  get requestId(): string | null {
    return this.#prompt?.id ?? null;
  }

  get dueAt(): number | null {
    return this.#stillAt === null || this.#writer.turn === null ? null : this.#stillAt + this.#stillMs;
  }

  read(frame: WireFrame, now: number): ToldEvent[] {
    this.#now = now;
    this.#writer.at(now);
    this.#read(frameOf(frame));
    return this.#writer.take();
  }

  elapsed(now: number): ToldEvent[] {
    this.#now = now;
    this.#writer.at(now);
    if (this.#stillAt !== null && this.#stillAt + this.#stillMs <= now) this.#isStill();
    return this.#writer.take();
  }

  ended(end: WireEnd, now: number): ToldEvent[] {
    this.#now = now;
    this.#writer.at(now);
    this.#reconcile();
    this.#prompt = null;
    this.#isStable = null;
    this.#stillAt = null;
    this.#writer.end(end, end.goesOn !== undefined);
    return this.#writer.take();
  }

  #read(frame: AgentApiFrame): void {
    switch (frame.kind) {
      case 'post':
        this.#posts(frame.content, frame.messageId);
        return;
      case 'posted':
        this.#postAnswered(frame.isTaken);
        return;
      case 'keys':
        if (frame.isInterrupt) this.#isInterrupted = this.#writer.turn !== null;
        if (this.#prompt !== null) this.#answered = frame.optionId ?? this.#answered;
        return;
      case 'opened':
        this.#isDeaf = false;
        this.#replay = new Map();
        return;
      case 'ended':
        this.#reconcile();
        this.#isDeaf = true;
        return;
      case 'status':
        this.#reconcile();
        this.#agentType = frame.agent ?? this.#agentType;
        this.#status(frame.isStable);
        return;
      case 'message':
        if (this.#replay === null) this.#heard(frame.message);
        else this.#replay.set(frame.message.id, frame.message);
        return;
      case 'listed':
        this.#listed(frame.messages);
        return;
      case 'screen':
        this.#screen = frame.screen;
        this.#look();
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
    this.#posted.push({ content: withoutTrailing(content), messageId, isTaken: false });
    if (this.#posted.length > MAX_POSTED) this.#posted.shift();
  }

  #postAnswered(isTaken: boolean): void {
    const at = this.#posted.findIndex((post) => !post.isTaken);
    const post = this.#posted[at];
    if (post === undefined) return;
    if (!isTaken) {
      this.#posted.splice(at, 1);
      return;
    }
    post.isTaken = true;
    this.#asked(post.messageId, post.content);
  }

  /** A person's message has reached the agent. */
  #asked(messageId: string | null, text: string): void {
    const ids = messageId === null ? [] : [messageId];
    if (messageId !== null) this.#writer.dashboardMessage(messageId, fittingText(text));
    this.#finish({ kind: 'success' });
    this.#writer.begin({ kind: 'user', userMessageIds: ids });
    this.#base = this.#place.agent?.text ?? '';
    this.#isStable = false;
    this.#stillAt = null;
  }

  #heard(message: ApiMessage): void {
    if (message.role === 'user') this.#userSays(message);
    else this.#agentSays(message);
  }

  #userSays({ id, content, time }: ApiMessage): void {
    const { user } = this.#place;
    if (user !== null && id <= user.id) return;
    this.#place.user = { id, time };
    const at = this.#posted.findIndex((post) => post.content === content);
    const post = this.#posted[at];
    if (post !== undefined) {
      this.#posted.splice(at, 1);
      // Its POST may be answered only when the turn is over.
      if (!post.isTaken) this.#asked(post.messageId, post.content);
      return;
    }
    const name = `${this.#place.epoch}/${id}`;
    this.#writer.userMessage(name, fittingText(content));
    this.#asked(name, content);
  }

  #agentSays({ id, content }: ApiMessage): void {
    const text = truncateText(content, MAX_TEXT);
    let { agent } = this.#place;
    if (agent !== null && id < agent.id) return;
    if (agent === null || id > agent.id) {
      agent = { id, text: '', stretch: 0 };
      this.#place.agent = agent;
      this.#base = '';
    }
    if (agent.text === text) return;
    agent.text = text;
    const tail = this.#base === '' ? text : newTail(this.#base, text);
    if (this.#isStable === true) this.#stillAt = this.#now;
    if (tail.trim() === '') return;
    // Before anybody has written it is the greeting of the program, and no turn.
    if (this.#writer.turn === null && this.#place.user !== null) {
      agent.stretch += 1;
      this.#writer.begin({ kind: 'between-run', trigger: { kind: 'unknown', taskIds: [] } });
    }
    this.#writer.speaker().sayWhole('text', this.#nameOf(agent), tail);
  }

  #nameOf({ id, stretch }: { id: number; stretch: number }): string {
    return `${this.#place.epoch}/${id}${stretch === 0 ? '' : `#${stretch}`}`;
  }

  /** A list is older than what the stream has said since it was asked for; without a stream, it is as a replay. */
  #listed(messages: readonly ApiMessage[]): void {
    // What the server had before anybody listened is history, which the stream is about to replay.
    if (this.#replay !== null || (this.#isFirst && !this.#isDeaf)) return;
    if (this.#isDeaf) {
      this.#replay = new Map(messages.map((message) => [message.id, message]));
      this.#reconcile();
      return;
    }
    for (const message of messages) {
      const { agent, user } = this.#place;
      const known = message.role === 'user' ? user?.id : agent?.id;
      if (known === undefined || message.id > known) this.#heard(message);
    }
  }

  /** A replay is over: what it has beyond what is known is told as it would have been. */
  #reconcile(): void {
    const replay = [...(this.#replay?.values() ?? [])];
    this.#replay = null;
    if (replay.length === 0) return;
    if (this.#isAnotherProcess(replay)) this.#beginsAnew();
    if (!this.#isFirst) {
      for (const message of replay) this.#heard(message);
      return;
    }
    this.#isFirst = false;
    const messages = replay.map(({ id, role, content }) => ({
      id: `${this.#place.epoch}/${id}`,
      role: role === 'user' ? 'user' : 'assistant',
      content: fittingText(content, MAX_TEXT),
    }));
    for (const message of replay) {
      if (message.role === 'user') this.#place.user = { id: message.id, time: message.time };
      else this.#place.agent = { id: message.id, text: truncateText(message.content, MAX_TEXT), stretch: 0 };
    }
    this.#base = this.#place.agent?.text ?? '';
    for (const message of messages) {
      if (message.content !== '') this.#writer.pass({ type: 'MESSAGES_SNAPSHOT', messages: [message] });
    }
  }

  #isAnotherProcess(replay: readonly ApiMessage[]): boolean {
    const { user, agent } = this.#place;
    if (user !== null) return replay.find(({ id }) => id === user.id)?.time !== user.time;
    return agent !== null && (replay.at(-1)?.id ?? -1) < agent.id;
  }

  #beginsAnew(): void {
    const message = 'The agent was started anew in the middle of this turn.';
    this.#prompted(null);
    this.#finish({ kind: 'failed', message, code: 'agent_restarted' });
    this.#writer.notice('The agent was started anew: what it knew of this conversation may be gone.', 'warning');
    this.#posted.length = 0;
    this.#place = { ...NOWHERE, epoch: this.#place.epoch + 1, errorAt: this.#place.errorAt };
    this.#base = '';
    this.#isFirst = true;
  }

  #status(isStable: boolean): void {
    this.#isStable = isStable;
    this.#stillAt = isStable ? (this.#stillAt ?? this.#now) : null;
    this.#look();
  }

  /** The screen counts once it stands still: before, it is not drawn to its end. */
  #look(): void {
    if (this.#isStable === null) return;
    const prompt = this.#isStable ? promptOn(this.#shown) : null;
    if (this.#prompt !== null && prompt?.text === this.#prompt.prompt.text) {
      this.#prompt.prompt = prompt;
      return;
    }
    // While the answer is being typed the screen changes, and the question is still there.
    if (prompt === null && !this.#isStable && this.#isOnScreen()) return;
    this.#prompted(prompt);
  }

  /** Without the stream of the screen, the agent's last message has what is read off it. */
  get #shown(): string {
    return this.#screen ?? this.#place.agent?.text ?? '';
  }

  #isOnScreen(): boolean {
    return this.#prompt !== null && promptOn(this.#shown)?.text === this.#prompt.prompt.text;
  }

  #prompted(prompt: ScreenPrompt | null): void {
    if (this.#prompt !== null) {
      const { id, prompt: before } = this.#prompt;
      const given = before.options.find((option) => option.id === this.#answered);
      const outcome = given === undefined ? 'unknown' : given.kind === 'allow' ? 'allowed' : 'denied';
      this.#writer.resolved(id, outcome);
      // Whoever answered: the agent goes on from here, and what it shows next is not the end of its turn.
      this.#stillAt = this.#isStable === true ? this.#now : null;
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

  /** Nothing has changed for as long as it takes: the turn is over, unless the screen asks. */
  #isStill(): void {
    this.#stillAt = null;
    if (this.#prompt !== null) return;
    this.#finish(this.#isInterrupted ? { kind: 'cancelled' } : { kind: 'success' });
  }

  #finish(end: TurnEnd): void {
    this.#isInterrupted = false;
    this.#base = this.#place.agent?.text ?? '';
    this.#writer.finish(end, { isInferred: true });
  }

  /** Up to a hundred of them come again with each connection. */
  #error({ message, level, time }: Extract<AgentApiFrame, { kind: 'error' }>): void {
    const key = truncateText(`${time} ${message}`, QUOTED);
    if (this.#errors.has(key) || (time !== '' && time <= this.#place.errorAt)) return;
    remember(this.#errors, key, true, MAX_ERRORS);
    if (time > this.#place.errorAt && time.length < MAX_ERRORS) this.#place.errorAt = time;
    this.#writer.notice(
      `The agent’s terminal: ${fittingText(message, MAX_ERROR)}`,
      level === 'warning' ? 'warning' : 'error',
    );
  }
}

function quoted(what: unknown): string {
  try {
    return truncateText(JSON.stringify(what) ?? '', QUOTED);
  } catch {
    return 'what is nested too deep to be quoted';
  }
}
