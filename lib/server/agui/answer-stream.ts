import { forLog } from '@interlude/protocol/errors';
import { parseJson } from '@interlude/protocol/fields';
import type { FrameData } from '@interlude/protocol/frames';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { unref } from '@/db/yield-to-loop';
import type { ShownDigests } from '@/lib/server/access/shown-digests';
import type { OpenStream, Sink, Source, WatchAccess } from '@/lib/server/access/streamed-response';
import type { FanOut } from '@/lib/server/fan-out/fan-out';
import type { RunProjector } from './run-projector';
import type { WellFormedStream } from './well-formed-stream';

/** Milliseconds for a client to read the end of its stream. */
const LINGER_MS = 10_000;

/** Milliseconds to wait for a turn after the last task ends, and for an absent runner. */
const TIMEOUT_MS = { 'next-turn': 5_000, runner: 60_000 } as const;

interface AnswerStreamOptions {
  fanOut: Pick<FanOut, 'subscribe'>;
  sessionId: string;
  /** Position after which the log is read. */
  from: number;
  /** Position of a turn's start, for reading the turn again. */
  turnPosition: (turnId: string) => Promise<number | null>;
  stream: WellFormedStream;
  projector: RunProjector;
  /** Milliseconds to follow the session; null if the client does not follow it. */
  followMs: number | null;
  maxMs: number | null;
  client: string;
  signal: AbortSignal;
  scope: Scope;
  digests: ShownDigests;
  whenOver: WatchAccess;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Streams a session's log, as the fan-out sends it, to one AG-UI client.
 *
 * Ordering: in the order of the log; a new subscription replaces the old one only to read a turn again.
 * Failure: if reading the log fails or the server stops, the stream ends with RUN_ERROR, because clients take a plain
 * end for success. A client that disconnects does not interrupt the agent.
 *
 * @throws AppError of the first subscription, before anything is written
 */
export async function answerStream(options: AnswerStreamOptions): Promise<OpenStream> {
  const controller = new AbortController();
  const first = await subscribe(options, options.from, controller.signal);
  return (sink) => {
    const answer = new Answer(options, sink, controller);
    answer.open(first);
    return answer;
  };
}

function subscribe(
  { fanOut, sessionId, maxMs, client, scope, digests, whenOver }: AnswerStreamOptions,
  after: number,
  signal: AbortSignal,
) {
  const topics = [{ kind: 'session' as const, sessionId }];
  return fanOut.subscribe({ topics, scope, digests, after, signal, maxMs, client, whenOver });
}

class Answer implements Source {
  readonly #options: AnswerStreamOptions;
  readonly #sink: Sink;
  readonly #controller: AbortController;
  #source: Source | null = null;
  #reading = 0;
  #isEnded = false;
  #waitsFor: RunProjector['waitsFor'] = 'nothing';
  #timeout: ReturnType<typeof setTimeout> | undefined;
  #bound: ReturnType<typeof setTimeout> | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AnswerStreamOptions, sink: Sink, controller: AbortController) {
    this.#options = options;
    this.#sink = sink;
    this.#controller = controller;
  }

  open(subscription: OpenStream): void {
    const { projector, followMs, signal } = this.#options;
    signal.addEventListener('abort', this.#abort);
    if (signal.aborted) {
      this.#abort();
      return;
    }
    if (followMs !== null) {
      this.#bound = setTimeout(() => {
        projector.stopFollowing();
        this.#write();
      }, followMs);
      unref(this.#bound);
    }
    this.#read(subscription);
    this.#write();
  }

  drained(): void {
    this.#source?.drained();
  }

  disconnected(): void {
    clearTimeout(this.#linger);
    this.#leave();
  }

  /** The response must end even if only the request was aborted. */
  readonly #abort = (): void => {
    this.disconnected();
    this.#sink.end();
  };

