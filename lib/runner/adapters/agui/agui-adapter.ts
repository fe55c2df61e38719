import type { EmittedEvent, WireAdapter, WireEnd, WireFrame } from '../wire';
import { type AgUiFrame, frameOf, threadOf } from './agui-frames';
import { type AgUiAdapterOptions, AgUiThread, type EndedWork } from './agui-thread';

/**
 * An AG-UI server, as a runner hears it: the stream of each run that it posts, and the stream of events between runs.
 *
 * A session has one turn at a time, and the two streams know nothing of each other. So one of them has the floor: what
 * the other says of a turn of its own waits until that of the first is over. What both streams say is told once.
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

  /** Restores what a previous process stored. Call it before the first frame. */
  recall(ended: EndedWork): void {
    this.#options = { ...this.#options, ended };
  }

  /** What the next process has to know. */
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

  /** The thread is named by what is posted, or by the first event that names one. */
  #threadOf(frame: AgUiFrame): AgUiThread {
    const named = frame.kind === 'post' ? frame.input.threadId : frame.kind === 'event' ? threadOf(frame.event) : null;
    return new AgUiThread(named ?? '', this.#options);
  }
}
