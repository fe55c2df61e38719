import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { enqueueIdle } from '@/components/ui/idle-queue';

/** A browser's queue of frames and idle periods. */
let frames: (() => void)[];
let idles: (() => void)[];

beforeEach(() => {
  frames = [];
  idles = [];
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => frames.push(run));
  vi.stubGlobal('requestIdleCallback', (run: () => void) => idles.push(run));
});
afterEach(() => void vi.unstubAllGlobals());

const idle = () => idles.shift()?.();
const frame = () => frames.shift()?.();

it('runs one job per frame, the newest first', () => {
  const done: string[] = [];
  enqueueIdle(() => done.push('above'));
  enqueueIdle(() => done.push('between')).cancel();
  enqueueIdle(() => done.push('at the end'));
  expect(idles).toHaveLength(1);
  idle();
  expect(done).toEqual(['at the end']);
  expect(idles).toHaveLength(0);
  frame();
  idle();
  expect(done).toEqual(['at the end', 'above']);
  frame();
  idle();
  enqueueIdle(() => done.push('later'));
  idle();
  expect(done).toEqual(['at the end', 'above', 'later']);
  frame();
  idle();
});

it('continues after a job that throws', () => {
  const done: string[] = [];
  enqueueIdle(() => done.push('above'));
  enqueueIdle(() => {
    throw new Error('no');
  });
  expect(idle).toThrow('no');
  frame();
  idle();
  expect(done).toEqual(['above']);
  frame();
  idle();
});
