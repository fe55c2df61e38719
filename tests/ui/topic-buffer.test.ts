import { expect, it } from 'vitest';
import { TopicBuffer } from '@/components/live/live-connection';
import type { RowFrame } from '@/components/live/row-frame';
import { eventFrame } from './scripted-stream';

const frame = (position: number) => eventFrame('s', position) as RowFrame;

function trackWith(...positions: number[]): TopicBuffer {
  const track = new TopicBuffer('0');
  for (const position of positions) track.add(frame(position), 1);
  return track;
}

const idsSince = (track: TopicBuffer, after: string) => track.since(after).map(({ id }) => id);

it('keeps a repeated frame once, and its position', () => {
  const track = trackWith(1, 2, 3);
  expect([track.add(frame(2), 1), track.add(frame(3), 1)]).toEqual([false, false]);
  expect(track.position).toBe('3');
  expect(idsSince(track, '0')).toEqual(['1', '2', '3']);
});

it('compares positions as numbers', () => {
  const track = trackWith(9);
  expect([track.add(frame(10), 1), track.add(frame(9), 1)]).toEqual([true, false]);
});

it('does not move back when a stream ends before its position', () => {
  const track = trackWith(9);
  track.advance('4');
  expect(track.position).toBe('9');
  track.advance('12');
  expect(track.position).toBe('12');
  expect(track.add(frame(12), 1)).toBe(false);
});

it('serves only positions from which nothing is missing after it has dropped the oldest half', () => {
  const track = trackWith(...Array.from({ length: 2_001 }, (_, index) => index + 1));
  expect(track.covers('0')).toBe(false);
  const [first] = idsSince(track, '0');
  expect(track.covers(String(Number(first) - 2))).toBe(false);
  expect(track.covers(String(Number(first) - 1))).toBe(true);
});

it('accepts earlier frames again after a rewind', () => {
  const track = trackWith(5, 6);
  track.rewind('2');
  expect(track.add(frame(5), 1)).toBe(true);
  expect(idsSince(track, '2')).toEqual(['5']);
  expect([track.covers('1'), track.covers('2')]).toEqual([false, true]);
});
