import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import type { RowFrame } from './row-frame';
import { Store } from './store';

/** Reads a snapshot and applies frames to it. */
interface Folding<Snapshot extends { position: Position }> {
  /** @param shown the current snapshot, which the new one replaces */
  read: (signal: AbortSignal, shown: () => Snapshot | undefined) => Promise<Snapshot>;
  /** Applies frames. The caller sets the position. */
  fold: (snapshot: Snapshot, frames: RowFrame[]) => Snapshot;
  /** The snapshot that the server sent with the page. */
  initial?: Snapshot | undefined;
}

/**
 * A read model that the stream keeps current and that can be read again.
 *
 * Ordering: known frames are dropped. Frames that arrive during a read are also applied to its result, which may be
 * older. A result older than its request is discarded.
 * Failure: after a gap the shown snapshot stays until the next read, whose result is accepted at any position. Reads
 * started before the gap are discarded.
 */
export class FoldedSnapshot<Snapshot extends { position: Position }> extends Store {
  readonly #folding: Folding<Snapshot>;
  #value: Snapshot | undefined;
  #isCurrent: boolean;
  #resets = 0;
  /** Frames received during a read. */
  #meanwhile: RowFrame[] | null = null;
  #lastRequest: Promise<unknown> = Promise.resolve();

  constructor(folding: Folding<Snapshot>) {
    super();
    this.#folding = folding;
    this.#value = folding.initial;
    this.#isCurrent = folding.initial !== undefined;
  }

  /** Undefined until the first read. */
  get value(): Snapshot | undefined {
    return this.#value;
  }

  /** Position after which frames continue; null while a read is needed. */
  get position(): Position | null {
    return this.#isCurrent ? (this.#value?.position ?? null) : null;
  }

  applyFrames(frames: readonly RowFrame[]): void {
    if (!this.#isCurrent || this.#value === undefined) return;
    const fresh = framesAfter(frames, this.#value.position);
    if (fresh.length === 0) return;
    this.#meanwhile?.push(...fresh);
    this.set(this.#fold(this.#value, fresh));
  }

  /** @throws the errors of `Folding.read` */
  read(signal: AbortSignal): Promise<Position> {
    return this.inOrder(async () => {
      const { read } = this.#folding;
      const known = this.position ?? ORIGIN;
      const resets = this.#resets;
      const meanwhile: RowFrame[] = [];
      this.#meanwhile = meanwhile;
      try {
        const snapshot = await read(signal, () => this.#value);
        if (resets !== this.#resets) throw new Error('Connection interrupted. Retry.');
        if (comparePositions(snapshot.position, known) >= 0) {
          const fresh = framesAfter(meanwhile, snapshot.position);
          this.#isCurrent = true;
          this.set(this.#fold(snapshot, fresh));
        }
        return this.position ?? snapshot.position;
      } finally {
        this.#meanwhile = null;
      }
    });
  }

  /** Call after a gap. */
  reset(): void {
    this.#resets += 1;
    this.#isCurrent = false;
    this.changed();
  }

  protected set(value: Snapshot): void {
    this.#value = value;
    this.changed();
  }

  #fold(snapshot: Snapshot, frames: RowFrame[]): Snapshot {
    const last = frames.at(-1);
    return last === undefined ? snapshot : { ...this.#folding.fold(snapshot, frames), position: last.id };
  }

  /** Runs one request at a time, because each result replaces the whole snapshot. */
  protected inOrder<Result>(read: () => Promise<Result>): Promise<Result> {
    const request = this.#lastRequest.then(read);
    this.#lastRequest = request.catch(() => undefined);
    return request;
  }
}

function framesAfter(frames: readonly RowFrame[], position: Position): RowFrame[] {
  return frames.filter((frame) => comparePositions(frame.id, position) > 0);
}
