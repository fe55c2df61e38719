import type { CommandFrameData } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { COMMAND_LEASE_MS } from '@interlude/protocol/limits';
import { positionFromNumber } from '@interlude/protocol/position';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { type CommandFrame, encodeFrame, HEARTBEAT } from '@interlude/protocol/sse';
import type { Row } from '@libsql/client';
import type { WriteTransaction } from '@/db/writes';
import { unref } from '@/db/yield-to-loop';
import type { OpenStream, Sink, WatchAccess } from '@/lib/server/access/streamed-response';
import { withTimeLeft } from './desired-state';
import { commandFromRow, type StoredCommand } from './queue-command';
import { type RunnerRef, readRunner } from './runner-connection';

const MAX_CLAIMED = 200;

type ClaimOutcome =
  | { kind: 'claimed'; commands: StoredCommand[]; counter: number }
  | { kind: 'fenced'; by: RunnerRef }
  /** True if a newer stream of the same runner has taken over. */
  | { kind: 'replaced' };

export interface Claim {
  agentId: string;
  runner: RunnerRef;
  streamId: string;
  /** Open commands after this position are claimed despite a lease, because this stream has not sent them. */
  after: number;
  now: number;
}

/**
 * Leases an agent's commands to a stream: those that the stream has not sent yet, and those whose lease expired without
 * an acknowledgement.
 *
 * Ordering: by position, new and repeated ones alike.
 * Failure: a claimed command that never reaches the runner is sent again when its lease expires, or when the runner
 * reconnects with an earlier position.
 */
export async function claimCommands(transaction: WriteTransaction, claim: Claim): Promise<ClaimOutcome> {
  const { agentId, runner, streamId, after, now } = claim;
  const stored = await readRunner(transaction, agentId);
  if (stored !== null && stored.streamId !== streamId) {
    return stored.id !== runner.id
      ? { kind: 'fenced', by: { id: stored.id, startedAt: stored.startedAt } }
      : { kind: 'replaced' };
  }
  const [counter, due] = await transaction.batch([
    'SELECT position FROM counter',
    {
      sql: `SELECT commands.*, (SELECT alias FROM session_aliases AS a WHERE a.session_id = commands.session_id) AS alias
            FROM commands WHERE agent_id = ?1 AND state IN ('queued', 'delivered') AND expires_at > ?2
              AND (position > ?3 OR (state = 'queued' AND ifnull(lease_until, 0) <= ?2))
            ORDER BY position LIMIT ${MAX_CLAIMED}`,
      args: [agentId, now, after],
    },
  ]);
  const commands = (due?.rows ?? []).map((row) => withTimeLeft(withRunnersSessionId(row), now));
  if (commands.length > 0) {
    await transaction.execute({
      sql: `UPDATE commands SET lease_until = ?, claimed_by = ?, delivery_count = delivery_count + 1
            WHERE id IN (SELECT value FROM json_each(?))`,
      args: [now + COMMAND_LEASE_MS, runner.id, JSON.stringify(commands.map(({ command }) => command.id))],
    });
  }
  return { kind: 'claimed', commands, counter: Number(counter?.rows[0]?.position ?? 0) };
}

/** The runner may know the session by an alias. */
function withRunnersSessionId(row: Row): StoredCommand {
  const stored = commandFromRow(row);
  const { command } = stored;
  if (row.alias === null || !('sessionId' in command)) return stored;
  return { ...stored, command: { ...command, sessionId: String(row.alias) } as typeof command };
}

const READ_AHEAD_BYTES = 64 * 1024;
/** Time for a runner to read its `bye` or `fenced` before its connection is broken. */
const LINGER_MS = 10_000;

const encoder = new TextEncoder();

/**
 * The server's end of one runner's command stream.
 *
 * Ordering: `hello`, open commands by position, `up-to-date`, then commands as they are queued. One claim runs at a
 * time; a wake during a claim repeats it.
 * Failure: the stream claims nothing while the runner does not read, so a hanging runner holds no leases. However the
 * stream ends, unsent commands stay queued.
 */
