import { forLog } from '@interlude/protocol/errors';
import { parseJson } from '@interlude/protocol/fields';
import type { FrameData } from '@interlude/protocol/frames';
import type { Scope } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { ShownDigests } from '@/lib/server/access/shown-digests';
import type { Opener, Sink, Source } from '@/lib/server/access/stream-answer';
import type { FanOut } from '@/lib/server/fan-out/fan-out';
import type { Course } from './course';
import type { StrictStream } from './strict-stream';

/** How long a client that was told everything may take to fetch it. */
const LINGER_MS = 10_000;

/** How long a client waits for the turn that the end of its last task may begin, and for a runner that is away. */
const PATIENCE_MS = { 'next-turn': 5_000, runner: 60_000 } as const;

export interface AnswerStreamOptions {
  fanOut: Pick<FanOut, 'subscribe'>;
  sessionId: string;
  /** The position behind which its log is read. */
  from: number;
  /** Where a turn began, so that it can be read again. */
  turnBegan: (turnId: string) => Promise<number | null>;
  stream: StrictStream;
  course: Course;
  /** When whoever follows has done so for long enough; null for at once. */
  followMs: number | null;
  maxMs: number | null;
  client: string;
  /** Aborted when the reader is gone. */
  signal: AbortSignal;
  scope: Scope;
  digests: ShownDigests;
  /** Calls back once the reader may not listen any more. */
  whenOver: (onEnd: () => void) => () => void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The answer to one client: the session's log as the fan-out streams it, in the client's words.
 *
 * Ordering: what the log has comes in its order; a subscription is replaced only by one that reads again.
 * Failure: where the log breaks off or the server stops, the client is told in a RUN_ERROR, because to it a plain end is
 * success. A client that hangs up interrupts nothing.
 *
 * @throws AppError of the first subscription, before anything is written
 */
export async function answerStream(options: AnswerStreamOptions): Promise<Opener> {
  const gone = new AbortController();
  const first = await subscribe(options, options.from, gone.signal);
  return (sink) => {
    const answer = new Answer(options, sink, gone);
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
  readonly #gone: AbortController;
  #source: Source | null = null;
  #reading = 0;
  #isEnded = false;
  #waitsFor: Course['waitsFor'] = 'nothing';
  #patience: ReturnType<typeof setTimeout> | undefined;
  #bound: ReturnType<typeof setTimeout> | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AnswerStreamOptions, sink: Sink, gone: AbortController) {
    this.#options = options;
    this.#sink = sink;
    this.#gone = gone;
  }

  open(subscription: Opener): void {
    const { course, followMs, signal } = this.#options;
    signal.addEventListener('abort', this.#abort);
    if (signal.aborted) {
      this.#abort();
      return;
    }
    if (followMs !== null) {
      this.#bound = setTimeout(() => {
        course.bound();
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

  gone(): void {
    clearTimeout(this.#linger);
    this.#leave();
  }

  /** If only the request was aborted, the answer still has to end. */
  readonly #abort = (): void => {
    this.gone();
    this.#sink.end();
  };

  #read(subscription: Opener): void {
    this.#reading += 1;
    const reading = this.#reading;
    const isCurrent = () => reading === this.#reading && !this.#isEnded;
    const sink = this.#sink;
    this.#source = subscription({
      get waiting() {
        return sink.waiting;
      },
      write: (chunk) => {
        if (isCurrent()) this.#take(decoder.decode(chunk));
      },
      // It has said `bye`, or this end has.
      end: () => {
        if (isCurrent()) this.#breakOff('The stream ended.', 'stream_ended');
      },
      hangUp: () => {
        if (isCurrent()) this.#breakOff('Interlude could not read on in the session’s log.', 'log_unavailable');
      },
    });
  }

  /** Frames are whole blocks: the fan-out never cuts one. */
  #take(text: string): void {
    const { course } = this.#options;
    let heartbeat = '';
    for (const block of text.split('\n\n')) {
      if (block === '') continue;
      if (block.startsWith(':')) {
        heartbeat = `${block}\n\n`;
        continue;
      }
      this.#takeFrame(block);
      if (course.isOver || course.rereads !== null) break;
    }
    course.settle();
    this.#write(heartbeat);
  }

