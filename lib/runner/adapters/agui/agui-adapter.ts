import type { EmittedEvent, WireAdapter, WireEnd, WireFrame } from '../wire';
import { type AgUiFrame, frameOf, threadOf } from './agui-frames';
import { type AgUiAdapterOptions, AgUiThread, type EndedWork } from './agui-thread';

/**
 * Translates an AG-UI server: the stream of each posted run, and the event stream between runs.
 *
 * Ordering: a session has one turn at a time, but the streams are independent. The stream that owns the open turn has
 * the floor; turns on the other stream wait. Events on both streams are written once.
 *
 * @see AG-UI 1.0.0; the runner of the Ambient platform for the events between runs
 */
export class AgUiAdapter implements WireAdapter {
  #options: AgUiAdapterOptions;
  #thread: AgUiThread | null = null;

  constructor(options: AgUiAdapterOptions) {
    this.#options = options;
  }

  get dueAt(): number | null {
    return this.#thread?.dueAt ?? null;
  }

  /** Restores stored state. Call it before the first frame. */
  restore(ended: EndedWork): void {
    this.#options = { ...this.#options, ended };
  }

  /** State for the next process. */
  get endedWork(): EndedWork {
    return this.#thread?.endedWork ?? this.#options.ended ?? { runs: [], tasks: [] };
  }

  read(frame: WireFrame, now: number): EmittedEvent[] {
    const read = frameOf(frame);
    this.#thread ??= this.#threadOf(read);
    return this.#thread?.read(read, now) ?? [];
  }

  elapsed(now: number): EmittedEvent[] {
    return this.#thread?.elapsed(now) ?? [];
  }

  ended(end: WireEnd, now: number): EmittedEvent[] {
    return this.#thread?.ended(end, now) ?? [];
  }

  /** The first posted run or named event identifies the thread. */
  #threadOf(frame: AgUiFrame): AgUiThread {
    const named = frame.kind === 'post' ? frame.input.threadId : frame.kind === 'event' ? threadOf(frame.event) : null;
    return new AgUiThread(named ?? '', this.#options);
  }
}
