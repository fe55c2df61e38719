import type { CommandFrameData } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { positionFromNumber } from '@interlude/protocol/position';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { type CommandFrame, encodeFrame, HEARTBEAT } from '@interlude/protocol/sse';
import type { OpenStream, Sink } from '@/lib/server/access/streamed-response';
import type { ClaimOutcome } from './claim-commands';
import { MAX_CLAIMED } from './claim-commands';
import type { RunnerRef } from './runner-connection';

const READ_AHEAD_BYTES = 64 * 1024;
/** How long a runner may take to read its `bye` or `fenced` before its connection is broken. */
const LINGER_MS = 10_000;

const encoder = new TextEncoder();

/**
 * The server's end of one runner's stream of commands.
 *
 * Ordering: `hello`, commands by position, `up-to-date`, then commands as they are queued. One claim at a time; a wake
 * during a claim runs it once more.
 * Failure: nothing is claimed while the runner does not read, so a runner that hangs holds no leases. However the
 * stream ends, what it did not send is still queued.
 */
export class CommandStream {
  readonly id = crypto.randomUUID();
  readonly agentId: string;
  readonly runner: RunnerRef;
  readonly #claim: (after: number) => Promise<ClaimOutcome>;
  readonly #onEnd: (isGone: boolean) => void;
  readonly #lingerMs: number;
  readonly #tellsCounter: boolean;
  #unwatch: () => void = () => {};
  #linger: ReturnType<typeof setTimeout> | undefined;
  #sink: Sink | null = null;
  readonly #early: Uint8Array<ArrayBuffer>[] = [];
  #after: number;
  #isLive = false;
  #isEnded = false;
  #isAwake = false;
  #isClaiming = false;

  /**
   * @param after the last position the runner has: everything open after it is sent at once
   * @param onEnd called once; `isGone` if the runner went away, and not if this side ended the stream
   */
  constructor(options: {
    agentId: string;
    runner: RunnerRef;
    after: number;
    claim: (stream: CommandStream, after: number) => Promise<ClaimOutcome>;
    onEnd: (stream: CommandStream, isGone: boolean) => void;
    lingerMs?: number;
    /** Whether the runner may know how far the server's counter is; by default it may. */
    tellsCounter?: boolean;
  }) {
    this.#tellsCounter = options.tellsCounter ?? true;
    this.agentId = options.agentId;
    this.runner = options.runner;
    this.#after = options.after;
    this.#claim = (after) => options.claim(this, after);
    this.#onEnd = (isGone) => options.onEnd(this, isGone);
    this.#lingerMs = options.lingerMs ?? LINGER_MS;
  }

  /** Begins to write, first what came before there was a sink. */
  readonly open: OpenStream = (sink) => {
    this.#sink = sink;
    for (const chunk of this.#early.splice(0)) sink.write(chunk);
    if (this.#isEnded) sink.end();
    else if (this.#isAwake) this.wake();
    return {
      drained: () => {
        if (this.#isAwake) this.wake();
      },
      gone: () => this.abandon(),
    };
  };

  greet(resume: CommandFrameData['hello']['resume']): void {
    this.#send({ event: 'hello', data: { resume, position: positionFromNumber(this.#after) } });
  }

  /** Ends once its runner may not listen any more. */
  whenOver(watch: (onEnd: () => void) => () => void): void {
    if (!this.#isEnded) this.#unwatch = watch(() => this.close('unauthorized'));
  }

  /** There may be something to send. */
  wake(): void {
    this.#isAwake = true;
    if (!this.#isClaiming) void this.#pump();
  }

  beat(): void {
    if (!this.#isEnded && this.#hasRoom) this.#write(encoder.encode(HEARTBEAT));
  }

  fence(by: RunnerRef): void {
    const message = `A runner of this agent that came later has taken over (${by.id}). This one ends.`;
    this.#send({ event: 'fenced', data: { runnerId: by.id, startedAt: by.startedAt, message } });
    this.#close();
  }

  close(reason: CommandFrameData['bye']['reason']): void {
    this.#send({ event: 'bye', data: { reason } });
    this.#close();
  }

  /** The request was aborted: nobody reads any more. */
  abandon(): void {
    clearTimeout(this.#linger);
    if (this.#isEnded) return;
    this.#end(true);
    this.#sink?.end();
  }

  get #hasRoom(): boolean {
    return this.#sink !== null && this.#sink.waiting < READ_AHEAD_BYTES;
  }

  async #pump(): Promise<void> {
    this.#isClaiming = true;
    try {
      while (this.#isAwake && !this.#isEnded && this.#hasRoom) {
        this.#isAwake = false;
        this.#take(await this.#claim(this.#isLive ? Number.MAX_SAFE_INTEGER : this.#after));
      }
    } catch (error) {
      // The poll wakes it again: what it could not claim is still queued. The hub meets the same database failure, and
      // logs it once for all streams.
      if (!(error instanceof AppError)) serverLog('error', 'commands are held up:', { error });
    } finally {
      this.#isClaiming = false;
    }
  }

  #take(outcome: ClaimOutcome): void {
    if (outcome.kind === 'fenced') this.fence(outcome.by);
    else if (outcome.kind === 'replaced') this.close('replaced');
    else this.#carry(outcome);
  }

  #carry(outcome: ClaimOutcome & { kind: 'claimed' }): void {
    for (const { command, position } of outcome.commands) {
      this.#after = Math.max(this.#after, position);
      this.#send({ event: 'command', id: positionFromNumber(position), data: command });
    }
    if (outcome.commands.length === MAX_CLAIMED) this.#isAwake = true;
    else if (!this.#isLive) {
      this.#isLive = true;
      this.#send({
        event: 'up-to-date',
        data: { position: positionFromNumber(this.#tellsCounter ? outcome.counter : this.#after) },
      });
    }
  }

  #send(frame: CommandFrame): void {
    if (!this.#isEnded) this.#write(encoder.encode(encodeFrame(frame)));
  }

  #write(chunk: Uint8Array<ArrayBuffer>): void {
    if (this.#sink === null) this.#early.push(chunk);
    else this.#sink.write(chunk);
  }

  #close(): void {
    if (this.#isEnded) return;
    this.#sink?.end();
    const hangUp = () => this.#sink?.hangUp('the runner did not read that it was sent away');
    this.#linger = setTimeout(hangUp, this.#lingerMs);
    if (typeof this.#linger === 'object') this.#linger.unref?.();
    this.#end(false);
  }

  #end(isGone: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#unwatch();
    this.#onEnd(isGone);
  }
}