  #read(subscription: OpenStream): void {
    this.#reading += 1;
    const reading = this.#reading;
    const isCurrent = () => reading === this.#reading && !this.#isEnded;
    const sink = this.#sink;
    this.#source = subscription({
      get waiting() {
        return sink.waiting;
      },
      write: (chunk) => {
        if (isCurrent()) this.#readChunk(decoder.decode(chunk));
      },
      // Also called after `bye`, when `#isEnded` is already set.
      end: () => {
        if (isCurrent()) this.#breakOff('The stream ended.', 'stream_ended');
      },
      hangUp: () => {
        if (isCurrent()) this.#breakOff('The session’s log could not be read.', 'log_unavailable');
      },
    });
  }

  /** The fan-out never splits a frame across chunks. */
  #readChunk(text: string): void {
    const { projector } = this.#options;
    let heartbeat = '';
    for (const block of text.split('\n\n')) {
      if (block === '') continue;
      if (block.startsWith(':')) {
        heartbeat = `${block}\n\n`;
        continue;
      }
      this.#readFrame(block);
      if (projector.isOver || projector.rereads !== null) break;
    }
    projector.settle();
    this.#write(heartbeat);
  }

  #readFrame(block: string): void {
    const { projector } = this.#options;
    const lines = block.split('\n');
    const fieldOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length) ?? '';
    const event = fieldOf('event: ');
    if (event === 'session-event') {
      const data = parseJson(fieldOf('data: ')) as FrameData['session-event'];
      projector.project({ position: fieldOf('id: '), ...data });
    } else if (event === 'up-to-date') projector.caughtUp();
    else if (event === 'bye') this.#bye((parseJson(fieldOf('data: ')) as FrameData['bye']).reason);
    else if (event === 'hello') {
      const { resume } = parseJson(fieldOf('data: ')) as FrameData['hello'];
      if (resume === 'gap')
        projector.fail('The start of the run is no longer in the log. Connect again.', 'log_unavailable');
    }
  }

  #bye(reason: FrameData['bye']['reason']): void {
    const { projector } = this.#options;
    const messages = {
      planned: 'This server limits the length of streams. The agent is still running: connect again to follow it.',
      slow: 'The client read too slowly. The agent is still running: connect again to catch up.',
      unauthorized:
        'This credential was revoked, has expired or lost a permission. The agent is still running: connect with another credential.',
      shutdown: 'Interlude is shutting down. The agent is still running: connect again in a moment.',
    };
    projector.fail(messages[reason], `stream_${reason}`);
  }

  #breakOff(message: string, code: string): void {
    this.#options.projector.fail(`${message} The agent is still running: connect again to follow it.`, code);
    this.#write();
  }

  /** Sends the projector's new events, then acts on its state. */
  #write(heartbeat = ''): void {
    if (this.#isEnded) return;
    const { projector, stream } = this.#options;
    const events = stream.drain();
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') || heartbeat;
    if (text !== '') this.#sink.write(encoder.encode(text));
    if (projector.isOver) this.#end();
    else {
      if (projector.rereads !== null) void this.#reread(projector.rereads);
      this.#setTimeout();
    }
  }

  #setTimeout(): void {
    const { projector } = this.#options;
    const waitsFor = projector.waitsFor;
    if (waitsFor === this.#waitsFor) return;
    this.#waitsFor = waitsFor;
    clearTimeout(this.#timeout);
    if (waitsFor === 'nothing') return;
    this.#timeout = setTimeout(() => {
      projector.timeOut();
      this.#write();
    }, TIMEOUT_MS[waitsFor]);
    unref(this.#timeout);
  }

  async #reread(turnId: string): Promise<void> {
    const { projector, turnPosition, from } = this.#options;
    projector.reread();
    const before = this.#source;
    this.#reading += 1;
    before?.disconnected();
    try {
      const position = await turnPosition(turnId);
      const after = position === null ? from : position - 1;
      const subscription = await subscribe(this.#options, after, this.#controller.signal);
      if (!this.#isEnded) this.#read(subscription);
    } catch (error) {
      serverLog('error', 'agui: a stream failed:', { error: forLog(error) });
      this.#breakOff('The session’s log could not be read.', 'log_unavailable');
    }
  }

  #end(): void {
    this.#leave();
    this.#sink.end();
    // A stalled reader would hold its backlog forever.
    this.#linger = setTimeout(() => this.#sink.hangUp('the client did not read its stream'), LINGER_MS);
    unref(this.#linger);
  }

  #leave(): void {
    this.#isEnded = true;
    this.#options.signal.removeEventListener('abort', this.#abort);
    clearTimeout(this.#timeout);
    clearTimeout(this.#bound);
    // Ends the subscription.
    this.#controller.abort();
  }
}
