import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CUSTOM, type RequestOption } from '@interlude/protocol/ag-ui';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { cutText } from '@interlude/protocol/cut-text';
import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { AgentApiAdapter } from '../../adapters/agentapi/agentapi-adapter';
import { remember } from '../../adapters/remember';
import type { ToldEvent, WireFrame } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import type { AttachmentFile } from '../../host/attachment-store';
import { withFileList } from '../../host/attachment-store';
import { InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { readEventStream } from '../../wire/event-stream';
import { noAnswerAt } from '../../wire/no-answer-at';
import { patientRequest } from '../../wire/patient-request';
import { shownUrl } from '../../wire/shown-url';
import { WireFeed } from '../../wire/wire-feed';
import { AgentApiServer, KEYS, type PostVerdict } from './agentapi-server';

/**
 * The terminal agent behind an AgentAPI server: one session.
 *
 * Ordering: messages are typed one after the other, each when the screen stands still and asks nothing.
 * Failure: the end of a stream is no end of anything: it is opened again, and what it replays is compared with what was
 * told. While it is refused, the server is polled instead. A message that was being posted when the runner was killed is
 * looked for among the server's messages.
 */
export interface AgentApiSourceOptions {
  context: SourceContext;
  /** Without a slash at its end. */
  url: string;
  sessionId: string;
  headers: Record<string, string>;
  record?: ((frame: WireFrame) => void) | undefined;
  workspaceNote?: string | null;
  now?: () => number;
  random?: () => number;
  /** Shorter in tests. */
  waits?: { longestMs?: number; pollMs?: number; deafPollMs?: number; stillMs?: number };
}

interface Waiting {
  messageId: string;
  text: string;
  files: readonly AttachmentFile[];
  settle(outcome: CommandOutcome): void;
}

/** What the process before this one posted has come to nothing. */
const NOT_TAKEN = { answer: 'message', status: 0, body: 'not among the messages of AgentAPI' };
const POLL_MS = 30_000;
/** Below the two seconds for which AgentAPI calls a screen unstable: no answer is too short to be seen. */
const DEAF_POLL_MS = 1_000;
const PLACE = 'agentapi-place:';
const MAX_SAYING = 1_000;
const QUOTED = 400;

export class AgentApiSource implements Source {
  readonly refusals = {
    'session.end': 'AgentAPI has no way to end its agent: end it where it was started',
    'task.stop': 'AgentAPI knows no background tasks',
    'task.wake': 'AgentAPI knows no background tasks',
    'wake-rule.set': 'AgentAPI knows no background tasks',
  };
  readonly #options: AgentApiSourceOptions;
  readonly #context: SourceContext;
  readonly #server: AgentApiServer;
  readonly #held = new PendingRequests();
  readonly #ending = new AbortController();
  readonly #line: Waiting[] = [];
  readonly #saying = new Map<string, Promise<CommandOutcome>>();
  #adapter: AgentApiAdapter | null = null;
  #feed: WireFeed | null = null;
  #inHand: InFlightMessages | null = null;
  /** Messages that the process before this one had in hand, until it is known whether the agent has them. */
  readonly #uncertain = new Map<string, Waiting>();
  #place: string | null = null;
  #typing: Waiting | null = null;
  #note: string | null;
  #deafness: string | null = null;
  /** Ends the wait for the next poll. */
  #pollNow = new AbortController();
  #trouble: string | null = null;
  #hasReplayed = false;
  #running: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(options: AgentApiSourceOptions) {
    const { context, url, headers } = options;
    this.#options = options;
    this.#context = context;
    this.#note = options.workspaceNote ?? null;
    const signal = this.#ending.signal;
    this.#server = new AgentApiServer({ url, headers, pass: (dir, msg) => this.#pass(dir, msg), signal });
  }

  get sessions(): SessionFacts[] {
    const { sessionId } = this.#options;
    const { isStable = null, agentType = null } = this.#adapter ?? {};
    const troubles = [this.#deafness, this.#trouble].filter((text) => text !== null);
    return [
      {
        sessionId,
        provider: agentType === null ? null : `${agentType} (AgentAPI)`,
        attachments: ATTACHMENT_KINDS,
        pendingMessages: this.#line.length + (this.#typing === null ? 0 : 1),
        ...(isStable === null ? {} : { state: isStable ? 'still' : 'busy' }),
        ...(troubles.length === 0 ? {} : { trouble: troubles.join(' ') }),
      },
    ];
  }

  async start(): Promise<void> {
    const { sessionId, record, now, waits = {} } = this.#options;
    const open = this.#context.openWork(sessionId);
    const inHand = await InFlightMessages.recall(this.#context, sessionId);
    this.#inHand = inHand;
    const place = (await this.#context.cursors(PLACE)).get(PLACE + sessionId) ?? null;
    if (place !== null) this.#note = null;
    inHand.remove(open.turn?.userMessageIds ?? []);
    for (const { messageId, text, words = text, files = [] } of inHand.all) {
      const saying = new Promise<CommandOutcome>((settle) => {
        this.#uncertain.set(messageId, { messageId, text: words, files, settle });
      });
      // It may have been said to be delivered: then nobody else asks what became of it.
      void saying.then((outcome) => {
        if (outcome.state === 'failed') this.#context.report(messageId, outcome);
      });
      remember(this.#saying, messageId, saying, MAX_SAYING);
    }
    const how = { place, inHand: inHand.all, sessionOf: () => sessionId, newRunId: randomUUID, terms: waits };
    this.#adapter = new AgentApiAdapter(how);
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      around: this.#context,
      record,
      onTold: (told) => this.#told(told),
      onAnswered: (_, messageIds) => inHand.remove(messageIds),
      ...(now ? { now } : {}),
    });
    const ends = endsOf(open, sessionId, (now ?? Date.now)());
    if (ends.length > 0) await this.#context.emit(sessionId, ends);
    else await this.#context.opened(sessionId);
    this.#running = Promise.all([this.#listen(), this.#watchScreen(), this.#pollOnAndOn()]);
  }

  async reach(): Promise<string | null> {
    const { url } = this.#options;
    const status = this.#deafness === null ? null : this.#server.lastStatus;
    const why = await noAnswerAt(url, status);
    // Deaf, with polls refused as well: whatever answers there is not the agent.
    return why ?? (status === null || status < 400 ? null : `AgentAPI at ${shownUrl(url)} answers ${status}`);
  }

  async lost(reason: string): Promise<void> {
    await this.#feed?.ended({ reason, goesOn: 'It is tried again by itself.' });
  }

  close(_deadlineMs: number, _reason: string): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** The agent goes on by itself, so nothing is waited for. */
  async #end(): Promise<void> {
    this.#line.length = 0;
    this.#ending.abort();
    await this.#running;
    this.#feed?.close();
  }

  say(
    { body }: CommandOf<'message'>,
    _again?: boolean,
    files: readonly AttachmentFile[] = [],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const known = this.#saying.get(messageId);
    if (known !== undefined) return known;
    const text = messageText(body).trim();
    if (text === '') return Promise.resolve(failed('the message is empty'));
    const saying = new Promise<CommandOutcome>((settle) => {
      this.#line.push({ messageId, text, files, settle });
    });
    remember(this.#saying, messageId, saying, MAX_SAYING);
    this.#advance();
    return saying;
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#context.openWork(this.#options.sessionId).turn?.runId;
    if (running === undefined) return failed('nothing is running now');
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const isSent = await this.#server.keys(KEYS.escape, { keys: 'interrupt' });
    return isSent ? { state: 'done' } : failed('AgentAPI did not take the key');
  }

  async answer(command: CommandOf<'permission.decision' | 'question.answer'>): Promise<CommandOutcome> {
    return outcomeOf(await this.#held.answer(command));
  }

  /** A message at a question on the screen would cancel it: AgentAPI begins it with Escape. */
  #advance(): void {
    const adapter = this.#adapter;
    if (this.#typing !== null || this.#ending.signal.aborted || !this.#hasReplayed) return;
    if (adapter?.isStable !== true || adapter.requestId !== null) return;
    const next = this.#line.shift();
    if (next === undefined) return;
    this.#typing = next;
    void this.#type(next).finally(() => {
      this.#typing = null;
      this.#advance();
    });
  }

  async #type(waiting: Waiting): Promise<void> {
    const { messageId, text, files, settle } = waiting;
    // What begins with a slash is a command of the agent's, and only there.
    const note = text.startsWith('/') ? null : this.#note;
    const words = note === null ? text : `${note}\n\n${text}`;
    const verdict = await this.#say(messageId, words, files);
    if (verdict.kind === 'taken') {
      if (note !== null) this.#note = null;
      this.#tell(null);
      settle({ state: 'delivered' });
      return;
    }
    if (this.#ending.signal.aborted) return;
    this.#inHand?.remove([messageId]);
    if (verdict.kind === 'refused') {
      settle(failed(verdict.reason));
      return;
    }
    this.#line.unshift(waiting);
    this.#tell(`A message waits: ${verdict.reason}. It is tried again.`);
    await pause(this.#options.waits?.longestMs ?? 1_000, undefined, { signal: this.#ending.signal }).catch(
      () => undefined,
    );
    await this.#server.poll();
  }

  async #say(messageId: string, words: string, files: readonly AttachmentFile[]): Promise<PostVerdict> {
    const uploaded = await this.#uploaded(files);
    if ('kind' in uploaded) return uploaded;
    const content = withFileList(words, uploaded.files);
    const carried = files.length === 0 ? {} : { words };
    await this.#inHand?.put({ ...inFlightMessage(messageId, content, files), ...carried });
    // It may have begun to ask while the message was stored.
    if (await this.#asks()) return { kind: 'later', reason: 'the terminal asks something' };
    return await this.#server.say(content, messageId);
  }

  /** Each with the path that it has where the agent is. */
  async #uploaded(files: readonly AttachmentFile[]): Promise<{ files: AttachmentFile[] } | PostVerdict> {
    const there: AttachmentFile[] = [];
    for (const file of files) {
      const uploaded = await this.#server.upload(file);
      if ('kind' in uploaded) return uploaded;
      there.push({ ...file, path: uploaded.path });
    }
    return { files: there };
  }

  async #asks(): Promise<boolean> {
    return (await this.#server.promptNow().catch(() => null)) !== null;
  }

  #told(told: readonly ToldEvent[]): void {
    const { sessionId } = this.#options;
    for (const { event } of told) {
      // Its message is on the screen, though the POST may be answered only when its turn is over.
      const named = event.type === 'RUN_STARTED' ? (event.metadata?.interlude?.userMessageIds ?? []) : [];
      if (this.#typing !== null && named.includes(this.#typing.messageId)) this.#typing.settle({ state: 'delivered' });
      for (const id of named) {
        this.#uncertain.get(id)?.settle({ state: 'delivered' });
        this.#uncertain.delete(id);
      }
      if (event.type !== 'CUSTOM') continue;
      const value = fieldsOf(event.value);
      const requestId = textOf(value.request_id);
      if (requestId === null) continue;
      if (event.name === CUSTOM.requestResolved) this.#held.release(sessionId, requestId);
      if (event.name !== CUSTOM.requestOpened) continue;
      const options = listOf(value.options) as RequestOption[];
      const shown = textOf(fieldsOf(value.input).screen);
      const give = (answer: RequestAnswer) => this.#answerOnScreen(requestId, shown, answer);
      this.#held.hold({ sessionId, requestId, kind: 'permission', tool: null, input: value.input, options, give });
    }
  }

  /**
   * By keys only, and only while the screen asks what was shown, to the last character: the same answers may stand below
   * another question by now.
   *
   * @returns why it was not given, or null
   */
  async #answerOnScreen(requestId: string, shown: string | null, answer: RequestAnswer): Promise<string | null> {
    const prompt = await this.#server.promptNow().catch(() => null);
    if (prompt === null || prompt.text !== shown || this.#adapter?.requestId !== requestId) {
      return 'the terminal does not ask this any more';
    }
    if (answer.kind !== 'option') {
      // No answer says no, and Escape does.
      const isSent = await this.#server.keys(KEYS.escape, { keys: 'answer' });
      return isSent ? null : 'AgentAPI did not take the keys';
    }
    const { optionId } = answer;
    const mark = { keys: 'answer', option: optionId };
    if (prompt.keys === 'letters') {
      return (await this.#server.keys(optionId + KEYS.enter, mark)) ? null : 'AgentAPI did not take the keys';
    }
    const from = prompt.options.findIndex(({ isMarked }) => isMarked);
    const to = prompt.options.findIndex(({ id }) => id === optionId);
    for (let at = from; at !== to; at += Math.sign(to - from)) {
      await this.#server.keys(to > at ? KEYS.down : KEYS.up, { keys: 'move' });
    }
    const isThere = await this.#server.sees(
      (now) => now?.text === shown && now.options.find(({ isMarked }) => isMarked)?.id === optionId,
    );
    if (!isThere)
      return 'the mark in the terminal did not move to that answer, so nothing was confirmed; answer it there';
    return (await this.#server.keys(KEYS.enter, mark)) ? null : 'AgentAPI did not take the keys';
  }

  async #listen(): Promise<void> {
    const { url, headers, waits, random } = this.#options;
    await readEventStream({
      open: (signal) =>
        patientRequest(`${url}/events`, { headers: { ...headers, accept: 'text/event-stream' }, signal }),
      onOpen: async () => {
        this.#deafness = null;
        this.#context.changed();
        await this.#pass('in', { connection: 'opened' });
      },
      onEvent: ({ event = 'message', data }) => {
        const said = parseJson(data);
        if (said === null) this.#context.log('warn', `AgentAPI sent what is no JSON: ${cutText(data, QUOTED)}`);
        void this.#pass('in', { event, data: said ?? cutText(data, QUOTED) });
        // The status stands at the end of what is replayed: now it is known what the agent has.
        if (event === 'status_change') this.#replayed();
        this.#advance();
      },
      onBroken: ({ reason, status, againInMs }) => {
        const why = status === 400 ? `answers 400: start it with --allowed-hosts ${new URL(url).host}` : `(${reason})`;
        const deafness =
          status === null || status === 400
            ? `Nothing is heard of the agent: AgentAPI at ${shownUrl(url)} ${why}. It is tried again by itself.`
            : `AgentAPI at ${shownUrl(url)} gives no stream of events ${why}, so it is asked every second instead.`;
        if (this.#deafness === null) {
          void this.#pass('in', { connection: 'ended', reason });
          this.#context.log('warn', `${deafness} (in ${Math.round(againInMs / 1_000)} s)`);
          this.#pollNow.abort();
        }
        this.#deafness = deafness;
        this.#context.changed();
      },
      ...(waits?.longestMs === undefined ? {} : { longestMs: waits.longestMs }),
      ...(random === undefined ? {} : { random }),
      signal: this.#ending.signal,
    });
  }

  #replayed(): void {
    if (this.#hasReplayed) return;
    this.#hasReplayed = true;
    // What the agent has not got is typed again, by this process, once. It may be typed with other paths of its files.
    for (const _ of this.#uncertain) void this.#pass('in', NOT_TAKEN);
    this.#line.unshift(...this.#uncertain.values());
    this.#uncertain.clear();
  }

  /** The screen itself, which not every version serves: with it, a question is read better. */
  async #watchScreen(): Promise<void> {
    const { url, headers, waits } = this.#options;
    const lose = () => {
      this.#server.screen = null;
    };
    await readEventStream({
      open: (signal) =>
        patientRequest(`${url}/internal/screen`, { headers: { ...headers, accept: 'text/event-stream' }, signal }),
      onOpen: () => {},
      onEvent: ({ data }) => {
        const { screen } = fieldsOf(parseJson(data));
        if (typeof screen !== 'string') return;
        this.#server.screen = screen;
        void this.#pass('in', { event: 'screen', data: { screen } });
        this.#advance();
      },
      onBroken: lose,
      missingMs: 10 * POLL_MS,
      ...(waits?.longestMs === undefined ? {} : { longestMs: waits.longestMs }),
      signal: this.#ending.signal,
    });
  }

  /** The stream may have stopped without a word, or be refused. */
  async #pollOnAndOn(): Promise<void> {
    const { pollMs = POLL_MS, deafPollMs = DEAF_POLL_MS } = this.#options.waits ?? {};
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const wasDeaf = this.#deafness !== null;
      const why = await this.#server.poll();
      if (why !== null) this.#context.log('debug', `AgentAPI did not answer a poll: ${why}`);
      else if (wasDeaf) this.#replayed();
      this.#advance();
      this.#pollNow = new AbortController();
      const waitMs = wasDeaf || this.#deafness !== null ? deafPollMs : pollMs;
      const until = AbortSignal.any([signal, this.#pollNow.signal]);
      await pause(waitMs, undefined, { signal: until }).catch(() => undefined);
    }
  }

  #pass(dir: 'in' | 'out', msg: object): Promise<void> {
    const { sessionId } = this.#options;
    const [feed, adapter] = [this.#feed, this.#adapter];
    if (feed === null || adapter === null) return Promise.resolve();
    const before = adapter.isStable;
    const cursors = () => {
      const place = adapter.place;
      if (place === this.#place) return [];
      this.#place = place;
      return [{ name: PLACE + sessionId, value: place }];
    };
    const stored = feed.pass({ dir, msg }, cursors, sessionId);
    if (adapter.isStable !== before) this.#context.changed();
    return stored;
  }

  #tell(trouble: string | null): void {
    if (this.#trouble === trouble) return;
    this.#trouble = trouble;
    this.#context.changed();
  }
}
