import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { inTurn } from '@/components/ui/in-turn';

/** What a browser would run, in its order: frames, and idle times between them. */
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

it('one thing comes into the page between two frames, the last that asked first', () => {
  const done: string[] = [];
  inTurn(() => done.push('above'));
  inTurn(() => done.push('between')).cancel();
  inTurn(() => done.push('at the end'));
  expect(idles).toHaveLength(1);
  idle();
  expect(done).toEqual(['at the end']);
  expect(idles).toHaveLength(0);
  frame();
  idle();
  expect(done).toEqual(['at the end', 'above']);
  frame();
  idle();
  inTurn(() => done.push('later'));
  idle();
  expect(done).toEqual(['at the end', 'above', 'later']);
  frame();
  idle();
});

it('what fails is no reason for the others to wait', () => {
  const done: string[] = [];
  inTurn(() => done.push('above'));
  inTurn(() => {
    throw new Error('no');
  });
  expect(idle).toThrow('no');
  frame();
  idle();
  expect(done).toEqual(['above']);
  frame();
  idle();
});
