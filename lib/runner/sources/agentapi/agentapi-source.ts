import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ATTACHMENT_KINDS } from '@interlude/protocol/attachments';
import { fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { endsOf } from '@interlude/protocol/lifecycle/open-session';
import { truncateText } from '@interlude/protocol/text';
import { AgentApiAdapter } from '../../adapters/agentapi/agentapi-adapter';
import type { EmittedEvent, WireFrame } from '../../adapters/wire';
import { setBounded } from '../../adapters/wire';
import { displayUrl, readEventStream, unreachableReason, untimedRequest } from '../../host/agent-http';
import type { AttachmentFile } from '../../host/attachment-store';
import { withFileList } from '../../host/attachment-store';
import { InFlightMessages, inFlightMessage } from '../../host/message-delivery';
import { type AnswerCommand, PendingRequests, type RequestAnswer } from '../../host/pending-requests';
import type { CommandOutcome } from '../../host/seen-commands';
import type { CommandOf, SessionFacts, Source, SourceContext } from '../../host/source';
import { failed, messageText, outcomeOf, staleInterrupt } from '../../host/source-commands';
import { WireFeed } from '../../host/wire-feed';
import { AgentApiServer, KEYS, type PostResult } from './agentapi-server';

export interface AgentApiSourceOptions {
  context: SourceContext;
  /** Without a trailing slash. */
  url: string;
  sessionId: string;
  headers: Record<string, string>;
  record?: ((frame: WireFrame) => void) | undefined;
  workspaceNote?: string | null;
  now?: () => number;
  random?: () => number;
  waits?: { longestMs?: number; pollMs?: number; brokenPollMs?: number; settleMs?: number };
}

interface Waiting {
  messageId: string;
  text: string;
  files: readonly AttachmentFile[];
  settle(outcome: CommandOutcome): void;
}

/** Reported for a message of the previous process that did not arrive. */
const NOT_RECEIVED = { answer: 'message', status: 0, body: 'not among the messages of AgentAPI' };
const KEYS_REFUSED = 'AgentAPI refused the keys; answer in the terminal';
const POLL_MS = 30_000;
/** Below the two seconds after which AgentAPI calls a screen stable, so that no short answer is missed. */
const BROKEN_POLL_MS = 1_000;
const PROGRESS = 'agentapi-place:';
const MAX_DELIVERIES = 1_000;
const QUOTED = 400;

/**
 * Runs the terminal agent behind an AgentAPI server as one session.
 *
 * Ordering: messages are typed one after the other, when the screen is stable and shows no prompt.
 * Failure: a broken stream is reopened, and its replay is compared with what was emitted. While the stream is refused,
 * the server is polled. A message being posted when the runner was killed is looked up among the messages of the
 * server.
 */
export class AgentApiSource implements Source {
  readonly refusals = {
    'session.end': 'AgentAPI can’t end its agent; end it where it was started',
    'task.stop': 'AgentAPI has no background tasks',
    'task.wake': 'AgentAPI has no background tasks',
    'wake-rule.set': 'AgentAPI has no background tasks',
  };
  readonly #options: AgentApiSourceOptions;
  readonly #context: SourceContext;
  readonly #server: AgentApiServer;
  readonly #requests = new PendingRequests();
  readonly #ending = new AbortController();
  readonly #queue: Waiting[] = [];
  readonly #deliveries = new Map<string, Promise<CommandOutcome>>();
  #adapter: AgentApiAdapter | null = null;
  #feed: WireFeed | null = null;
  #inFlight: InFlightMessages | null = null;
  /** Messages of the previous process whose delivery is unknown. */
  readonly #uncertain = new Map<string, Waiting>();
  #storedProgress: string | null = null;
  #typing: Waiting | null = null;
  #workspaceNote: string | null;
  #streamTrouble: string | null = null;
  /** Aborted to poll immediately. */
  #pollNow = new AbortController();
  #trouble: string | null = null;
  #hasReplayed = false;
  #running: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  constructor(options: AgentApiSourceOptions) {
    const { context, url, headers } = options;
    this.#options = options;
    this.#context = context;
    this.#workspaceNote = options.workspaceNote ?? null;
    const signal = this.#ending.signal;
    this.#server = new AgentApiServer({ url, headers, pass: (dir, msg) => this.#pass(dir, msg), signal });
  }

  get sessions(): SessionFacts[] {
    const { sessionId } = this.#options;
    const { isStable = null, agentType = null } = this.#adapter ?? {};
    const troubles = [this.#streamTrouble, this.#trouble].filter((text) => text !== null);
    return [
      {
        sessionId,
        provider: agentType === null ? null : `${agentType} (AgentAPI)`,
        attachments: ATTACHMENT_KINDS,
        pendingMessages: this.#queue.length + (this.#typing === null ? 0 : 1),
        ...(isStable === null ? {} : { state: isStable ? 'still' : 'busy' }),
        ...(troubles.length === 0 ? {} : { trouble: troubles.join(' ') }),
      },
    ];
  }

  async start(): Promise<void> {
    const { sessionId, record, now, waits = {} } = this.#options;
    const open = this.#context.openWork(sessionId);
    const inFlight = await InFlightMessages.restore(this.#context, sessionId);
    this.#inFlight = inFlight;
    const progress = (await this.#context.cursors(PROGRESS)).get(PROGRESS + sessionId) ?? null;
    if (progress !== null) this.#workspaceNote = null;
    inFlight.remove(open.turn?.userMessageIds ?? []);
    for (const { messageId, text, words = text, files = [] } of inFlight.all) {
      const delivery = new Promise<CommandOutcome>((settle) => {
        this.#uncertain.set(messageId, { messageId, text: words, files, settle });
      });
      // Delivery may already have been reported, so a failure must be reported too.
      void delivery.then((outcome) => {
        if (outcome.state === 'failed') this.#context.report(messageId, outcome);
      });
      setBounded(this.#deliveries, messageId, delivery, MAX_DELIVERIES);
    }
    const options = { progress, inFlight: inFlight.all, sessionOf: () => sessionId, newRunId: randomUUID, waits };
    this.#adapter = new AgentApiAdapter(options);
    this.#feed = new WireFeed({
      adapter: this.#adapter,
      context: this.#context,
      record,
      onEmitted: (events) => this.#observe(events),
      onAnswered: (_, messageIds) => inFlight.remove(messageIds),
      ...(now ? { now } : {}),
    });
    const ends = endsOf(open, sessionId, (now ?? Date.now)());
    if (ends.length > 0) await this.#context.emit(sessionId, ends);
    else await this.#context.announceSession(sessionId);
    this.#running = Promise.all([this.#listen(), this.#watchScreen(), this.#pollForever()]);
  }

  async reach(): Promise<string | null> {
    const { url } = this.#options;
    const status = this.#streamTrouble === null ? null : this.#server.lastStatus;
    const reason = await unreachableReason(url, status);
    // Neither stream nor polls work, so whatever responds is not the agent.
    return reason ?? (status === null || status < 400 ? null : `AgentAPI at ${displayUrl(url)} answers ${status}`);
  }

  async lost(reason: string): Promise<void> {
    await this.#feed?.ended({ reason, goesOn: 'Retrying.' });
  }

  close(_deadlineMs: number, _reason: string): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  /** Stops without waiting for the agent, which continues to run. */
  async #end(): Promise<void> {
    this.#queue.length = 0;
    this.#ending.abort();
    await this.#running;
    this.#feed?.close();
  }

  deliver(
    { body }: CommandOf<'message'>,
    _again?: boolean,
    files: readonly AttachmentFile[] = [],
  ): Promise<CommandOutcome> {
    const { messageId } = body;
    const known = this.#deliveries.get(messageId);
    if (known !== undefined) return known;
    const text = messageText(body).trim();
    if (text === '') return Promise.resolve(failed('the message is empty'));
    const delivery = new Promise<CommandOutcome>((settle) => {
      this.#queue.push({ messageId, text, files, settle });
    });
    setBounded(this.#deliveries, messageId, delivery, MAX_DELIVERIES);
    this.#advance();
    return delivery;
  }

  async interrupt({ body }: CommandOf<'interrupt'>): Promise<CommandOutcome> {
    const running = this.#context.openWork(this.#options.sessionId).turn?.runId;
    if (running === undefined) return failed('nothing is running now');
    const stale = staleInterrupt(body.turnId, running);
    if (stale !== null) return stale;
    const isSent = await this.#server.keys(KEYS.escape, { keys: 'interrupt' });
    return isSent ? { state: 'done' } : failed('AgentAPI did not accept the Esc key; press it in the agent’s terminal');
  }

  async answer(command: AnswerCommand): Promise<CommandOutcome> {
    return outcomeOf(await this.#requests.answer(command));
  }

  /** AgentAPI starts each message with Escape, which would cancel a question on the screen. */
  #advance(): void {
    const adapter = this.#adapter;
    if (this.#typing !== null || this.#ending.signal.aborted || !this.#hasReplayed) return;
    if (adapter?.isStable !== true || adapter.requestId !== null) return;
    const next = this.#queue.shift();
    if (next === undefined) return;
    this.#typing = next;
    void this.#type(next).finally(() => {
      this.#typing = null;
      this.#advance();
    });
  }

  async #type(waiting: Waiting): Promise<void> {
    const { messageId, text, files, settle } = waiting;
    // A slash command must come first.
    const note = text.startsWith('/') ? null : this.#workspaceNote;
    const fullText = note === null ? text : `${note}\n\n${text}`;
    const result = await this.#post(messageId, fullText, files);
    if (result.kind === 'accepted') {
      if (note !== null) this.#workspaceNote = null;
      this.#setTrouble(null);
      settle({ state: 'delivered' });
      return;
    }
    if (this.#ending.signal.aborted) return;
    this.#inFlight?.remove([messageId]);
    if (result.kind === 'refused') {
      settle(failed(result.reason));
      return;
    }
    this.#queue.unshift(waiting);
    this.#setTrouble(`A message is queued: ${result.reason}. Retrying.`);
    await pause(this.#options.waits?.longestMs ?? 1_000, undefined, { signal: this.#ending.signal }).catch(
      () => undefined,
    );
    await this.#server.poll();
  }

  async #post(messageId: string, words: string, files: readonly AttachmentFile[]): Promise<PostResult> {
    const uploaded = await this.#uploaded(files);
    if ('kind' in uploaded) return uploaded;
    const content = withFileList(words, uploaded.files);
    const carried = files.length === 0 ? {} : { words };
    await this.#inFlight?.put({ ...inFlightMessage(messageId, content, files), ...carried });
    // The terminal may have asked something while the message was being stored.
    if (await this.#showsPrompt()) return { kind: 'later', reason: 'the terminal is waiting for an answer' };
    return await this.#server.post(content, messageId);
  }

  /** Resolves with the paths on the agent's machine. */
  async #uploaded(files: readonly AttachmentFile[]): Promise<{ files: AttachmentFile[] } | PostResult> {
    const sent: AttachmentFile[] = [];
    for (const file of files) {
      const uploaded = await this.#server.upload(file);
      if ('kind' in uploaded) return uploaded;
      sent.push({ ...file, path: uploaded.path });
    }
    return { files: sent };
  }

  async #showsPrompt(): Promise<boolean> {
    return (await this.#server.currentPrompt().catch(() => null)) !== null;
  }

  #observe(events: readonly EmittedEvent[]): void {
    for (const { event } of events) {
      // The message is on the screen, although the response to the POST may come only after its turn.
      const named = event.type === 'RUN_STARTED' ? (event.metadata?.interlude?.userMessageIds ?? []) : [];
      if (this.#typing !== null && named.includes(this.#typing.messageId)) this.#typing.settle({ state: 'delivered' });
      for (const id of named) {
        this.#uncertain.get(id)?.settle({ state: 'delivered' });
        this.#uncertain.delete(id);
      }
    }
    this.#requests.observe(events, (answer, { request_id, input }) =>
      this.#answerOnScreen(request_id, textOf(fieldsOf(input).screen), answer),
    );
  }

  /**
   * Answers with keys, and only while the screen shows exactly the approved question: the same options may belong to
   * another question by now.
   * @returns the reason for a failure, or null
   */
  async #answerOnScreen(requestId: string, shown: string | null, answer: RequestAnswer): Promise<string | null> {
    const prompt = await this.#server.currentPrompt().catch(() => null);
    if (prompt === null || prompt.text !== shown || this.#adapter?.requestId !== requestId) {
      return 'the terminal no longer shows this question';
    }
    if (answer.kind !== 'option') {
      // The options include no plain refusal, but Escape is one.
      const isSent = await this.#server.keys(KEYS.escape, { keys: 'answer' });
      return isSent ? null : KEYS_REFUSED;
    }
    const { optionId } = answer;
    const mark = { keys: 'answer', option: optionId };
    if (prompt.keys === 'letters') {
      return (await this.#server.keys(optionId + KEYS.enter, mark)) ? null : KEYS_REFUSED;
    }
    const from = prompt.options.findIndex(({ isMarked }) => isMarked);
    const to = prompt.options.findIndex(({ id }) => id === optionId);
    for (let index = from; index !== to; index += Math.sign(to - from)) {
      await this.#server.keys(to > index ? KEYS.down : KEYS.up, { keys: 'move' });
    }
    const isThere = await this.#server.waitForPrompt(
      (now) => now?.text === shown && now.options.find(({ isMarked }) => isMarked)?.id === optionId,
    );
    if (!isThere)
      return 'the selection in the terminal did not move to that answer, so nothing was confirmed; answer in the terminal';
    return (await this.#server.keys(KEYS.enter, mark)) ? null : KEYS_REFUSED;
  }

  async #listen(): Promise<void> {
    const { url, headers, waits, random } = this.#options;
    await readEventStream({
      open: (signal) =>
        untimedRequest(`${url}/events`, { headers: { ...headers, accept: 'text/event-stream' }, signal }),
      onOpen: async () => {
        this.#streamTrouble = null;
        this.#context.changed();
        await this.#pass('in', { connection: 'opened' });
      },
      onEvent: ({ event = 'message', data }) => {
        this.#server.steps += 1;
        const parsed = parseJson(data);
        if (parsed === null) this.#context.log('warn', `AgentAPI sent invalid JSON: ${truncateText(data, QUOTED)}`);
        void this.#pass('in', { event, data: parsed ?? truncateText(data, QUOTED) });
        // The status event ends the replay, which shows the messages that the agent has.
        if (event === 'status_change') this.#replayed();
        this.#advance();
      },
      onBroken: ({ reason, status, againInMs }) => {
        const why = status === 400 ? `answers 400: start it with --allowed-hosts ${new URL(url).host}` : `(${reason})`;
        const trouble =
          status === null || status === 400
            ? `No events from the agent: AgentAPI at ${displayUrl(url)} ${why}. Retrying.`
            : `AgentAPI at ${displayUrl(url)} has no event stream ${why}, so it is polled every second instead.`;
        if (this.#streamTrouble === null) {
          void this.#pass('in', { connection: 'ended', reason });
          this.#context.log('warn', `${trouble} (next attempt in ${Math.round(againInMs / 1_000)} s)`);
          this.#pollNow.abort();
        }
        this.#streamTrouble = trouble;
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
    // Types missing messages again, once. Their files may have new paths.
    for (const _ of this.#uncertain) void this.#pass('in', NOT_RECEIVED);
    this.#queue.unshift(...this.#uncertain.values());
    this.#uncertain.clear();
  }

  /** Follows the screen, which shows questions more reliably than the messages. Not every version serves it. */
  async #watchScreen(): Promise<void> {
    const { url, headers, waits } = this.#options;
    const onBroken = () => {
      this.#server.screen = null;
    };
    await readEventStream({
      open: (signal) =>
        untimedRequest(`${url}/internal/screen`, { headers: { ...headers, accept: 'text/event-stream' }, signal }),
      onOpen: () => {},
      onEvent: ({ data }) => {
        const { screen } = fieldsOf(parseJson(data));
        if (typeof screen !== 'string') return;
        this.#server.screen = screen;
        void this.#pass('in', { event: 'screen', data: { screen } });
        this.#advance();
      },
      onBroken,
      missingMs: 10 * POLL_MS,
      ...(waits?.longestMs === undefined ? {} : { longestMs: waits.longestMs }),
      signal: this.#ending.signal,
    });
  }

  /** Polls, since the stream may stall or be refused. */
  async #pollForever(): Promise<void> {
    const { pollMs = POLL_MS, brokenPollMs = BROKEN_POLL_MS } = this.#options.waits ?? {};
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const wasBroken = this.#streamTrouble !== null;
      const failure = await this.#server.poll();
      if (failure !== null) this.#context.log('debug', `AgentAPI did not respond to a poll: ${failure}`);
      else if (wasBroken) this.#replayed();
      this.#advance();
      this.#pollNow = new AbortController();
      const waitMs = wasBroken || this.#streamTrouble !== null ? brokenPollMs : pollMs;
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
      const { progress } = adapter;
      if (progress === this.#storedProgress) return [];
      this.#storedProgress = progress;
      return [{ name: PROGRESS + sessionId, value: progress }];
    };
    const stored = feed.pass({ dir, msg }, cursors, sessionId);
    if (adapter.isStable !== before) this.#context.changed();
    return stored;
  }

  #setTrouble(trouble: string | null): void {
    if (this.#trouble === trouble) return;
    this.#trouble = trouble;
    this.#context.changed();
  }
}