  #takeFrame(block: string): void {
    const { course } = this.#options;
    const lines = block.split('\n');
    const fieldOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length) ?? '';
    const event = fieldOf('event: ');
    if (event === 'session-event') {
      const data = parseJson(fieldOf('data: ')) as FrameData['session-event'];
      course.take({ position: fieldOf('id: '), ...data });
    } else if (event === 'up-to-date') course.caughtUp();
    else if (event === 'bye') this.#bye((parseJson(fieldOf('data: ')) as FrameData['bye']).reason);
    else if (event === 'hello') {
      const { resume } = parseJson(fieldOf('data: ')) as FrameData['hello'];
      if (resume === 'gap') course.fail('The session’s log can’t be read from where the run began.', 'log_unavailable');
    }
  }

  #bye(reason: FrameData['bye']['reason']): void {
    const { course } = this.#options;
    const words = {
      planned: 'This server ends long streams after a while. The agent goes on: connect to see what comes.',
      slow: 'The client did not read fast enough. The agent goes on: connect to see what it has done.',
      unauthorized:
        'The credential of this client was revoked, has expired or may less now. The agent goes on: connect with another.',
      shutdown: 'Interlude is being stopped. The agent goes on: connect again in a moment.',
    };
    course.fail(words[reason], `stream_${reason}`);
  }

  #breakOff(message: string, code: string): void {
    this.#options.course.fail(`${message} The agent goes on: connect to see what comes.`, code);
    this.#write();
  }

  /** What the course has come to, and what is to be done about it. */
  #write(heartbeat = ''): void {
    if (this.#isEnded) return;
    const { course, stream } = this.#options;
    const events = stream.drain();
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') || heartbeat;
    if (text !== '') this.#sink.write(encoder.encode(text));
    if (course.isOver) this.#end();
    else {
      if (course.rereads !== null) void this.#reread(course.rereads);
      this.#bePatient();
    }
  }

  #bePatient(): void {
    const { course } = this.#options;
    const waitsFor = course.waitsFor;
    if (waitsFor === this.#waitsFor) return;
    this.#waitsFor = waitsFor;
    clearTimeout(this.#patience);
    if (waitsFor === 'nothing') return;
    this.#patience = setTimeout(() => {
      course.giveUp();
      this.#write();
    }, PATIENCE_MS[waitsFor]);
    unref(this.#patience);
  }

  async #reread(turnId: string): Promise<void> {
    const { course, turnBegan, from } = this.#options;
    course.reread();
    const before = this.#source;
    // what it still sends is of no interest
    this.#reading += 1;
    before?.gone();
    try {
      const began = await turnBegan(turnId);
      const subscription = await subscribe(this.#options, began === null ? from : began - 1, this.#gone.signal);
      if (!this.#isEnded) this.#read(subscription);
    } catch (error) {
      serverLog('error', 'an AG-UI stream broke off:', { error: forLog(error) });
      this.#breakOff('Interlude could not read on in the session’s log.', 'log_unavailable');
    }
  }

  #end(): void {
    this.#leave();
    this.#sink.end();
    // A stalled reader would hold its backlog for ever, here and in the socket.
    this.#linger = setTimeout(() => this.#sink.hangUp('the reader did not fetch its answer'), LINGER_MS);
    unref(this.#linger);
  }

  #leave(): void {
    this.#isEnded = true;
    this.#options.signal.removeEventListener('abort', this.#abort);
    clearTimeout(this.#patience);
    clearTimeout(this.#bound);
    // with it go its subscriptions
    this.#gone.abort();
  }
}

/** A stopping server need not wait for it. */
function unref(timer: unknown): void {
  if (typeof timer === 'object') (timer as { unref?: () => void }).unref?.();
}
