import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';
import type { RowFrame } from './row-frame';
import { Store } from './store';

/** How a read model is read, and how frames carry it on. */
export interface Folding<Snapshot extends { position: Position }> {
  /** @param shown what it is to take the place of, as it is by now */
  read: (signal: AbortSignal, shown: () => Snapshot | undefined) => Promise<Snapshot>;
  /** Gives the snapshot after some frames; where it stands then is not its business. */
  fold: (snapshot: Snapshot, frames: RowFrame[]) => Snapshot;
  /** What came with the page. */
  initial?: Snapshot | undefined;
}

/**
 * A read model that the stream keeps current, and that may be read again at any time.
 *
 * Ordering: frames that it holds already are dropped. Those that come while it is read again are folded into the answer
 * too, which may have been read before them; an answer from before the request was sent changes nothing.
 * Failure: after a gap what is shown stays until it has been read again, whatever position that has. What was asked for
 * before the gap is not taken.
 */
export class FoldedSnapshot<Snapshot extends { position: Position }> extends Store {
  readonly #folding: Folding<Snapshot>;
  #value: Snapshot | undefined;
  #isCurrent: boolean;
  #resets = 0;
  /** While it is read again: the frames since that was asked for. */
  #meanwhile: RowFrame[] | null = null;
  #lastInLine: Promise<unknown> = Promise.resolve();

  constructor(folding: Folding<Snapshot>) {
    super();
    this.#folding = folding;
    this.#value = folding.initial;
    this.#isCurrent = folding.initial !== undefined;
  }

  /** Undefined until it has been read. */
  get value(): Snapshot | undefined {
    return this.#value;
  }

  /** Where frames go on from; null while that is to be read. */
  get position(): Position | null {
    return this.#isCurrent ? (this.#value?.position ?? null) : null;
  }

  takeFrames(frames: readonly RowFrame[]): void {
    if (!this.#isCurrent || this.#value === undefined) return;
    const fresh = framesAfter(frames, this.#value.position);
    if (fresh.length === 0) return;
    this.#meanwhile?.push(...fresh);
    this.set(this.#fold(this.#value, fresh));
  }

  /** @throws what reading throws */
  read(signal: AbortSignal): Promise<Position> {
    return this.inLine(async () => {
      const { read } = this.#folding;
      const known = this.position ?? ORIGIN;
      const resets = this.#resets;
      const meanwhile: RowFrame[] = [];
      this.#meanwhile = meanwhile;
      try {
        const snapshot = await read(signal, () => this.#value);
        if (resets !== this.#resets) throw new Error('This was asked for before a gap. Ask again.');
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

  /** Frames were missed for good. */
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

  /** One request at a time: what is read again takes the place of all that was there when it was asked for. */
  protected inLine<Result>(ask: () => Promise<Result>): Promise<Result> {
    const asked = this.#lastInLine.then(ask);
    this.#lastInLine = asked.catch(() => undefined);
    return asked;
  }
}

function framesAfter(frames: readonly RowFrame[], position: Position): RowFrame[] {
  return frames.filter((frame) => comparePositions(frame.id, position) > 0);
}
