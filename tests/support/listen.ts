import { EVERYTHING } from '@interlude/protocol/scope';
import { parseTopic, type Topic } from '@interlude/protocol/sse';
import { streamToBody } from '@/lib/server/access/streamed-response';
import type { FanOut, Subscription } from '@/lib/server/fan-out/fan-out';
import { FrameReader } from './frames';

type Wish = Partial<Omit<Subscription, 'topics'>>;

/** A stream of a fan-out as its reader has it before reading: of these topics, of everything, from the beginning. */
export async function streamOf(fanOut: FanOut, names: readonly string[], wish: Wish = {}) {
  const topics = names.map((name) => parseTopic(name) as Topic);
  const { signal } = new AbortController();
  return streamToBody(await fanOut.subscribe({ topics, scope: EVERYTHING, after: 0, signal, ...wish }));
}

/** The same, read from now on. */
export async function listenTo(fanOut: FanOut, names: readonly string[], wish: Wish = {}): Promise<FrameReader> {
  return new FrameReader(await streamOf(fanOut, names, wish));
}
