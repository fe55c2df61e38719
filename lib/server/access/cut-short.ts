import { toAbortError } from '@interlude/protocol/errors';
import type { Asked } from './asked';

/**
 * A long answer that breaks off once whoever reads it may not any more: how long they take over it is up to them.
 *
 * Failure: it ends as a broken connection does, so that nobody takes a part for the whole.
 */
export function cutShort(
  body: ReadableStream<Uint8Array>,
  { whenOver }: Pick<Asked, 'whenOver'>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let stop: (() => void) | null = null;
  const end = () => {
    stop?.();
    stop = () => {};
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // not before somebody reads it: what is never read is never ended either
        stop ??= whenOver(() => {
          controller.error(toAbortError('Whoever reads it may not any more.'));
          reader.cancel().catch(() => {});
        });
        try {
          const { done, value } = await reader.read();
          if (value !== undefined) return controller.enqueue(value);
          if (done) controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel(reason) {
        end();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