export class CommandStream {
  readonly id = crypto.randomUUID();
  readonly agentId: string;
  readonly runner: RunnerRef;
  readonly #claim: (after: number) => Promise<ClaimOutcome>;
  readonly #onEnd: (isGone: boolean) => void;
  readonly #lingerMs: number;
  readonly #showsCounter: boolean;
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
   * @param options `after`: the last position that the runner has; `onEnd` fires once, with `isGone` if the runner
   *   disconnected; `showsCounter`: false for a runner that must not see how busy the server is
   */
  constructor(options: {
    agentId: string;
    runner: RunnerRef;
    after: number;
    claim: (stream: CommandStream, after: number) => Promise<ClaimOutcome>;
    onEnd: (stream: CommandStream, isGone: boolean) => void;
    lingerMs?: number;
    showsCounter?: boolean;
  }) {
    this.#showsCounter = options.showsCounter ?? true;
    this.agentId = options.agentId;
    this.runner = options.runner;
    this.#after = options.after;
    this.#claim = (after) => options.claim(this, after);
    this.#onEnd = (isGone) => options.onEnd(this, isGone);
    this.#lingerMs = options.lingerMs ?? LINGER_MS;
  }

  /** Attaches the response, and flushes the frames written before it. */
  readonly open: OpenStream = (sink) => {
    this.#sink = sink;
    for (const chunk of this.#early.splice(0)) sink.write(chunk);
    if (this.#isEnded) sink.end();
    else if (this.#isAwake) this.wake();
    return {
      drained: () => {
        if (this.#isAwake) this.wake();
      },
      disconnected: () => this.abandon(),
    };
  };

  sendHello(resume: CommandFrameData['hello']['resume']): void {
    this.#send({ event: 'hello', data: { resume, position: positionFromNumber(this.#after) } });
  }

  /** Closes the stream when its credential loses access. */
  whenOver(watch: WatchAccess): void {
    if (!this.#isEnded) this.#unwatch = watch(() => this.close('unauthorized'));
  }

  wake(): void {
    this.#isAwake = true;
    if (!this.#isClaiming) void this.#pump();
  }

  sendHeartbeat(): void {
    if (!this.#isEnded && this.#hasRoom) this.#write(encoder.encode(HEARTBEAT));
  }

  fence(by: RunnerRef): void {
    const message = `A newer runner of this agent has taken over (${by.id}). Stop this one.`;
    this.#send({ event: 'fenced', data: { runnerId: by.id, startedAt: by.startedAt, message } });
    this.#close();
  }

  close(reason: CommandFrameData['bye']['reason']): void {
    this.#send({ event: 'bye', data: { reason } });
    this.#close();
  }

  /** Ends the stream after the request was aborted. */
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
        const outcome = await this.#claim(this.#isLive ? Number.MAX_SAFE_INTEGER : this.#after);
        if (outcome.kind === 'fenced') this.fence(outcome.by);
        else if (outcome.kind === 'replaced') this.close('replaced');
        else this.#sendClaimed(outcome);
      }
    } catch (error) {
      // The hub's poll wakes the stream again. The hub logs a database failure once for all streams.
      if (!(error instanceof AppError)) serverLog('error', 'commands: delivery is delayed:', { error });
    } finally {
      this.#isClaiming = false;
    }
  }

  #sendClaimed({ commands, counter }: ClaimOutcome & { kind: 'claimed' }): void {
    for (const { command, position } of commands) {
      this.#after = Math.max(this.#after, position);
      this.#send({ event: 'command', id: positionFromNumber(position), data: command });
    }
    if (commands.length === MAX_CLAIMED) this.#isAwake = true;
    else if (!this.#isLive) {
      this.#isLive = true;
      const position = positionFromNumber(this.#showsCounter ? counter : this.#after);
      this.#send({ event: 'up-to-date', data: { position } });
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
    const hangUp = () => this.#sink?.hangUp('the runner did not read its last frame');
    this.#linger = setTimeout(hangUp, this.#lingerMs);
    unref(this.#linger);
    this.#end(false);
  }

  #end(isGone: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#unwatch();
    this.#onEnd(isGone);
  }
}
